//! What was accepted outlives the service.

use std::sync::Arc;

use azalea_bot::app::App;
use azalea_bot::config::QueueBackend;
use azalea_bot::domain::{DeliveryKey, Failure, Request, Stage};
use azalea_bot::frontend::console::Console;
use azalea_bot::frontend::names::Names;
use azalea_bot::frontend::operator::{self, Operator};
use azalea_bot::frontend::terminal::{Layout, Terminal};
use azalea_bot::intake::Outcome;
use azalea_bot::metrics::Counter;
use azalea_bot::pipeline::delivery::Notice;
use azalea_bot::queue::{Filter, StateKind};
use serde_json::json;

use crate::films::{self, Film};
use crate::house::{House, LINK, POST, accepted, channel, joined, page, tweet};
use crate::recorder::Manner;
use crate::support::reply::Reply;

/// A house whose queue is kept on disk, with a post of one video.
async fn house(film: Film) -> House {
    let mut house = House::with_video(film).await;
    house.config.queue.backend = QueueBackend::Embedded;
    house
}

#[tokio::test]
async fn what_is_accepted_before_the_end_is_delivered_after_it() {
    let house = house(films::ready()).await;
    let film = films::ready();
    let stalling = Reply::file(Film::clone(&film)).stall_after(film.len() / 2);
    house.cdn.on("/v.mp4", [stalling, Reply::file(film)]);
    let before = house.recorder();
    let app = house.start(&before).await;
    let request = accepted(house.ask(&app.intake, 1, LINK).await);
    house.cdn.requests(1).await;
    app.stop().await;
    assert_eq!(before.of(|seen| (seen.posted.len(), seen.told.len())), (0, 0), "it is not over");

    let after = house.recorder();
    let app = house.start(&after).await;
    let posted = after.posted(1).await;
    assert_eq!(posted[0].request, request);
    app.stop().await;
    assert_eq!(after.of(|seen| (seen.posted.len(), seen.told.len())), (1, 0));
    // And that was its end.
    let later = house.recorder();
    let app = house.start(&later).await;
    assert_eq!(app.unfinished().await, 0);
    app.stop().await;
    assert_eq!(later.of(|seen| (seen.posted.len(), seen.told.len())), (0, 0));
}

#[tokio::test]
async fn who_waited_behind_another_is_told_by_the_next_run() {
    let house = house(films::ready()).await;
    let before = house.recorder();
    before.manner(channel(1), Manner::Hangs);
    let app = house.start(&before).await;
    let (first, second) = tokio::join!(house.ask(&app.intake, 1, LINK), house.ask(&app.intake, 1, LINK));
    let first = accepted(first);
    let behind = joined(second);
    before.until(|seen| seen.stages.contains(&(channel(1), Stage::Upload))).await;
    // The process ends before the one behind was told anything.
    app.stop().await;
    drop(behind);

    let after = house.recorder();
    let app = house.start(&after).await;
    // Whichever of them the queue was told of first.
    let posted = after.posted(1).await[0].request.clone();
    // As soon as the other one is done, and not a moment later.
    let told = after.told(1).await;
    assert!(matches!(&told[0].1, Notice::Pointer(delivered) if delivered.channel == channel(1)), "{told:?}");
    assert!([&posted, &told[0].0].contains(&&first) && posted != told[0].0, "{posted:?}, {told:?}");
    app.stop().await;
    assert_eq!(after.of(|seen| (seen.posted.len(), seen.told.len())), (1, 1));
}

#[tokio::test]
async fn the_same_message_again_is_the_same_request() {
    let house = house(films::ready()).await;
    let recorder = house.recorder();
    recorder.hold();
    let app = house.start(&recorder).await;
    let request = accepted(house.ask(&app.intake, 1, LINK).await);
    let again = app.intake.send(request.clone()).await;
    assert!(matches!(again, Outcome::Again(_)), "{again:?}");
    recorder.release();
    recorder.posted(1).await;
    app.stop().await;

    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    let again = app.intake.send(request).await;
    assert!(matches!(again, Outcome::AlreadyThere { .. }), "{again:?}");
    app.stop().await;
    assert_eq!(recorder.of(|seen| seen.posted.len()), 0);
}

