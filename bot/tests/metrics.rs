//! Counting costs what it promises: no allocation, whether metrics are on or off.
#![forbid(unsafe_code)]

use std::time::Duration;

use azalea_bot::domain::Stage;
use azalea_bot::metrics::{Counter, Tracker};

/// How often counting, timing and failing a thousand times each allocates.
fn allocations(tracker: &Tracker) -> u64 {
    // A kind of error has its place from its first time on, and that time allocates.
    tracker.failure(Stage::Resolve, "transient");
    let measured = allocation_counter::measure(|| {
        for n in 0..1000 {
            tracker.count(Counter::DownloadBytes, n);
            tracker.stage(Stage::Download, Duration::from_micros(n));
            tracker.failure(Stage::Resolve, "transient");
        }
    });
    measured.count_total
}

#[test]
fn counting_allocates_nothing() {
    let tracker = Tracker::new(true);
    assert_eq!(allocations(&tracker), 0);
    assert_eq!(tracker.totals().counter(Counter::DownloadBytes), 499_500);
}

#[test]
fn a_tracker_that_is_off_allocates_nothing() {
    assert_eq!(allocation_counter::measure(|| drop(Tracker::new(false))).count_total, 0);
    assert_eq!(allocations(&Tracker::new(false)), 0);
}

#[test]
fn the_count_of_allocations_counts() {
    assert_eq!(allocation_counter::measure(|| drop(Vec::<u8>::with_capacity(1))).count_total, 1);
}
