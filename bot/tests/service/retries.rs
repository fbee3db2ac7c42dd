//! What may work later is tried again; what will not is told at once.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};

use azalea_bot::app::Rooms;
use azalea_bot::domain::{ArtifactKey, Edits, Failure, GoneReason, LimitClass, PostId, Telling};
use azalea_bot::metrics::Counter;
use azalea_bot::pipeline::activity::Activity;
use azalea_bot::pipeline::delivery::Notice;
use azalea_bot::pipeline::optimize::{Order, PROFILE};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::films;
use crate::house::{House, LIMIT, LINK, POST, accepted, channel, end, joined, page, tweet};
use crate::recorder::Manner;
use crate::support::reply::{Length, Reply};

#[tokio::test]
async fn a_source_in_trouble_is_asked_again_until_it_answers() {
    let house = House::with_video(films::ready()).await;
    let good = page(&tweet(20, &json!([house.video("/v.mp4")])));
    house.x.on(POST, [Reply::status(503), Reply::status(503), good]);
    let recorder = house.recorder();
    let service = house.impatient(&recorder);
    // The attempts may be over before the second one asks, unless the result waits.
    recorder.hold();
    accepted(house.ask(&service.intake, 1, LINK).await);
    let waiting = joined(house.ask(&service.intake, 1, LINK).await);
    recorder.release();
    recorder.posted(1).await;
    assert_eq!(end(waiting.end().await).unwrap().channel, channel(1));
    assert_eq!(service.rooms.tracker.totals().counter(Counter::Retries), 2);
    service.stop().await;
    assert_eq!((house.x.hits(POST), house.cdn.hits("/v.mp4")), (3, 1));
    assert_eq!(recorder.of(|seen| (seen.posted.len(), seen.told.len())), (1, 0));
}

#[tokio::test]
async fn a_media_server_in_trouble_is_asked_again_and_the_source_is_not() {
    let house = House::with_video(films::ready()).await;
    house.cdn.on("/v.mp4", [Reply::status(503), Reply::status(500), Reply::file(films::ready())]);
    let recorder = house.recorder();
    let service = house.impatient(&recorder);
    accepted(house.ask(&service.intake, 1, LINK).await);
    let posted = recorder.posted(1).await;
    assert!(posted[0].files[0].bytes == *films::ready());
    service.stop().await;
    assert_eq!((house.x.hits(POST), house.cdn.hits("/v.mp4")), (1, 3));
}

#[tokio::test]
async fn an_upload_that_fails_for_now_is_tried_again_with_the_same_file() {
    let house = House::with_video(films::old()).await;
    let recorder = house.recorder();
    recorder.manner(channel(1), Manner::Fails(Failure::transient("the channel is slow")));
    let service = house.impatient(&recorder);
    accepted(house.ask(&service.intake, 1, LINK).await);
    let told = recorder.told(1).await;
    assert_eq!(told[0].1, Notice::Failed(Failure::transient("the channel is slow")));
    let totals = service.rooms.tracker.totals();
    // Five attempts, of which the first makes the file.
    assert_eq!((totals.counter(Counter::Retries), totals.counter(Counter::ArtifactMisses)), (4, 1));
    assert_eq!(totals.counter(Counter::Transcodes), 1);
    service.stop().await;
    assert_eq!((house.x.hits(POST), house.cdn.hits("/v.mp4")), (1, 1));
}

#[tokio::test]
async fn trouble_that_does_not_end_is_told_after_the_last_attempt() {
    let house = House::new().await;
    house.x.on(POST, [Reply::status(503)]);
    let recorder = house.recorder();
    let service = house.impatient(&recorder);
    accepted(house.ask(&service.intake, 1, LINK).await);
    let told = recorder.told(1).await;
    assert!(matches!(&told[0].1, Notice::Failed(Failure::Transient { .. })), "{told:?}");
    service.stop().await;
    assert_eq!(house.x.hits(POST), 5);
    assert_eq!(recorder.of(|seen| (seen.posted.len(), seen.told.len())), (0, 1));
}

#[tokio::test]
async fn an_upstream_that_wants_hours_is_not_waited_for() {
    let house = House::new().await;
    house.x.on(POST, [Reply::status(429).header("Retry-After", "86400")]);
    let recorder = house.recorder();
    let service = house.impatient(&recorder);
    accepted(house.ask(&service.intake, 1, LINK).await);
    let told = recorder.told(1).await;
    assert!(matches!(&told[0].1, Notice::Failed(Failure::Transient { .. })), "{told:?}");
    assert_eq!(service.rooms.tracker.totals().counter(Counter::Retries), 0);
    service.stop().await;
}

