//! When a disk that failed is tried again. Pure.

use std::time::Duration;

use crate::clock::Instant;

/// The failures in a row.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    failures: u32,
    retry_at: Option<Instant>,
}

/// The first wait.
const FIRST: Duration = Duration::from_millis(500);

/// No wait is longer: somebody waits for an answer, and trying costs little.
const LONGEST: Duration = Duration::from_secs(60);

impl Trouble {
    /// Something failed. Whether that is new.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        let pause = FIRST.saturating_mul(2_u32.saturating_pow(self.failures)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        self.retry_at = now.checked_add(pause);
        self.failures == 1
    }

    /// Something worked. Whether that is new.
    pub(super) fn worked(&mut self) -> bool {
        self.retry_at = None;
        std::mem::take(&mut self.failures) > 0
    }

    pub(super) const fn failures(&self) -> u32 {
        self.failures
    }

    /// How long to wait before the next try; zero when it is due.
    pub(super) fn pause(&self, now: Instant) -> Duration {
        self.retry_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::instant;

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_a_minute_and_begin_anew_after_a_success() {
        let (mut trouble, now) = (Trouble::default(), instant());
        let mut waits = Vec::new();
        for failure in 0..40 {
            assert_eq!(trouble.failed(now), failure == 0);
            waits.push(trouble.pause(now).as_millis());
        }
        assert_eq!(waits[..9], [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(waits.last(), Some(&60_000));
        assert!(trouble.worked() && !trouble.worked());
        assert_eq!((trouble.failures(), trouble.pause(now)), (0, Duration::ZERO));
        trouble.failed(now);
        assert_eq!(trouble.pause(now), FIRST);
        assert_eq!(trouble.pause(now + FIRST), Duration::ZERO);
    }
}
