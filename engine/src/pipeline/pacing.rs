//! Which pictures are kept, and when each is shown in the result.

use crate::units::{FrameRate, Timestamp};

/// How the pictures of a result follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pacing {
    /// On the grid of `rate`, the source's own rate divided by `divisor`; a slot may stay empty.
    Even { rate: FrameRate, divisor: u32 },
    /// As in the source, at least `least` apart.
    Uneven { least: Timestamp },
}

impl Pacing {
    /// Ticks per second of the times that [`Pacer`] gives.
    pub(crate) const fn clock(&self) -> FrameRate {
        match self {
            Self::Even { rate, .. } => *rate,
            Self::Uneven { .. } => UNEVEN_CLOCK,
        }
    }

    /// How much later than the beginning the first picture may come without the one before it being shown.
    pub(crate) fn patience(&self) -> Timestamp {
        match self {
            Self::Even { rate, .. } => Timestamp::from_seconds(1.0 / rate.as_f64()),
            Self::Uneven { .. } => Timestamp::from_micros(20_000),
        }
    }

    /// What `time` has beyond the nearest slot. A part that is cut out begins anywhere between two pictures;
    /// counted from there, rounded time stamps would fall into one slot and the next by chance.
    #[allow(clippy::cast_precision_loss, reason = "slots stay far below 2^53")]
    pub(crate) fn phase(&self, time: Timestamp) -> Timestamp {
        let slot = self.ticks(time);
        time.minus(Timestamp::from_seconds(slot as f64 / self.clock().as_f64()))
    }

    /// The first tick all of whose pictures are shown at `time`, which is counted from the beginning, or later.
    /// `phase` is how far the track's first picture stands from its slot.
    pub(crate) fn first_tick_from(&self, time: Timestamp, phase: Timestamp) -> i64 {
        match *self {
            Self::Even { rate, divisor } => {
                // Half a picture of the source is room for rounded times.
                let half_a_picture = 0.5 / f64::from(divisor.max(1));
                up(time.minus(phase).seconds() * rate.as_f64() - half_a_picture)
            }
            Self::Uneven { .. } => self.ticks(time),
        }
    }

    /// `time` in ticks of the clock, rounded to the nearest.
    pub(crate) fn ticks(&self, time: Timestamp) -> i64 {
        let clock = self.clock();
        time.ticks(clock.numerator(), clock.denominator())
    }
}

#[allow(clippy::cast_possible_truncation, reason = "float to integer saturates")]
fn up(value: f64) -> i64 {
    value.ceil() as i64
}

/// 1/600 s: a whole number of ticks for 24, 25, 30, 50 and 60 frames a second, and finer than any eye.
const UNEVEN_CLOCK: FrameRate = match FrameRate::new(600, 1) {
    Some(rate) => rate,
    None => unreachable!(),
};

/// Goes along with the pictures of a stream in their order.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    pacing: Pacing,
    /// When the result begins.
    origin: Timestamp,
    last: Option<(i64, Timestamp)>,
    /// How far the pictures stand from the slots that are counted from the origin.
    /// `None` until a picture in the span has come.
    phase: Option<Timestamp>,
}

impl Pacer {
    pub(crate) const fn new(pacing: Pacing, origin: Timestamp) -> Self {
        Self { pacing, origin, last: None, phase: None }
    }

    /// Goes on from `tick` as if all pictures before had been seen. `phase` is that of the track's first picture.
    pub(crate) fn resumed(pacing: Pacing, origin: Timestamp, phase: Timestamp, tick: i64) -> Self {
        let long_ago = Timestamp::from_seconds(-1e9);
        Self { pacing, origin, last: Some((tick.saturating_sub(1), long_ago)), phase: Some(phase) }
    }

    /// The tick of a picture that came before the beginning and is still on the screen then.
    pub(crate) const fn hold(&mut self) -> i64 {
        self.last = Some((0, Timestamp::ZERO));
        0
    }

