//! Reads the document that yt-dlp prints with `-J`.

use serde::Deserialize;

use crate::domain::{Container, MediumKind, Post, PostId, Variant};
use crate::source::address;
use crate::source::draft::{Draft, Shown, size};
use crate::source::failure::SourceFailure;
use crate::source::wire::{Amount, Lax, Places};

/// The post that a document describes: one video, or a playlist of them in the post's order.
///
/// # Errors
/// With what can be used of it, as a part of the post.
pub(super) fn read(stdout: &[u8], id: PostId) -> Result<Post, SourceFailure> {
    let info: Option<Info> = serde_json::from_slice(stdout)
        .map_err(|error| SourceFailure::ours(format!("what it printed is unreadable ({error})")))?;
    // It prints null for what it gave up without calling that a failure.
    let Some(info) = info else { return Err(SourceFailure::unclear("it found nothing")) };
    let text = [&info.description.0, &info.title.0].into_iter().find(|text| !text.is_empty());
    let mut draft = Draft::new(id, &info.uploader.0, &info.uploader_id.0, text.map_or("", String::as_str));
    draft.mark_sensitive(info.is_adult());
    let mut videos = Vec::new();
    gather(&info, DEEPEST_LIST, &mut videos);
    for video in &videos {
        draft.mark_sensitive(video.is_some_and(Info::is_adult));
    }
    draft.add(id, videos.into_iter().map(|video| video.map(Info::shown)));
    draft.finish_in_part()
}

