//! A queue that lives as long as the process.

use std::fmt;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::clock::{Clock, WallTime};
use crate::domain::{DeliveryKey, RequestId};
use crate::queue::book::{Book, BookSettings, Counters};
use crate::queue::{
    Answer, Completed, DeadReason, Durability, Enqueued, Filter, Held, Intent, JobId, JobResult, JobView,
    Lease, LeaseRef, NewJob, Queue, QueueError, Reason, Retried, Stats,
};

/// Jobs in memory. Every call is done when it is first polled, so that one that is dropped then has no effect.
pub struct MemoryQueue {
    clock: Clock,
    /// `None` when it is closed.
    book: Mutex<Option<Book>>,
    changed: Notify,
    /// Why there is no better queue.
    trouble: Option<String>,
}

impl MemoryQueue {
    /// An empty queue that keeps to `settings` and to the time of `clock`.
    pub fn new(settings: BookSettings, clock: Clock) -> Self {
        Self::counting_from(JobId(1), settings, clock)
    }

    /// As [`new`](Self::new), with `first` as the number of its first job.
    pub(super) fn counting_from(first: JobId, settings: BookSettings, clock: Clock) -> Self {
        let counters = Counters { next_job: first.0, ..Counters::default() };
        Self::holding(Book::restore(settings, Vec::new(), Vec::new(), counters, clock.now()), clock)
    }

    /// What a book holds.
    pub(super) fn holding(mut book: Book, clock: Clock) -> Self {
        // There is nowhere to store what is new in it.
        book.commit();
        Self { clock, book: Mutex::new(Some(book)), changed: Notify::new(), trouble: None }
    }

    /// One in the place of a queue that cannot be had, and why.
    pub fn instead(trouble: String, settings: BookSettings, clock: Clock) -> Self {
        Self { trouble: Some(trouble), ..Self::new(settings, clock) }
    }

    /// Does something with the book, and wakes those who wait when there is something to claim then.
    fn with<T>(&self, act: impl FnOnce(&mut Book, WallTime) -> T) -> Result<T, QueueError> {
        let mut guard = self.lock();
        let book = guard.as_mut().ok_or(QueueError::Closed)?;
        let now = book.tick(self.clock.now());
        let answer = act(book, now);
        // There is nowhere to store it.
        book.commit();
        let ready = book.anything_ready(now);
        drop(guard);
        if ready {
            self.changed.notify_waiters();
        }
        Ok(answer)
    }

    /// How long nothing happens by itself; `None` when there is something to claim.
    fn quiet(&self) -> Option<Duration> {
        let mut guard = self.lock();
        let book = guard.as_mut()?;
        let now = book.tick(self.clock.now());
        book.commit();
        if book.anything_ready(now) {
            return None;
        }
        Some(book.next_event().map_or(MOST_QUIET, |at| at.since(now).min(MOST_QUIET)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Book>> {
        // No code that can panic runs under the lock.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue for MemoryQueue {
    fn enqueue(&self, job: NewJob) -> Answer<'_, Enqueued> {
        Box::pin(async move { self.with(|book, now| book.enqueue(job, now))? })
    }

    fn enqueue_behind(&self, job: NewJob) -> Answer<'_, Enqueued> {
        Box::pin(async move { self.with(|book, now| book.enqueue_behind(job, now))? })
    }

    fn let_go(&self, job: JobId) {
        // When it is closed there is nobody to work on it.
        let _ = self.with(|book, now| book.let_go(job, now));
    }

    fn claim(&self, most: usize, visibility: Duration) -> Answer<'_, Vec<Lease>> {
        Box::pin(async move { self.with(|book, now| book.claim(most, visibility, now)) })
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let mut changed = pin!(self.changed.notified());
                // From here on no notice is missed.
                changed.as_mut().enable();
                let Some(quiet) = self.quiet() else { return };
                tokio::select! {
                    () = changed => {}
                    () = sleep(quiet) => {}
                }
            }
        })
    }

    fn extend(&self, lease: LeaseRef, visibility: Duration) -> Answer<'_, Held> {
        Box::pin(async move { self.with(|book, now| book.extend(lease, visibility, now)) })
    }

    fn engage(&self, lease: LeaseRef) -> Answer<'_, Held> {
        Box::pin(async move { self.with(|book, now| book.engage(lease, now)) })
    }

    fn intend(&self, lease: LeaseRef, intent: Intent) -> Answer<'_, Held> {
        Box::pin(async move { self.with(|book, now| book.intend(lease, intent, now)) })
    }

    fn complete(&self, lease: LeaseRef, result: JobResult) -> Answer<'_, Completed> {
        Box::pin(async move { self.with(|book, now| book.complete(lease, result, now)) })
    }

    fn retry(&self, lease: LeaseRef, after: Duration, reason: Reason) -> Answer<'_, Retried> {
        Box::pin(async move { self.with(|book, now| book.retry(lease, after, reason, now)) })
    }

    fn bury(&self, lease: LeaseRef, reason: Reason, why: DeadReason) -> Answer<'_, Held> {
        Box::pin(async move { self.with(|book, now| book.bury(lease, reason, why, now)) })
    }

    fn release(&self, lease: LeaseRef, after: Duration) -> Answer<'_, Held> {
        Box::pin(async move { self.with(|book, now| book.release(lease, after, now)) })
    }

    fn unanswered(&self, most: usize) -> Answer<'_, Vec<JobView>> {
        Box::pin(async move { self.with(|book, _| book.unanswered(most)) })
    }

    fn answered(&self, id: JobId) -> Answer<'_, bool> {
        Box::pin(async move { self.with(|book, now| book.answered(id, now)) })
    }

    fn result(&self, key: RequestId) -> Answer<'_, Option<JobResult>> {
        Box::pin(async move { self.with(|book, now| book.result(key, now)) })
    }

    fn delivered(&self, key: &DeliveryKey) -> Answer<'_, Option<JobResult>> {
        let key = *key;
        Box::pin(async move { self.with(|book, now| book.delivered(&key, now)) })
    }

    fn list(&self, filter: Filter) -> Answer<'_, Vec<JobView>> {
        Box::pin(async move { self.with(|book, now| book.list(&filter, now)) })
    }

    fn show(&self, id: JobId) -> Answer<'_, Option<JobView>> {
        Box::pin(async move { self.with(|book, now| book.show(id, now)) })
    }

    fn revive(&self, id: JobId, deadline: WallTime) -> Answer<'_, bool> {
        Box::pin(async move { self.with(|book, now| book.revive(id, deadline, now)) })
    }

    fn forget(&self, id: JobId) -> Answer<'_, bool> {
        Box::pin(async move { self.with(|book, now| book.forget(id, now)) })
    }

    fn drain(&self) -> Answer<'_, Vec<JobView>> {
        Box::pin(async move { self.with(|book, now| book.drain(now)) })
    }

    fn stats(&self) -> Answer<'_, Stats> {
        Box::pin(async move {
            let stats = self.with(|book, now| book.stats(now))?;
            Ok(Stats { trouble: self.trouble.clone(), ..stats })
        })
    }

    fn durability(&self) -> Durability {
        Durability::None
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            *self.lock() = None;
            self.changed.notify_waiters();
        })
    }
}