#[tokio::test]
async fn two_services_do_not_share_a_queue() {
    let house = house(films::ready()).await;
    let app = house.start(&house.recorder()).await;
    let second = App::start(&house.config, house.clock.clone(), house.recorder()).await;
    let Err(Failure::Ours { what }) = second.map(drop) else { panic!("it started") };
    assert!(what.contains("queue") && !what.contains('\n'), "{what}");
    app.stop().await;
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_means_a_queue_in_memory() {
    let mut house = house(films::ready()).await;
    // Nobody, not even root, can create a file there.
    house.config.store.path = "/proc/self/fdinfo".into();
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    accepted(house.ask(&app.intake, 1, LINK).await);
    recorder.posted(1).await;
    app.stop().await;
}

#[tokio::test]
async fn what_died_is_told_once_and_stays_to_be_looked_at() {
    let house = house(films::ready()).await;
    house.x.on(POST, [Reply::status(503).header("Retry-After", "1")]);
    let mut config = house.config.clone();
    config.queue.max_attempts = 2;
    let recorder = house.recorder();
    let app = App::start(&config, house.clock.clone(), Arc::clone(&recorder) as _).await.unwrap();
    let request = accepted(house.ask(&app.intake, 1, LINK).await);
    let told = recorder.told(1).await;
    assert_eq!(told[0].0, request);
    assert!(matches!(&told[0].1, Notice::Failed(Failure::Transient { .. })), "{told:?}");
    let totals = app.rooms.tracker.totals();
    assert_eq!((totals.counter(Counter::Retries), totals.counter(Counter::DeadLetters)), (1, 1));
    app.stop().await;
    // The next run tells nobody again.
    let later = house.recorder();
    let app = App::start(&config, house.clock.clone(), Arc::clone(&later) as _).await.unwrap();
    assert_eq!(app.unfinished().await, 0);
    app.stop().await;
    assert_eq!(later.of(|seen| seen.told.len()), 0);
}

#[tokio::test]
async fn who_cannot_be_told_in_this_process_is_told_in_the_next() {
    let house = house(films::ready()).await;
    let before = house.recorder();
    let app = house.start(&before).await;
    before.is_deaf(usize::MAX);
    house.x.on("/i/status/21", [page(&tweet(21, &json!([])))]);
    let failed = accepted(house.ask(&app.intake, 2, "https://x.com/i/status/21").await);
    before.until(|seen| seen.unheard >= 2).await;
    app.stop().await;
    assert_eq!(before.of(|seen| seen.told.len()), 0);
    let after = house.recorder();
    let app = house.start(&after).await;
    assert_eq!(after.told(1).await, [(failed, Notice::Failed(Failure::NoMedia))]);
    app.stop().await;
    let last = house.recorder();
    let app = house.start(&last).await;
    app.stop().await;
    assert_eq!(last.of(|seen| seen.told.len()), 0);
}

/// Once, a console whose input had ended went before the dead letters of an earlier one were told, and the queue took them
/// for told.
#[tokio::test]
async fn a_console_tells_who_was_not_told_before_it_ends() {
    let house = house(films::ready()).await;
    let before = house.recorder();
    before.is_deaf(usize::MAX);
    house.x.on("/i/status/21", [page(&tweet(21, &json!([])))]);
    let app = house.start(&before).await;
    accepted(house.ask(&app.intake, 2, "https://x.com/i/status/21").await);
    before.until(|seen| seen.unheard >= 1).await;
    app.stop().await;

    let folder = tempfile::tempdir().unwrap();
    let limit = azalea_bot::domain::LimitClass::new(std::num::NonZeroU64::new(10 << 20).unwrap());
    let (layout, names) = (Layout::ByChannel, Names::in_memory());
    let (terminal, events) =
        Terminal::new(folder.path().to_owned(), layout, limit, house.clock.clone(), names);
    let terminal = Arc::new(terminal.patient());
    let app = App::start(&house.config, house.clock.clone(), Arc::clone(&terminal) as _).await.unwrap();
    let (console, mut lines) =
        Console::new(app.intake.clone(), terminal, app.rooms.processed.clone(), house.clock.clone());
    let open = app.open().await;
    let print = async {
        let mut all = Vec::new();
        while let Some(line) = lines.recv().await {
            all.push(line.text.clone());
        }
        all
    };
    let session = console.run(tokio::io::BufReader::new(&b""[..]), events, open);
    let (ended, said) = tokio::join!(session, print);
    ended.unwrap();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("no photo, video or GIF"), "{said:?}");
    app.stop().await;
}

/// Two who ask for the same post in a channel, one after the other, in processes that end; the post that stands there,
/// and what was told.
async fn killed_between(house: &House, keeps_store: bool) -> (usize, Vec<Notice>) {
    let before = house.recorder();
    let app = house.start(&before).await;
    accepted(house.ask(&app.intake, 1, LINK).await);
    before.posted(1).await;
    while app.unfinished().await > 0 {
        tokio::task::yield_now().await;
    }
    app.stop().await;
    if !keeps_store {
        // What was not yet written of it when the process ended.
        for entry in std::fs::read_dir(&house.config.store.path).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("azalea.redb")) {
                std::fs::remove_file(path).unwrap();
            }
        }
    }
    let after = house.recorder();
    let app = house.start(&after).await;
    let outcome = house.ask(&app.intake, 1, LINK).await;
    let told = match outcome {
        Outcome::AlreadyThere { delivered, .. } => vec![Notice::Pointer(delivered)],
        _ => after.told(1).await.into_iter().map(|(_, notice)| notice).collect(),
    };
    app.stop().await;
    (before.of(|seen| seen.posted.len()) + after.of(|seen| seen.posted.len()), told)
}

