//! Leaves a source in trouble alone for a while. Pure: it is told the time.
//!
//! | state | asked? | left by |
//! |---|---|---|
//! | closed | yes | so many failures in a row, or one with a wish to be left alone → open |
//! | open | no | its pause is over and somebody asks → half-open |
//! | half-open | one at a time | that one succeeds → closed; fails → open, for twice as long |

use std::time::Duration;

use crate::clock::Instant;
use crate::source::BreakerSettings;

/// The breaker of one source.
#[derive(Debug)]
pub(super) struct Breaker {
    settings: BreakerSettings,
    state: State,
    /// Failures since the last success.
    in_a_row: u32,
    /// Pauses since the last success.
    pauses: u32,
    failed_at: Option<Instant>,
    chance: fastrand::Rng,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed,
    Open {
        until: Instant,
    },
    /// Somebody tries whether it is well again. When nothing is heard until then, that try was given up.
    HalfOpen {
        until: Instant,
    },
}

impl Breaker {
    /// A closed breaker; `chance` scatters its pauses.
    pub(super) const fn new(settings: BreakerSettings, chance: fastrand::Rng) -> Self {
        Self { settings, state: State::Closed, in_a_row: 0, pauses: 0, failed_at: None, chance }
    }

    /// Asks for leave to ask the source now.
    ///
    /// # Errors
    /// How much longer it is left alone.
    pub(super) fn admit(&mut self, now: Instant) -> Result<(), Duration> {
        match self.state {
            State::Closed => Ok(()),
            State::Open { until } | State::HalfOpen { until } if now < until => {
                Err(until.saturating_duration_since(now))
            }
            State::Open { .. } | State::HalfOpen { .. } => {
                self.state = State::HalfOpen { until: later(now, LONGEST_TRY) };
                Ok(())
            }
        }
    }

    /// The source is well.
    pub(super) const fn succeed(&mut self) {
        self.state = State::Closed;
        self.in_a_row = 0;
        self.pauses = 0;
    }

    /// The source is in trouble; `wish` is how long it asked to be left alone.
    pub(super) fn fail(&mut self, now: Instant, wish: Option<Duration>) {
        self.failed_at = Some(now);
        self.in_a_row = self.in_a_row.saturating_add(1);
        let wish = wish.map(|wish| later(now, wish.min(self.settings.longest_wish)));
        let tripped = match self.state {
            // Requests that were under way when it opened say nothing new.
            State::Open { .. } => None,
            State::HalfOpen { .. } => Some(self.pause(now)),
            State::Closed => (self.in_a_row >= self.settings.failures).then(|| self.pause(now)),
        };
        let already = match self.state {
            State::Open { until } => Some(until),
            State::Closed | State::HalfOpen { .. } => None,
        };
        if let Some(until) = [wish, tripped, already].into_iter().flatten().max() {
            self.state = State::Open { until };
        }
    }

    /// When it failed last.
    pub(super) const fn failed_at(&self) -> Option<Instant> {
        self.failed_at
    }

    /// When the pause ends that begins now.
    fn pause(&mut self, now: Instant) -> Instant {
        let doublings = self.pauses.min(31);
        self.pauses = self.pauses.saturating_add(1);
        let grown =
            self.settings.first_pause.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX));
        let bounded = grown.min(self.settings.longest_pause).min(LONGEST_PAUSE);
        later(now, scattered(bounded, self.chance.u32(0..=2 * SCATTER)))
    }
}

/// `time` made up to a fifth shorter or longer, so that many who wait do not come back at once.
fn scattered(time: Duration, roll: u32) -> Duration {
    let permille = 1_000_u32.saturating_sub(SCATTER).saturating_add(roll);
    time.checked_mul(permille).map_or(time, |product| product / 1_000)
}

fn later(now: Instant, by: Duration) -> Instant {
    now.checked_add(by.min(LONGEST_PAUSE)).unwrap_or(now)
}

