//! Which media of a post come, as which files.

use std::time::Duration;

use azalea_bot::config::SourceChoice;
use azalea_bot::domain::MediumKind;
use serde_json::json;

use crate::films;
use crate::house::{House, LINK, POST, accepted, page, tweet};
use crate::recorder::Posted;
use crate::support::reply::Reply;

fn jpeg(colour: &str) -> Reply {
    Reply::ok(films::photo(colour)).header("Content-Type", "image/jpeg")
}

/// A house with a post of three photos and a video, in an order that is not that of their kinds.
async fn album() -> House {
    let house = House::new().await;
    for (path, colour) in [("/a.jpg", "red"), ("/b.jpg", "green"), ("/c.jpg", "blue")] {
        house.cdn.on(path, [jpeg(colour)]);
    }
    house.cdn.on("/v.mp4", [Reply::file(films::ready())]);
    house.post(&json!([
        house.photo("/a.jpg"),
        house.photo("/b.jpg"),
        house.video("/v.mp4"),
        house.photo("/c.jpg"),
    ]));
    house
}

/// What comes of this link.
async fn answer(house: &House, link: &str) -> Posted {
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    accepted(house.ask(&app.intake, 1, link).await);
    recorder.until(|seen| seen.posted.len() + seen.told.len() > 0).await;
    app.stop().await;
    let (mut posted, told) = recorder.of(|seen| (seen.posted.clone(), seen.told.clone()));
    assert!(told.is_empty() && posted.len() == 1, "{told:?}");
    posted.remove(0)
}

#[tokio::test]
async fn four_media_are_four_files_in_order_with_their_descriptions() {
    let house = album().await;
    let posted = answer(&house, LINK).await;
    let told: Vec<_> = posted
        .files
        .iter()
        .map(|file| (file.name.as_str(), file.kind, file.alt.as_deref().unwrap_or_default()))
        .collect();
    use MediumKind::{Photo, Video};
    assert_eq!(
        told,
        [
            ("ann-20-1.jpg", Photo, "the picture /a.jpg"),
            ("ann-20-2.jpg", Photo, "the picture /b.jpg"),
            ("ann-20-3.mp4", Video, "the film /v.mp4"),
            ("ann-20-4.jpg", Photo, "the picture /c.jpg"),
        ]
    );
    assert!(posted.missing.is_empty() && !posted.spoiler);
    let bytes: Vec<_> = posted.files.iter().map(|file| file.bytes.clone()).collect();
    assert!(bytes[0] != bytes[1] && bytes[1] != bytes[3] && bytes[0] != bytes[3]);
    assert!(bytes[2] == *films::ready(), "what plays as it is passes as it is");
}

#[tokio::test]
async fn a_link_to_one_photo_gives_that_one() {
    let house = album().await;
    let posted = answer(&house, "https://x.com/ann/status/20/photo/2").await;
    assert_eq!(posted.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["ann-20-2.jpg"]);
    assert_eq!(posted.files[0].alt.as_deref(), Some("the picture /b.jpg"));
    let asked = ["/a.jpg", "/b.jpg", "/v.mp4", "/c.jpg"].map(|path| house.cdn.hits(path));
    assert_eq!(asked, [0, 1, 0, 0]);
}

#[tokio::test]
async fn a_medium_that_cannot_be_used_is_missing_and_the_others_come() {
    let house = album().await;
    house.cdn.on("/b.jpg", [Reply::ok(&b"no picture at all, whatever it is called"[..])]);
    let posted = answer(&house, LINK).await;
    let names: Vec<_> = posted.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["ann-20-1.jpg", "ann-20-3.mp4", "ann-20-4.jpg"]);
    assert_eq!(posted.missing.iter().map(|failure| failure.code()).collect::<Vec<_>>(), ["unsupported"]);
}

#[tokio::test]
async fn a_medium_that_its_server_does_not_have_is_missing_and_the_others_come() {
    let house = album().await;
    house.cdn.on("/b.jpg", [Reply::status(404)]);
    house.cdn.on("/c.jpg", [Reply::status(403)]);
    let posted = answer(&house, LINK).await;
    let names: Vec<_> = posted.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["ann-20-1.jpg", "ann-20-3.mp4"]);
    assert_eq!(posted.missing.iter().map(|failure| failure.code()).collect::<Vec<_>>(), ["missing"; 2]);
    // The post was asked for a moment ago: asking again would say the same.
    assert_eq!((house.x.hits(POST), house.cdn.hits("/b.jpg")), (1, 1));
}

#[tokio::test]
async fn a_medium_in_trouble_holds_the_others_up_for_two_attempts() {
    let house = album().await;
    house.cdn.on("/b.jpg", [Reply::status(503)]);
    let recorder = house.recorder();
    let service = house.impatient(&recorder);
    accepted(house.ask(&service.intake, 1, LINK).await);
    let posted = recorder.posted(1).await;
    let names: Vec<_> = posted[0].files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["ann-20-1.jpg", "ann-20-3.mp4", "ann-20-4.jpg"]);
    assert_eq!(posted[0].missing.iter().map(|failure| failure.code()).collect::<Vec<_>>(), ["transient"]);
    service.stop().await;
    assert_eq!((house.cdn.hits("/a.jpg"), house.cdn.hits("/v.mp4")), (1, 1), "what was made is kept");
    assert_eq!(recorder.of(|seen| (seen.posted.len(), seen.told.len())), (1, 0));
}

