use std::sync::atomic::AtomicUsize;
use std::thread;

use proptest::prelude::*;

use super::*;

type Flights = InFlight<u32, &'static str>;

const MINUTE: Duration = Duration::from_secs(60);

fn flights() -> Flights {
    InFlight::new(InFlightSettings { work: 10 * MINUTE, queued: 60 * MINUTE, capacity: 1_000 })
}

#[track_caller]
fn own(flights: &Flights, now: Instant) -> Ownership<u32, &'static str> {
    match flights.claim(&7, now) {
        Claim::Owner(ownership) => ownership,
        Claim::Waiter(waiter) => panic!("waits for {}", waiter.token()),
    }
}

#[track_caller]
fn join(flights: &Flights, now: Instant) -> Waiter<&'static str> {
    match flights.claim(&7, now) {
        Claim::Owner(ownership) => panic!("owns by {}", ownership.token()),
        Claim::Waiter(waiter) => waiter,
    }
}

#[test]
fn the_time_for_a_claim_holds_two_transcodes_and_a_minute() {
    let seconds = Duration::from_secs;
    let times = WorkTimes { download: seconds(100), transcode: seconds(20), upload: seconds(3) };
    assert_eq!(times.sum(), seconds(100 + 2 * 20 + 3 + 60));
    assert_eq!(WorkTimes { download: Duration::MAX, ..times }.sum(), Duration::MAX);
}

