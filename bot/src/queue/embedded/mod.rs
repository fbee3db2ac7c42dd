//! A queue in one file of this machine's disk.
//!
//! What holds, over crashes of the process and of the machine:
//!
//! - Who was told that something is done finds it done. A change is on the disk before its answer is given.
//! - What cannot be stored is refused within seconds and changes nothing.
//! - No file makes it panic or lose what can still be read, and no file is ever removed.
//!
//! [`writer`] has the thread that does all the work, [`start`] what happens before, [`disk`] the file. Nothing of the
//! database is to be seen outside this folder. Pages of it stand in `docs/queue.md`, "On disk".

mod ballast;
mod disk;
mod failure;
mod marker;
mod operation;
mod shared;
mod start;
#[cfg(test)]
mod testing;
mod trouble;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio::time::{timeout, timeout_at};

pub use self::shared::{QueueHealth, QueueState};
pub use self::start::OpenError;
use crate::clock::{Clock, WallTime, instant};
use crate::domain::{DeliveryKey, RequestId};
use crate::queue::book::{Book, BookSettings};
use crate::queue::embedded::operation::{Call, Kind, Leases, LetGo, Message, Watch};
use crate::queue::embedded::shared::Shared;
use crate::queue::embedded::writer::Writer;
use crate::queue::{
    Answer, Completed, DeadReason, Durability, Enqueued, Filter, Held, Intent, JobId, JobResult, JobView,
    Lease, LeaseRef, MemoryQueue, NewJob, Queue, QueueError, Reason, Retried, Stats,
};

/// Where and how a queue is kept.
#[derive(Clone, Debug)]
pub struct EmbeddedSettings {
    /// The folder of its files; it is made when it is not there. One process at a time.
    pub folder: PathBuf,
    /// Bytes held back for a full disk; 0 holds nothing back. Default: 16 MiB.
    pub ballast_bytes: u64,
    /// Memory for pages of the file. Default: 16 MiB.
    pub cache_bytes: usize,
    /// The file is compacted when there was no job to do for so long. Default: 60 s.
    pub idle_after: Duration,
    /// Its bounds.
    pub book: BookSettings,
}

impl EmbeddedSettings {
    /// The defaults, in this folder.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            ballast_bytes: 16 << 20,
            cache_bytes: 16 << 20,
            idle_after: Duration::from_secs(60),
            book: BookSettings::default(),
        }
    }
}

/// A queue on the disk.
///
/// When it is dropped its thread stores what it was sent, closes the file and ends by itself; only
/// [`close`](Queue::close) waits for that.
#[derive(Debug)]
pub struct EmbeddedQueue {
    messages: Sender<Message>,
    shared: Arc<Shared>,
    /// One for each call that is under way.
    turns: Arc<Semaphore>,
}

/// Calls that are under way at most. More than two transactions hold, so that one fills while the other is stored.
const MOST_CALLS: usize = 2_048;

/// Every call is answered within this time.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// [`close`](Queue::close) waits at most so long. A disk that hangs must not keep a process from its end.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

impl EmbeddedQueue {
    /// Opens the queue in a folder, or begins one. Blocks while the file is checked: 100,000 jobs take a second.
    ///
    /// A damaged file is moved aside, said once as an error, and a new one is begun; [`health`](Self::health) tells.
    ///
    /// # Errors
    /// When another process has it open, or the disk does not let it be read or written.
    #[expect(clippy::needless_pass_by_value, reason = "a queue takes its settings as all rooms do")]
    pub fn open(settings: EmbeddedSettings, clock: Clock) -> Result<Self, OpenError> {
        let (stock, health) = start::open(&settings, clock.now())?;
        let shared = Arc::new(Shared::new(health));
        let (messages, received) = channel();
        let writer =
            Writer::new(received, Arc::clone(&shared), clock, settings.book, settings.idle_after, stock);
        thread::Builder::new()
            .name("azalea-queue".to_owned())
            .spawn(move || writer.run())
            .map_err(OpenError::Thread)?;
        Ok(Self { messages, shared, turns: Arc::new(Semaphore::new(MOST_CALLS)) })
    }