#[tokio::test]
async fn a_remembered_post_whose_media_moved_is_asked_for_anew() {
    let house = House::with_video(films::ready()).await;
    let recorder = house.recorder();
    let app = house.start(&recorder).await;
    accepted(house.ask(&app.intake, 1, "https://x.com/ann/status/20/video/1").await);
    recorder.posted(1).await;
    house.cdn.on("/v.mp4", [Reply::status(404)]);
    house.cdn.on("/w.mp4", [Reply::file(films::old())]);
    house.post(&json!([house.video("/w.mp4")]));
    app.stop().await;
    std::fs::remove_dir_all(house.config.store.path.join("artifacts")).unwrap();

    house.clock.set(house.clock.now().plus(Duration::from_secs(3_600)));
    let app = house.start(&recorder).await;
    accepted(house.ask(&app.intake, 2, LINK).await);
    let posted = recorder.posted(2).await;
    app.stop().await;
    assert_eq!(posted[1].files[0].action, "transcode", "it is the other film");
    assert_eq!((house.x.hits(POST), house.cdn.hits("/w.mp4")), (2, 1));
}

#[tokio::test]
async fn the_media_of_a_quoted_post_answer_for_one_that_has_none() {
    let house = album().await;
    let mut post = tweet(20, &json!([]));
    post["qrt"] = tweet(19, &json!([house.photo("/c.jpg"), house.photo("/a.jpg")]));
    post["qrt"]["user_screen_name"] = json!("bob");
    house.x.on(POST, [page(&post)]);
    let posted = answer(&house, LINK).await;
    let told: Vec<_> = posted
        .files
        .iter()
        .map(|file| (file.name.as_str(), file.alt.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(told, [("bob-19-1.jpg", "the picture /c.jpg"), ("bob-19-2.jpg", "the picture /a.jpg")]);
}

#[tokio::test]
async fn the_media_of_a_quoted_post_without_author_are_nobodys() {
    let house = album().await;
    let mut post = tweet(20, &json!([]));
    post["qrt"] = tweet(19, &json!([house.photo("/c.jpg")]));
    post["qrt"]["user_screen_name"] = json!(null);
    house.x.on(POST, [page(&post)]);
    let posted = answer(&house, LINK).await;
    assert_eq!(posted.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["post-19-1.jpg"]);
}

#[tokio::test]
async fn a_quoted_post_says_nothing_beside_media_of_its_own() {
    let house = album().await;
    let mut post = tweet(20, &json!([house.photo("/b.jpg")]));
    post["qrt"] = tweet(19, &json!([house.photo("/c.jpg")]));
    house.x.on(POST, [page(&post)]);
    let posted = answer(&house, LINK).await;
    assert_eq!(posted.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["ann-20-1.jpg"]);
    assert_eq!(house.cdn.hits("/c.jpg"), 0);
}

#[tokio::test]
async fn a_variant_that_is_gone_gives_way_to_the_next() {
    let mut house = House::new().await;
    house.cdn.on("/large.mp4", [Reply::status(404)]);
    house.cdn.on("/middle.mp4", [Reply::status(403)]);
    let large = house.cdn.url("/large.mp4").to_string();
    three_variants(&mut house, &large);
    let posted = answer(&house, LINK).await;
    assert!(posted.files[0].bytes == *films::ready());
    let asked = ["/large.mp4", "/middle.mp4", "/small.mp4"].map(|path| house.cdn.hits(path));
    assert_eq!(asked, [1, 1, 1]);
}

/// Once, only what its server did not have or give out gave way to the next.
#[tokio::test]
async fn a_variant_that_is_of_no_use_gives_way_to_the_next() {
    let page = Reply::ok(b"<!doctype html><title>busy</title>".to_vec()).header("Content-Type", "text/html");
    for reply in [Reply::status(500), page, Reply::ok(b"this is no film".to_vec())] {
        let mut house = House::new().await;
        house.config.download.timeout = Duration::from_secs(20);
        house.cdn.on("/large.mp4", [reply.clone()]);
        house.cdn.on("/middle.mp4", [reply]);
        let large = house.cdn.url("/large.mp4").to_string();
        three_variants(&mut house, &large);
        assert!(answer(&house, LINK).await.files[0].bytes == *films::ready());
    }
    let mut house = House::new().await;
    house.cdn.on("/middle.mp4", [Reply::file(films::ready())]);
    three_variants(&mut house, "https://elsewhere.example/large.mp4");
    assert!(answer(&house, LINK).await.files[0].bytes == *films::ready());
}

/// A post whose video has three variants, of which the smallest is there.
fn three_variants(house: &mut House, large: &str) {
    house.config.sources.order = vec![SourceChoice::Fxtwitter];
    house.cdn.on("/small.mp4", [Reply::file(films::ready())]);
    let variant =
        |url: &str, rate: u64| json!({ "url": url, "bitrate": rate, "container": "mp4", "codec": "h264" });
    let (middle, small) = (house.cdn.url("/middle.mp4"), house.cdn.url("/small.mp4"));
    let video = json!({
        "type": "video",
        "url": large,
        "duration": 1.0,
        "width": 160,
        "height": 90,
        "formats": [
            variant(small.as_str(), 256_000),
            variant(large, 2_176_000),
            variant(middle.as_str(), 832_000),
        ],
    });
    let status = json!({ "code": 200, "status": {
        "type": "status",
        "id": "20",
        "text": "look",
        "author": { "name": "Ann", "screen_name": "ann" },
        "media": { "all": [video] },
    }});
    house.x.on("/2/status/20", [page(&status)]);
}
