//! The writer: takes changes from the queue in batches, and tries again when the disk fails.
//!
//! One task owns the writing. Readers and the writer meet in [`Shared`], whose locks are held for moments and never
//! across an await. All that blocks runs on the runtime's blocking threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{sleep_until, timeout};

use crate::clock::{Clock, Instant, instant};
use crate::metrics::{Counter, Tracker};
use crate::store::disk::{Disk, DiskError};
use crate::store::queue::{Change, Place, Queue};
use crate::store::record::Record;
use crate::store::trouble::{Deed, News, Trouble};
use crate::store::{Shelf, StoreHealth, StoreState};

/// Batches that wait at most.
const MOST_BATCHES: usize = 10;

/// Readers at once. A disk that hangs holds this many threads and no more.
const READERS: usize = 4;

/// How long a reader waits for the disk, its turn included; then the record counts as absent.
const READ_LIMIT: Duration = Duration::from_secs(2);

/// What readers, the writer and the handle share.
#[derive(Debug)]
pub(super) struct Shared {
    batch_size: usize,
    flush_interval: Duration,
    clock: Clock,
    tracker: Tracker,
    disk: Disk,
    queue: Mutex<Queue>,
    trouble: Mutex<Trouble>,
    /// When the oldest change of the queue is due at the latest.
    due: Mutex<Option<Instant>>,
    /// Told when the queue is no longer empty, and when a batch is full.
    more: Notify,
    readers: Arc<Semaphore>,
}

impl Shared {
    pub(super) fn new(
        disk: Disk,
        batch_size: usize,
        flush_interval: Duration,
        clock: Clock,
        tracker: Tracker,
    ) -> Self {
        let batch_size = batch_size.max(1);
        Self {
            batch_size,
            flush_interval,
            clock,
            tracker,
            disk,
            queue: Mutex::new(Queue::new(batch_size.saturating_mul(MOST_BATCHES))),
            trouble: Mutex::default(),
            due: Mutex::default(),
            more: Notify::new(),
            readers: Arc::new(Semaphore::new(READERS)),
        }
    }

    pub(super) fn push(&self, place: Place, change: Change) {
        let (before, after, dropped) = {
            let mut queue = lock(&self.queue);
            let (before, lost) = (queue.len(), queue.dropped());
            queue.push(place, change);
            (before, queue.len(), queue.dropped().saturating_sub(lost))
        };
        self.tracker.count(Counter::StoreDrops, dropped);
        if before == 0 && after > 0 {
            *lock(&self.due) = instant().checked_add(self.flush_interval);
        }
        if before == 0 || after >= self.batch_size {
            self.more.notify_one();
        }
    }

    /// Takes no more changes.
    pub(super) fn close(&self) {
        lock(&self.queue).close();
    }

    /// Gives up what waits, and says how much it was.
    pub(super) fn abandon(&self) -> usize {
        let lost = lock(&self.queue).abandon();
        self.tracker.count(Counter::StoreDrops, u64::try_from(lost).unwrap_or(u64::MAX));
        lost
    }

    pub(super) async fn get(self: &Arc<Self>, shelf: Shelf, key: &str) -> Option<Record> {
        let place: Place = (shelf, key.into());
        // The queue first: what is not in it any more is on the disk.
        let waiting = {
            let queue = lock(&self.queue);
            let closed = queue.is_closed();
            match queue.peek(&place) {
                Some(Change::Put { value, expires }) => {
                    Some(Some(Record { value: value.to_vec(), expires: *expires }))
                }
                Some(Change::Remove) => Some(None),
                None if closed => Some(None),
                None => None,
            }
        };
        let record = match waiting {
            Some(record) => record,
            None if lock(&self.trouble).reads_in_vain(instant()) => None,
            None => match timeout(READ_LIMIT, self.read(place)).await {
                Ok(record) => record,
                // A disk that hangs is a disk that fails: the next readers need not wait for it.
                Err(_) => self.told(Deed::Read, Err(DiskError::Failed("reading took too long".into()))),
            },
        };
        record.filter(|record| self.clock.now() < record.expires)
    }

    async fn read(self: &Arc<Self>, (shelf, key): Place) -> Option<Record> {
        let turn = Arc::clone(&self.readers).acquire_owned().await.ok()?;
        let shared = Arc::clone(self);
        let reading = tokio::task::spawn_blocking(move || {
            // Held here, not in the future: a reader that hangs counts, whoever still waits for it.
            let _turn = turn;
            shared.told(Deed::Read, shared.disk.read(shelf, &key)).flatten()
        });
        reading.await.ok().flatten()
    }

