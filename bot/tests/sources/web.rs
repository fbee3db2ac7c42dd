//! The sources that are asked over HTTP.

use std::time::Duration;

use azalea_bot::domain::{Failure, GoneReason, MediumKind};
use azalea_bot::metrics::Tracker;
use azalea_bot::source::{Resolver, SourceName, SourceSettings, SourceSettingsError, WebSourceSettings};

use crate::support::reply::{Length, Reply};
use crate::support::server::Server;
use crate::{id, json, page, resolver};

const VX: &str = r#"{"tweetID": "20", "user_screen_name": "ann", "text": "hi", "media_extended": [
    {"url": "https://video.twimg.com/a/vid/avc1/1280x720/v.mp4", "type": "video", "duration_millis": 1000}]}"#;
const FX2: &str = r#"{"code": 200, "status": {"type": "status", "id": "20", "text": "hi", "media": {"all": [
    {"type": "video", "url": "https://video.twimg.com/v.mp4", "formats": []}]}}}"#;
const FX1: &str = r#"{"code": 200, "message": "OK", "tweet": {"id": "20", "text": "old", "media": {"photos": [
    {"type": "photo", "url": "https://pbs.twimg.com/media/A.jpg"}]}}}"#;

const VX_PATH: &str = "/vx/i/status/20";
const FX2_PATH: &str = "/fx/2/status/20";
const FX1_PATH: &str = "/fx/i/status/20";
const CDN_PATH: &str = "/cdn/tweet-result";

/// These sources, all at this server, each under its own folder.
fn settings(server: &Server, order: &[SourceName]) -> SourceSettings {
    let at = |path: &str| WebSourceSettings::at(server.url(path).as_str());
    SourceSettings {
        order: order.to_vec(),
        vxtwitter: at("/vx/"),
        fxtwitter: at("/fx"),
        syndication: at("/cdn"),
        ..SourceSettings::default()
    }
}

/// What comes of this reply, from VxTwitter alone and asked twice, and how often it was asked.
async fn vx(reply: Reply) -> (Failure, usize) {
    let server = Server::start().await;
    server.on(VX_PATH, [reply]);
    let resolver = resolver(&settings(&server, &[SourceName::VxTwitter]), &server);
    let failure = resolver.resolve(id()).await.unwrap_err();
    let again = resolver.resolve(id()).await.unwrap_err();
    assert_eq!(failure.code(), again.code());
    (failure, server.hits(VX_PATH))
}

#[tokio::test]
async fn an_html_page_with_status_200_is_transient_and_not_remembered() {
    let reply = page(200, "text/html", "<html>Failed to scan your link!</html>");
    let (failure, asked) = vx(reply.header("Cache-Control", "max-age=1760")).await;
    assert_eq!((failure.code(), asked), ("transient", 2));
}

#[tokio::test]
async fn a_limited_source_says_when_to_come_back() {
    let (failure, asked) = vx(Reply::status(429).header("Retry-After", "60")).await;
    let Failure::Transient { retry_after, .. } = failure else { panic!("{failure:?}") };
    assert_eq!((retry_after, asked), (Some(Duration::from_secs(60)), 2));
}

#[tokio::test]
async fn a_limited_source_is_left_alone_while_there_is_another() {
    let server = Server::start().await;
    server.on(VX_PATH, [Reply::status(429).header("Retry-After", "60")]);
    server.on(CDN_PATH, [Reply::status(503)]);
    let order = [SourceName::VxTwitter, SourceName::Syndication];
    let resolver = resolver(&settings(&server, &order), &server);
    for _ in 0..3 {
        assert_eq!(resolver.resolve(id()).await.unwrap_err().code(), "transient");
    }
    assert_eq!((server.hits(VX_PATH), server.hits(CDN_PATH)), (1, 3));
}

#[tokio::test]
async fn trouble_of_a_server_is_transient_and_not_remembered() {
    for status in [500, 502, 503, 403, 404, 408] {
        let (failure, asked) = vx(json(status, VX)).await;
        assert_eq!((failure.code(), asked), ("transient", 2), "{status}");
    }
    for reply in [
        json(200, "{\"tweetID\": "),
        json(200, VX).cut_after(20),
        json(200, VX).length(Length::Claimed(100_000)),
        json(204, ""),
    ] {
        let (failure, asked) = vx(reply.clone()).await;
        assert_eq!((failure.code(), asked), ("transient", 2), "{reply:?}");
    }
}

#[tokio::test]
async fn deep_and_huge_answers_are_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(vx(json(200, &deep)).await.0.code(), "transient");
    let nested =
        format!("{{\"tweetID\": \"20\", \"qrt\": {}{}}}", "{\"qrt\":".repeat(50_000), "}".repeat(50_000));
    assert_eq!(vx(json(200, &nested)).await.0.code(), "transient");
    let huge = format!("{{\"text\": \"{}\"}}", "a".repeat(3_000_000));
    assert_eq!(vx(json(200, &huge)).await.0.code(), "transient");
}

