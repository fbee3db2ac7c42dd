use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use tokio::time::advance;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

use super::ledger::{FREE_AT, PAUSE_AT, RESUME_AT, SLOW_AT, WINDOW};
use super::*;

const FOREVER: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

fn budget() -> InvalidBudget {
    InvalidBudget::new(Clock::manual(WallTime::from_millis(0)))
}

fn refuse(budget: &InvalidBudget, times: u32) {
    for _ in 0..times {
        budget.count();
    }
}

#[tokio::test(start_paused = true)]
async fn sends_are_free_below_a_thousand_refusals() {
    let budget = budget();
    refuse(&budget, SLOW_AT - 1);
    for _ in 0..100 {
        assert_eq!(budget.admit(FOREVER), Admission::Now);
    }
}

#[tokio::test(start_paused = true)]
async fn from_a_thousand_refusals_on_sends_are_spaced_out() {
    let budget = budget();
    refuse(&budget, SLOW_AT);
    // 600 s for the 4,000 that are left.
    let turns = [0, 150, 300].map(Duration::from_millis);
    assert_eq!(budget.admit(FOREVER), Admission::Now);
    assert_eq!(budget.admit(FOREVER), Admission::After(turns[1]));
    assert_eq!(budget.admit(FOREVER), Admission::After(turns[2]));
    refuse(&budget, 3_000);
    advance(Duration::from_millis(450)).await;
    assert_eq!(budget.admit(FOREVER), Admission::Now);
    assert_eq!(budget.admit(FOREVER), Admission::After(Duration::from_millis(600)));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_too_far_away_is_not_taken() {
    let budget = budget();
    refuse(&budget, PAUSE_AT - 1);
    assert_eq!(budget.admit(SECOND), Admission::Now);
    let far = Admission::Paused { until: WallTime::from_millis(600_000) };
    for _ in 0..10 {
        assert_eq!(budget.admit(SECOND), far);
    }
    assert_eq!(budget.admit(WINDOW), Admission::After(WINDOW));
}

#[tokio::test(start_paused = true)]
async fn from_five_thousand_on_sends_pause_until_half_are_forgotten() {
    let clock = Clock::manual(WallTime::from_millis(7_000));
    let budget = InvalidBudget::new(clock.clone());
    refuse(&budget, 2_000);
    advance(100 * SECOND).await;
    refuse(&budget, 1_000);
    advance(100 * SECOND).await;
    refuse(&budget, 2_000);
    // 2,000 are forgotten after 601 s, which leaves 3,000, and 1,000 more after 701 s; 200 s are over.
    assert_eq!(budget.admit(FOREVER), Admission::Paused { until: WallTime::from_millis(508_000) });
    advance(401 * SECOND).await;
    clock.set(WallTime::from_millis(408_000));
    assert_eq!(budget.refused(), 3_000);
    assert_eq!(budget.admit(FOREVER), Admission::Paused { until: WallTime::from_millis(508_000) });
    advance(100 * SECOND).await;
    assert_eq!(budget.refused(), 2_000);
    assert_eq!(budget.admit(FOREVER), Admission::Now);
}

#[tokio::test(start_paused = true)]
async fn a_jump_of_the_time_of_day_changes_nothing() {
    let clock = Clock::manual(WallTime::from_millis(1_000_000_000));
    let budget = InvalidBudget::new(clock.clone());
    refuse(&budget, PAUSE_AT);
    clock.set(WallTime::from_millis(9_000_000_000));
    assert!(matches!(budget.admit(FOREVER), Admission::Paused { .. }));
    clock.set(WallTime::from_millis(0));
    assert_eq!(budget.admit(FOREVER), Admission::Paused { until: WallTime::from_millis(601_000) });
}

#[tokio::test(start_paused = true)]
async fn the_log_says_once_that_the_pace_is_another_one() {
    let log = Log::default();
    let _on = tracing::subscriber::set_default(log.clone());
    let budget = budget();
    refuse(&budget, PAUSE_AT + 100);
    for _ in 0..3 {
        assert!(matches!(budget.admit(FOREVER), Admission::Paused { .. }));
    }
    advance(602 * SECOND).await;
    for _ in 0..3 {
        assert_eq!(budget.admit(FOREVER), Admission::Now);
    }
    assert_eq!(log.levels(), [(Level::WARN, 1_000), (Level::ERROR, 5_000), (Level::INFO, 0)]);
}

/// Even if each answer were a refusal for hours, no ten minutes have more of them than the pause allows.
#[test]
fn a_service_that_refuses_everything_is_never_asked_too_often() {
    let mut ledger = Ledger::default();
    let mut sent: Vec<Duration> = Vec::new();
    let mut now = Duration::ZERO;
    while now < Duration::from_secs(4 * 3600) {
        let _ = ledger.look(now);
        match ledger.admit(now, Duration::from_secs(60)) {
            Turn::In(wait) => {
                now += wait;
                let _ = ledger.count(now);
                sent.push(now);
                // As fast as a service answers.
                now += Duration::from_millis(20);
            }
            Turn::NotBefore(wait) => {
                assert!(wait > Duration::ZERO && wait <= WINDOW + SECOND, "{wait:?}");
                now += wait;
            }
        }
    }
    let mut first = 0;
    let mut most = 0;
    for (last, at) in sent.iter().enumerate() {
        while *at - sent[first] >= WINDOW {
            first += 1;
        }
        most = most.max(last - first + 1);
    }
    // 1,000 at once, and of the other 4,000 what a pace that slows with each of them lets through in ten minutes.
    assert!((3_000..4_000).contains(&most), "{most}");
}

proptest! {
    #[test]
    fn the_count_is_that_of_the_last_ten_minutes(
        steps in prop::collection::vec((0_u64..200_000, 0_u32..1_500), 1..60),
    ) {
        let mut ledger = Ledger::default();
        let mut counted: Vec<(Duration, u32)> = Vec::new();
        let mut now = Duration::ZERO;
        for (millis, refusals) in steps {
            now += Duration::from_millis(millis);
            for _ in 0..refusals {
                let _ = ledger.count(now);
            }
            counted.push((now, refusals));
            let _ = ledger.look(now);
            let within = |span: Duration| -> u32 {
                counted.iter().filter(|(at, _)| now - *at < span).map(|(_, refusals)| refusals).sum()
            };
            // Nothing is forgotten early, and nothing kept for more than a second too long.
            let total = ledger.refused();
            prop_assert!(total >= within(WINDOW), "{total} < {}", within(WINDOW));
            prop_assert!(total <= within(WINDOW + SECOND), "{total} > {}", within(WINDOW + SECOND));

            match ledger.admit(now, Duration::ZERO) {
                Turn::In(_) => prop_assert!(total < PAUSE_AT),
                Turn::NotBefore(wait) => {
                    prop_assert!(total > FREE_AT);
                    // Whoever waits as long as told gets a turn.
                    let later = now + wait;
                    let mut ledger = ledger.clone();
                    let _ = ledger.look(later);
                    if total >= PAUSE_AT {
                        prop_assert!(ledger.refused() <= RESUME_AT);
                    }
                    prop_assert!(matches!(ledger.admit(later, WINDOW), Turn::In(_)));
                }
            }
        }
    }
}

/// Keeps the level and the count of what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Level, u64)>>>);

impl Log {
    fn levels(&self) -> Vec<(Level, u64)> {
        self.0.lock().unwrap().clone()
    }
}

struct Refused(u64);

impl Visit for Refused {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "refused" {
            self.0 = value;
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().contains("budget")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut refused = Refused(0);
        event.record(&mut refused);
        self.0.lock().unwrap().push((*event.metadata().level(), refused.0));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
