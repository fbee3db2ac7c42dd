//! Durations in buckets whose bounds never change, so that any two histograms can be added.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long things took: how many fell into each bucket, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    buckets: [u64; BUCKETS],
    total_micros: u64,
}

impl Histogram {
    /// How many were measured.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// How long all of them took together.
    pub const fn total(&self) -> Duration {
        Duration::from_micros(self.total_micros)
    }

    /// The time that this many thousandths of all took at most, interpolated within its bucket; `None` when nothing
    /// was measured. What took longer than the last bound counts as the last bound. More than 1000 means 1000.
    pub fn quantile(&self, permille: u32) -> Option<Duration> {
        let count = self.count();
        let rank = (u128::from(count) * u128::from(permille.min(1000))).div_ceil(1000).max(1);
        let (mut below, mut lower) = (0_u128, 0_u64);
        for (n, upper) in self.buckets.iter().zip(BOUNDS_MICROS.into_iter().map(Some).chain([None])) {
            let reached = below + u128::from(*n);
            if *n > 0 && reached >= rank {
                let width = u128::from(upper.unwrap_or(lower).saturating_sub(lower));
                let inside = width * (rank - below) / u128::from(*n);
                let micros = u128::from(lower) + inside;
                return Some(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)));
            }
            below = reached;
            lower = upper.unwrap_or(lower);
        }
        None
    }

    /// For each bucket its upper bound, `None` for the last, and how many took at most that long.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        let bounds =
            BOUNDS_MICROS.into_iter().map(|micros| Some(Duration::from_micros(micros))).chain([None]);
        bounds.zip(self.buckets).scan(0_u64, |sum, (bound, n)| {
            *sum = sum.saturating_add(n);
            Some((bound, *sum))
        })
    }

    pub(super) fn combine(&mut self, other: &Self, with: impl Fn(u64, u64) -> u64) {
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets) {
            *mine = with(*mine, theirs);
        }
        self.total_micros = with(self.total_micros, other.total_micros);
    }
}

/// A histogram that is being filled.
#[derive(Debug, Default)]
pub(super) struct LiveHistogram {
    buckets: [AtomicU64; BUCKETS],
    total_micros: AtomicU64,
}

impl LiveHistogram {
    pub(super) fn add(&self, took: Duration) {
        // At most a hundred days, so that no sum of them overflows.
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).min(100 * 86_400 * 1_000_000);
        let at = BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.total_micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Histogram {
        Histogram {
            buckets: std::array::from_fn(|at| self.buckets.get(at).map_or(0, |n| n.load(Ordering::Relaxed))),
            total_micros: self.total_micros.load(Ordering::Relaxed),
        }
    }
}

/// The upper bounds in microseconds: 1, 2 and 5 of each decade from a millisecond to a thousand seconds, which is
/// longer than any stage may take. Stored histograms rely on them.
const BOUNDS_MICROS: [u64; 19] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
];

/// One for each bound, and one for what is above the last.
const BUCKETS: usize = BOUNDS_MICROS.len() + 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(millis: &[u64]) -> Histogram {
        let live = LiveHistogram::default();
        millis.iter().for_each(|millis| live.add(Duration::from_millis(*millis)));
        live.read()
    }

    #[test]
    fn a_bound_belongs_to_the_bucket_below_it() {
        let counts: Vec<u64> = of(&[0, 1, 2, 3, 5]).cumulative().take(4).map(|(_, n)| n).collect();
        assert_eq!(counts, [2, 3, 5, 5]);
    }

    #[test]
    fn nothing_measured_has_no_quantile() {
        assert_eq!(Histogram::default().quantile(500), None);
    }

    #[test]
    fn quantiles_are_interpolated_within_their_bucket() {
        let ten = of(&[150; 10]);
        assert_eq!(ten.quantile(500), Some(Duration::from_millis(150)));
        assert_eq!(ten.quantile(1000), Some(Duration::from_millis(200)));
        assert_eq!(ten.quantile(5000), ten.quantile(1000));
        let two = of(&[1, 1_000]);
        assert_eq!(two.quantile(0), Some(Duration::from_millis(1)));
        assert_eq!(two.quantile(990), Some(Duration::from_secs(1)));
    }

    #[test]
    fn what_is_endless_counts_as_the_last_bound() {
        let live = LiveHistogram::default();
        live.add(Duration::MAX);
        live.add(Duration::MAX);
        assert_eq!(live.read().quantile(500), Some(Duration::from_secs(1000)));
        assert_eq!(live.read().total(), Duration::from_secs(200 * 86_400));
    }

    proptest! {
        #[test]
        fn quantiles_stay_within_a_bucket_of_the_truth(mut millis in prop::collection::vec(1_u64..900_000, 1..50)) {
            let histogram = of(&millis);
            millis.sort_unstable();
            for permille in [0, 100, 500, 950, 1000] {
                let at = (millis.len() * permille).div_ceil(1000).max(1) - 1;
                let truth = Duration::from_millis(millis[at]);
                let told = histogram.quantile(u32::try_from(permille).unwrap()).unwrap();
                // The widest bucket spans a factor of two and a half.
                prop_assert!(told <= truth.mul_f64(2.51) && told.mul_f64(2.51) >= truth, "{told:?} {truth:?}");
            }
        }

        #[test]
        fn adding_histograms_is_adding_what_they_measured(
            one in prop::collection::vec(0_u64..2_000_000, 0..20),
            two in prop::collection::vec(0_u64..2_000_000, 0..20),
        ) {
            let mut sum = of(&one);
            sum.combine(&of(&two), u64::saturating_add);
            prop_assert_eq!(sum, of(&[one, two].concat()));
        }
    }
}