#[tokio::test]
async fn a_permanent_failure_is_told_once_to_the_owner_and_to_those_who_joined() {
    let house = House::new().await;
    // Two witnesses are needed for a post that is gone, one source that shows a post without media is enough.
    house.post(&json!([]));
    let recorder = house.recorder();
    let service = house.impatient(&recorder);
    // All three ask before the first of them gets anywhere.
    let (owner, second, third) = tokio::join!(
        house.ask(&service.intake, 1, LINK),
        house.ask(&service.intake, 1, LINK),
        house.ask(&service.intake, 1, "https://vxtwitter.com/i/status/20?s=20"),
    );
    let owner = accepted(owner);
    let others = [joined(second), joined(third)];
    for waiting in others {
        assert_eq!(end(waiting.end().await), Err(Failure::NoMedia));
    }
    let told = recorder.told(1).await;
    assert_eq!(told, [(owner, Notice::Failed(Failure::NoMedia))]);
    assert_eq!(service.rooms.tracker.totals().counter(Counter::Retries), 0);
    service.stop().await;
    assert_eq!(house.x.hits(POST), 1);
    assert_eq!(recorder.of(|seen| (seen.posted.len(), seen.told.len())), (0, 1));
}

#[tokio::test]
async fn a_post_that_is_gone_is_remembered_as_gone() {
    let mut house = House::new().await;
    house.config.sources.order = vec![azalea_bot::config::SourceChoice::Fxtwitter];
    let tombstone = json!({ "code": 404, "status": { "type": "tombstone", "reason": "deleted" } });
    house.x.on("/2/status/20", [page(&tombstone)]);
    let recorder = house.recorder();
    let service = house.impatient(&recorder);
    for room in [1, 2] {
        accepted(house.ask(&service.intake, room, LINK).await);
        recorder.told(usize::try_from(room).unwrap()).await;
    }
    let told = recorder.told(2).await;
    for (_, notice) in told {
        assert_eq!(notice, Notice::Failed(Failure::Gone(GoneReason::Deleted)));
    }
    service.stop().await;
    assert_eq!(house.x.hits("/2/status/20"), 1);
}

#[tokio::test]
async fn a_channel_that_takes_nothing_costs_the_others_nothing() {
    let house = House::with_video(films::old()).await;
    let recorder = house.recorder();
    recorder.manner(channel(1), Manner::Fails(Failure::Forbidden { what: "the channel".to_owned() }));
    recorder.hold();
    let service = house.impatient(&recorder);
    accepted(house.ask(&service.intake, 1, LINK).await);
    let behind = joined(house.ask(&service.intake, 1, LINK).await);
    accepted(house.ask(&service.intake, 2, LINK).await);
    recorder.release();
    let posted = recorder.posted(1).await;
    assert_eq!(posted[0].request.destination.channel, channel(2));
    assert_eq!(posted[0].files[0].action, "transcode");
    assert_eq!(end(behind.end().await), Err(Failure::Forbidden { what: "the channel".to_owned() }));
    let told = recorder.told(1).await;
    assert_eq!(told[0].0.destination.channel, channel(1));
    // What failed there is no answer for later: it is tried again when somebody asks again.
    accepted(house.ask(&service.intake, 1, LINK).await);
    recorder.told(2).await;
    service.stop().await;
    assert_eq!((house.x.hits(POST), house.cdn.hits("/v.mp4")), (1, 1));
}

#[tokio::test]
async fn a_fault_in_the_program_is_told_like_any_other_failure() {
    let house = House::with_video(films::ready()).await;
    let recorder = house.recorder();
    recorder.manner(channel(1), Manner::Panics);
    recorder.hold();
    let service = house.impatient(&recorder);
    let owner = accepted(house.ask(&service.intake, 1, LINK).await);
    let behind = joined(house.ask(&service.intake, 1, LINK).await);
    accepted(house.ask(&service.intake, 2, LINK).await);
    recorder.release();
    let fault = Failure::ours("a fault in the program ended the work on it");
    assert_eq!(end(behind.end().await), Err(fault.clone()));
    assert_eq!(recorder.told(1).await, [(owner, Notice::Failed(fault))]);
    // It was tried as often as any other, and the others got theirs.
    assert_eq!(service.rooms.tracker.totals().counter(Counter::Retries), 4);
    assert_eq!(recorder.posted(1).await[0].request.destination.channel, channel(2));
    service.stop().await;
}

