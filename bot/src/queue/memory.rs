//! A queue that lives as long as the process.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep_until;

use crate::clock::{Instant, instant};
use crate::domain::Request;
use crate::queue::Job;

/// Jobs in memory: first come, first served, the delayed ones when their time comes. Clones share them.
#[derive(Clone, Debug)]
pub struct MemoryQueue {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    capacity: usize,
    jobs: Mutex<Jobs>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Jobs {
    ready: VecDeque<Job>,
    /// By the moment they become ready, and a number that keeps those of one moment apart.
    delayed: BTreeMap<(Instant, u64), Job>,
    next: u64,
    closed: bool,
}

/// Why a queue did not take a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// It holds as many jobs as it may.
    #[error("{capacity} requests are waiting already")]
    Full {
        /// How many.
        capacity: usize,
    },
    /// It is closed.
    #[error("the queue is closed")]
    Closed,
}

impl MemoryQueue {
    /// An empty queue of at most `capacity` jobs that wait. Those that a worker holds are not counted.
    pub fn new(capacity: usize) -> Self {
        Self { shared: Arc::new(Shared { capacity, jobs: Mutex::default(), changed: Notify::new() }) }
    }

    /// Adds a request.
    ///
    /// # Errors
    /// When there is no room, or it is closed.
    pub fn enqueue(&self, request: Request) -> Result<(), QueueError> {
        let mut jobs = self.lock();
        if jobs.closed {
            return Err(QueueError::Closed);
        }
        if jobs.ready.len().saturating_add(jobs.delayed.len()) >= self.shared.capacity {
            return Err(QueueError::Full { capacity: self.shared.capacity });
        }
        jobs.ready.push_back(Job { request, attempt: 0 });
        drop(jobs);
        self.shared.changed.notify_one();
        Ok(())
    }

    /// Waits for a job, whose attempt is counted now. Cancel-safe: a job is never lost between the two.
    pub async fn lease(&self) -> Job {
        loop {
            let changed = self.shared.changed.notified();
            let next = {
                let mut jobs = self.lock();
                jobs.promote(instant());
                if let Some(mut job) = jobs.ready.pop_front() {
                    let more = !jobs.ready.is_empty();
                    drop(jobs);
                    if more {
                        // One notice may stand for several jobs.
                        self.shared.changed.notify_one();
                    }
                    job.attempt = job.attempt.saturating_add(1);
                    return job;
                }
                jobs.delayed.keys().next().map(|(when, _)| *when)
            };
            match next {
                Some(when) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(when) => {}
                },
                None => changed.await,
            }
        }
    }

    /// Puts a job back that is to be tried again, not before `after`. It had its place, so there is room for it.
    pub fn retry(&self, job: Job, after: Duration) {
        let mut jobs = self.lock();
        let now = instant();
        let when = now.checked_add(after).unwrap_or(now);
        let number = jobs.next;
        jobs.next = number.wrapping_add(1);
        jobs.delayed.insert((when, number), job);
        drop(jobs);
        self.shared.changed.notify_one();
    }

    /// Closes it, and takes all jobs out that wait, whatever they wait for.
    pub fn drain(&self) -> Vec<Job> {
        let empty = Jobs { closed: true, ..Jobs::default() };
        let Jobs { ready, delayed, .. } = std::mem::replace(&mut *self.lock(), empty);
        ready.into_iter().chain(delayed.into_values()).collect()
    }

    /// Jobs that wait.
    pub fn len(&self) -> usize {
        let jobs = self.lock();
        jobs.ready.len().saturating_add(jobs.delayed.len())
    }

    /// Whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Jobs> {
        // No code that can panic runs under the lock.
        self.shared.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Jobs {
    /// Makes those ready whose time has come.
    fn promote(&mut self, now: Instant) {
        while let Some(entry) = self.delayed.first_entry()
            && entry.key().0 <= now
        {
            self.ready.push_back(entry.remove());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Destination, FrontEnd, Options, RequestId};

    fn request(number: u64) -> Request {
        let message = number.to_string().parse().unwrap();
        Request {
            id: RequestId::new(FrontEnd::Console, message, 0),
            requester: "2".parse().unwrap(),
            link: "https://x.com/a/status/20".parse().unwrap(),
            destination: Destination {
                front_end: FrontEnd::Console,
                guild: None,
                channel: "3".parse().unwrap(),
                reply_to: Some(message),
            },
            options: Options::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_come_in_order_and_count_their_attempts() {
        let queue = MemoryQueue::new(2);
        queue.enqueue(request(1)).unwrap();
        queue.enqueue(request(2)).unwrap();
        assert_eq!(queue.enqueue(request(3)), Err(QueueError::Full { capacity: 2 }));
        let first = queue.lease().await;
        assert_eq!((first.request.id, first.attempt), (request(1).id, 1));
        queue.retry(first, Duration::from_secs(60));
        assert_eq!(queue.lease().await.request.id, request(2).id);
        let begun = instant();
        let again = queue.lease().await;
        assert_eq!((again.request.id, again.attempt), (request(1).id, 2));
        assert_eq!(instant().duration_since(begun), Duration::from_secs(60));
        assert!(queue.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_waits_is_woken_by_an_earlier_job() {
        let queue = MemoryQueue::new(10);
        queue.enqueue(request(1)).unwrap();
        let job = queue.lease().await;
        queue.retry(job, Duration::from_secs(600));
        let waiting = tokio::spawn({
            let queue = queue.clone();
            async move { queue.lease().await.request.id }
        });
        tokio::task::yield_now().await;
        queue.enqueue(request(2)).unwrap();
        assert_eq!(waiting.await.unwrap(), request(2).id);
    }

    #[tokio::test(start_paused = true)]
    async fn every_waiting_worker_gets_a_job() {
        let queue = MemoryQueue::new(100);
        let mut workers: Vec<_> = (0..4)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.lease().await.request.id })
            })
            .collect();
        tokio::task::yield_now().await;
        (1..5).for_each(|number| queue.enqueue(request(number)).unwrap());
        let mut got = Vec::new();
        for worker in workers.drain(..) {
            got.push(worker.await.unwrap());
        }
        got.sort_unstable();
        assert_eq!(got, (1..5).map(|number| request(number).id).collect::<Vec<_>>());
    }
}
