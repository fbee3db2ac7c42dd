//! The one thread that has the book and the file.
//!
//! It takes what has come, applies all of it to the book, stores the changes in one transaction, and then answers: who
//! comes while the disk works is in the next round. When the disk fails the book goes back to what is stored.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::ballast::Ballast;
use super::disk::Disk;
use super::failure::DiskError;
use super::marker::Marker;
use super::operation::{Kind, Message, Operation};
use super::shared::{QueueState, Shared};
use super::start::{Stock, read_book};
use super::trouble::Trouble;
use crate::clock::{Clock, WallTime, instant};
use crate::queue::book::{Book, BookSettings};
use crate::queue::{QueueError, Stats};

/// Operations in one transaction. What waits behind them waits for one more.
const MOST_TOGETHER: usize = 512;

/// Repairs in one round, each of which tries the round again. More in a row mend nothing.
const REPAIRS: usize = 3;

/// How long it waits at most for the next operation while there are jobs. The clock can be moved meanwhile.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// The same when there are none, and nothing is due but old results.
const LONGEST_IDLE_WAIT: Duration = Duration::from_secs(5);

/// A file that is no longer than this is never compacted.
const SMALL_FILE: u64 = 512 << 10;

/// The writer.
pub(super) struct Writer {
    messages: Receiver<Message>,
    shared: Arc<Shared>,
    clock: Clock,
    settings: BookSettings,
    idle_after: Duration,
    book: Book,
    disk: Disk,
    ballast: Ballast,
    trouble: Trouble,
    /// Nothing new is taken; and when to look for room again.
    full: Option<Trouble>,
    /// The book is not to be trusted and has to be read from the file.
    adrift: bool,
    /// The last moment at which there was a job to do.
    busy_at: WallTime,
    /// Whether something was stored since the file was last compacted.
    changed: bool,
}

impl Writer {
    pub(super) fn new(
        messages: Receiver<Message>,
        shared: Arc<Shared>,
        clock: Clock,
        settings: BookSettings,
        idle_after: Duration,
        stock: Stock,
    ) -> Self {
        let Stock { book, disk, ballast, full } = stock;
        let busy_at = clock.now();
        let full = full.then(Trouble::default);
        let trouble = Trouble::default();
        Self {
            messages,
            shared,
            clock,
            settings,
            idle_after,
            book,
            disk,
            ballast,
            trouble,
            full,
            adrift: false,
            busy_at,
            changed: true,
        }
    }

