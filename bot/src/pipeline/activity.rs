//! Signs that a job is getting somewhere, and where it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::domain::Stage;

/// Counts the steps of one piece of work, so that somebody else can tell work that goes on from work that hangs.
/// Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Activity(Arc<Steps>);

#[derive(Debug, Default)]
struct Steps {
    done: AtomicU64,
    /// The place of the stage among all, from 1; 0 before the first.
    stage: AtomicUsize,
}

impl Activity {
    /// Something was done: some bytes, some frames.
    pub fn moved(&self) {
        // Relaxed, here and below: it says nothing about any other memory.
        self.0.done.fetch_add(1, Ordering::Relaxed);
    }

    /// A stage begins.
    pub fn begin(&self, stage: Stage) {
        self.0.stage.store(stage.index().saturating_add(1), Ordering::Relaxed);
        self.moved();
    }

    /// How much was done so far. It changes as long as the work goes on.
    pub fn seen(&self) -> u64 {
        self.0.done.load(Ordering::Relaxed)
    }

    /// The stage that began last.
    pub fn stage(&self) -> Option<Stage> {
        let place = self.0.stage.load(Ordering::Relaxed).checked_sub(1)?;
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
