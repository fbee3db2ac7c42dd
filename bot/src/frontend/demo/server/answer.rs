//! What the server says: heads, and the description of its one post.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::{Value, json};

use super::Site;
use super::request::{CLIP_PATH, Part, part};
use crate::domain::PostId;

/// A status line's number and words.
pub(super) type Status = (u16, &'static str);

pub(super) const OK: Status = (200, "OK");
pub(super) const PARTIAL: Status = (206, "Partial Content");
pub(super) const BAD_REQUEST: Status = (400, "Bad Request");
pub(super) const NOT_FOUND: Status = (404, "Not Found");
pub(super) const BEYOND: Status = (416, "Range Not Satisfiable");
pub(super) const HEAD_TOO_LONG: Status = (431, "Request Header Fields Too Large");

/// The head of an answer whose content has this kind and length.
pub(super) fn head(status: Status, kind: &str, length: usize, more: &[(&str, String)]) -> String {
    let (number, words) = status;
    let mut head = format!(
        "HTTP/1.1 {number} {words}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n"
    );
    for (name, value) in more {
        // Writing to a string does not fail.
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    head
}

/// A whole answer of one line of text.
pub(super) fn notice(status: Status, text: &str) -> String {
    head(status, "text/plain", text.len(), &[]) + text
}

/// The head of the answer to a request for the clip, and the bytes that follow it.
pub(super) fn clip(site: &Site, range: Option<&str>, if_range: Option<&str>) -> (String, Range<usize>) {
    let length = site.clip.len();
    let tag = tag(length);
    let kind = kind(&site.clip);
    let same = if_range.is_none_or(|version| version == tag);
    let more = |more: Option<String>| {
        let mut headers = vec![("Accept-Ranges", "bytes".to_owned()), ("ETag", tag.clone())];
        headers.extend(more.map(|range| ("Content-Range", range)));
        headers
    };
    match range.filter(|_| same).map_or(Part::Whole, |range| part(range, length)) {
        Part::Whole => (head(OK, kind, length, &more(None)), 0..length),
        Part::Within(part) => {
            let told = format!("bytes {}-{}/{length}", part.start, part.end.saturating_sub(1));
            (head(PARTIAL, kind, part.len(), &more(Some(told))), part)
        }
        Part::Beyond => (head(BEYOND, kind, 0, &more(Some(format!("bytes */{length}")))), 0..0),
    }
}

/// The clip's version. A server has one clip for all its life, so the length tells it well enough.
fn tag(length: usize) -> String {
    format!("\"azalea-{length:x}\"")
}

/// What the clip is, by its first bytes.
fn kind(clip: &[u8]) -> &'static str {
    if clip.starts_with(b"RIFF") { "video/x-msvideo" } else { "video/mp4" }
}

/// The post as VxTwitter's API describes one.
pub(super) fn post(site: &Site, id: PostId, user: &str) -> Value {
    let handle = if user == "i" { "azalea" } else { user };
    let url = format!("{}{CLIP_PATH}", site.base);
    let settings = &site.settings;
    let link = format!("https://x.com/{handle}/status/{}", id.number());
    json!({
        "tweetID": id.number().to_string(),
        "conversationID": id.number().to_string(),
        "tweetURL": link,
        "user_name": "Azalea",
        "user_screen_name": handle,
        "text": "An azalea in the evening wind.",
        "lang": "en",
        "likes": 10,
        "retweets": 5,
        "replies": 0,
        "hasMedia": true,
        "allSameType": true,
        "possibly_sensitive": false,
        "hashtags": [],
        "mediaURLs": [url],
        "media_extended": [{
            "type": "video",
            "url": url,
            "altText": "A pink azalea turns slowly while petals drift past it at dusk.",
            "duration_millis": u64::try_from(settings.clip_length.as_millis()).unwrap_or(u64::MAX),
            "size": { "width": settings.clip_size.width, "height": settings.clip_size.height },
        }],
        "combinedMediaUrl": null,
        "qrt": null,
        "qrtURL": null,
        "communityNote": null,
        "pollData": null,
    })
}