/// All videos of a document and its lists, in order; `None` for one that could not be read.
fn gather<'a>(info: &'a Info, depth: usize, videos: &mut Vec<Option<&'a Info>>) {
    if videos.len() >= MOST_VIDEOS {
        return;
    }
    if info.kind.0 != "playlist" && info.kind.0 != "multi_video" {
        videos.push(Some(info));
        return;
    }
    let Some(depth) = depth.checked_sub(1) else { return };
    for entry in &info.entries.0 {
        match entry {
            Some(entry) => gather(entry, depth, videos),
            None => videos.push(None),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Info {
    #[serde(rename = "_type")]
    kind: Lax<String>,
    title: Lax<String>,
    description: Lax<String>,
    uploader: Lax<String>,
    uploader_id: Lax<String>,
    duration: Lax<Option<Amount>>,
    age_limit: Lax<Option<Amount>>,
    formats: Places<Format>,
    entries: Places<Info>,
    /// One that has no list of formats is its own format.
    #[serde(flatten)]
    own: Format,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Format {
    url: Lax<String>,
    manifest_url: Lax<String>,
    protocol: Lax<String>,
    ext: Lax<String>,
    tbr: Lax<Option<Amount>>,
    width: Lax<Option<Amount>>,
    height: Lax<Option<Amount>>,
    filesize: Lax<Option<Amount>>,
    vcodec: Lax<String>,
    acodec: Lax<String>,
}

impl Info {
    fn is_adult(&self) -> bool {
        self.age_limit.0.and_then(Amount::whole).is_some_and(|age| age >= 18)
    }

    fn shown(&self) -> Shown {
        let own = [&self.own];
        let formats: Vec<&Format> = if self.formats.is_empty() {
            own.into_iter().collect()
        } else {
            self.formats.readable().collect()
        };
        // Pictures without sound are the whole only when there is no sound elsewhere.
        let has_sound = formats.iter().any(|format| format.has_sound());
        let mut variants: Vec<Variant> =
            formats.iter().filter_map(|format| format.variant(has_sound)).collect();
        let playlist = formats.iter().find_map(|format| format.playlist());
        variants.extend(playlist);
        let is_loop = variants.iter().any(|variant| address::is_loop(&variant.url));
        Shown {
            kind: if is_loop { MediumKind::Gif } else { MediumKind::Video },
            alt: String::new(),
            duration: self.duration.0.and_then(|seconds| seconds.time(1.0)),
            size: None,
            variants,
        }
    }
}

impl Format {
    /// Whether it is known to have sound. Of a stream without pictures yet of unknown sound that is all it can be.
    fn has_sound(&self) -> bool {
        match self.acodec.0.as_str() {
            "none" => false,
            "" => self.vcodec.0 == "none",
            _ => true,
        }
    }

    /// The file, when it is one that can stand for the video.
    fn variant(&self, has_sound: bool) -> Option<Variant> {
        let is_file = matches!(self.protocol.0.as_str(), "http" | "https");
        let lacks_pictures = self.vcodec.0 == "none";
        let lacks_sound = self.acodec.0 == "none" && has_sound;
        if !is_file || lacks_pictures || lacks_sound {
            return None;
        }
        let told = address::video(&self.url.0)?;
        let container = match self.ext.0.as_str() {
            "mp4" | "m4v" => Container::Mp4,
            "webm" => Container::WebM,
            // It lists previews among the formats of some pages.
            "jpg" | "jpeg" | "png" | "webp" | "mhtml" => return None,
            _ => told.container,
        };
        let pixels = |side: Option<Amount>| side.and_then(Amount::pixels);
        Some(Variant {
            container,
            codec: address::codec(&self.vcodec.0).or(told.codec),
            bit_rate: self.tbr.0.and_then(|kilobits| kilobits.times(1_000.0)),
            size: size(pixels(self.width.0), pixels(self.height.0)).or(told.size),
            bytes: self.filesize.0.and_then(Amount::whole),
            url: told.url,
        })
    }

    /// The playlist of all of its streams, when it comes from one: one of its streams alone may be silent.
    fn playlist(&self) -> Option<Variant> {
        if !self.protocol.0.starts_with("m3u8") {
            return None;
        }
        let address = [&self.manifest_url.0, &self.url.0].into_iter().find(|address| !address.is_empty())?;
        let told = address::video(address)?;
        Some(Variant {
            container: Container::Hls,
            codec: None,
            bit_rate: None,
            size: None,
            bytes: None,
            url: told.url,
        })
    }
}

/// A post is a list of videos; a list in a list is more than any extractor of X gives.
const DEEPEST_LIST: usize = 3;
const MOST_VIDEOS: usize = 64;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::PixelSize;

    fn part(json: &str) -> Post {
        match read(json.as_bytes(), PostId::x("20").unwrap()) {
            Err(SourceFailure::Partial(post)) => *post,
            other => panic!("{other:?}"),
        }
    }

    fn failure(json: &str) -> &'static str {
        read(json.as_bytes(), PostId::x("20").unwrap()).unwrap_err().code()
    }

    const VIDEO: &str = r#"{"_type": "video", "id": "1", "title": "Ann - hi", "description": "hi https://t.co/a",
        "uploader": "Ann", "uploader_id": "ann", "duration": 10.704, "age_limit": 18, "url": null,
        "thumbnails": [{"url": "https://pbs.twimg.com/thumb.jpg"}], "thumbnail": "https://pbs.twimg.com/thumb.jpg",
        "formats": [
          {"format_id": "hls-audio-128", "url": "https://video.twimg.com/a/pl/audio.m3u8", "protocol": "m3u8_native",
           "manifest_url": "https://video.twimg.com/a/pl/all.m3u8", "ext": "mp4", "vcodec": "none", "acodec": null},
          {"format_id": "http-632", "url": "https://video.twimg.com/a/vid/avc1/320x568/v.mp4", "protocol": "https",
           "ext": "mp4", "tbr": 632, "width": 320, "height": 568, "vcodec": null, "acodec": null},
          {"format_id": "hls-2000", "url": "https://video.twimg.com/a/pl/v.m3u8", "protocol": "m3u8_native",
           "manifest_url": "https://video.twimg.com/a/pl/all.m3u8", "ext": "mp4", "vcodec": "avc1.64001f", "acodec": "none"},
          {"format_id": "dash-v", "url": "https://video.twimg.com/a/silent.mp4", "protocol": "https", "ext": "mp4",
           "tbr": 9000, "vcodec": "avc1.64001f", "acodec": "none"},
          {"format_id": "sb0", "url": "https://i.example.org/board", "protocol": "mhtml", "ext": "mhtml"},
          {"format_id": "http-2176", "url": "https://video.twimg.com/a/vid/avc1/720x1280/v.mp4", "protocol": "https",
           "ext": "mp4", "tbr": 2176.5}]}"#;

    #[test]
    fn files_with_sound_come_before_the_one_playlist() {
        let post = part(VIDEO);
        assert!(post.sensitive);
        assert_eq!((post.author.handle.as_str(), post.text.as_str()), ("ann", "hi"));
        let video = &post.media[0];
        assert_eq!(video.duration, Some(Duration::from_millis(10_704)));
        let facts: Vec<_> =
            video.variants.iter().map(|v| (v.url.as_str(), v.container, v.bit_rate)).collect();
        assert_eq!(
            facts,
            [
                ("https://video.twimg.com/a/vid/avc1/720x1280/v.mp4", Container::Mp4, Some(2_176_500)),
                ("https://video.twimg.com/a/vid/avc1/320x568/v.mp4", Container::Mp4, Some(632_000)),
                ("https://video.twimg.com/a/pl/all.m3u8", Container::Hls, None),
            ]
        );
        assert_eq!(video.variants[0].size, Some(PixelSize { width: 720, height: 1280 }));
    }

    #[test]
    fn a_silent_video_is_whole_when_there_is_no_sound() {
        let post = part(
            r#"{"formats": [{"url": "https://video.twimg.com/tweet_video/g.mp4", "protocol": "https", "ext": "mp4",
            "acodec": "none"}]}"#,
        );
        assert_eq!(post.media[0].kind, MediumKind::Gif);
    }

    #[test]
    fn a_playlist_gives_its_entries_in_order() {
        let second = r#"{"url": "https://video.twimg.com/b.mp4", "protocol": "https", "ext": "mp4"}"#;
        let post = part(&format!(
            r#"{{"_type": "playlist", "uploader": "Ann", "entries": [{VIDEO}, null, {second}]}}"#
        ));
        let facts: Vec<_> = post
            .media
            .iter()
            .map(|m| (m.index.get(), m.variants[0].url.rsplit('/').next().unwrap()))
            .collect();
        assert_eq!(facts, [(1, "v.mp4"), (3, "b.mp4")]);
        assert!(post.sensitive);
    }

    #[test]
    fn lists_without_end_end() {
        let mut json = VIDEO.to_owned();
        for _ in 0..40 {
            json = format!(r#"{{"_type": "playlist", "entries": [{json}, {VIDEO}]}}"#);
        }
        assert!(part(&json).media.len() <= 4);
    }

    #[test]
    fn nothing_usable_is_unclear_and_no_document_is_ours() {
        assert_eq!(failure("null"), "unclear");
        assert_eq!(failure("{}"), "unclear");
        assert_eq!(failure(r#"{"_type": "playlist", "entries": []}"#), "unclear");
        assert_eq!(failure("usage: yt-dlp"), "ours");
        assert_eq!(failure(""), "ours");
        assert_eq!(failure("{}\n{}"), "ours");
    }
}