    pub(super) fn health(&self) -> StoreHealth {
        let (queued, dropped, closed) = {
            let queue = lock(&self.queue);
            (queue.len(), queue.dropped(), queue.is_closed())
        };
        let trouble = lock(&self.trouble);
        let state = match trouble.failures() {
            _ if closed => StoreState::Off,
            0 => StoreState::Working,
            _ if trouble.is_suspended() => StoreState::Suspended,
            _ => StoreState::Retrying,
        };
        StoreHealth {
            state,
            queued,
            dropped,
            failures_in_a_row: trouble.failures(),
            moved_aside: self.disk.moved_aside(),
            last_error: trouble.last_error().map(str::to_owned),
        }
    }

    /// Keeps account of how a deed went, and tells the operator when that changes something.
    fn told<T>(&self, deed: Deed, result: Result<T, DiskError>) -> Option<T> {
        let (news, worked) = match result {
            Ok(value) => (lock(&self.trouble).worked(deed), Some(value)),
            Err(error) => {
                tracing::debug!(%error, ?deed, "the store failed");
                (lock(&self.trouble).failed(deed, error.to_string(), instant()), None)
            }
        };
        match news {
            News::None => {}
            News::Suspended => {
                let error = lock(&self.trouble).last_error().unwrap_or_default().to_owned();
                tracing::error!(
                    error,
                    folder = %self.disk.folder().display(),
                    "nothing is stored until the disk works again; it is tried every five minutes"
                );
            }
            News::Recovered => {
                let folder = self.disk.folder().display();
                tracing::info!(%folder, "the disk works again and what is new is stored");
            }
        }
        worked
    }

    /// Writes one batch. Whether it worked, and whether more waits.
    async fn flush(self: &Arc<Self>) -> Flushed {
        let batch = lock(&self.queue).batch(self.batch_size);
        if batch.is_empty() {
            return Flushed::Empty;
        }
        let shared = Arc::clone(self);
        let writing = tokio::task::spawn_blocking(move || {
            let written = shared.told(Deed::Write, shared.disk.write(&batch)).is_some();
            if written {
                lock(&shared.queue).settle(&batch);
            } else {
                shared.tracker.count(Counter::StoreFailures, 1);
            }
            written
        });
        if writing.await.unwrap_or(false) { Flushed::Batch } else { Flushed::Failed }
    }

    /// Waits until there is something to write and it is time.
    async fn ready(&self) {
        loop {
            // Both are read anew after each wait: a batch may have filled, a reader may have failed or not.
            let queued = lock(&self.queue).len();
            let retry = lock(&self.trouble).retry_at();
            match (queued, retry) {
                (0, _) => self.more.notified().await,
                (_, Some(at)) => return sleep_until(at).await,
                (queued, None) if queued >= self.batch_size => return,
                (_, None) => {
                    // None only when the interval is longer than time; then a full batch is awaited.
                    let due = *lock(&self.due);
                    let Some(due) = due else {
                        self.more.notified().await;
                        continue;
                    };
                    tokio::select! {
                        () = sleep_until(due) => return,
                        () = self.more.notified() => {}
                    }
                }
            }
        }
    }
}

/// What a flush did.
enum Flushed {
    /// There was nothing to do.
    Empty,
    /// A batch is on the disk.
    Batch,
    /// It is not.
    Failed,
}

/// The writer. Ends when it is told to, or when nobody is left to tell it; then it writes what waits, as far as that
/// works at once, and closes the file.
pub(super) async fn run(shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            // Both answers of `changed` end it: told to, and nobody left.
            _ = stop.changed() => break,
            () = shared.ready() => {}
        }
        while let Flushed::Batch = shared.flush().await {
            // What came meanwhile waits its time, so that a steady trickle is written in batches too.
            *lock(&shared.due) = instant().checked_add(shared.flush_interval);
            if lock(&shared.queue).len() < shared.batch_size {
                break;
            }
        }
    }
    while let Flushed::Batch = shared.flush().await {}
    let closing = Arc::clone(&shared);
    // A file that does not close well is repaired when it is opened.
    let _ = tokio::task::spawn_blocking(move || closing.disk.close()).await;
}

/// Takes a lock whose holders cannot leave anything half done.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
