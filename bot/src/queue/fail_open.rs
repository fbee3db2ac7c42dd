//! A queue that is kept, and one in memory for the time when it cannot be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::clock::{Clock, WallTime};
use crate::domain::{DeliveryKey, RequestId};
use crate::metrics::{Counter, Tracker};
use crate::queue::{
    Answer, BookSettings, Completed, DeadReason, Durability, Enqueued, Filter, Held, Intent, JobId,
    JobResult, JobView, Lease, LeaseRef, MemoryQueue, NewJob, Queue, QueueError, Reason, Retried, Stats,
};

/// Two queues that look like one. A job that the first cannot store is kept in the second, and is lost with the process
/// if that ends before the job does: better than to serve nobody while a disk is full. That is said once, and counted.
#[derive(Debug)]
pub struct FailOpen {
    kept: Arc<dyn Queue>,
    spare: MemoryQueue,
    failing: AtomicBool,
    tracker: Tracker,
}

/// Jobs in memory have numbers from here on, so that a number says where its job is. What readers of JSON take for a number
/// is exact up to 2⁵³.
const FIRST_SPARE: u64 = 1 << 52;

impl FailOpen {
    /// `kept`, and beside it an empty queue in memory with the same rules.
    pub fn new(kept: Arc<dyn Queue>, rules: BookSettings, clock: Clock, tracker: Tracker) -> Self {
        let spare = MemoryQueue::counting_from(JobId(FIRST_SPARE), rules, clock);
        Self { kept, spare, failing: AtomicBool::new(false), tracker }
    }

    fn of(&self, job: JobId) -> &dyn Queue {
        if job.0 < FIRST_SPARE { &*self.kept } else { &self.spare }
    }

    /// Says and counts that a job is kept in memory.
    fn spill(&self, error: &QueueError) {
        if !self.failing.swap(true, Ordering::Relaxed) {
            tracing::error!(%error, "requests are kept in memory only, until the queue can store them again");
        }
        self.tracker.count(Counter::QueueSpills, 1);
    }

    /// What the queue that is kept made of a job; `None` when the other one is to have it.
    fn kept(&self, answer: Result<Enqueued, QueueError>) -> Option<Result<Enqueued, QueueError>> {
        match answer {
            Err(error @ (QueueError::Unavailable(_) | QueueError::Unknown)) => {
                self.spill(&error);
                None
            }
            other => {
                if other.is_ok() && self.failing.swap(false, Ordering::Relaxed) {
                    tracing::info!("the queue stores requests again");
                }
                Some(other)
            }
        }
    }
}

