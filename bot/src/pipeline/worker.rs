//! Takes jobs from the queue and sees each to its end.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{self, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::SensitivePolicy;
use crate::dedup::{Desk, Processed};
use crate::domain::{DeliveryKey, Failure, Telling};
use crate::metrics::{Counter, Tracker};
use crate::pipeline::dead_letters::DeadLetters;
use crate::pipeline::delivery::{Delivery, Notice};
use crate::pipeline::optimize::Optimizer;
use crate::pipeline::withdrawals::Withdrawals;
use crate::queue::{JobView, Lease, Queue, QueueError};
use crate::source::Resolver;

/// How workers work.
#[derive(Clone, Copy, Debug)]
pub struct WorkerSettings {
    /// How long a post may take to be resolved.
    pub resolve_timeout: Duration,
    /// How long a delivery may take.
    pub upload_timeout: Duration,
    /// The pause before the second attempt; each further one is up to four times as long, up to five minutes.
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
        let mut letters = JoinSet::new();
        letters.spawn(DeadLetters::of(self.clone()).run(cancel.clone()));
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
        while let Some(ended) = letters.join_next().await {
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

    /// Ends the jobs that wait and would be lost with the process, and says so.
    async fn end_waiting(&self) {
        let mut calls = Vec::new();
        match self.queue.drain().await {
            Ok(waiting) => calls.extend(waiting.into_iter().map(|job| self.call_off(job).boxed())),
            Err(error) => tracing::error!(%error, "jobs that wait in memory are lost"),
        }
        // Of the dead ones too nobody would hear any more.
        let dead = self.queue.unanswered(self.settings.in_hand).await.unwrap_or_default();
        let lost = dead.into_iter().filter(|job| !self.queue.keeps(job.id));
        calls.extend(lost.map(|job| self.tell_end(job, false).map(drop).boxed()));
        stream::iter(calls).buffer_unordered(TOLD_AT_ONCE).collect::<()>().await;
    }

    /// Tells who asked for a job that is no more, and those who wait for the same, that it was cancelled.
    async fn call_off(&self, job: JobView) {
        self.tracker.count(Counter::Failed, 1);
        if self.tell(&job.request, Notice::Failed(Failure::Cancelled)).await != Telling::Settled {
            tracing::warn!(request = %job.request.id, "somebody could not be told that the service ends");
        }
        if let Some(ownership) = self.desk.take_own(&DeliveryKey::of(&job.request), job.request.id) {
            ownership.complete(Err(Failure::Cancelled));
        }
    }
}

/// Says that a job's task did not end by itself. Its claim was given up with it, and its lease runs out.
fn log_fault(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a fault in the program ended a job");
    }
}

/// Jobs that are claimed in one go.
const AT_ONCE: NonZeroUsize = NonZeroUsize::new(64).unwrap();
/// Those who are told at once that the service ends.
const TOLD_AT_ONCE: usize = 16;
/// How long a queue in trouble is left alone.
const PATIENCE: Duration = Duration::from_secs(1);
