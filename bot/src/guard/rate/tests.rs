use std::num::NonZeroU64;

use proptest::prelude::*;
use tokio::time::advance;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn settings(max_requests: u32) -> RateSettings {
    RateSettings { max_requests, channel_multiple: 0, guild_multiple: 0, ..RateSettings::default() }
}

fn requester(user: u64, channel: u64, guild: u64) -> Requester {
    Requester {
        user: UserId::new(NonZeroU64::new(user).unwrap()),
        channel: ChannelId::new(NonZeroU64::new(channel).unwrap()),
        guild: NonZeroU64::new(guild).map(GuildId::new),
    }
}

/// How many of `tries` requests in a row are let through.
fn allowed(limiter: &RateLimiter, requester: &Requester, tries: usize) -> usize {
    (0..tries).filter(|_| limiter.check(requester) == RateAnswer::Allowed).count()
}

fn limited(scope: RateScope, retry_after: Duration) -> RateAnswer {
    RateAnswer::Limited { scope, retry_after }
}

#[tokio::test(start_paused = true)]
async fn a_window_lets_so_many_through_and_then_a_new_one_begins() {
    let limiter = RateLimiter::new(&settings(3));
    let ann = requester(1, 1, 1);
    assert_eq!(allowed(&limiter, &ann, 5), 3);
    advance(Duration::from_secs(20)).await;
    assert_eq!(limiter.check(&ann), limited(RateScope::User, Duration::from_secs(40)));
    advance(Duration::from_millis(39_999)).await;
    assert_eq!(limiter.check(&ann), limited(RateScope::User, Duration::from_millis(1)));
    advance(Duration::from_millis(1)).await;
    assert_eq!(allowed(&limiter, &ann, 5), 3);
    assert_eq!(allowed(&limiter, &requester(2, 1, 1), 5), 3);
}

#[tokio::test(start_paused = true)]
async fn gcra_gives_back_one_request_after_the_other() {
    let limiter = RateLimiter::new(&RateSettings { algorithm: RateAlgorithm::Gcra, ..settings(3) });
    let ann = requester(1, 1, 1);
    assert_eq!(allowed(&limiter, &ann, 5), 3);
    assert_eq!(limiter.check(&ann), limited(RateScope::User, Duration::from_secs(20)));
    advance(Duration::from_secs(20)).await;
    assert_eq!(allowed(&limiter, &ann, 5), 1);
    advance(MINUTE).await;
    assert_eq!(allowed(&limiter, &ann, 5), 3);
}

#[tokio::test(start_paused = true)]
async fn channels_and_servers_have_limits_of_their_own() {
    for algorithm in [RateAlgorithm::Fixed, RateAlgorithm::Gcra] {
        let multiples = RateSettings { channel_multiple: 2, guild_multiple: 3, ..settings(2) };
        let limiter = RateLimiter::new(&RateSettings { algorithm, ..multiples });
        let scope = |answer| match answer {
            RateAnswer::Allowed => None,
            RateAnswer::Limited { scope, .. } => Some(scope),
        };
        assert_eq!(allowed(&limiter, &requester(1, 1, 1), 2) + allowed(&limiter, &requester(2, 1, 1), 2), 4);
        assert_eq!(scope(limiter.check(&requester(3, 1, 1))), Some(RateScope::Channel));
        assert_eq!(allowed(&limiter, &requester(4, 2, 1), 2), 2);
        assert_eq!(scope(limiter.check(&requester(5, 2, 1))), Some(RateScope::Guild));
        assert_eq!(scope(limiter.check(&requester(6, 3, 0))), None);
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_by_a_channel_has_lost_nothing() {
    let limiter = RateLimiter::new(&RateSettings { channel_multiple: 1, ..settings(2) });
    assert_eq!(allowed(&limiter, &requester(1, 1, 1), 2), 2);
    assert_eq!(allowed(&limiter, &requester(2, 1, 1), 9), 0);
    assert_eq!(allowed(&limiter, &requester(2, 2, 1), 9), 2);
}

#[tokio::test(start_paused = true)]
async fn settings_that_make_no_sense_let_everybody_through() {
    let ann = requester(1, 1, 1);
    for wrong in [
        settings(0),
        RateSettings { window: Duration::ZERO, ..settings(1) },
        RateSettings { window: Duration::from_nanos(5), ..settings(1) },
        RateSettings { capacity: 0, ..settings(1) },
    ] {
        assert_eq!(allowed(&RateLimiter::new(&wrong), &ann, 100), 100, "{wrong:?}");
    }
    // More a second than a nanosecond has room for.
    let hasty = RateSettings { window: MIN_WINDOW, algorithm: RateAlgorithm::Gcra, ..settings(u32::MAX) };
    assert_eq!(allowed(&RateLimiter::new(&hasty), &ann, 100), 100);
    let endless = RateSettings { window: Duration::MAX, ..settings(1) };
    let limiter = RateLimiter::new(&endless);
    assert_eq!(allowed(&limiter, &ann, 100), 1);
    assert_eq!(limiter.check(&ann), limited(RateScope::User, MAX_WINDOW));
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_is_bounded_and_newcomers_are_counted() {
    let limiter = RateLimiter::new(&RateSettings { capacity: 50, ..settings(1) });
    for user in 1..=1000 {
        assert_eq!(limiter.check(&requester(user, 1, 0)), RateAnswer::Allowed);
    }
    assert_eq!(allowed(&limiter, &requester(2000, 1, 0), 5), 1);
    let meters = limiter.0.unwrap().meters;
    meters.run_pending_tasks();
    assert!(meters.entry_count() <= 50, "{}", meters.entry_count());
}

#[test]
fn a_clock_an_hour_back_locks_nobody_out() {
    let at = |seconds: u64| Moment(seconds * 1_000_000_000);
    let window = Window::new(MINUTE, NonZeroU32::MIN);
    assert_eq!(window.take(at(7200)), Ok(()));
    assert!(window.take(at(7200)).is_err());
    // A little back is the same window, and never lasts longer than two.
    assert!(window.take(at(7190)).is_err_and(|wait| wait <= MINUTE * 2));
    assert_eq!(window.take(at(3600)), Ok(()));
    assert_eq!(window.take(at(3600)), Err(MINUTE));
}

#[test]
fn threads_share_one_count() {
    let window = Window::new(MINUTE, NonZeroU32::new(1000).unwrap());
    let taken = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    if window.take(Moment(0)).is_ok() {
                        taken.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(taken.into_inner(), 1000);
}

proptest! {
    #[test]
    fn no_window_lets_more_through_than_it_may(
        most in 1_u32..6,
        steps in prop::collection::vec(0_u64..90_000, 1..80),
    ) {
        let window = Window::new(MINUTE, NonZeroU32::new(most).unwrap());
        let mut now = 0;
        let mut passed: Vec<u64> = Vec::new();
        for step in steps {
            now += step / 4;
            match window.take(Moment(now * NANOS_PER_MILLI)) {
                Ok(()) => passed.push(now),
                Err(wait) => {
                    prop_assert!(wait > Duration::ZERO && wait <= MINUTE);
                    let later = now + u64::try_from(wait.as_millis()).unwrap();
                    prop_assert_eq!(window.peek(Moment(later * NANOS_PER_MILLI)), Ok(()));
                }
            }
        }
        // Two windows can meet, but no stretch as long as one sees more than two of them.
        for (at, first) in passed.iter().enumerate() {
            let within = passed[at..].iter().take_while(|time| **time < first + 60_000).count();
            prop_assert!(within <= usize::try_from(most * 2).unwrap());
        }
    }
}
