//! Does what an operator wants.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::clock::Clock;
use crate::dedup::Desk;
use crate::domain::{DeliveryKey, Failure, RequestId, Telling};
use crate::frontend::operator::MOST_JOBS;
use crate::frontend::operator::wire::{Ask, Fate, Job, Outcome, Reply, Told};
use crate::intake::LIFE;
use crate::pipeline::delivery::{Delivery, Notice};
use crate::queue::{Filter, JobId, JobResult, Queue, QueueError, StateKind, Stats};

/// Does with a queue what an operator wants. Clones do it with the same queue.
#[derive(Clone, Debug)]
pub struct Clerk {
    /// The queue.
    pub queue: Arc<dyn Queue>,
    /// The time of day.
    pub clock: Clock,
    /// Those who wait for its jobs; `None` when the service does not run.
    pub waiting: Option<Waiting>,
}

/// Those who wait for jobs of a running service.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The claims on deliveries.
    pub desk: Desk,
    /// Where answers go.
    pub delivery: Arc<dyn Delivery>,
}

impl Clerk {
    pub(super) async fn answer(&self, ask: Ask) -> Told<Reply> {
        let reply = match ask {
            Ask::List(filter) => self.list(filter).await.map(Reply::Jobs),
            Ask::Show(id) => self.show(id).await.map(|job| Reply::Job(job.map(Box::new))),
            Ask::Result(request) => self.result(request).await.map(Reply::Result),
            Ask::Retry(ids) | Ask::Drop(ids) if ids.len() > MOST_JOBS => {
                return Told::Error(format!("at most {MOST_JOBS} jobs can be named at once"));
            }
            Ask::Retry(ids) => Ok(Reply::Fates(self.retry(&ids).await)),
            Ask::Drop(ids) => Ok(Reply::Fates(self.drop_jobs(&ids).await)),
            Ask::Stats(_) => self.stats().await.map(Reply::Stats),
        };
        match reply {
            Ok(reply) => Told::Ok(reply),
            Err(error) => Told::Error(error.to_string()),
        }
    }

    /// The jobs that are meant, the oldest first, at most [`MOST_JOBS`].
    pub(super) async fn list(&self, mut filter: Filter) -> Result<Vec<Job>, QueueError> {
        filter.most = filter.most.min(MOST_JOBS);
        let mut jobs = self.queue.list(filter.clone()).await?;
        // A queue that is two has listed both.
        jobs.truncate(if filter.most == 0 { MOST_JOBS } else { filter.most });
        let now = self.clock.now();
        Ok(jobs.into_iter().map(|job| Job::short(job, now)).collect())
    }

    pub(super) async fn show(&self, id: JobId) -> Result<Option<Job>, QueueError> {
        Ok(self.queue.show(id).await?.map(|job| Job::new(job, self.clock.now())))
    }

    pub(super) async fn result(&self, request: RequestId) -> Result<Option<JobResult>, QueueError> {
        self.queue.result(request).await
    }

    pub(super) async fn stats(&self) -> Result<Stats, QueueError> {
        self.queue.stats().await
    }

    pub(super) async fn retry(&self, ids: &[JobId]) -> Vec<Fate> {
        let mut fates = Vec::with_capacity(ids.len());
        for some in ids.chunks(AT_ONCE) {
            fates.extend(join_all(some.iter().map(|id| self.retry_one(*id))).await);
        }
        fates
    }

    pub(super) async fn drop_jobs(&self, ids: &[JobId]) -> Vec<Fate> {
        let mut fates = Vec::with_capacity(ids.len());
        for some in ids.chunks(AT_ONCE) {
            fates.extend(join_all(some.iter().map(|id| self.drop_one(*id))).await);
        }
        fates
    }

    async fn retry_one(&self, id: JobId) -> Fate {
        // It has as long again as it had when it was asked for.
        let deadline = self.clock.now().plus(LIFE);
        let outcome = match self.queue.revive(id, deadline).await {
            Ok(true) => Outcome::Done,
            Ok(false) => self.refused(id).await,
            Err(error) => Outcome::Failed { error: error.to_string() },
        };
        Fate { id, outcome }
    }

    async fn drop_one(&self, id: JobId) -> Fate {
        let before = self.queue.show(id).await;
        // Who asked for a dead job may not have been told yet.
        let untold = self.queue.unanswered(usize::MAX).await.unwrap_or_default();
        let untold = untold.iter().any(|job| job.id == id);
        let outcome = match self.queue.forget(id).await {
            Ok(true) => {
                // A person always gets an answer.
                if let (Ok(Some(job)), Some(waiting)) = (before, &self.waiting)
                    && (untold || job.kind(self.clock.now()) != StateKind::Dead)
                {
                    let told = waiting.delivery.tell(&job.request, Notice::Failed(Failure::Cancelled));
                    let told = tokio::time::timeout(TELLING, told).await;
                    if !matches!(told, Ok(Telling::Settled)) {
                        tracing::warn!(job = %id, "who asked for a dropped job could not be told");
                    }
                    // Others who want the same have not dropped it: one of them is next.
                    waiting.desk.release(&DeliveryKey::of(&job.request), job.request.id);
                }
                Outcome::Done
            }
            Ok(false) => self.refused(id).await,
            Err(error) => Outcome::Failed { error: error.to_string() },
        };
        Fate { id, outcome }
    }

    /// Why the queue did not do it.
    async fn refused(&self, id: JobId) -> Outcome {
        match self.queue.show(id).await {
            Ok(Some(job)) => Outcome::Refused { state: job.kind(self.clock.now()) },
            Ok(None) => Outcome::Absent,
            Err(error) => Outcome::Failed { error: error.to_string() },
        }
    }
}

/// Changes that the queue is asked for at once, so that they are stored together.
const AT_ONCE: usize = 64;
/// How long it may take to tell somebody that their job was dropped.
const TELLING: Duration = Duration::from_secs(5);
