//! What rooms count with.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dashmap::DashMap;

use crate::clock::{self, Instant, WallTime};
use crate::domain::{PostId, Stage};
use crate::metrics::counter::{Cells, Counter};
use crate::metrics::diary::{Diary, Note};
use crate::metrics::gauge::{Gauge, Needles};
use crate::metrics::histogram::LiveHistogram;
use crate::metrics::snapshot::{Interval, OTHER, Snapshot, StageSnapshot};

/// Counts and times. Clones count into the same numbers.
///
/// Nothing here blocks. All but the first failure of a new kind allocates nothing; counting and timing lock nothing.
#[derive(Clone, Debug)]
pub struct Tracker(Option<Arc<Numbers>>);

#[derive(Debug)]
struct Numbers {
    stages: [LiveStage; 4],
    counters: Cells,
    gauges: Needles,
    kinds: Kinds,
    diary: Diary,
    /// The totals at the last flush. Only flushes lock it.
    flushed: Mutex<Flushed>,
}

#[derive(Debug, Default)]
struct LiveStage {
    failures: AtomicU64,
    times: LiveHistogram,
}

#[derive(Debug)]
struct Flushed {
    at: Instant,
    totals: Snapshot,
}

impl Tracker {
    /// A tracker that starts at zero; it keeps nothing at all unless `enabled`.
    pub fn new(enabled: bool) -> Self {
        Self(enabled.then(|| {
            Arc::new(Numbers {
                stages: Default::default(),
                counters: Cells::default(),
                gauges: Needles::default(),
                kinds: Kinds::default(),
                diary: Diary::default(),
                flushed: Mutex::new(Flushed { at: clock::instant(), totals: Snapshot::default() }),
            })
        }))
    }

    /// Notes that a run of `stage` took this long, however it ended.
    pub fn stage(&self, stage: Stage, took: Duration) {
        let Some(live) = self.0.as_ref().and_then(|numbers| numbers.stages.get(stage.index())) else {
            return;
        };
        live.times.add(took);
    }

    /// Notes that a run of `stage` failed, and how: `code` is one of a small fixed set, as a failure's own code is.
    ///
    /// The first [`MAX_ERROR_KINDS`] codes are told apart; later ones, and ones longer than 64 bytes, count as
    /// `other`.
    pub fn failure(&self, stage: Stage, code: &str) {
        let Some(numbers) = &self.0 else { return };
        if let Some(live) = numbers.stages.get(stage.index()) {
            live.failures.fetch_add(1, Ordering::Relaxed);
        }
        numbers.kinds.add(stage, code);
    }

    /// Counts `n` more.
    pub fn count(&self, counter: Counter, n: u64) {
        let Some(numbers) = &self.0 else { return };
        numbers.counters.add(counter, n);
    }

    /// Notes in words what was done for a post, at the moment `at`.
    pub fn note(&self, post: PostId, at: WallTime, what: impl Into<String>, took: Option<Duration>) {
        let Some(numbers) = &self.0 else { return };
        numbers.diary.note(post, Note { at, what: what.into(), took });
    }

    /// What was done for a post lately, the oldest first; `None` when metrics are off.
    pub fn notes(&self, post: PostId) -> Option<Vec<Note>> {
        self.0.as_ref().map(|numbers| numbers.diary.of(post))
    }

    /// Notes how something stands now.
    pub fn gauge(&self, gauge: Gauge, value: u64) {
        let Some(numbers) = &self.0 else { return };
        numbers.gauges.set(gauge, value);
    }

    /// How everything stands that goes up and down; nothing when metrics are off.
    pub fn gauges(&self) -> Vec<(Gauge, u64)> {
        self.0.as_ref().map(|numbers| numbers.gauges.read().to_vec()).unwrap_or_default()
    }

    /// Everything counted since the start. All zero when metrics are off.
    pub fn totals(&self) -> Snapshot {
        self.0.as_ref().map(|numbers| numbers.read()).unwrap_or_default()
    }

    /// Hands what was counted since the last flush to `keep` and begins a new interval; the totals stay. `now` is
    /// the time of day. Does nothing when nothing was counted.
    ///
    /// What `keep` loses is missing from the history, and nowhere else.
    pub fn flush(&self, now: WallTime, keep: impl FnOnce(Interval)) {
        let Some(numbers) = &self.0 else { return };
        let interval = {
            let mut flushed = numbers.flushed.lock().unwrap_or_else(PoisonError::into_inner);
            let totals = numbers.read();
            let counted = totals.since(&flushed.totals);
            let at = clock::instant();
            let lasted = at.saturating_duration_since(flushed.at);
            *flushed = Flushed { at, totals };
            Interval { until: now, lasted, counted }
        };
        if !interval.counted.is_empty() {
            keep(interval);
        }
    }
}

impl Numbers {
    fn read(&self) -> Snapshot {
        let stage = |live: &LiveStage| StageSnapshot {
            failures: live.failures.load(Ordering::Relaxed),
            times: live.times.read(),
        };
        Snapshot {
            stages: self.stages.each_ref().map(stage),
            counters: self.counters.read(),
            errors: self.kinds.read(),
        }
    }
}

/// How often each kind of failure happened in each stage.
#[derive(Debug, Default)]
struct Kinds {
    known: DashMap<Box<str>, PerStage>,
    /// Places taken in `known`. It is counted apart, since the length of the map takes all of its locks.
    taken: AtomicUsize,
    other: PerStage,
}

type PerStage = [AtomicU64; 4];