#[tokio::test]
async fn a_connection_that_hangs_ends_with_the_time_out() {
    let server = Server::start().await;
    for reply in [Reply::silent(), json(200, VX).stall_after(20)] {
        server.on(VX_PATH, [reply]);
        let mut settings = settings(&server, &[SourceName::VxTwitter]);
        settings.vxtwitter.timeout = Duration::from_millis(200);
        let failure = resolver(&settings, &server).resolve(id()).await.unwrap_err();
        assert_eq!(failure.code(), "transient");
    }
}

#[tokio::test]
async fn a_source_that_hangs_is_hedged_by_the_next() {
    let server = Server::start().await;
    server.on(FX2_PATH, [Reply::silent()]);
    server.on(VX_PATH, [json(200, VX)]);
    let mut settings = settings(&server, &[SourceName::FxTwitter, SourceName::VxTwitter]);
    settings.hedge_delay = Duration::from_millis(50);
    let post = resolver(&settings, &server).resolve(id()).await.unwrap();
    assert_eq!(post.author.handle, "ann");
    assert_eq!((server.hits(FX2_PATH), server.hits(VX_PATH)), (1, 1));
}

#[tokio::test]
async fn version_one_is_asked_when_version_two_is_not_known() {
    for unknown in [page(404, "text/html", "no such path"), Reply::status(404), Reply::status(500)] {
        let server = Server::start().await;
        server.on(FX2_PATH, [unknown]);
        server.on(FX1_PATH, [json(200, FX1)]);
        let resolver = resolver(&settings(&server, &[SourceName::FxTwitter]), &server);
        let post = resolver.resolve(id()).await.unwrap();
        assert_eq!((post.text.as_str(), post.media[0].kind), ("old", MediumKind::Photo));
        assert_eq!((server.hits(FX2_PATH), server.hits(FX1_PATH)), (1, 1));
    }
}

#[tokio::test]
async fn version_two_is_enough_when_it_answers() {
    let server = Server::start().await;
    server.on(FX2_PATH, [json(200, FX2)]);
    let resolver = resolver(&settings(&server, &[SourceName::FxTwitter]), &server);
    assert_eq!(resolver.resolve(id()).await.unwrap().text, "hi");
    assert_eq!(resolver.resolve(id()).await.unwrap().text, "hi");
    assert_eq!((server.hits(FX2_PATH), server.hits(FX1_PATH)), (1, 0));
}

#[tokio::test]
async fn a_tombstone_is_believed_and_remembered() {
    let server = Server::start().await;
    let tombstone = r#"{"code": 404, "status": {"type": "tombstone", "reason": "deleted", "id": "20"}}"#;
    server.on(FX2_PATH, [json(404, tombstone)]);
    // Named twice, it is asked once.
    let order = [SourceName::FxTwitter, SourceName::FxTwitter, SourceName::VxTwitter];
    let resolver = resolver(&settings(&server, &order), &server);
    for _ in 0..3 {
        let failure = resolver.resolve(id()).await.unwrap_err();
        assert_eq!(failure, Failure::Gone(GoneReason::Deleted));
    }
    assert_eq!((server.hits(FX2_PATH), server.hits(VX_PATH)), (1, 0));
}

#[tokio::test]
async fn a_post_that_two_sources_do_not_find_is_gone() {
    let server = Server::start().await;
    let missing = json(404, r#"{"code": 404, "message": "NOT_FOUND", "tweet": null}"#);
    for path in [VX_PATH, FX2_PATH, FX1_PATH, CDN_PATH] {
        server.on(path, [missing.clone()]);
    }
    let order = [SourceName::VxTwitter, SourceName::FxTwitter, SourceName::Syndication];
    let gone = resolver(&settings(&server, &order), &server).resolve(id()).await;
    assert_eq!(gone.unwrap_err(), Failure::Gone(GoneReason::NotFound));
    let target = server.seen(CDN_PATH).first().map(|seen| seen.target.clone());
    assert_eq!(target.as_deref(), Some("/cdn/tweet-result?id=20&token=6dq1a2xwd93"));
    let alone = resolver(&settings(&server, &order[..2]), &server).resolve(id()).await;
    assert_eq!(alone.unwrap_err().code(), "transient", "one source alone is not believed");
}

#[tokio::test]
async fn two_hundred_who_ask_at_once_cause_one_request() {
    let server = Server::start().await;
    server.on(VX_PATH, [json(200, VX)]);
    let resolver = resolver(&settings(&server, &[SourceName::VxTwitter]), &server);
    let answers = futures_util::future::join_all((0..200).map(|_| resolver.resolve(id()))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(server.hits(VX_PATH), 1);
}

#[tokio::test]
async fn settings_that_name_nobody_are_refused() {
    let http = crate::support::http_to(&[]);
    let refused = |settings: &SourceSettings| {
        let store = azalea_bot::store::Store::none();
        Resolver::new(settings, &http, store, azalea_bot::clock::Clock::system(), Tracker::new(false))
            .unwrap_err()
    };
    let nobody = SourceSettings { order: Vec::new(), ..SourceSettings::default() };
    assert_eq!(refused(&nobody), SourceSettingsError::NoSource);
    for address in ["", "x.com", "file:///etc", "ftp://a", "https://a/?b=c"] {
        let settings =
            SourceSettings { vxtwitter: WebSourceSettings::at(address), ..SourceSettings::default() };
        assert!(matches!(refused(&settings), SourceSettingsError::Address { .. }), "{address}");
    }
}