    /// The tick at which a picture of time `pts` is shown; `None` when it is left out.
    ///
    /// The first picture is shown from the beginning, so that nothing is black while sound already plays.
    pub(crate) fn keep(&mut self, pts: Timestamp) -> Option<i64> {
        let time = pts.minus(self.origin);
        let Some((last_tick, last_time)) = self.last else {
            self.last = Some((0, time));
            self.phase = Some(self.pacing.phase(time));
            return Some(0);
        };
        let phase = *self.phase.get_or_insert_with(|| self.pacing.phase(time));
        let tick = match self.pacing {
            Pacing::Even { rate, divisor } => {
                // Every n-th source frame falls on a slot; the others round down into the slot before.
                let early =
                    Timestamp::from_seconds(0.5 / rate.as_f64() * (1.0 - 1.0 / f64::from(divisor.max(1))));
                self.pacing.ticks(time.minus(phase).minus(early))
            }
            Pacing::Uneven { least } => {
                if time.minus(last_time) < least {
                    return None;
                }
                self.pacing.ticks(time)
            }
        };
        (tick > last_tick).then(|| {
            self.last = Some((tick, time));
            tick
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn even(numerator: u32, denominator: u32, divisor: u32) -> Pacing {
        Pacing::Even { rate: FrameRate::new(numerator, denominator).unwrap().divided_by(divisor), divisor }
    }

    #[track_caller]
    fn check(pacing: Pacing, times: &[i64], expected: &[Option<i64>]) {
        let mut pacer = Pacer::new(pacing, Timestamp::ZERO);
        let kept: Vec<_> = times.iter().map(|time| pacer.keep(Timestamp::from_micros(*time))).collect();
        assert_eq!(kept, expected);
    }

    #[test]
    fn even_frames_keep_their_slots() {
        check(even(30_000, 1001, 1), &[0, 33_367, 66_733, 100_100], &[Some(0), Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn half_the_rate_keeps_every_second_frame() {
        check(
            even(60, 1, 2),
            &[0, 16_667, 33_333, 50_000, 66_667, 83_333],
            &[Some(0), None, Some(1), None, Some(2), None],
        );
        check(
            even(240, 1, 4),
            &[0, 4167, 8333, 12_500, 16_667, 20_833],
            &[Some(0), None, None, None, Some(1), None],
        );
    }

    #[test]
    fn a_part_that_begins_between_pictures_keeps_them_all() {
        let times: Vec<i64> =
            (0..30).map(|number: i64| 17_000 + (number * 100_000 + 1_500) / 3_000 * 1000).collect();
        let mut pacer = Pacer::new(even(30, 1, 1), Timestamp::ZERO);
        let kept = times.iter().filter(|time| pacer.keep(Timestamp::from_micros(**time)).is_some()).count();
        assert_eq!(kept, 30);
    }

    #[test]
    fn a_late_first_picture_is_held_from_the_beginning() {
        check(even(25, 1, 1), &[1_000_000, 1_040_000], &[Some(0), Some(26)]);
    }

    #[test]
    fn a_track_that_is_cut_keeps_the_same_pictures() {
        for (pacing, step) in [(even(30, 1, 1), 33_333), (even(60, 1, 2), 16_667), (even(240, 1, 4), 4167)] {
            let times: Vec<i64> = (0..400).map(|number| 5000 + number * step).collect();
            let all = |pacer: &mut Pacer, times: &[i64]| -> Vec<i64> {
                times.iter().filter_map(|time| pacer.keep(Timestamp::from_micros(*time))).collect()
            };
            let whole = all(&mut Pacer::new(pacing, Timestamp::ZERO), &times);
            for cut in 1..399 {
                let phase = pacing.phase(Timestamp::from_micros(times[0]));
                let tick = pacing.first_tick_from(Timestamp::from_micros(times[cut]), phase);
                let mut rest = Pacer::resumed(pacing, Timestamp::ZERO, phase, tick);
                let after = all(&mut rest, &times[cut..]);
                let mut joined: Vec<i64> = whole.iter().copied().filter(|kept| *kept < tick).collect();
                joined.extend(after);
                assert_eq!(joined, whole, "{pacing:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn a_held_picture_comes_first() {
        let mut pacer = Pacer::new(Pacing::Uneven { least: Timestamp::from_micros(16_000) }, Timestamp::ZERO);
        assert_eq!(pacer.hold(), 0);
        assert_eq!(pacer.keep(Timestamp::from_micros(3_000_000)), Some(1800));
    }

    #[test]
    fn uneven_frames_keep_their_times() {
        let pacing = Pacing::Uneven { least: Timestamp::from_micros(16_000) };
        check(pacing, &[0, 5000, 37_000, 148_000], &[Some(0), None, Some(22), Some(89)]);
    }

    proptest! {
        #[test]
        fn ticks_only_grow(times in proptest::collection::vec(-1_000_000_i64..100_000_000, 0..200), divisor in 1_u32..5, even_paced: bool) {
            let pacing = if even_paced { even(30, 1, divisor) } else { Pacing::Uneven { least: Timestamp::from_micros(1000) } };
            let mut pacer = Pacer::new(pacing, Timestamp::ZERO);
            let ticks: Vec<_> = times.iter().filter_map(|time| pacer.keep(Timestamp::from_micros(*time))).collect();
            prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