/// Once, the memory of deliveries lagged behind the queue by `store.flush_interval`, and whoever asked after a kill within
/// that time got the post a second time.
#[tokio::test]
async fn a_delivery_is_known_after_a_kill_though_only_the_queue_had_stored_it() {
    for keeps_store in [true, false] {
        let house = house(films::ready()).await;
        let (posted, told) = killed_between(&house, keeps_store).await;
        assert_eq!(posted, 1);
        assert!(matches!(&told[..], [Notice::Pointer(_)]), "{told:?}");
    }
}

#[tokio::test]
async fn a_delivery_that_was_forgotten_is_made_again_although_the_queue_knows_it() {
    let house = house(films::ready()).await;
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    let request = accepted(house.ask(&app.intake, 1, LINK).await);
    let key = DeliveryKey::of(&request);
    recorder.posted(1).await;
    // The job's end is stored first.
    while app.rooms.processed.get(&key).await.is_none() {
        tokio::task::yield_now().await;
    }
    app.rooms.processed.forget(&key);
    app.stop().await;
    let app = house.start(&recorder).await;
    accepted(house.ask(&app.intake, 1, LINK).await);
    recorder.posted(2).await;
    app.stop().await;
    assert_eq!(recorder.of(|seen| seen.told.len()), 0);
}

/// Once, whoever had joined was told "being stopped" as the service ended, and had their answer after the next start too.
#[tokio::test]
async fn who_joined_is_handed_on_at_the_end_and_told_nothing() {
    let house = house(films::ready()).await;
    let recorder = house.recorder();
    recorder.manner(channel(1), Manner::Hangs);
    let app = house.start(&recorder).await;
    let (first, second) = tokio::join!(house.ask(&app.intake, 1, LINK), house.ask(&app.intake, 1, LINK));
    accepted(first);
    let Outcome::Joined { request, waiting } = second else { panic!("{second:?}") };
    recorder.until(|seen| seen.stages.contains(&(channel(1), Stage::Upload))).await;
    let intake = app.intake.clone();
    let (outcome, ()) = tokio::join!(
        async {
            assert!(waiting.end().await.is_none(), "it was given up");
            intake.go_on(request, waiting).await
        },
        app.stop()
    );
    assert!(matches!(outcome, Outcome::Again(_)), "{outcome:?}");
    let after = house.recorder();
    let app = house.start(&after).await;
    after.told(1).await;
    app.stop().await;
    assert_eq!(after.of(|seen| (seen.posted.len(), seen.told.len())), (1, 1));
}

#[tokio::test]
async fn who_joined_goes_on_when_the_other_one_gives_up() {
    let house = house(films::ready()).await;
    let recorder = house.recorder();
    recorder.hold();
    let app = house.start(&recorder).await;
    let (first, second) = tokio::join!(house.ask(&app.intake, 1, LINK), house.ask(&app.intake, 1, LINK));
    accepted(first);
    // Nobody answers it any more.
    drop(joined(second));
    recorder.release();
    let told = recorder.told(1).await;
    assert!(matches!(told[0].1, Notice::Pointer(_)), "{told:?}");
    app.stop().await;
    assert_eq!(recorder.of(|seen| (seen.posted.len(), seen.told.len())), (1, 1));
}

/// Once, a dropped job took those with it who had joined it: they were told that it was cancelled.
#[tokio::test]
async fn who_joined_goes_on_when_an_operator_drops_the_other_one() {
    let house = house(films::ready()).await;
    house.x.on(POST, [Reply::status(503).header("Retry-After", "200")]);
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    let (first, second) = tokio::join!(house.ask(&app.intake, 1, LINK), house.ask(&app.intake, 1, LINK));
    let first = accepted(first);
    let Outcome::Joined { request, waiting } = second else { panic!("{second:?}") };
    while app.rooms.tracker.totals().counter(Counter::Retries) == 0 {
        tokio::task::yield_now().await;
    }
    house.post(&json!([house.video("/v.mp4")]));
    let mut operator = Operator::connect(&house.config.store.path).await.unwrap().expect("it listens");
    let jobs = operator.list(Filter::default()).await.unwrap();
    let id = |request: &Request| jobs.iter().find(|job| job.request.id == request.id).unwrap().id;
    let behind = jobs.iter().find(|job| job.request.id == request.id).unwrap();
    assert_eq!(
        (behind.state, behind.behind),
        (StateKind::Delayed, Some(id(&first))),
        "it says whom it waits for"
    );
    let fates = operator.drop_jobs(&[id(&first)]).await.unwrap();
    assert_eq!(fates[0].outcome, operator::Outcome::Done);
    assert!(waiting.end().await.is_none(), "it was given up");
    accepted(app.intake.go_on(request.clone(), waiting).await);
    assert_eq!(recorder.posted(1).await[0].request, request);
    let told = recorder.of(|seen| seen.told.clone());
    assert_eq!(told, [(first, Notice::Failed(Failure::Cancelled))]);
    app.stop().await;
}