#[tokio::test]
async fn another_takes_over_when_the_one_who_makes_a_file_is_cancelled() {
    let mut house = House::with_video(films::ready()).await;
    // Without files to look for, the first to be polled is the one who makes it.
    house.config.cache.artifact_bytes = 0;
    let film = films::ready();
    let stalling = Reply::file(films::ready()).stall_after(film.len() / 2);
    house.cdn.on("/v.mp4", [stalling, Reply::file(films::ready())]);
    let rooms = Rooms::new(&house.config, house.clock.clone()).unwrap();
    let post = rooms.resolver.resolve(PostId::x("20").unwrap()).await.unwrap();
    let medium = post.media.first().unwrap();
    let limit = LimitClass::new(NonZeroU64::new(LIMIT).unwrap());
    let edits = Edits::default();
    let key = ArtifactKey { post: medium.post, medium: medium.index, edits, limit, profile: PROFILE };
    let order = Order { key, medium, activity: Activity::default() };
    let (first, second) = (CancellationToken::new(), CancellationToken::new());
    let cancelling = async {
        house.cdn.requests(1).await;
        first.cancel();
    };
    let (given_up, made, ()) =
        tokio::join!(rooms.optimizer.make(&order, &first), rooms.optimizer.make(&order, &second), cancelling);
    assert_eq!(given_up.unwrap_err(), Failure::Cancelled);
    assert!(made.unwrap().bytes().await.unwrap() == *film);
    rooms.store.close().await;
    assert_eq!(house.cdn.hits("/v.mp4"), 2);
}

#[tokio::test]
async fn a_download_that_ends_early_without_a_word_is_tried_again() {
    let house = House::with_video(films::ready()).await;
    let film = films::ready();
    // The length is not said, so that the end of the connection looks like the end of the file.
    let cut = Reply::file(film.clone()).no_ranges().length(Length::Unsaid).cut_after(film.len() * 3 / 5);
    house.cdn.on("/v.mp4", [cut, Reply::file(film.clone())]);
    let recorder = house.recorder();
    let service = house.impatient(&recorder);
    accepted(house.ask(&service.intake, 1, LINK).await);
    let posted = recorder.posted(1).await;
    assert_eq!(posted[0].files[0].bytes, &film[..]);
    assert_eq!(house.cdn.seen("/v.mp4").len(), 2);
    service.stop().await;
}

/// Once, whoever could not be told was taken for told: the word about a failure was said into a short outage and lost.
#[tokio::test]
async fn who_cannot_be_told_why_there_is_nothing_is_told_when_it_works() {
    let house = House::new().await;
    house.x.on(POST, [page(&tweet(20, &json!([])))]);
    let recorder = house.recorder();
    recorder.is_deaf(2);
    let service = house.impatient(&recorder);
    let request = accepted(house.ask(&service.intake, 1, LINK).await);
    let told = recorder.told(1).await;
    assert_eq!(told, [(request, Notice::Failed(Failure::NoMedia))]);
    let totals = service.rooms.tracker.totals();
    assert_eq!((totals.counter(Counter::DeadLetters), totals.counter(Counter::Failed)), (1, 1));
    service.stop().await;
    assert_eq!(recorder.of(|seen| (seen.posted.len(), seen.told.len())), (0, 1));
}

#[tokio::test]
async fn who_cannot_be_told_where_it_stands_is_told_when_it_works() {
    let house = House::with_video(films::ready()).await;
    let recorder = house.recorder();
    let service = house.impatient(&recorder);
    recorder.hold();
    accepted(house.ask(&service.intake, 1, LINK).await);
    let waiting = joined(house.ask(&service.intake, 1, LINK).await);
    recorder.release();
    let delivered = end(waiting.end().await).unwrap();
    let deaf_for = AtomicUsize::new(2);
    waiting
        .answer(async || match deaf_for.fetch_sub(1, Ordering::SeqCst) {
            1 => Telling::Settled,
            _ => Telling::Later(None),
        })
        .await;
    assert_eq!(deaf_for.into_inner(), 0, "it is told again until it works, and not once more");
    assert_eq!(delivered.channel, channel(1));
    service.stop().await;
}

/// Once, dead letters were told one after the other by whoever gave out the jobs.
#[tokio::test]
async fn a_channel_that_takes_no_words_holds_up_no_other() {
    let house = House::with_video(films::ready()).await;
    house.x.on("/i/status/21", [Reply::status(503)]);
    let recorder = house.recorder();
    recorder.manner(channel(2), Manner::IsSilent);
    let service = house.impatient(&recorder);
    accepted(house.ask(&service.intake, 2, "https://x.com/i/status/21").await);
    while service.rooms.tracker.totals().counter(Counter::DeadLetters) == 0 {
        tokio::task::yield_now().await;
    }
    accepted(house.ask(&service.intake, 1, LINK).await);
    recorder.posted(1).await;
    assert_eq!(recorder.of(|seen| seen.told.len()), 0);
}
