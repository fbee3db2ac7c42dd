//! Numbers at one moment: what is stored, exported and shown.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::WallTime;
use crate::domain::Stage;
use crate::metrics::counter::{Counter, Counts};
use crate::metrics::histogram::Histogram;

/// Everything that was counted, since the start or in an interval. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub(super) stages: [StageSnapshot; 4],
    pub(super) counters: Counts,
    /// Per kind of error, in the order of the stages.
    pub(super) errors: BTreeMap<String, [u64; 4]>,
}

/// How one stage did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageSnapshot {
    pub(super) failures: u64,
    pub(super) times: Histogram,
}

impl StageSnapshot {
    /// How many of its runs failed.
    pub const fn failures(&self) -> u64 {
        self.failures
    }

    /// How long its runs took, failed ones included.
    pub const fn times(&self) -> &Histogram {
        &self.times
    }

    fn combine(&mut self, other: &Self, with: impl Fn(u64, u64) -> u64) {
        self.failures = with(self.failures, other.failures);
        self.times.combine(&other.times, with);
    }
}

impl Snapshot {
    /// How much of this was counted.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(counter)
    }

    /// How this stage did.
    pub const fn stage(&self, stage: Stage) -> &StageSnapshot {
        let [resolve, download, optimize, upload] = &self.stages;
        match stage {
            Stage::Resolve => resolve,
            Stage::Download => download,
            Stage::Optimize => optimize,
            Stage::Upload => upload,
        }
    }

    /// Each kind of error in each stage that had it, and how often, sorted by kind and stage.
    pub fn errors(&self) -> impl Iterator<Item = (&str, Stage, u64)> {
        self.errors.iter().flat_map(|(kind, per_stage)| {
            let stages = Stage::ALL.into_iter().zip(*per_stage);
            stages.filter(|(_, n)| *n > 0).map(move |(stage, n)| (kind.as_str(), stage, n))
        })
    }

    /// Adds what was counted elsewhere or at another time.
    pub fn merge(&mut self, other: &Self) {
        self.combine(other, u64::saturating_add);
        for (kind, theirs) in &other.errors {
            let mine = self.errors.entry(kind.clone()).or_default();
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine = mine.saturating_add(*theirs);
            }
        }
    }

    /// What was counted after `earlier`, which is an earlier reading of the same numbers.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let mut rest = self.clone();
        rest.combine(earlier, u64::saturating_sub);
        rest.errors.retain(|kind, now| {
            if let Some(then) = earlier.errors.get(kind) {
                now.iter_mut().zip(then).for_each(|(now, then)| *now = now.saturating_sub(*then));
            }
            *now != [0; 4]
        });
        rest
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stages.iter().all(|stage| *stage == StageSnapshot::default())
            && self.counters.is_zero()
            && self.errors.is_empty()
    }

    /// Combines all numbers but those of the kinds of errors.
    fn combine(&mut self, other: &Self, with: impl Fn(u64, u64) -> u64 + Copy) {
        for (mine, theirs) in self.stages.iter_mut().zip(&other.stages) {
            mine.combine(theirs, with);
        }
        self.counters.combine(&other.counters, with);
    }
}

/// What was counted from one flush to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// The time of day when it ended.
    pub until: WallTime,
    /// How long it was, by the clock that only runs forward.
    pub lasted: Duration,
    /// What was counted in it.
    pub counted: Snapshot,
}

impl Interval {
    /// A key to store it under. Keys sort by the end of the interval.
    pub fn key(&self) -> String {
        // Twenty digits hold every time.
        format!("{:020}", self.until.as_millis())
    }

    /// Its bytes to be stored: JSON.
    pub fn encode(&self) -> Vec<u8> {
        // All keys are text and all values numbers, so it cannot fail; if it did, a piece of history would be lost.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The interval of stored bytes; `None` when they are none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// The kind of all errors that have no place of their own.
pub(super) const OTHER: &str = "other";

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Interval {
        let mut counted = Snapshot::default();
        counted.errors.insert("gone".to_owned(), [2, 0, 0, 1]);
        counted.stages[0].failures = 2;
        Interval { until: WallTime::from_millis(1_700), lasted: Duration::from_secs(60), counted }
    }

    #[test]
    fn an_interval_survives_its_bytes() {
        assert_eq!(Interval::decode(&some().encode()), Some(some()));
        for bytes in [&b""[..], b"{}", b"\xff", br#"{"until":1}"#] {
            assert_eq!(Interval::decode(bytes), None);
        }
    }

    #[test]
    fn keys_sort_by_time() {
        let mut later = some();
        later.until = WallTime::from_millis(10_000);
        assert_eq!(some().key(), "00000000000000001700");
        assert!(some().key() < later.key());
    }

    #[test]
    fn the_difference_of_two_readings_holds_only_what_is_new() {
        let earlier = some().counted;
        assert!(earlier.since(&earlier).is_empty());
        let mut now = earlier.clone();
        now.merge(&earlier);
        now.errors.insert("ours".to_owned(), [0, 1, 0, 0]);
        let new = now.since(&earlier);
        let errors: Vec<_> = new.errors().collect();
        assert_eq!(
            errors,
            [("gone", Stage::Resolve, 2), ("gone", Stage::Upload, 1), ("ours", Stage::Download, 1)]
        );
        assert_eq!(new.stage(Stage::Resolve).failures(), 2);
    }
}
