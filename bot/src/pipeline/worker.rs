//! Takes jobs from the queue and sees each to its end.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::SensitivePolicy;
use crate::dedup::{Desk, Processed};
use crate::domain::{DeliveryKey, Failure};
use crate::metrics::{Counter, Tracker};
use crate::pipeline::delivery::{Delivery, Notice};
use crate::pipeline::optimize::Optimizer;
use crate::pipeline::withdrawals::Withdrawals;
use crate::queue::{DeadReason, JobId, JobView, Lease, Queue, QueueError, State};
use crate::source::Resolver;

/// How workers work.
#[derive(Clone, Copy, Debug)]
pub struct WorkerSettings {
    /// How long a post may take to be resolved.
    pub resolve_timeout: Duration,
    /// How long a delivery may take.
    pub upload_timeout: Duration,
    /// The pause before the second attempt; each further one is twice as long, up to five minutes.
    pub backoff: Duration,
    /// How long a job is held without a sign of progress.
    pub lease: Duration,
    /// Media of one post that are made at once.
    pub at_once: usize,
    /// Jobs that are held at once.
    pub in_hand: usize,
    /// What happens to sensitive media in places that are not known to be age-restricted.
    pub sensitive: SensitivePolicy,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            resolve_timeout: Duration::from_secs(60),
            upload_timeout: Duration::from_secs(120),
            backoff: Duration::from_secs(2),
            lease: Duration::from_secs(900),
            at_once: 4,
            in_hand: 1024,
            sensitive: SensitivePolicy::Spoiler,
        }
    }
}

/// What a worker works with. Clones share everything.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Where its jobs come from.
    pub queue: Arc<dyn Queue>,
    /// The claims on deliveries.
    pub desk: Desk,
    /// What was delivered, and where.
    pub processed: Processed,
    /// Turns a link into media.
    pub resolver: Resolver,
    /// Turns media into files.
    pub optimizer: Optimizer,
    /// Where the files go.
    pub delivery: Arc<dyn Delivery>,
    /// What was taken back.
    pub withdrawals: Withdrawals,
    /// Counts.
    pub tracker: Tracker,
    /// The time of day.
    pub clock: Clock,
    /// How it works.
    pub settings: WorkerSettings,
}

