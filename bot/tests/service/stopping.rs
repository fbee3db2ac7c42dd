//! The service is stopped in the middle of its work.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use azalea_bot::app::App;
use azalea_bot::clock::instant;
use azalea_bot::domain::{Failure, LimitClass, Stage};
use azalea_bot::frontend::names::Names;
use azalea_bot::frontend::terminal::{Event, Layout, Terminal};
use azalea_bot::intake::{Outcome, Waiting};
use azalea_bot::metrics::Counter;
use azalea_bot::pipeline::delivery::Notice;
use azalea_bot::pipeline::optimize::{Content, Facts, Made, Times};
use serde_json::json;

use crate::films::{self, Film};
use crate::house::{House, LIMIT, LINK, POST, accepted, channel, end, half_written, joined};
use crate::recorder::{Manner, Recorder};
use crate::support::reply::Reply;

/// Work that is told to end does so at once. Far below the bound at which it is broken off, and far above what a busy
/// machine takes.
const SOON: Duration = Duration::from_secs(5);

/// Stops a service at work on a request; expects an end, soon, an answer for everybody, and no litter.
async fn check_stop(house: &House, recorder: &Arc<Recorder>, app: App, behind: Waiting) {
    let begun = instant();
    app.stop().await;
    let took = begun.elapsed();
    assert!(took < SOON, "it took {took:?} to stop");
    assert_eq!(end(behind.end().await), Err(Failure::Cancelled));
    let told: Vec<Notice> = recorder.of(|seen| seen.told.iter().map(|(_, notice)| notice.clone()).collect());
    assert_eq!(told, [Notice::Failed(Failure::Cancelled)]);
    assert_eq!(recorder.of(|seen| seen.posted.len()), 0);
    assert_eq!(half_written(house.folder.path()), [""; 0]);
}

/// One who asks, and one behind.
async fn ask(house: &House, app: &App) -> Waiting {
    let (first, second) = tokio::join!(house.ask(&app.intake, 1, LINK), house.ask(&app.intake, 1, LINK));
    accepted(first);
    joined(second)
}

#[tokio::test]
async fn stopping_while_a_post_is_resolved() {
    let house = House::new().await;
    house.x.on(POST, [Reply::silent()]);
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    let behind = ask(&house, &app).await;
    house.x.requests(1).await;
    check_stop(&house, &recorder, app, behind).await;
}

#[tokio::test]
async fn stopping_while_a_file_is_downloaded() {
    let film = films::old();
    let house = House::with_video(Film::clone(&film)).await;
    house.cdn.on("/v.mp4", [Reply::file(Film::clone(&film)).stall_after(film.len() / 2)]);
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    let behind = ask(&house, &app).await;
    house.cdn.requests(1).await;
    check_stop(&house, &recorder, app, behind).await;
}

#[tokio::test]
async fn stopping_while_a_file_is_made() {
    let house = House::with_video(films::endless()).await;
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    let behind = ask(&house, &app).await;
    // All of it has arrived, so the engine alone is at work.
    let downloaded = async {
        while app.rooms.tracker.totals().stage(Stage::Download).times().count() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), downloaded).await.expect("it is downloaded");
    assert_eq!(app.rooms.tracker.totals().stage(Stage::Optimize).times().count(), 0, "it is still made");
    check_stop(&house, &recorder, app, behind).await;
}

#[tokio::test]
async fn stopping_while_a_result_is_delivered() {
    let house = House::with_video(films::ready()).await;
    let recorder = house.recorder();
    recorder.manner(channel(1), Manner::Hangs);
    let app = house.start(&recorder).await;
    let behind = ask(&house, &app).await;
    recorder.until(|seen| seen.stages.contains(&(channel(1), Stage::Upload))).await;
    check_stop(&house, &recorder, app, behind).await;

    // What was made by then is there for the next run.
    let app = house.start(&recorder).await;
    accepted(house.ask(&app.intake, 2, LINK).await);
    recorder.posted(1).await;
    app.stop().await;
    assert_eq!((house.x.hits(POST), house.cdn.hits("/v.mp4")), (1, 1));
}

#[tokio::test]
async fn stopping_while_a_request_waits_for_its_next_attempt() {
    let house = House::new().await;
    house.x.on(POST, [Reply::status(503).header("Retry-After", "200")]);
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    let behind = ask(&house, &app).await;
    let retried = async {
        while app.rooms.tracker.totals().counter(Counter::Retries) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), retried).await.expect("it is put back");
    check_stop(&house, &recorder, app, behind).await;
}

#[tokio::test]
async fn stopping_with_nothing_to_do() {
    let house = House::new().await;
    let app = house.start(&house.recorder()).await;
    let begun = instant();
    app.stop().await;
    assert!(begun.elapsed() < SOON);
}

#[tokio::test]
async fn what_is_asked_after_the_end_is_refused_and_not_lost() {
    let house = House::with_video(films::ready()).await;
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    let intake = app.intake.clone();
    app.stop().await;
    for _ in 0..2 {
        let outcome = house.ask(&intake, 1, LINK).await;
        assert!(matches!(outcome, Outcome::Closed(_)), "{outcome:?}");
    }
}

/// Once, a delivery that was broken off left `*.part` behind: the name was changed by whoever waited for the write.
#[test]
fn a_file_that_is_broken_off_is_whole_or_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let facts = Facts {
        action: "pass".to_owned(),
        extension: "mp4".to_owned(),
        media_type: "video/mp4".to_owned(),
        bytes: 8 << 20,
        source_bytes: 8 << 20,
        width: 1,
        height: 1,
        duration: 1.0,
        warnings: Vec::new(),
    };
    let content = Content::Memory(vec![7; 8 << 20].into());
    let made = Made { content, facts, times: Times::default() };
    let path = folder.path().join("a.mp4");
    runtime.block_on(async {
        // Begun, and dropped at its first wait.
        tokio::select! {
            biased;
            _ = made.write_to(&path) => {}
            () = std::future::ready(()) => {}
        }
    });
    // Ends what was begun on other threads.
    drop(runtime);
    assert_eq!(half_written(folder.path()), [""; 0]);
    if let Ok(bytes) = std::fs::read(&path) {
        assert_eq!(bytes.len(), 8 << 20);
    }
}

#[tokio::test]
async fn a_terminal_that_is_stopped_leaves_nothing_behind() {
    let house = House::new().await;
    let film = films::old();
    house.cdn.on("/v.mp4", [Reply::file(Film::clone(&film)).stall_after(film.len() / 2)]);
    house.cdn.on("/p.jpg", [Reply::ok(films::photo("red")).header("Content-Type", "image/jpeg")]);
    house.post(&json!([house.photo("/p.jpg"), house.video("/v.mp4")]));
    let output = house.folder.path().join("output");
    let limit = LimitClass::new(NonZeroU64::new(LIMIT).unwrap());
    let (terminal, mut events) =
        Terminal::new(output.clone(), Layout::ByChannel, limit, house.clock.clone(), Names::in_memory());
    let app = App::start(&house.config, house.clock.clone(), Arc::new(terminal)).await.unwrap();
    accepted(house.ask(&app.intake, 1, LINK).await);
    house.cdn.requests(2).await;
    app.stop().await;
    let mut told = Vec::new();
    while let Some(event) = events.recv().await {
        if let Event::Told(_, notice, _) = event {
            told.push(notice);
        }
    }
    assert_eq!(told, [Notice::Failed(Failure::Cancelled)]);
    assert!(!output.exists(), "no part of an answer is delivered");
    assert_eq!(half_written(house.folder.path()), [""; 0]);
}