    /// What stands in the queue of a folder, in memory and without a change to the file: for somebody who looks, where
    /// the disk cannot be written. Nothing that is done with it is stored. Blocks as [`open`](Self::open) does.
    ///
    /// # Errors
    /// When it cannot be read.
    #[expect(clippy::needless_pass_by_value, reason = "as `open`")]
    pub fn look(settings: EmbeddedSettings, clock: Clock) -> Result<MemoryQueue, OpenError> {
        start::look(&settings, clock)
    }

    /// Whether a queue was ever begun in this folder. Blocks as long as looking for two files takes.
    pub fn is_in(folder: &Path) -> bool {
        [disk::FILE, marker::FILE].iter().any(|file| folder.join(file).symlink_metadata().is_ok())
    }

    /// How it is.
    pub fn health(&self) -> QueueHealth {
        self.shared.health().clone()
    }

    /// Has the writer do something and waits for the answer.
    fn call<T, F>(&self, kind: Kind, deed: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnMut(&mut Book, WallTime) -> Result<T, QueueError> + Send + 'static,
    {
        Box::pin(self.call_wrapped(kind, deed, |outcome| outcome))
    }

    /// The same, where the outcome is wrapped after it is stored and before it is sent.
    async fn call_wrapped<T, U, F, W>(&self, kind: Kind, deed: F, wrap: W) -> Result<U, QueueError>
    where
        T: Send + 'static,
        U: Send + 'static,
        F: FnMut(&mut Book, WallTime) -> Result<T, QueueError> + Send + 'static,
        W: FnOnce(T) -> U + Send + 'static,
    {
        if self.shared.is_closing() {
            return Err(QueueError::Closed);
        }
        let deadline = instant().checked_add(ANSWER_WITHIN).unwrap_or_else(instant);
        let turn = match timeout_at(deadline, Arc::clone(&self.turns).acquire_owned()).await {
            Ok(turn) => turn.map_err(|_| QueueError::Closed)?,
            // Nothing was sent yet.
            Err(_) => return Err(QueueError::Unavailable(format!("{MOST_CALLS} calls wait for the disk"))),
        };
        let (operation, answer) = Call::boxed(kind, deed, wrap, turn);
        self.messages.send(Message::Do(operation)).map_err(|_| QueueError::Closed)?;
        match timeout_at(deadline, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) if self.shared.is_closing() => Err(QueueError::Closed),
            Ok(Err(_)) | Err(_) => Err(QueueError::Unknown),
        }
    }
}

