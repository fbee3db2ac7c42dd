//! What X gives to pages that embed a post. It leaves sensitive posts out and can be empty for no reason.

use futures_util::future::BoxFuture;
use serde::Deserialize;

use crate::domain::{Container, GoneReason, MediumKind, Post, PostId, Variant};
use crate::http::Http;
use crate::source::draft::{Draft, Shown, size};
use crate::source::failure::{SourceFailure, Weight};
use crate::source::web::Web;
use crate::source::wire::{Amount, Lax, Places, Text};
use crate::source::{Source, SourceName, SourceSettingsError, WebSourceSettings, address};

mod token;

/// Asks X's syndication.
#[derive(Debug)]
pub(super) struct Syndication(Web);

impl Syndication {
    pub(super) fn new(settings: &WebSourceSettings, http: Http) -> Result<Self, SourceSettingsError> {
        Web::new(SourceName::Syndication, settings, http).map(Self)
    }

    async fn ask(&self, id: PostId) -> Result<Post, SourceFailure> {
        let path = format!("/tweet-result?id={}&token={}", id.number(), token::token(id.number()));
        let told = self.0.ask(&path, None).await?;
        match told.status {
            404 | 410 => Err(SourceFailure::Gone { reason: GoneReason::NotFound, weight: Weight::Witness }),
            401 => Err(SourceFailure::transient("it answered with status 401")),
            _ => told.read::<Tweet>()?.into_post(id),
        }
    }
}

impl Source for Syndication {
    fn name(&self) -> SourceName {
        SourceName::Syndication
    }