    /// Works until it is told to end, or nobody is left who could tell it anything.
    pub(super) fn run(mut self) {
        self.publish(self.clock.now());
        loop {
            let mut batch: Vec<Box<dyn Operation>> = Vec::new();
            let mut next = match self.messages.recv_timeout(self.patience()) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Message::Close),
            };
            let mut over = false;
            while let Some(message) = next.take() {
                match message {
                    Message::Do(operation) => batch.push(operation),
                    Message::Close => over = true,
                }
                if !over && batch.len() < MOST_TOGETHER {
                    next = self.messages.try_recv().ok();
                }
            }
            let rests = batch.is_empty() && !over;
            self.guarded(batch);
            if over {
                break;
            }
            if rests {
                self.rest();
            }
        }
        self.end();
    }

    /// One round. A panic in it is ours or comes of a damaged file; the book is then read anew.
    fn guarded(&mut self, mut batch: Vec<Box<dyn Operation>>) {
        let done = catch_unwind(AssertUnwindSafe(|| self.round(&mut batch)));
        if done.is_err() {
            tracing::error!("the queue's writer panicked; the queue is read from its file again");
            self.disk.close();
            self.adrift = true;
            // Nobody knows what of it was stored.
            batch.iter_mut().for_each(|operation| operation.refuse(QueueError::Unknown));
            self.shared.set_ready(false);
        }
        batch.into_iter().for_each(Operation::answer);
    }

    fn round(&mut self, batch: &mut Vec<Box<dyn Operation>>) {
        let now = self.clock.now();
        // Who has given up must not be given a job, and was not told that a request is taken.
        batch.retain(|operation| match operation.kind() {
            Kind::Enqueue | Kind::Claim => operation.is_wanted(),
            Kind::Change | Kind::Look => true,
        });
        self.look_for_room();
        self.look_for_file(now);
        let mut result = self.open_again(now).and_then(|()| self.attempt(batch, now));
        for _ in 0..REPAIRS {
            let Err(error) = result else { break };
            result = self.mend(error, now).and_then(|()| self.attempt(batch, now));
        }
        match result {
            Ok(()) => self.worked(),
            Err(error) => {
                self.gave_up(&error);
                // Nothing is stored now, so this refuses what needs the disk and answers the rest.
                let _ = self.attempt(batch, now);
            }
        }
        self.publish(now);
    }

    /// Applies all of the batch and stores what it changes. When that fails the book is as it was before.
    fn attempt(&mut self, batch: &mut [Box<dyn Operation>], now: WallTime) -> Result<(), DiskError> {
        if self.disk.is_open() {
            self.book.tick(now);
        }
        for operation in batch {
            match self.refusal(operation.kind()) {
                Some(error) => operation.refuse(error),
                None => operation.apply(&mut self.book, now),
            }
        }
        let changes = self.book.changes();
        if !changes.is_empty() {
            let stored = self.disk.write(&changes, &self.book.counters(), &[], now);
            if let Err(error) = stored {
                self.book.roll_back();
                return Err(error);
            }
            self.changed = true;
        }
        self.book.commit();
        Ok(())
    }

    /// Why an operation cannot be done now.
    fn refusal(&self, kind: Kind) -> Option<QueueError> {
        match kind {
            Kind::Look => None,
            Kind::Enqueue | Kind::Claim | Kind::Change if !self.disk.is_open() => {
                let why = self.shared.health().last_error.clone();
                Some(QueueError::Unavailable(why.unwrap_or_else(|| DiskError::Closed.to_string())))
            }
            Kind::Enqueue if self.full.is_some() => {
                Some(QueueError::Unavailable("the disk is full".to_owned()))
            }
            Kind::Enqueue | Kind::Claim | Kind::Change => None,
        }
    }

    // ---- failures ------------------------------------------------------------------------------------------

    /// Opens a file that was closed after a failure, when it is time.
    fn open_again(&mut self, now: WallTime) -> Result<(), DiskError> {
        if self.disk.is_open() || !self.trouble.pause(instant()).is_zero() {
            return Ok(());
        }
        if !self.adrift {
            return self.disk.reopen(&self.book);
        }
        (self.book, _) = read_book(&mut self.disk, self.settings, now)?;
        self.adrift = false;
        Ok(())
    }

    /// Writes the queue anew when somebody took its file away.
    fn look_for_file(&mut self, now: WallTime) {
        if !self.disk.is_lost() {
            return;
        }
        let aside = self.disk.abandon(now);
        let file = self.disk.path();
        tracing::error!(
            file = %file.display(),
            ?aside,
            "the queue's file was taken away while it was used; it is written anew from memory"
        );
        self.shared.health().last_error = Some("the queue's file was taken away".to_owned());
        self.adrift = false;
    }

    /// Does what helps against a failure; the file is open afterwards.
    fn mend(&mut self, error: DiskError, now: WallTime) -> Result<(), DiskError> {
        match error {
            DiskError::Full(what) => {
                let freed = self.ballast.free();
                if freed || self.full.is_none() {
                    let folder = self.disk.path();
                    tracing::error!(
                        file = %folder.display(),
                        "the queue's disk is full ({what}); what is queued is worked off, and nothing new is taken"
                    );
                }
                // The pause grows only when room that was found was no room.
                self.full.get_or_insert_default().failed(instant());
                self.shared.health().last_error = Some(DiskError::Full(what).to_string());
                self.disk.reopen(&self.book)
            }
            // Without a file a book that cannot be trusted is still better than none.
            DiskError::Damaged(what) => {
                let aside = self.disk.move_aside(now)?;
                self.say_damaged(&what, &aside);
                self.adrift = false;
                self.disk.reopen(&self.book)
            }
            // Once at once: many a failure is over when the file was opened again.
            DiskError::Failed(_) if self.trouble.failures() == 0 && !self.adrift => {
                self.trouble.failed(instant());
                self.disk.reopen(&self.book)
            }
            DiskError::Failed(_) | DiskError::InUse | DiskError::Closed => Err(error),
        }
    }

    fn say_damaged(&self, what: &str, aside: &Path) {
        let file = self.disk.path();
        tracing::error!(
            file = %file.display(),
            aside = %aside.display(),
            "the queue's file was damaged ({what}); it was moved aside and written anew from memory"
        );
        let mut health = self.shared.health();
        health.moved_aside = Some(aside.to_owned());
        health.last_error = Some(what.to_owned());
    }

    fn gave_up(&mut self, error: &DiskError) {
        self.disk.close();
        self.shared.health().last_error = Some(error.to_string());
        if self.trouble.failed(instant()) {
            let file = self.disk.path();
            tracing::error!(file = %file.display(), "the queue cannot be stored ({error}); it is tried again");
        }
    }

    fn worked(&mut self) {
        if self.disk.is_open() && self.trouble.worked() {
            let file = self.disk.path();
            tracing::info!(file = %file.display(), "the queue's disk works again");
        }
    }

    /// Holds room back again after the disk was full, when it is time and there is some.
    fn look_for_room(&mut self) {
        let Some(full) = &mut self.full else { return };
        if !full.pause(instant()).is_zero() {
            return;
        }
        match self.ballast.hold() {
            Err(error) if error.kind() == ErrorKind::StorageFull => {
                full.failed(instant());
            }
            // There is room, even if it cannot be held back.
            Ok(()) | Err(_) => {
                self.full = None;
                let file = self.disk.path();
                tracing::info!(file = %file.display(), "the queue's disk has room again");
            }
        }
    }

    // ---- between rounds ------------------------------------------------------------------------------------

    /// Tells everybody how it is.
    fn publish(&mut self, now: WallTime) {
        let stats = self.book.stats(now);
        if has_work(&stats) {
            self.busy_at = now;
        }
        {
            let mut health = self.shared.health();
            health.failures_in_a_row = self.trouble.failures();
            health.state = match (self.disk.is_open(), &self.full) {
                (false, _) => QueueState::Failing,
                (true, Some(_)) => QueueState::Full,
                (true, None) => QueueState::Working,
            };
            health.ballast_held = self.full.is_none() && self.ballast.is_held();
            health.file_bytes = self.disk.file_bytes();
        }
        self.shared.set_ready(self.disk.is_open() && self.book.anything_ready(now));
    }

    /// How long to wait for the next operation.
    fn patience(&self) -> Duration {
        let (now, since_start) = (self.clock.now(), instant());
        let idle = !has_work(&self.book.stats(now));
        let mut wait = if idle { LONGEST_IDLE_WAIT } else { LONGEST_WAIT };
        if let Some(at) = self.book.next_event().filter(|_| self.disk.is_open()) {
            wait = wait.min(at.since(now));
        }
        if !self.disk.is_open() {
            wait = wait.min(self.trouble.pause(since_start));
        }
        if let Some(full) = &self.full {
            wait = wait.min(full.pause(since_start));
        }
        if idle && self.changed {
            wait = wait.min(self.busy_at.plus(self.idle_after).since(now)).min(LONGEST_WAIT * 4);
        }
        // Never none at all: what is due is done in each round, and a round must not follow on itself.
        wait.max(Duration::from_millis(1))
    }

    /// Nobody wants anything: the file gives back what it does not need.
    fn rest(&mut self) {
        let now = self.clock.now();
        let rested = now.since(self.busy_at) >= self.idle_after;
        if !rested || !self.changed || !self.disk.is_open() || has_work(&self.book.stats(now)) {
            return;
        }
        self.changed = false;
        let compacted = self.disk.space().and_then(|space| {
            let is_loose = space.file > SMALL_FILE && space.used.saturating_mul(2) < space.file;
            if is_loose { self.disk.compact() } else { Ok(()) }
        });
        if let Err(error) = compacted {
            // The next round opens the file again, and mends it if need be.
            tracing::warn!("compacting the queue failed: {error}");
        }
        self.publish(now);
    }

    /// Gives back what is held: whoever held it is told that it is lost, and it was not what ended the process.
    fn let_go(&mut self) {
        let now = self.clock.now();
        self.look_for_file(now);
        let stored = catch_unwind(AssertUnwindSafe(|| {
            self.open_again(now)?;
            self.book.release_all(now);
            let changes = self.book.changes();
            if changes.is_empty() || !self.disk.is_open() {
                return Ok(());
            }
            self.disk.write(&changes, &self.book.counters(), &[], now)
        }));
        if !matches!(stored, Ok(Ok(()))) {
            tracing::warn!("the queue's jobs that were held could not be given back; the next start does it");
        }
    }

    /// Stores nothing more and lets go of the file.
    fn end(mut self) {
        let closed = |mut operation: Box<dyn Operation>| {
            operation.refuse(QueueError::Closed);
            operation.answer();
        };
        while let Ok(message) = self.messages.try_recv() {
            if let Message::Do(operation) = message {
                closed(operation);
            }
        }
        self.let_go();
        let stats = self.book.stats(self.clock.now());
        let jobs = [stats.ready, stats.delayed, stats.leased, stats.dead];
        let jobs = jobs.into_iter().fold(0_u64, u64::saturating_add);
        self.disk.close();
        let marker = if jobs == 0 { Marker::Empty } else { Marker::Holds(jobs) };
        if let Err(error) = marker.write(self.disk.folder()) {
            tracing::warn!("what the queue holds could not be noted beside it: {error}");
        }
        self.shared.close();
        {
            let mut health = self.shared.health();
            health.state = QueueState::Closed;
            health.file_bytes = self.disk.file_bytes();
        }
        self.shared.set_ready(true);
        // The file can be opened by others when this is told.
        drop(self.messages);
        self.shared.ended.send_replace(true);
    }
}

/// Whether there is a job that is not put aside.
const fn has_work(stats: &Stats) -> bool {
    stats.ready > 0 || stats.delayed > 0 || stats.leased > 0
}