impl Kinds {
    fn add(&self, stage: Stage, code: &str) {
        if let Some(kind) = self.known.get(code) {
            return bump(&kind, stage);
        }
        if code == OTHER || code.len() > MAX_CODE_BYTES || !self.take_place() {
            return bump(&self.other, stage);
        }
        match self.known.entry(code.into()) {
            dashmap::Entry::Occupied(kind) => {
                // Another thread was first with the same code, and one place is enough for both.
                self.taken.fetch_sub(1, Ordering::Relaxed);
                bump(kind.get(), stage);
            }
            dashmap::Entry::Vacant(place) => bump(&place.insert(PerStage::default()), stage),
        }
    }

    fn take_place(&self) -> bool {
        let one_more = |taken: usize| (taken < MAX_ERROR_KINDS).then_some(taken.saturating_add(1));
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    fn read(&self) -> BTreeMap<String, [u64; 4]> {
        let mut kinds: BTreeMap<String, [u64; 4]> =
            self.known.iter().map(|kind| (kind.key().to_string(), load(kind.value()))).collect();
        let other = load(&self.other);
        if other != [0; 4] {
            kinds.insert(OTHER.to_owned(), other);
        }
        kinds
    }
}

fn bump(kind: &PerStage, stage: Stage) {
    if let Some(cell) = kind.get(stage.index()) {
        cell.fetch_add(1, Ordering::Relaxed);
    }
}

fn load(kind: &PerStage) -> [u64; 4] {
    kind.each_ref().map(|cell| cell.load(Ordering::Relaxed))
}

/// How many kinds of errors are told apart. The service has about a dozen; the bound holds when a bug makes codes
/// out of what strangers send.
pub const MAX_ERROR_KINDS: usize = 128;

/// Ours have at most 11.
const MAX_CODE_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn clones_count_into_the_same_numbers() {
        let tracker = Tracker::new(true);
        let clone = tracker.clone();
        clone.count(Counter::DownloadBytes, 5);
        tracker.count(Counter::DownloadBytes, 2);
        tracker.stage(Stage::Upload, SECOND);
        tracker.failure(Stage::Upload, "transient");
        let totals = tracker.totals();
        assert_eq!(totals.counter(Counter::DownloadBytes), 7);
        assert_eq!(totals.stage(Stage::Upload).times().count(), 1);
        assert_eq!(totals.stage(Stage::Upload).failures(), 1);
        assert_eq!(totals.errors().collect::<Vec<_>>(), [("transient", Stage::Upload, 1)]);
        assert_eq!(totals.stage(Stage::Resolve), &StageSnapshot::default());
    }

    #[test]
    fn nothing_is_kept_when_metrics_are_off() {
        let tracker = Tracker::new(false);
        tracker.count(Counter::Links, 1);
        tracker.stage(Stage::Resolve, SECOND);
        tracker.failure(Stage::Resolve, "gone");
        assert_eq!(tracker.totals(), Snapshot::default());
        tracker.flush(WallTime::default(), |_| panic!("nothing to flush"));
    }

    #[test]
    fn kinds_of_errors_beyond_the_bound_count_as_other() {
        let tracker = Tracker::new(true);
        for number in 0..MAX_ERROR_KINDS + 5 {
            tracker.failure(Stage::Download, &format!("kind-{number}"));
        }
        tracker.failure(Stage::Download, &"x".repeat(65));
        tracker.failure(Stage::Download, "kind-0");
        let totals = tracker.totals();
        let of = |code: &str| totals.errors().find(|(kind, ..)| *kind == code).map(|(.., n)| n);
        assert_eq!(totals.errors().count(), MAX_ERROR_KINDS + 1);
        assert_eq!(of(OTHER), Some(6));
        assert_eq!(of("kind-0"), Some(2));
        assert_eq!(totals.stage(Stage::Download).failures(), u64::try_from(MAX_ERROR_KINDS).unwrap() + 7);
    }

    #[test]
    fn threads_that_meet_a_kind_at_once_take_one_place() {
        let tracker = Tracker::new(true);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|n| tracker.failure(Stage::Resolve, &format!("kind-{n}"))));
            }
        });
        assert!(tracker.totals().errors().all(|(.., n)| n == 4));
        let numbers = tracker.0.unwrap();
        assert_eq!(numbers.kinds.taken.load(Ordering::Relaxed), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flush_begins_a_new_interval_and_keeps_the_totals() {
        let tracker = Tracker::new(true);
        let mut kept = Vec::new();
        tracker.count(Counter::Links, 3);
        tokio::time::advance(SECOND * 60).await;
        tracker.flush(WallTime::from_millis(60_000), |interval| kept.push(interval));
        tracker.flush(WallTime::from_millis(61_000), |_| panic!("nothing was counted"));
        tracker.count(Counter::Links, 4);
        tokio::time::advance(SECOND * 30).await;
        // The time of day went back meanwhile: the length of the interval is none of its business.
        tracker.flush(WallTime::from_millis(1_000), |interval| kept.push(interval));
        let told: Vec<_> = kept.iter().map(|i| (i.lasted, i.counted.counter(Counter::Links))).collect();
        assert_eq!(told, [(SECOND * 60, 3), (SECOND * 30, 4)]);
        assert_eq!(tracker.totals().counter(Counter::Links), 7);
        let mut all = Snapshot::default();
        kept.iter().for_each(|interval| all.merge(&interval.counted));
        assert_eq!(all, tracker.totals());
    }
}
