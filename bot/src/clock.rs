//! The one reader of time.
//!
//! There are two kinds of time. [`Clock::now`] is the time of day: it is stored and survives a restart, and it can
//! jump. [`instant`] only ever runs forward: it measures how long something took, and waits are made with tokio's
//! timers beside it, so that a test can pause both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
pub use tokio::time::Instant;

/// A moment of the time of day, in whole milliseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WallTime(u64);

impl WallTime {
    /// The moment this many milliseconds after 1970 began.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970 began.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The moment `after` later; the last one there is when that is beyond it.
    #[must_use]
    pub fn plus(self, after: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(after.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// Tells the time of day. Clones tell the same.
#[derive(Clone, Debug, Default)]
pub struct Clock(Hand);

#[derive(Clone, Debug, Default)]
enum Hand {
    #[default]
    System,
    /// Stands where it is put.
    Manual(Arc<AtomicU64>),
    /// Where it was put, and since when it runs.
    Running(Arc<AtomicU64>, Instant),
}

impl Clock {
    /// The machine's clock.
    pub const fn system() -> Self {
        Self(Hand::System)
    }

    /// A clock that stands at `now` until it is [set](Clock::set).
    pub fn manual(now: WallTime) -> Self {
        Self(Hand::Manual(Arc::new(AtomicU64::new(now.0))))
    }

    /// A clock that shows `now` and runs with [`instant`], so that a test can pause both.
    pub fn running(now: WallTime) -> Self {
        Self(Hand::Running(Arc::new(AtomicU64::new(now.0)), instant()))
    }

    /// The time of day. It can be before what was told earlier.
    pub fn now(&self) -> WallTime {
        match &self.0 {
            Hand::Manual(hand) => WallTime(hand.load(Ordering::Acquire)),
            Hand::Running(start, begun) => WallTime(start.load(Ordering::Acquire)).plus(begun.elapsed()),
            Hand::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                WallTime::default().plus(since)
            }
        }
    }

    /// Moves a clock of a test, forward or back. The machine's clock is not moved.
    pub fn set(&self, now: WallTime) {
        match &self.0 {
            Hand::System => {}
            Hand::Manual(hand) => hand.store(now.0, Ordering::Release),
            Hand::Running(start, begun) => {
                let ran = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                start.store(now.0.saturating_sub(ran), Ordering::Release);
            }
        }
    }
}

/// The moment on the clock that only runs forward; tokio's, so that it stands still in a test that pauses it.
pub fn instant() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_goes_where_it_is_put() {
        let clock = Clock::manual(WallTime::from_millis(5_000));
        let same = clock.clone();
        clock.set(WallTime::from_millis(2_000));
        assert_eq!(same.now().as_millis(), 2_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_running_clock_runs_from_where_it_is_put() {
        let clock = Clock::running(WallTime::from_millis(5_000));
        tokio::time::advance(Duration::from_millis(300)).await;
        assert_eq!(clock.now().as_millis(), 5_300);
        clock.set(WallTime::from_millis(2_000));
        tokio::time::advance(Duration::from_millis(50)).await;
        assert_eq!(clock.now().as_millis(), 2_050);
    }

    #[test]
    fn a_clock_that_jumped_back_gives_no_negative_time() {
        let (early, late) = (WallTime::from_millis(1_000), WallTime::from_millis(4_500));
        assert_eq!(late.since(early), Duration::from_millis(3_500));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(late.plus(Duration::MAX).as_millis(), u64::MAX);
    }

    #[test]
    fn the_system_clock_is_in_this_century() {
        assert!(Clock::system().now() > WallTime::from_millis(1_600_000_000_000));
    }
}