impl Worker {
    /// Works until `cancel` is called. Jobs that are under way then are given back, as if they had not been begun, where
    /// the queue outlives the process; else they, and those that wait, end as cancelled. At most
    /// [`in_hand`](WorkerSettings::in_hand) jobs are held at once: most of them wait, for others that make the same
    /// file or for the network.
    pub async fn run(self, cancel: CancellationToken) {
        let in_hand = Arc::new(Semaphore::new(self.settings.in_hand.max(1)));
        let mut jobs = JoinSet::new();
        let mut told = HashSet::new();
        loop {
            // Those that ended make room in the list; nobody waits for them here.
            while let Some(ended) = jobs.try_join_next() {
                log_fault(ended);
            }
            let place = async {
                let place = Arc::clone(&in_hand).acquire_owned().await;
                self.queue.ready().await;
                place
            };
            let place = tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                place = place => place,
            };
            let Ok(place) = place else { break };
            self.answer_dead(&mut told).await;
            // Not broken off by the end: a lease that nobody takes would wait until it is over.
            match self.claim(&in_hand, place).await {
                Ok(leases) => {
                    for (lease, place) in leases {
                        let (worker, cancel) = (self.clone(), cancel.clone());
                        jobs.spawn(async move {
                            worker.handle(lease, &cancel).await;
                            drop(place);
                        });
                    }
                }
                Err(QueueError::Closed) => break,
                Err(error) => {
                    tracing::warn!(%error, "no jobs can be had from the queue; it is asked again");
                    tokio::select! {
                        () = cancel.cancelled() => break,
                        () = sleep(PATIENCE) => {}
                    }
                }
            }
        }
        while let Some(ended) = jobs.join_next().await {
            log_fault(ended);
        }
        self.end_waiting().await;
    }

    /// As many jobs as there are places, each with its place.
    async fn claim(
        &self,
        in_hand: &Arc<Semaphore>,
        first: OwnedSemaphorePermit,
    ) -> Result<Vec<(Lease, OwnedSemaphorePermit)>, QueueError> {
        let mut places = vec![first];
        while places.len() < AT_ONCE.get()
            && let Ok(place) = Arc::clone(in_hand).try_acquire_owned()
        {
            places.push(place);
        }
        let leases = self.queue.claim(places.len(), self.settings.lease).await?;
        Ok(leases.into_iter().zip(places).collect())
    }

    /// Tells those whose jobs are dead: tried too often, too late, or what the process died of. `told` has those of whom
    /// the queue could not note it, so that nobody hears it twice.
    async fn answer_dead(&self, told: &mut HashSet<JobId>) {
        let Ok(dead) = self.queue.unanswered(AT_ONCE.get()).await else { return };
        for job in dead {
            if !told.insert(job.id) {
                if matches!(self.queue.answered(job.id).await, Ok(true)) {
                    told.remove(&job.id);
                } else {
                    sleep(PATIENCE).await;
                }
                continue;
            }
            let failure = last_failure(&job);
            tracing::warn!(
                request = %job.request.id,
                %failure,
                attempts = job.attempts,
                "a dead letter: `azalea queue show {}` tells its history",
                job.id
            );
            self.tracker.count(Counter::DeadLetters, 1);
            self.tracker.count(Counter::Failed, 1);
            self.tell(&job.request, Notice::Failed(failure)).await;
            match self.queue.answered(job.id).await {
                Ok(_) => drop(told.remove(&job.id)),
                Err(error) => tracing::warn!(%error, job = %job.id, "after a restart it may be told again"),
            }
        }
    }

    /// Ends the jobs that wait and would be lost with the process, and says so.
    async fn end_waiting(&self) {
        let waiting = match self.queue.drain().await {
            Ok(waiting) => waiting,
            Err(error) => return tracing::error!(%error, "jobs that wait in memory are lost"),
        };
        for job in waiting {
            self.tracker.count(Counter::Failed, 1);
            call_off(&job, &self.desk, &*self.delivery).await;
        }
    }
}

/// Tells who asked for a job that is no more, and those who wait for the same, that it was cancelled.
async fn call_off(job: &JobView, desk: &Desk, delivery: &dyn Delivery) {
    delivery.tell(&job.request, Notice::Failed(Failure::Cancelled)).await;
    if let Some(ownership) = desk.take_own(&DeliveryKey::of(&job.request), job.request.id) {
        ownership.complete(Err(Failure::Cancelled));
    }
}

/// What a dead job's requester is told.
fn last_failure(job: &JobView) -> Failure {
    let last = job.history.last();
    let what = last.and_then(|attempt| attempt.chain.first()).cloned();
    match job.state {
        State::Dead { reason: DeadReason::Poison, .. } => {
            Failure::ours("the program ended while it worked on it, again and again")
        }
        State::Dead { reason: DeadReason::Deadline, .. } => {
            Failure::transient("it could not be done in the time that there is for it")
        }
        _ => match last.map(|attempt| (attempt.code.as_str(), attempt.stage)) {
            Some(("timed-out", Some(stage))) => Failure::TimedOut { stage },
            Some(("transient", _)) => Failure::transient(what.unwrap_or_default()),
            _ => Failure::ours(what.unwrap_or_else(|| "the work on it ended without a word".to_owned())),
        },
    }
}

/// Says that a job's task did not end by itself. Its claim was given up with it, and its lease runs out.
fn log_fault(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a fault in the program ended a job");
    }
}

/// Jobs that are claimed, or answered, in one go.
const AT_ONCE: NonZeroUsize = NonZeroUsize::new(64).unwrap();
/// How long a queue in trouble is left alone.
const PATIENCE: Duration = Duration::from_secs(1);
