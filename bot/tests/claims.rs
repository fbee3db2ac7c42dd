//! What waiting costs. Alone in its program, as another test's allocations could not be told apart.
#![forbid(unsafe_code)]

use std::hint::black_box;

use azalea_bot::clock::instant;
use azalea_bot::dedup::{Claim, InFlight, InFlightSettings};

#[test]
fn a_waiter_allocates_nothing() {
    let flights = InFlight::<u64, u64>::new(InFlightSettings::default());
    let now = instant();
    let Claim::Owner(ownership) = flights.claim(&7, now) else { panic!("nobody else asks") };
    let mut waiters = Vec::with_capacity(10_000);
    // The cache's housekeeping allocates now and then, however many wait, so that all are counted together.
    let counted = allocation_counter::measure(|| {
        for _ in 0..10_000 {
            if let Claim::Waiter(waiter) = flights.claim(&7, now) {
                waiters.push(waiter);
            }
        }
    });
    assert_eq!(waiters.len(), 10_000);
    assert!(counted.count_total < 100, "{} allocations for 10,000 waiters", counted.count_total);
    assert!(counted.bytes_current < 10_000, "{} bytes stay for 10,000 waiters", counted.bytes_current);
    drop((black_box(waiters), ownership));
}
