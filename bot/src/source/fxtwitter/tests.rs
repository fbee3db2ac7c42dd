use std::time::Duration;

use super::*;
use crate::domain::{Codec, PixelSize};

fn read(http_status: u16, json: &str) -> Result<Post, SourceFailure> {
    serde_json::from_str::<Envelope>(json).unwrap().into_post(http_status, PostId::x("20").unwrap())
}

const VIDEO: &str = r#"{"type": "video", "id": "1", "url": "https://video.twimg.com/amplify_video/1/vid/avc1/1280x720/v.mp4",
    "width": 1280, "height": 720, "duration": 10.704, "format": "video/mp4", "formats": [
      {"container": "m3u8", "url": "https://video.twimg.com/amplify_video/1/pl/v.m3u8"},
      {"container": "mp4", "codec": "h264", "bitrate": 832000, "size": 1100000,
       "url": "https://video.twimg.com/amplify_video/1/vid/avc1/640x360/v.mp4"},
      {"container": "mp4", "codec": "h264", "bitrate": 2176000, "width": "1280", "height": 720,
       "url": "https://video.twimg.com/amplify_video/1/vid/avc1/1280x720/v.mp4"},
      {"container": "mp4", "codec": "hevc", "bitrate": 2000000,
       "url": "https://video.twimg.com/amplify_video/1/vid/hevc/1280x720/v.mp4"},
      {"container": "mp4", "url": "file:///etc/passwd"}]}"#;

fn post_with(media: &str) -> String {
    format!(
        r#"{{"code": 200, "status": {{"type": "status", "id": "20", "text": "hi", "likes": [],
        "author": {{"name": "Ann", "screen_name": "ann"}}, "possibly_sensitive": false, "media": {{"all": [{media}]}},
        "quote": {{"type": "status", "id": "19", "author": {{"screen_name": "bob"}}, "possibly_sensitive": true, "media": {{"photos": [
          {{"type": "photo", "url": "https://pbs.twimg.com/media/Q.jpg?name=orig", "width": 10, "height": 10}}]}}}}}}}}"#
    )
}

#[test]
fn every_variant_is_kept_the_best_file_first() {
    let post = read(200, &post_with(VIDEO)).unwrap();
    let video = &post.media[0];
    assert_eq!(video.duration, Some(Duration::from_millis(10_704)));
    assert_eq!(video.size, Some(PixelSize { width: 1280, height: 720 }));
    let facts: Vec<_> = video.variants.iter().map(|v| (v.container, v.codec, v.bit_rate)).collect();
    assert_eq!(
        facts,
        [
            (Container::Mp4, Some(Codec::H264), Some(2_176_000)),
            (Container::Mp4, Some(Codec::Hevc), Some(2_000_000)),
            (Container::Mp4, Some(Codec::H264), Some(832_000)),
            (Container::Hls, None, None),
        ]
    );
    assert_eq!(video.variants[2].size, Some(PixelSize { width: 640, height: 360 }));
    assert_eq!(video.variants[2].bytes, Some(1_100_000));
}

#[test]
fn a_quote_is_marked_by_its_own_post() {
    let post = read(200, &post_with(VIDEO)).unwrap();
    assert_eq!(post.media.iter().map(|m| m.post.number()).collect::<Vec<_>>(), [20, 19]);
    assert_eq!(post.answer().count(), 1);
    assert!(post.sensitive, "the quoted media are sensitive");
    let handles: Vec<&str> = post.media.iter().map(|m| post.author_of(m).unwrap().handle.as_str()).collect();
    assert_eq!(handles, ["ann", "bob"]);
    let quote_only = read(200, &post_with("")).unwrap();
    assert_eq!(quote_only.answer().count(), 1);
}

#[test]
fn an_unreadable_medium_makes_the_answer_a_part() {
    for broken in ["7", "{}", r#"{"type": "hologram", "url": "https://a/b.mp4"}"#] {
        let result = read(200, &post_with(&format!("{VIDEO}, {broken}")));
        let Err(SourceFailure::Partial(post)) = result else { panic!("{broken}: it is a part") };
        assert_eq!(post.media.len(), 2);
    }
}

#[test]
fn version_one_is_read_as_well() {
    let json = r#"{"code": 200, "message": "OK", "tweet": {"id": "20", "author": {"screen_name": "ann"}, "media": {
        "photos": [{"type": "photo", "url": "https://pbs.twimg.com/media/A.jpg?name=orig", "altText": "a cat"}],
        "videos": [{"type": "gif", "url": "https://video.twimg.com/tweet_video/g.mp4", "duration": 0,
            "variants": [{"bitrate": 0, "content_type": "video/mp4", "url": "https://video.twimg.com/tweet_video/g.mp4"}]}]}}}"#;
    let post = read(200, json).unwrap();
    assert_eq!(post.media.iter().map(|m| m.kind).collect::<Vec<_>>(), [MediumKind::Photo, MediumKind::Gif]);
    assert_eq!(post.media[0].alt.as_deref(), Some("a cat"));
    assert_eq!(post.media[1].variants.len(), 1);
}

#[track_caller]
fn check(http_status: u16, json: &str, wanted: &SourceFailure) {
    assert_eq!(read(http_status, json).as_ref(), Err(wanted), "{json}");
}

#[test]
fn a_tombstone_with_a_reason_is_an_authority() {
    let tombstone = |reason: &str| {
        format!(r#"{{"code": 404, "status": {{"type": "tombstone", "reason": "{reason}", "id": "20"}}}}"#)
    };
    let gone = |reason| SourceFailure::Gone { reason, weight: Weight::Authority };
    check(404, &tombstone("deleted"), &gone(GoneReason::Deleted));
    check(200, &tombstone("suspended"), &gone(GoneReason::Suspended));
    check(200, &tombstone("private"), &SourceFailure::NeedsLogin(Weight::Authority));
    check(200, &tombstone("blocked"), &SourceFailure::NeedsLogin(Weight::Witness));
    assert!(matches!(read(200, &tombstone("unavailable")), Err(SourceFailure::Unclear { .. })));
}

#[test]
fn codes_say_whose_matter_it_is() {
    let witness = SourceFailure::Gone { reason: GoneReason::NotFound, weight: Weight::Witness };
    check(404, r#"{"code": 404, "message": "NOT_FOUND", "tweet": null}"#, &witness);
    check(401, r#"{"code": 401, "message": "PRIVATE_TWEET"}"#, &SourceFailure::NeedsLogin(Weight::Authority));
    let code = |status, json: &str| read(status, json).unwrap_err().code();
    assert_eq!(code(401, r#"{"error": "a name is needed"}"#), "ours");
    assert_eq!(code(200, r#"{"code": 500, "message": "API_FAIL"}"#), "transient");
    assert_eq!(code(404, r#"{"error": "no such path"}"#), "unclear");
    assert_eq!(code(200, "{}"), "unclear");
}

#[test]
fn only_what_the_version_can_be_guilty_of_asks_the_older_one() {
    let limited = SourceFailure::Transient { what: String::new(), retry_after: Some(Duration::from_secs(9)) };
    assert!(!asks_version_one(&limited));
    assert!(!asks_version_one(&SourceFailure::NoMedia));
    assert!(!asks_version_one(&SourceFailure::Gone {
        reason: GoneReason::Deleted,
        weight: Weight::Authority
    }));
    assert!(asks_version_one(&SourceFailure::unclear("404")));
    assert!(asks_version_one(&SourceFailure::transient("500")));
}