impl Queue for EmbeddedQueue {
    fn enqueue(&self, job: NewJob) -> Answer<'_, Enqueued> {
        self.call(Kind::Enqueue, move |book, now| book.enqueue(job.clone(), now))
    }

    fn enqueue_behind(&self, job: NewJob) -> Answer<'_, Enqueued> {
        let back = self.messages.clone();
        let enqueued = self.call_wrapped(
            Kind::Enqueue,
            move |book, now| book.enqueue_behind(job.clone(), now),
            move |enqueued| Watch::new(enqueued, back),
        );
        Box::pin(async move { enqueued.await.map(Watch::take) })
    }

    fn let_go(&self, job: JobId) {
        // When the writer has ended there is nobody to work on it.
        let _ = self.messages.send(Message::Do(Box::new(LetGo(job))));
    }

    fn claim(&self, most: usize, visibility: Duration) -> Answer<'_, Vec<Lease>> {
        let back = self.messages.clone();
        let claimed = self.call_wrapped(
            Kind::Claim,
            move |book, now| Ok(book.claim(most, visibility, now)),
            move |leases| Leases::new(leases, back),
        );
        Box::pin(async move { claimed.await.map(Leases::take) })
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        let mut ready = self.shared.ready.subscribe();
        Box::pin(async move {
            // The sender lives as long as the queue.
            let _ = ready.wait_for(|ready| *ready).await;
        })
    }

    fn extend(&self, lease: LeaseRef, visibility: Duration) -> Answer<'_, Held> {
        self.call(Kind::Look, move |book, now| Ok(book.extend(lease, visibility, now)))
    }

    fn engage(&self, lease: LeaseRef) -> Answer<'_, Held> {
        self.call(Kind::Change, move |book, now| Ok(book.engage(lease, now)))
    }

    fn intend(&self, lease: LeaseRef, intent: Intent) -> Answer<'_, Held> {
        self.call(Kind::Change, move |book, now| Ok(book.intend(lease, intent.clone(), now)))
    }

    fn complete(&self, lease: LeaseRef, result: JobResult) -> Answer<'_, Completed> {
        self.call(Kind::Change, move |book, now| Ok(book.complete(lease, result.clone(), now)))
    }

    fn retry(&self, lease: LeaseRef, after: Duration, reason: Reason) -> Answer<'_, Retried> {
        self.call(Kind::Change, move |book, now| Ok(book.retry(lease, after, reason.clone(), now)))
    }

    fn bury(&self, lease: LeaseRef, reason: Reason, why: DeadReason) -> Answer<'_, Held> {
        self.call(Kind::Change, move |book, now| Ok(book.bury(lease, reason.clone(), why, now)))
    }

    fn release(&self, lease: LeaseRef, after: Duration) -> Answer<'_, Held> {
        self.call(Kind::Change, move |book, now| Ok(book.release(lease, after, now)))
    }

    fn unanswered(&self, most: usize) -> Answer<'_, Vec<JobView>> {
        self.call(Kind::Look, move |book, _| Ok(book.unanswered(most)))
    }

    fn answered(&self, id: JobId) -> Answer<'_, bool> {
        self.call(Kind::Change, move |book, now| Ok(book.answered(id, now)))
    }

    fn result(&self, key: RequestId) -> Answer<'_, Option<JobResult>> {
        self.call(Kind::Look, move |book, now| Ok(book.result(key, now)))
    }

    fn delivered(&self, key: &DeliveryKey) -> Answer<'_, Option<JobResult>> {
        let key = *key;
        self.call(Kind::Look, move |book, now| Ok(book.delivered(&key, now)))
    }

    fn list(&self, filter: Filter) -> Answer<'_, Vec<JobView>> {
        self.call(Kind::Look, move |book, now| Ok(book.list(&filter, now)))
    }

    fn show(&self, id: JobId) -> Answer<'_, Option<JobView>> {
        self.call(Kind::Look, move |book, now| Ok(book.show(id, now)))
    }

    fn revive(&self, id: JobId, deadline: WallTime) -> Answer<'_, bool> {
        self.call(Kind::Change, move |book, now| Ok(book.revive(id, deadline, now)))
    }

    fn forget(&self, id: JobId) -> Answer<'_, bool> {
        self.call(Kind::Change, move |book, now| Ok(book.forget(id, now)))
    }

    fn drain(&self) -> Answer<'_, Vec<JobView>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn stats(&self) -> Answer<'_, Stats> {
        let stats = self.call(Kind::Look, move |book, now| Ok(book.stats(now)));
        Box::pin(async move { Ok(Stats { trouble: self.health().trouble(), ..stats.await? }) })
    }

    fn durability(&self) -> Durability {
        Durability::Fsync
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.shared.close();
            // An error means that it has ended already.
            let _ = self.messages.send(Message::Close);
            let mut ended = self.shared.ended.subscribe();
            let waited = timeout(CLOSE_WITHIN, ended.wait_for(|ended| *ended)).await;
            if waited.is_err() {
                tracing::error!("the queue did not close within {CLOSE_WITHIN:?}");
            }
        })
    }
}

#[cfg(test)]
mod tests;