/// In thousandths.
const SCATTER: u32 = 200;
/// Longer than any source's time-out.
const LONGEST_TRY: Duration = Duration::from_secs(60);
/// Keeps the sums within what a clock can count, whatever is configured.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 3_600);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock;

    const SETTINGS: BreakerSettings = BreakerSettings {
        failures: 3,
        first_pause: Duration::from_secs(10),
        longest_pause: Duration::from_secs(60),
        longest_wish: Duration::from_secs(600),
    };

    fn breaker() -> (Breaker, Instant) {
        (Breaker::new(SETTINGS, fastrand::Rng::with_seed(7)), clock::instant())
    }

    fn secs(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn so_many_failures_in_a_row_open_it() {
        let (mut breaker, now) = breaker();
        breaker.fail(now, None);
        breaker.fail(now, None);
        assert_eq!(breaker.admit(now), Ok(()));
        breaker.succeed();
        breaker.fail(now, None);
        breaker.fail(now, None);
        assert_eq!(breaker.admit(now), Ok(()), "they were not in a row");
        breaker.fail(now, None);
        let rest = breaker.admit(now).unwrap_err();
        assert!((secs(8)..=secs(12)).contains(&rest), "{rest:?}");
    }

    #[test]
    fn one_at_a_time_tries_whether_it_is_well_again() {
        let (mut breaker, now) = breaker();
        for _ in 0..3 {
            breaker.fail(now, None);
        }
        let after = now + secs(13);
        assert_eq!(breaker.admit(after), Ok(()));
        assert!(breaker.admit(after).is_err());
        breaker.succeed();
        assert_eq!(breaker.admit(after), Ok(()));
        assert_eq!(breaker.admit(after), Ok(()));
    }

    #[test]
    fn a_try_that_was_given_up_does_not_lock_it_for_ever() {
        let (mut breaker, now) = breaker();
        for _ in 0..3 {
            breaker.fail(now, None);
        }
        assert_eq!(breaker.admit(now + secs(13)), Ok(()));
        assert!(breaker.admit(now + secs(72)).is_err());
        assert_eq!(breaker.admit(now + secs(73)), Ok(()));
    }

    #[test]
    fn pauses_grow_to_a_bound() {
        let (mut breaker, mut now) = breaker();
        for _ in 0..3 {
            breaker.fail(now, None);
        }
        let mut rests = Vec::new();
        for _ in 0..6 {
            let rest = breaker.admit(now).unwrap_err();
            rests.push(rest);
            now += rest;
            assert_eq!(breaker.admit(now), Ok(()));
            breaker.fail(now, None);
        }
        for (rest, wanted) in rests.iter().zip([10, 20, 40, 60, 60, 60]) {
            let wanted = secs(wanted);
            assert!(*rest >= wanted * 4 / 5 && *rest <= wanted * 6 / 5, "{rest:?} for {wanted:?}");
        }
    }

    #[test]
    fn a_wish_opens_it_at_once_and_is_bounded() {
        let (mut breaker, now) = breaker();
        breaker.fail(now, Some(secs(90)));
        assert_eq!(breaker.admit(now + secs(89)), Err(secs(1)));
        assert_eq!(breaker.admit(now + secs(90)), Ok(()));
        breaker.fail(now + secs(90), Some(secs(86_400)));
        assert_eq!(breaker.admit(now + secs(90)), Err(secs(600)));
    }

    #[test]
    fn late_failures_do_not_lengthen_the_pause() {
        let (mut breaker, now) = breaker();
        for _ in 0..3 {
            breaker.fail(now, None);
        }
        let rest = breaker.admit(now).unwrap_err();
        breaker.fail(now + secs(1), None);
        assert_eq!(breaker.admit(now), Err(rest));
    }

    proptest! {
        #[test]
        fn it_always_opens_again(steps in prop::collection::vec((any::<bool>(), 0_u64..5_000), 1..100)) {
            let (mut breaker, mut now) = breaker();
            for (well, pass) in steps {
                now += secs(pass);
                if breaker.admit(now).is_ok() {
                    if well { breaker.succeed() } else { breaker.fail(now, Some(secs(pass))) }
                }
            }
            // The longest wish, or the longest pause and its scatter, and one try that was given up.
            prop_assert!(breaker.admit(now + secs(600) + secs(72)).is_ok());
        }
    }
}