impl fmt::Debug for MemoryQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not its jobs: they name people.
        f.debug_struct("MemoryQueue").finish_non_exhaustive()
    }
}

/// The clock is looked at this often, since it can be put forward, and a machine can sleep.
const MOST_QUIET: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::Instant;

    use super::*;
    use crate::clock::instant;
    use crate::domain::{Destination, FrontEnd, Options, Request};
    use crate::queue::Priority;

    const NOW: WallTime = WallTime::from_millis(1_800_000_000_000);

    fn job(not_before: WallTime) -> NewJob {
        let request = Request {
            id: RequestId::new(FrontEnd::Console, "1".parse().unwrap(), 0),
            requester: "2".parse().unwrap(),
            link: "https://x.com/a/status/20".parse().unwrap(),
            destination: Destination {
                front_end: FrontEnd::Console,
                guild: None,
                channel: "3".parse().unwrap(),
                reply_to: None,
            },
            options: Options::default(),
        };
        let deadline = NOW.plus(Duration::from_secs(3_600));
        NewJob { request, priority: Priority::Interactive, not_before, deadline }
    }

    /// A clock that goes as the paused timers do, from `begun` on.
    async fn drive(clock: Clock, begun: Instant) {
        loop {
            clock.set(NOW.plus(begun.elapsed()));
            sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_moment_that_comes_wakes_whoever_waits_though_nobody_calls() {
        let clock = Clock::manual(NOW);
        let queue = Arc::new(MemoryQueue::new(BookSettings::default(), clock.clone()));
        queue.enqueue(job(NOW.plus(Duration::from_millis(2_500)))).await.unwrap();
        let begun = instant();
        let driver = tokio::spawn(drive(clock, begun));
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let queue = Arc::clone(&queue);
                tokio::spawn(async move { queue.ready().await })
            })
            .collect();
        for waiter in waiters {
            waiter.await.unwrap();
        }
        let waited = begun.elapsed();
        assert!((2_500..=2_520).contains(&waited.as_millis()), "{waited:?}");
        assert_eq!(queue.claim(9, Duration::from_secs(60)).await.unwrap().len(), 1);
        driver.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_jumps_is_noticed_within_a_second() {
        let clock = Clock::manual(NOW);
        let queue = MemoryQueue::new(BookSettings::default(), clock.clone());
        queue.enqueue(job(NOW.plus(Duration::from_secs(600)))).await.unwrap();
        let begun = instant();
        let jump = async {
            sleep(Duration::from_millis(5_500)).await;
            clock.set(NOW.plus(Duration::from_secs(600)));
        };
        tokio::join!(queue.ready(), jump);
        assert_eq!(begun.elapsed(), Duration::from_secs(6));
    }
}
