//! Signs that a job is getting somewhere, and where it is.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::OnceCell;

use crate::domain::{Failure, Stage};
use crate::queue::{Held, LeaseRef, Queue};

/// Counts the steps of one piece of work, so that somebody else can tell work that goes on from work that hangs.
/// Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    steps: Arc<Steps>,
    job: Option<Arc<Job>>,
    /// Which of the job's files this is about.
    part: usize,
}

/// How far a piece of work is, for those who only look. Clones see the same.
#[derive(Clone, Debug, Default)]
pub struct Sight(Arc<Steps>);

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
    /// How much of each file is made, in thousandths.
    parts: OnceLock<Vec<AtomicU32>>,
}

impl Steps {
    fn stage(&self) -> Option<Stage> {
        let place = self.stage.load(Ordering::Relaxed).checked_sub(1)?;
        Stage::ALL.get(place).copied()
    }
}

impl Sight {
    /// The stage that began last.
    pub fn stage(&self) -> Option<Stage> {
        self.0.stage()
    }

    /// How much of the files is made, in percent; `None` before the first of them is worked on.
    pub fn percent(&self) -> Option<u32> {
        let parts = self.0.parts.get().filter(|parts| !parts.is_empty())?;
        let sum: u32 = parts.iter().map(|part| part.load(Ordering::Relaxed)).sum();
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        (sum > 0).then(|| sum / count / 10)
    }
}

impl Activity {
    /// For a job that is held by this lease.
    pub fn of(queue: Arc<dyn Queue>, lease: LeaseRef) -> Self {
        let job = Job { queue, lease, engaged: OnceCell::new() };
        Self { steps: Arc::default(), job: Some(Arc::new(job)), part: 0 }
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

    /// There are so many files to make.
    pub fn parts(&self, count: usize) {
        // An attempt that looks again has as many.
        let _ = self.steps.parts.set((0..count).map(|_| AtomicU32::new(0)).collect());
    }

    /// The same, about the file at this place.
    #[must_use]
    pub fn part(&self, part: usize) -> Self {
        Self { part, ..self.clone() }
    }

    /// So much of the file is made, from 0 to 1.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1000")]
    pub fn made(&self, fraction: f32) {
        if let Some(part) = self.steps.parts.get().and_then(|parts| parts.get(self.part)) {
            part.store((fraction.clamp(0.0, 1.0) * 1000.0) as u32, Ordering::Relaxed);
        }
    }

    /// How much of the file is made, from 0 to 1.
    #[allow(clippy::cast_precision_loss, reason = "at most 1000")]
    pub fn fraction(&self) -> f32 {
        let part = self.steps.parts.get().and_then(|parts| parts.get(self.part));
        part.map_or(0.0, |part| part.load(Ordering::Relaxed) as f32 / 1000.0)
    }

    /// For those who only look.
    pub fn sight(&self) -> Sight {
        Sight(Arc::clone(&self.steps))
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
        self.steps.stage()
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

    #[test]
    fn the_files_of_a_job_are_counted_together() {
        let activity = Activity::default();
        let sight = activity.sight();
        activity.made(0.5);
        assert_eq!(sight.percent(), None);
        activity.parts(2);
        assert_eq!(sight.percent(), None);
        activity.part(0).made(1.0);
        activity.part(1).made(0.25);
        activity.part(2).made(1.0);
        assert_eq!((sight.percent(), activity.part(1).fraction()), (Some(62), 0.25));
    }
}
