use tokio::task::JoinSet;
use tokio::time::{advance, timeout};

use super::super::signals::Told;
use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn channel(number: u64) -> String {
    format!("POST /channels/{number}/messages")
}

fn in_a_minute() -> Instant {
    clock::instant() + MINUTE
}

fn told(most: u32, remaining: u32, millis: u64) -> Signals {
    let limit = Some(Told { most, remaining, reset_after: Duration::from_millis(millis) });
    Signals { bucket: None, limit, success: true }
}

#[tokio::test(start_paused = true)]
async fn messages_of_one_channel_go_in_their_order_and_at_its_pace() {
    let lanes = Lanes::default();
    let begun = clock::instant();
    let mut sends = JoinSet::new();
    let order = Arc::new(Mutex::new(Vec::new()));
    for number in 0..7 {
        let (lanes, order) = (lanes.clone(), Arc::clone(&order));
        sends.spawn(async move {
            let permit = lanes.enter(&channel(1), in_a_minute()).await.unwrap();
            order.lock().unwrap().push((number, begun.elapsed().as_secs()));
            permit.answered(&told(2, if number % 2 == 0 { 1 } else { 0 }, 5_000));
        });
        // Each gets into the queue before the next one.
        tokio::task::yield_now().await;
    }
    sends.join_all().await;
    let expected = [(0, 0), (1, 0), (2, 5), (3, 5), (4, 10), (5, 10), (6, 15)];
    assert_eq!(*order.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn channels_do_not_wait_for_each_other() {
    let lanes = Lanes::default();
    let permit = lanes.enter(&channel(1), in_a_minute()).await.unwrap();
    permit.limited(Scope::Shared, MINUTE);
    let begun = clock::instant();
    let _other = lanes.enter(&channel(2), in_a_minute()).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let _first = lanes.enter(&channel(1), in_a_minute() + MINUTE).await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_global_limit_holds_everywhere() {
    let lanes = Lanes::default();
    lanes.enter(&channel(1), in_a_minute()).await.unwrap().limited(Scope::Global, Duration::from_secs(9));
    let begun = clock::instant();
    let _permit = lanes.enter(&channel(2), in_a_minute()).await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 9);
}

#[tokio::test(start_paused = true)]
async fn who_would_wait_too_long_is_told_at_once_how_long() {
    let lanes = Lanes::default();
    lanes.enter(&channel(1), in_a_minute()).await.unwrap().limited(Scope::User, 3 * MINUTE);
    let begun = clock::instant();
    let refused = lanes.enter(&channel(1), in_a_minute()).await.unwrap_err();
    assert_eq!(refused, TooLong { wait: 3 * MINUTE, scope: Scope::User });
    lanes.enter(&channel(2), in_a_minute()).await.unwrap().limited(Scope::Global, 2 * MINUTE);
    let refused = lanes.enter(&channel(2), in_a_minute()).await.unwrap_err();
    assert_eq!(refused, TooLong { wait: 2 * MINUTE, scope: Scope::Global });
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_first_answer_that_takes_long_is_not_waited_for() {
    let lanes = Lanes::default();
    let begun = clock::instant();
    let first = lanes.enter(&channel(1), in_a_minute()).await.unwrap();
    let _second = lanes.enter(&channel(1), in_a_minute()).await.unwrap();
    assert_eq!(begun.elapsed(), FIRST_ANSWER);
    drop(first);
    let short = clock::instant() + Duration::from_secs(1);
    assert_eq!(lanes.enter(&channel(1), short).await.unwrap_err().scope, Scope::User);
}

#[tokio::test(start_paused = true)]
async fn who_leaves_the_queue_holds_up_nobody() {
    let lanes = Lanes::default();
    lanes.enter(&channel(1), in_a_minute()).await.unwrap().answered(&told(1, 0, 10_000));
    for _ in 0..5 {
        assert!(timeout(Duration::from_secs(1), lanes.enter(&channel(1), in_a_minute())).await.is_err());
    }
    let begun = clock::instant();
    drop(lanes.enter(&channel(1), in_a_minute()).await.unwrap());
    assert_eq!(begun.elapsed().as_secs(), 5);
    // A turn without an answer does not either.
    let _next = timeout(Duration::from_secs(1), lanes.enter(&channel(1), in_a_minute())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn only_so_many_channels_are_remembered() {
    let lanes = Lanes::default();
    let most = u64::try_from(MOST_LANES).unwrap();
    let held = lanes.enter(&channel(1), in_a_minute()).await.unwrap();
    lanes.enter(&channel(2), in_a_minute()).await.unwrap().limited(Scope::User, MINUTE);
    for number in 3..=2 * most {
        drop(lanes.enter(&channel(number), in_a_minute()).await.unwrap());
    }
    assert!(lanes.count() <= MOST_LANES, "{}", lanes.count());
    let begun = clock::instant();
    let _limited = lanes.enter(&channel(2), in_a_minute()).await.unwrap();
    assert_eq!(begun.elapsed(), MINUTE, "a limit that holds is not forgotten");

    advance(MINUTE).await;
    for number in 1..=most + 10 {
        lanes.enter(&channel(3 * most + number), in_a_minute()).await.unwrap().limited(Scope::User, MINUTE);
    }
    assert!(lanes.count() <= MOST_LANES, "{}", lanes.count());
    drop(held);
}
