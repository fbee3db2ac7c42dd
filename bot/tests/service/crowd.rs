//! Many who want the same at once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use azalea_bot::domain::ChannelId;
use azalea_bot::intake::Outcome;
use azalea_bot::metrics::Counter;
use tokio::task::JoinSet;

use crate::films::{self, Film};
use crate::house::{House, LINK, POST, channel, end};
use crate::support::reply::Reply;

/// So many ask over so many channels; expects one question, one download, one file, and an answer for everybody.
async fn check(film: Film, askers: u64, channels: u64, action: &str) {
    let house = Arc::new(House::with_video(film).await);
    let recorder = house.recorder();
    // Nothing is there before the last one has asked.
    recorder.hold();
    let app = house.start(&recorder).await;
    let mut asking = JoinSet::new();
    for asker in 0..askers {
        let (house, intake) = (Arc::clone(&house), app.intake.clone());
        asking.spawn(async move { house.ask(&intake, asker % channels + 1, LINK).await });
    }
    let mut accepted: HashSet<ChannelId> = HashSet::new();
    let mut waiting = Vec::new();
    for outcome in asking.join_all().await {
        match outcome {
            Outcome::Accepted(request) => {
                assert!(accepted.insert(request.destination.channel), "one per channel is on its way");
            }
            Outcome::Joined { request, waiting: place } => {
                waiting.push((request.destination.channel, place));
            }
            other => panic!("{other:?}"),
        }
    }
    let count = |number: u64| usize::try_from(number).unwrap();
    assert_eq!((accepted.len(), waiting.len()), (count(channels), count(askers - channels)));
    recorder.release();

    let posted = recorder.posted(count(channels)).await;
    assert_eq!(
        posted.iter().map(|posted| posted.request.destination.channel).collect::<HashSet<_>>(),
        accepted
    );
    let first = &posted[0].files[0];
    assert!(!first.bytes.is_empty());
    assert_eq!(first.action, action);
    for posted in &posted {
        assert_eq!(posted.files.len(), 1);
        assert!(posted.files[0].bytes == first.bytes, "all get the same bytes");
    }
    let mut places: HashMap<ChannelId, _> = HashMap::new();
    for (room, place) in waiting {
        let delivered = end(place.end().await).unwrap();
        assert_eq!(delivered.channel, room);
        assert_eq!(places.entry(room).or_insert_with(|| delivered.messages.clone()), &delivered.messages);
    }
    let totals = app.rooms.tracker.totals();
    let transcodes = u64::from(action == "transcode");
    assert_eq!(totals.counter(Counter::Requests), askers);
    assert_eq!(totals.counter(Counter::Transcodes), transcodes);
    assert_eq!(totals.counter(Counter::ArtifactMisses), 1);
    app.stop().await;
    assert_eq!((house.x.hits(POST), house.cdn.hits("/v.mp4")), (1, 1));
    assert_eq!(recorder.of(|seen| (seen.posted.len(), seen.told.len())), (count(channels), 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_askers_in_twenty_channels_cost_one_transcode() {
    check(films::old(), 200, 20, "transcode").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_askers_in_fifty_channels_cost_one_download() {
    check(films::ready(), 2_000, 50, "pass").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_come_at_any_moment_of_the_work_cost_no_second_download() {
    // A small picture is made in no time, so many of the askers come just when it is being put away.
    let house = House::new().await;
    house.cdn.on("/p.jpg", [Reply::ok(films::photo("teal")).header("Content-Type", "image/jpeg")]);
    house.post(&serde_json::json!([house.photo("/p.jpg")]));
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    for room in 1..=200 {
        crate::house::accepted(house.ask(&app.intake, room, LINK).await);
        tokio::task::yield_now().await;
    }
    recorder.posted(200).await;
    assert!(matches!(house.ask(&app.intake, 7, LINK).await, Outcome::AlreadyThere { delivered, .. }
        if delivered.channel == channel(7)));
    app.stop().await;
    assert_eq!((house.x.hits(POST), house.cdn.hits("/p.jpg")), (1, 1));
}
