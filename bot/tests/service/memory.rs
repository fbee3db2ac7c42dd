//! What is remembered: in one run, and from one to the next.

use std::time::Duration;

use azalea_bot::intake::Outcome;
use azalea_bot::metrics::Counter;

use crate::films;
use crate::house::{House, LINK, POST, accepted, channel, end, joined};

#[tokio::test]
async fn deliveries_and_files_outlive_the_service() {
    let house = House::with_video(films::old()).await;
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    accepted(house.ask(&app.intake, 1, LINK).await);
    let first = recorder.posted(1).await.remove(0);
    app.stop().await;

    let app = house.start(&recorder).await;
    let Outcome::AlreadyThere { delivered, request } = house.ask(&app.intake, 1, LINK).await else {
        panic!("it is not remembered");
    };
    assert_eq!((delivered.channel, delivered.messages[0].get()), (channel(1), 1));
    assert!(
        delivered.at <= house.clock.now() && house.clock.now().since(delivered.at) < Duration::from_secs(60)
    );
    assert_ne!(request.id, first.request.id);
    // In another channel it was not posted yet, but there is nothing to ask or to make for it.
    accepted(house.ask(&app.intake, 2, LINK).await);
    let second = recorder.posted(2).await.remove(1);
    assert!(second.files[0].bytes == first.files[0].bytes);
    assert_eq!(second.files[0].action, "transcode");
    let totals = app.rooms.tracker.totals();
    assert_eq!((totals.counter(Counter::ArtifactHits), totals.counter(Counter::Transcodes)), (1, 0));
    app.stop().await;
    assert_eq!((house.x.hits(POST), house.cdn.hits("/v.mp4")), (1, 1));
    assert_eq!(recorder.of(|seen| (seen.posted.len(), seen.told.len())), (2, 0));
}

#[tokio::test]
async fn a_delivery_of_long_ago_is_delivered_again_from_the_same_file() {
    let mut house = House::with_video(films::old()).await;
    house.config.dedup.processed_ttl = Duration::from_secs(3_600);
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    accepted(house.ask(&app.intake, 1, LINK).await);
    recorder.posted(1).await;
    // The end is scattered by a tenth; before and behind that everything is certain.
    house.clock.set(house.clock.now().plus(Duration::from_secs(3_200)));
    assert!(matches!(house.ask(&app.intake, 1, LINK).await, Outcome::AlreadyThere { .. }));
    app.stop().await;

    // The time that passes between two runs counts, and looking at it gave it no new time.
    house.clock.set(house.clock.now().plus(Duration::from_secs(800)));
    let app = house.start(&recorder).await;
    accepted(house.ask(&app.intake, 1, LINK).await);
    let posted = recorder.posted(2).await;
    assert!(posted[0].files[0].bytes == posted[1].files[0].bytes);
    // From now on it is that one which is pointed at.
    let Outcome::AlreadyThere { delivered, .. } = house.ask(&app.intake, 1, LINK).await else {
        panic!("it is not remembered");
    };
    assert_eq!(delivered.messages[0].get(), 2);
    app.stop().await;
    assert_eq!((house.x.hits(POST), house.cdn.hits("/v.mp4")), (1, 1));
}

/// Once, the second was told that the first gave up: looking into the store takes a while, and the first held the
/// claim meanwhile only to give it back.
#[tokio::test]
async fn two_who_ask_at_once_for_what_is_there_both_learn_where() {
    let house = House::with_video(films::ready()).await;
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    accepted(house.ask(&app.intake, 1, LINK).await);
    recorder.posted(1).await;
    app.stop().await;

    let app = house.start(&recorder).await;
    let (first, second) = tokio::join!(house.ask(&app.intake, 1, LINK), house.ask(&app.intake, 1, LINK));
    let Outcome::AlreadyThere { delivered, .. } = first else { panic!("it is not remembered") };
    assert_eq!(end(joined(second).end().await), Ok(delivered));
    app.stop().await;
    assert_eq!(recorder.of(|seen| (seen.posted.len(), seen.told.len())), (1, 0));
}

#[tokio::test]
async fn without_a_folder_that_can_be_written_everything_is_delivered_all_the_same() {
    let mut house = House::with_video(films::ready()).await;
    // A file stands where the folder should be.
    let blocked = house.folder.path().join("blocked");
    std::fs::write(&blocked, b"in the way").unwrap();
    house.config.store.path = blocked;
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    for room in [1, 2] {
        accepted(house.ask(&app.intake, room, LINK).await);
    }
    recorder.posted(2).await;
    assert!(matches!(house.ask(&app.intake, 1, LINK).await, Outcome::AlreadyThere { .. }));
    app.stop().await;
    assert_eq!(house.x.hits(POST), 1);
}
