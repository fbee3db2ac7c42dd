use crate::domain::{Destination, Options, Request, RequestId};
use crate::metrics::Tracker;
use crate::store::StoreSettings;

use super::*;

const NOW: WallTime = WallTime::from_millis(1_800_000_000_000);
const HOUR: Duration = Duration::from_secs(3_600);

fn key(channel: &str) -> DeliveryKey {
    DeliveryKey::of(&Request {
        id: RequestId::new(FrontEnd::Discord, "111".parse().unwrap(), 0),
        requester: "222".parse().unwrap(),
        link: "https://x.com/ann/status/1234567890".parse().unwrap(),
        destination: Destination {
            front_end: FrontEnd::Discord,
            guild: None,
            channel: channel.parse().unwrap(),
            reply_to: None,
        },
        options: Options::default(),
    })
}

fn delivered(message: &str) -> Delivered {
    Delivered {
        front_end: FrontEnd::Discord,
        channel: "444".parse().unwrap(),
        messages: vec![message.parse().unwrap()],
        at: NOW,
    }
}

fn settings() -> ProcessedSettings {
    ProcessedSettings { jitter_percent: 0, ..ProcessedSettings::default() }
}

fn store(folder: &tempfile::TempDir, clock: &Clock) -> Store {
    let path = Some(folder.path().to_owned());
    Store::open(StoreSettings { path, ..StoreSettings::default() }, clock.clone(), Tracker::new(false))
}

/// These texts stand in stores.
#[test]
fn a_delivery_is_stored_as_it_always_was() {
    let text = r#"{"front_end":"discord","channel":"444","messages":["5"],"at":1800000000000}"#;
    assert_eq!(serde_json::to_string(&delivered("5")).unwrap(), text);
    assert_eq!(serde_json::from_str::<Delivered>(text).unwrap(), delivered("5"));
}

#[tokio::test(start_paused = true)]
async fn a_delivery_is_remembered_for_its_time_and_by_its_key() {
    let clock = Clock::manual(NOW);
    let processed = Processed::new(settings(), Store::none(), clock.clone());
    processed.record(&key("444"), delivered("5"));
    assert_eq!(processed.get(&key("444")).await.as_deref(), Some(&delivered("5")));
    assert_eq!(processed.get(&key("445")).await, None);
    clock.set(NOW.plus(24 * HOUR));
    assert_eq!(processed.get(&key("444")).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_keeps_its_expiry_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let first = store(&folder, &clock);
    Processed::new(settings(), first.clone(), clock.clone()).record(&key("444"), delivered("5"));
    first.close().await;

    clock.set(NOW.plus(23 * HOUR));
    let processed = Processed::new(settings(), store(&folder, &clock), clock.clone());
    assert_eq!(processed.get(&key("444")).await.as_deref(), Some(&delivered("5")));
    clock.set(NOW.plus(24 * HOUR));
    assert_eq!(processed.get(&key("444")).await, None, "being read again must not make it younger");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_back_an_hour_forgets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let first = store(&folder, &clock);
    let processed = Processed::new(settings(), first.clone(), clock.clone());
    processed.record(&key("444"), delivered("5"));
    clock.set(WallTime::from_millis(NOW.as_millis() - 3_600_000));
    assert!(processed.get(&key("444")).await.is_some());
    first.close().await;
    let processed = Processed::new(settings(), store(&folder, &clock), clock.clone());
    assert!(processed.get(&key("444")).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_delivery_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let first = store(&folder, &clock);
    let processed = Processed::new(settings(), first.clone(), clock.clone());
    processed.record(&key("444"), delivered("5"));
    first.close().await;
    let second = store(&folder, &clock);
    let processed = Processed::new(settings(), second.clone(), clock.clone());
    assert!(processed.get(&key("444")).await.is_some());
    processed.forget(&key("444"));
    assert_eq!(processed.get(&key("444")).await, None);
    second.close().await;
    let processed = Processed::new(settings(), store(&folder, &clock), clock);
    assert_eq!(processed.get(&key("444")).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_memory_has_no_room_for_is_read_from_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let settings = ProcessedSettings { capacity: 0, ..settings() };
    let processed = Processed::new(settings, store(&folder, &clock), clock);
    processed.record(&key("444"), delivered("5"));
    processed.known.run_pending_tasks();
    assert_eq!(processed.known.entry_count(), 0);
    assert_eq!(processed.get(&key("444")).await.as_deref(), Some(&delivered("5")));
}

#[test]
fn lifetimes_stay_within_their_jitter() {
    let settings = ProcessedSettings { ttl: 10 * HOUR, ..ProcessedSettings::default() };
    let processed = Processed::new(settings, Store::none(), Clock::manual(NOW));
    let times: Vec<_> = (0..1_000).map(|_| processed.time_to_live()).collect();
    assert!(times.iter().all(|time| (9 * HOUR..=11 * HOUR).contains(time)));
    assert!(times.iter().any(|time| *time < 10 * HOUR) && times.iter().any(|time| *time > 10 * HOUR));
}

#[tokio::test(start_paused = true)]
async fn another_source_is_believed_for_the_first_time_and_not_for_what_was_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let first = store(&folder, &clock);
    let processed = Processed::new(settings(), first.clone(), clock.clone());
    assert_eq!(processed.recall(&key("444")).await, Recall::Nothing);
    clock.set(NOW.plus(23 * HOUR));
    assert_eq!(processed.restore(&key("444"), delivered("5")), Some(delivered("5")));
    assert_eq!(processed.recall(&key("444")).await, Recall::Delivered(delivered("5").into()));
    processed.forget(&key("445"));
    first.close().await;
    let processed = Processed::new(settings(), store(&folder, &clock), clock.clone());
    assert_eq!(processed.recall(&key("445")).await, Recall::Forgotten, "also in the next run");
    clock.set(NOW.plus(24 * HOUR));
    assert_eq!(processed.recall(&key("444")).await, Recall::Nothing, "it is as old as it was");
    assert_eq!(processed.restore(&key("444"), delivered("5")), None);
}

/// Once, whoever found a delivery gone forgot the one that had taken its place.
#[tokio::test(start_paused = true)]
async fn only_the_delivery_that_is_gone_is_forgotten() {
    let processed = Processed::new(settings(), Store::none(), Clock::manual(NOW));
    let key = key("444");
    processed.record(&key, delivered("6"));
    processed.forget_this(&key, &delivered("5"));
    assert_eq!(processed.get(&key).await.as_deref(), Some(&delivered("6")));
    processed.forget_this(&key, &delivered("6"));
    assert_eq!(processed.get(&key).await, None);
}