    fn fetch(&self, post: PostId) -> BoxFuture<'_, Result<Post, SourceFailure>> {
        Box::pin(self.ask(post))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tweet {
    #[serde(rename = "__typename")]
    type_name: Lax<String>,
    tombstone: Lax<Tombstone>,
    id_str: Lax<Text>,
    text: Lax<String>,
    user: Lax<User>,
    possibly_sensitive: Lax<bool>,
    #[serde(rename = "mediaDetails")]
    media: Places<Media>,
    #[serde(rename = "quoted_tweet")]
    quoted: Lax<Option<Box<Tweet>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tombstone {
    text: Lax<TombstoneText>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TombstoneText {
    text: Lax<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct User {
    name: Lax<String>,
    screen_name: Lax<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Media {
    #[serde(rename = "type")]
    kind: Lax<String>,
    #[serde(rename = "media_url_https")]
    picture: Lax<String>,
    #[serde(rename = "ext_alt_text")]
    alt: Lax<String>,
    #[serde(rename = "original_info")]
    original: Lax<Size>,
    #[serde(rename = "video_info")]
    video: Lax<VideoInfo>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Size {
    width: Lax<Option<Amount>>,
    height: Lax<Option<Amount>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VideoInfo {
    duration_millis: Lax<Option<Amount>>,
    variants: Places<Format>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Format {
    url: Lax<String>,
    bitrate: Lax<Option<Amount>>,
    content_type: Lax<String>,
}

impl Tweet {
    fn into_post(self, id: PostId) -> Result<Post, SourceFailure> {
        if self.type_name.0 == "TweetTombstone" {
            return Err(super::failure::tombstone(&self.tombstone.0.text.0.text.0, Weight::Witness));
        }
        if self.id_str.0.0.is_empty() {
            // It gives an empty object now and then, and the post the next time.
            return Err(SourceFailure::transient("its answer holds no post"));
        }
        let user = &self.user.0;
        let mut draft = Draft::new(id, &user.name.0, &user.screen_name.0, &unescaped(&self.text.0));
        draft.mark_sensitive(self.possibly_sensitive.0);
        draft.add(id, self.shown());
        if let Some(quoted) = self.quoted.0
            && let Ok(owner) = PostId::x(&quoted.id_str.0.0)
            && owner != id
        {
            let shown = quoted.shown();
            draft.mark_sensitive(quoted.possibly_sensitive.0 && !shown.is_empty());
            draft.quote(owner, &quoted.user.0.name.0, &quoted.user.0.screen_name.0);
            draft.add(owner, shown);
        }
        draft.finish()
    }

    fn shown(&self) -> Vec<Option<Shown>> {
        self.media.0.iter().map(|media| media.as_ref().and_then(Media::shown)).collect()
    }
}

impl Media {
    fn shown(&self) -> Option<Shown> {
        let kind = match self.kind.0.as_str() {
            "photo" => MediumKind::Photo,
            "video" => MediumKind::Video,
            "animated_gif" => MediumKind::Gif,
            _ => return None,
        };
        let pixels = |side: Option<Amount>| side.and_then(Amount::pixels);
        let size = size(pixels(self.original.0.width.0), pixels(self.original.0.height.0));
        let variants = if kind == MediumKind::Photo {
            address::photo(&self.picture.0, size)
        } else {
            self.video.0.variants.readable().filter_map(Format::variant).collect()
        };
        let duration = self.video.0.duration_millis.0.and_then(|millis| millis.time(0.001));
        Some(Shown { kind, alt: self.alt.0.clone(), duration, size, variants })
    }
}

impl Format {
    fn variant(&self) -> Option<Variant> {
        let mut variant = address::video(&self.url.0)?;
        match self.content_type.0.as_str() {
            "video/mp4" => variant.container = Container::Mp4,
            "application/x-mpegURL" => variant.container = Container::Hls,
            _ => {}
        }
        variant.bit_rate = self.bitrate.0.and_then(Amount::whole);
        Some(variant)
    }
}

/// `text` with the three characters that X escapes; `&` last, so that nothing is unescaped twice.
fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::PixelSize;

    fn read(json: &str) -> Result<Post, SourceFailure> {
        serde_json::from_str::<Tweet>(json).unwrap().into_post(PostId::x("20").unwrap())
    }

    #[test]
    fn media_come_with_their_variants_and_words_unescaped() {
        let post = read(
            r#"{"__typename": "Tweet", "id_str": "20", "text": "a &lt;b&gt; &amp;lt; https://t.co/x",
            "user": {"name": "Ann", "screen_name": "ann"}, "possibly_sensitive": false, "mediaDetails": [
              {"type": "video", "media_url_https": "https://pbs.twimg.com/thumb.jpg", "ext_alt_text": "a cat",
               "original_info": {"width": 720, "height": 1280}, "video_info": {"duration_millis": 10704,
               "variants": [
                 {"content_type": "application/x-mpegURL", "url": "https://video.twimg.com/1/pl/a.m3u8"},
                 {"bitrate": 632000, "content_type": "video/mp4", "url": "https://video.twimg.com/1/vid/320x568/a.mp4"},
                 {"bitrate": 2176000, "content_type": "video/mp4", "url": "https://video.twimg.com/1/vid/720x1280/a.mp4"}]}},
              {"type": "photo", "media_url_https": "https://pbs.twimg.com/media/A.jpg"}],
            "quoted_tweet": {"id_str": "19", "user": {"screen_name": "bob"}, "mediaDetails": [
              {"type": "animated_gif", "video_info": {"variants": [
                 {"bitrate": 0, "content_type": "video/mp4", "url": "https://video.twimg.com/tweet_video/g.mp4"}]}}]}}"#,
        )
        .unwrap();
        assert_eq!(post.text, "a <b> &lt;");
        assert_eq!(post.author_of(&post.media[2]).unwrap().handle, "bob");
        let video = &post.media[0];
        assert_eq!(
            (video.alt.as_deref(), video.duration),
            (Some("a cat"), Some(Duration::from_millis(10_704)))
        );
        let rates: Vec<_> = video.variants.iter().map(|v| (v.container, v.bit_rate)).collect();
        assert_eq!(
            rates,
            [(Container::Mp4, Some(2_176_000)), (Container::Mp4, Some(632_000)), (Container::Hls, None)]
        );
        assert_eq!(video.variants[1].size, Some(PixelSize { width: 320, height: 568 }));
        assert!(video.variants.iter().all(|v| !v.url.contains("thumb")), "the thumbnail is not the post");
        assert_eq!(post.media[1].variants[0].url, "https://pbs.twimg.com/media/A.jpg?name=orig");
        assert_eq!((post.media[2].kind, post.media[2].post.number()), (MediumKind::Gif, 19));
        assert_eq!(post.media[2].variants[0].bit_rate, None);
    }

    #[test]
    fn an_empty_answer_is_transient() {
        assert!(matches!(read("{}"), Err(SourceFailure::Transient { .. })));
    }

    #[test]
    fn a_tombstone_is_a_witness() {
        let said = |text: &str| {
            read(&format!(
                r#"{{"__typename": "TweetTombstone", "tombstone": {{"text": {{"text": "{text}"}}}}}}"#
            ))
        };
        let gone = |reason| Err(SourceFailure::Gone { reason, weight: Weight::Witness });
        assert_eq!(said("This Post was deleted by the Post author. Learn more"), gone(GoneReason::Deleted));
        assert_eq!(said("This Post is from a suspended account. Learn more"), gone(GoneReason::Suspended));
        assert_eq!(said("Age-restricted adult content. This content might"), Err(SourceFailure::Sensitive));
        assert!(matches!(said(""), Err(SourceFailure::Unclear { .. })));
    }
}