#[tokio::test(start_paused = true)]
async fn the_first_owns_and_the_others_get_its_result() {
    let flights = flights();
    let ownership = own(&flights, instant());
    let waiter = join(&flights, instant());
    assert_eq!(waiter.token(), ownership.token());
    let begun = instant();
    let (outcome, held) = tokio::join!(waiter.wait(), async { ownership.complete("done") });
    assert_eq!((outcome, held), (WaitOutcome::Done("done"), true));
    assert_eq!(begun.elapsed(), Duration::ZERO, "woken, not polled");
    assert_eq!(waiter.wait().await, WaitOutcome::Done("done"), "who looks late is told as well");
    assert_eq!(flights.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_ownership_lets_the_next_one_own() {
    let flights = flights();
    let first = own(&flights, instant());
    let waiter = join(&flights, instant());
    let begun = instant();
    let (outcome, ()) = tokio::join!(waiter.wait(), async { drop(first) });
    assert_eq!(outcome, WaitOutcome::ClaimAgain);
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let _second = own(&flights, instant());
}

#[tokio::test(start_paused = true)]
async fn an_expired_owner_cannot_release_its_successor() {
    let flights = flights();
    let start = instant();
    let first = own(&flights, start);
    first.begin_work(start);
    let old_waiter = join(&flights, start);
    let second = own(&flights, start + 10 * MINUTE);
    assert_ne!(first.token(), second.token());
    assert!(!first.is_held());
    assert_eq!(old_waiter.wait().await, WaitOutcome::ClaimAgain);
    assert!(!first.complete("stale"), "it is told that it lost the claim");
    assert!(second.is_held());
    let waiter = join(&flights, start + 10 * MINUTE);
    assert_eq!(waiter.token(), second.token());
    assert!(second.complete("fresh"));
    assert_eq!(waiter.wait().await, WaitOutcome::Done("fresh"));
}

#[tokio::test(start_paused = true)]
async fn time_counts_from_the_start_of_the_work() {
    let flights = flights();
    let start = instant();
    let ownership = own(&flights, start);
    let _waits = join(&flights, start + 50 * MINUTE);
    ownership.begin_work(start + 50 * MINUTE);
    let _still_waits = join(&flights, start + 59 * MINUTE);
    let _takes_over = own(&flights, start + 60 * MINUTE);
}

#[tokio::test(start_paused = true)]
async fn work_that_never_begins_is_taken_over_in_the_end() {
    let flights = flights();
    let start = instant();
    let _never_begins = own(&flights, start);
    let _waits = join(&flights, start + 59 * MINUTE);
    let _takes_over = own(&flights, start + 60 * MINUTE);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_notices_an_expiry_by_itself() {
    let flights = flights();
    let start = instant();
    let ownership = own(&flights, start);
    ownership.begin_work(start);
    assert_eq!(join(&flights, start).wait().await, WaitOutcome::ClaimAgain);
    assert_eq!(start.elapsed(), 10 * MINUTE);
    let _takes_over = own(&flights, instant());
}

#[tokio::test(start_paused = true)]
async fn keys_do_not_know_each_other() {
    let flights = flights();
    let first = own(&flights, instant());
    assert!(matches!(flights.claim(&8, instant()), Claim::Owner(_)));
    assert!(first.is_held());
}

#[tokio::test(start_paused = true)]
async fn without_room_for_claims_everybody_owns() {
    let flights = InFlight::<u32, ()>::new(InFlightSettings { capacity: 0, ..InFlightSettings::default() });
    let first = flights.claim(&7, instant());
    let second = flights.claim(&7, instant());
    assert!(matches!((first, second), (Claim::Owner(_), Claim::Owner(_))));
}

#[test]
fn of_all_threads_at_once_one_owns() {
    let flights = flights();
    let now = instant();
    for _ in 0..200 {
        let owners = AtomicUsize::new(0);
        let claims: Vec<_> = thread::scope(|scope| {
            let asking = [(); 8].map(|()| {
                scope.spawn(|| {
                    let claim = flights.claim(&7, now);
                    owners.fetch_add(usize::from(matches!(claim, Claim::Owner(_))), Ordering::Relaxed);
                    claim
                })
            });
            asking.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(owners.into_inner(), 1);
        drop(claims);
    }
    assert_eq!(flights.count(), 0);
}

#[test]
fn an_expired_claim_has_one_successor_among_all_threads() {
    let flights = flights();
    let now = instant();
    let mut held = Some(own(&flights, now));
    for round in 1..200_u32 {
        let later = now + 60 * MINUTE * round;
        let claims: Vec<_> = thread::scope(|scope| {
            let asking = [(); 8].map(|()| scope.spawn(|| flights.claim(&7, later)));
            asking.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut owners = claims.into_iter().filter_map(|claim| match claim {
            Claim::Owner(ownership) => Some(ownership),
            Claim::Waiter(_) => None,
        });
        let successor = owners.next().unwrap();
        assert!(owners.next().is_none());
        assert!(held.replace(successor).is_some_and(|lost| !lost.is_held()));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Claim,
    Begin(usize),
    Complete(usize),
    Release(usize),
    Later(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Claim),
        1 => (0_usize..4).prop_map(Step::Begin),
        1 => (0_usize..4).prop_map(Step::Complete),
        1 => (0_usize..4).prop_map(Step::Release),
        2 => (1_u64..90).prop_map(Step::Later),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn at_most_one_holds_a_key_whatever_happens(steps in steps()) {
        let flights = flights();
        let mut now = instant();
        let mut owners = Vec::new();
        for step in steps {
            match step {
                Step::Claim => match flights.claim(&7, now) {
                    Claim::Owner(ownership) => owners.push(ownership),
                    Claim::Waiter(waiter) => {
                        let holder = owners.iter().find(|owner: &&Ownership<_, _>| owner.is_held());
                        prop_assert_eq!(holder.map(Ownership::token), Some(waiter.token()));
                    }
                },
                Step::Begin(at) => {
                    if let Some(owner) = owners.get(at) {
                        owner.begin_work(now);
                    }
                }
                Step::Complete(at) if at < owners.len() => {
                    let owner = owners.remove(at);
                    let held = owner.is_held();
                    prop_assert_eq!(owner.complete("done"), held);
                }
                Step::Release(at) if at < owners.len() => drop(owners.remove(at)),
                Step::Complete(_) | Step::Release(_) => {}
                Step::Later(minutes) => now += Duration::from_secs(60 * minutes),
            }
            prop_assert!(owners.iter().filter(|owner| owner.is_held()).count() <= 1);
        }
    }
}