impl Queue for FailOpen {
    fn enqueue(&self, job: NewJob) -> Answer<'_, Enqueued> {
        async move {
            match self.kept(self.kept.enqueue(job.clone()).await) {
                Some(answer) => answer,
                None => self.spare.enqueue(job).await,
            }
        }
        .boxed()
    }

    fn enqueue_behind(&self, job: NewJob) -> Answer<'_, Enqueued> {
        async move {
            match self.kept(self.kept.enqueue_behind(job.clone()).await) {
                Some(answer) => answer,
                None => self.spare.enqueue_behind(job).await,
            }
        }
        .boxed()
    }

    fn let_go(&self, job: JobId) {
        self.of(job).let_go(job);
    }

    fn claim(&self, most: usize, visibility: Duration) -> Answer<'_, Vec<Lease>> {
        async move {
            let kept = self.kept.claim(most, visibility).await;
            let rest = most.saturating_sub(kept.as_ref().map_or(0, Vec::len));
            let mut spare = if rest == 0 { Vec::new() } else { self.spare.claim(rest, visibility).await? };
            match kept {
                Ok(mut leases) => {
                    leases.append(&mut spare);
                    Ok(leases)
                }
                Err(error) if spare.is_empty() => Err(error),
                Err(_) => Ok(spare),
            }
        }
        .boxed()
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        async {
            tokio::select! {
                () = self.kept.ready() => {}
                () = self.spare.ready() => {}
            }
        }
        .boxed()
    }

    fn extend(&self, lease: LeaseRef, visibility: Duration) -> Answer<'_, Held> {
        self.of(lease.job).extend(lease, visibility)
    }

    fn engage(&self, lease: LeaseRef) -> Answer<'_, Held> {
        self.of(lease.job).engage(lease)
    }

    fn intend(&self, lease: LeaseRef, intent: Intent) -> Answer<'_, Held> {
        self.of(lease.job).intend(lease, intent)
    }

    fn complete(&self, lease: LeaseRef, result: JobResult) -> Answer<'_, Completed> {
        self.of(lease.job).complete(lease, result)
    }

    fn retry(&self, lease: LeaseRef, after: Duration, reason: Reason) -> Answer<'_, Retried> {
        self.of(lease.job).retry(lease, after, reason)
    }

    fn bury(&self, lease: LeaseRef, reason: Reason, why: DeadReason) -> Answer<'_, Held> {
        self.of(lease.job).bury(lease, reason, why)
    }

    fn release(&self, lease: LeaseRef, after: Duration) -> Answer<'_, Held> {
        self.of(lease.job).release(lease, after)
    }

    fn unanswered(&self, most: usize) -> Answer<'_, Vec<JobView>> {
        async move {
            // A queue in trouble does not keep those of the other waiting.
            let mut dead = self.kept.unanswered(most).await.unwrap_or_default();
            dead.append(&mut self.spare.unanswered(most.saturating_sub(dead.len())).await?);
            Ok(dead)
        }
        .boxed()
    }

    fn answered(&self, id: JobId) -> Answer<'_, bool> {
        self.of(id).answered(id)
    }

    fn result(&self, key: RequestId) -> Answer<'_, Option<JobResult>> {
        async move {
            match self.kept.result(key).await {
                Ok(None) => self.spare.result(key).await,
                other => other,
            }
        }
        .boxed()
    }

    fn delivered(&self, key: &DeliveryKey) -> Answer<'_, Option<JobResult>> {
        let key = *key;
        async move {
            match self.kept.delivered(&key).await {
                Ok(Some(result)) => Ok(Some(result)),
                other => self.spare.delivered(&key).await.or(other),
            }
        }
        .boxed()
    }

    fn list(&self, filter: Filter) -> Answer<'_, Vec<JobView>> {
        async move {
            let kept = self.kept.list(filter.clone()).await;
            let mut spare = self.spare.list(filter).await?;
            match kept {
                Ok(mut jobs) => {
                    jobs.append(&mut spare);
                    Ok(jobs)
                }
                Err(error) if spare.is_empty() => Err(error),
                Err(_) => Ok(spare),
            }
        }
        .boxed()
    }

    fn show(&self, id: JobId) -> Answer<'_, Option<JobView>> {
        self.of(id).show(id)
    }

    fn revive(&self, id: JobId, deadline: WallTime) -> Answer<'_, bool> {
        self.of(id).revive(id, deadline)
    }

    fn forget(&self, id: JobId) -> Answer<'_, bool> {
        self.of(id).forget(id)
    }

    fn drain(&self) -> Answer<'_, Vec<JobView>> {
        self.spare.drain()
    }

    fn stats(&self) -> Answer<'_, Stats> {
        async move {
            let (kept, spare) = (self.kept.stats().await?, self.spare.stats().await?);
            let spills = || "it did not store the last request".to_owned();
            let trouble = kept.trouble.or_else(|| self.failing.load(Ordering::Relaxed).then(spills));
            let sum = |one: u64, other: u64| one.saturating_add(other);
            Ok(Stats {
                ready: sum(kept.ready, spare.ready),
                delayed: sum(kept.delayed, spare.delayed),
                leased: sum(kept.leased, spare.leased),
                dead: sum(kept.dead, spare.dead),
                oldest_ready: [kept.oldest_ready, spare.oldest_ready].into_iter().flatten().min(),
                trouble,
            })
        }
        .boxed()
    }

    fn durability(&self) -> Durability {
        self.kept.durability()
    }

    fn keeps(&self, job: JobId) -> bool {
        self.of(job).durability() != Durability::None
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            self.kept.close().await;
            self.spare.close().await;
        }
        .boxed()
    }
}
