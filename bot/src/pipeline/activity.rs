//! Signs that a job is getting somewhere, and where it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::OnceCell;

use crate::domain::{Failure, Stage};
use crate::queue::{Held, LeaseRef, Queue};

/// Counts the steps of one piece of work, so that somebody else can tell work that goes on from work that hangs.
/// Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    steps: Arc<Steps>,
    job: Option<Arc<Job>>,
}

/// The job that the work is for.
#[derive(Debug)]
struct Job {
    queue: Arc<dyn Queue>,
    lease: LeaseRef,
    engaged: OnceCell<()>,
}

#[derive(Debug, Default)]
struct Steps {
    done: AtomicU64,
    /// The place of the stage among all, from 1; 0 before the first.
    stage: AtomicUsize,
}

impl Activity {
    /// For a job that is held by this lease.
    pub fn of(queue: Arc<dyn Queue>, lease: LeaseRef) -> Self {
        let job = Job { queue, lease, engaged: OnceCell::new() };
        Self { steps: Arc::default(), job: Some(Arc::new(job)) }
    }

    /// Stores that the job's media come to the engine, which is the one part that can end the process. Once for each
    /// attempt, before the engine has them. When that cannot be stored, they go there all the same.
    ///
    /// # Errors
    /// When somebody else has the job by now: the work is theirs.
    pub(super) async fn engage(&self) -> Result<(), Failure> {
        let Some(job) = &self.job else { return Ok(()) };
        let engage = || async {
            match job.queue.engage(job.lease).await {
                Ok(Held::Until(_)) => Ok(()),
                Ok(Held::Lost) => Err(Failure::transient("somebody else works on it by now")),
                Err(error) => {
                    tracing::warn!(%error, job = %job.lease.job, "given to the engine without a note of it");
                    Ok(())
                }
            }
        };
        job.engaged.get_or_try_init(engage).await.copied()
    }

    /// Something was done: some bytes, some frames.
    pub fn moved(&self) {
        // Relaxed, here and below: it says nothing about any other memory.
        self.steps.done.fetch_add(1, Ordering::Relaxed);
    }

    /// A stage begins.
    pub fn begin(&self, stage: Stage) {
        self.steps.stage.store(stage.index().saturating_add(1), Ordering::Relaxed);
        self.moved();
    }

    /// How much was done so far. It changes as long as the work goes on.
    pub fn seen(&self) -> u64 {
        self.steps.done.load(Ordering::Relaxed)
    }

    /// The stage that began last.
    pub fn stage(&self) -> Option<Stage> {
        let place = self.steps.stage.load(Ordering::Relaxed).checked_sub(1)?;
        Stage::ALL.get(place).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_and_where_it_is_are_seen_by_others() {
        let activity = Activity::default();
        let other = activity.clone();
        assert_eq!((other.seen(), other.stage()), (0, None));
        for stage in Stage::ALL {
            activity.begin(stage);
            assert_eq!(other.stage(), Some(stage));
        }
        activity.moved();
        assert_eq!(other.seen(), 5);
    }
}
