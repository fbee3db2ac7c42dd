//! VxTwitter's API.
//!
//! It gives one file for each video, the largest that plays everywhere, and an empty address when there is none. It
//! answers an outage, a private and a deleted post alike, with an HTML page and status 200, so its word never proves
//! that a post is gone.

use futures_util::future::BoxFuture;
use serde::Deserialize;

use crate::domain::{MediumKind, Post, PostId};
use crate::http::Http;
use crate::source::draft::{Draft, Shown, size};
use crate::source::failure::SourceFailure;
use crate::source::web::Web;
use crate::source::wire::{Amount, Lax, Places, Text};
use crate::source::{Source, SourceName, SourceSettingsError, WebSourceSettings, address};

/// Asks VxTwitter.
#[derive(Debug)]
pub(super) struct VxTwitter(Web);

impl VxTwitter {
    pub(super) fn new(settings: &WebSourceSettings, http: Http) -> Result<Self, SourceSettingsError> {
        Web::new(SourceName::VxTwitter, settings, http).map(Self)
    }

    async fn ask(&self, id: PostId) -> Result<Post, SourceFailure> {
        let told = self.0.ask(&format!("/i/status/{}", id.number()), None).await?;
        if !told.is_success() {
            return Err(SourceFailure::unclear(format!("it answered with status {}", told.status)));
        }
        told.read::<Tweet>()?.into_post(id)
    }
}

impl Source for VxTwitter {
    fn name(&self) -> SourceName {
        SourceName::VxTwitter
    }

    fn fetch(&self, post: PostId) -> BoxFuture<'_, Result<Post, SourceFailure>> {
        Box::pin(self.ask(post))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tweet {
    #[serde(rename = "tweetID")]
    id: Lax<Text>,
    user_name: Lax<String>,
    user_screen_name: Lax<String>,
    text: Lax<String>,
    possibly_sensitive: Lax<bool>,
    media_extended: Places<Media>,
    #[serde(rename = "mediaURLs")]
    media_urls: Places<String>,
    #[serde(rename = "qrt")]
    quoted: Lax<Option<Box<Tweet>>>,
    #[serde(rename = "retweet")]
    repeated: Lax<Option<Box<Tweet>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Media {
    url: Lax<String>,
    #[serde(rename = "type")]
    kind: Lax<String>,
    size: Lax<Size>,
    duration_millis: Lax<Option<Amount>>,
    #[serde(rename = "altText")]
    alt: Lax<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Size {
    width: Lax<Option<Amount>>,
    height: Lax<Option<Amount>>,
}

impl Tweet {
    fn into_post(self, id: PostId) -> Result<Post, SourceFailure> {
        if self.id.0.0.is_empty() && self.user_screen_name.0.is_empty() {
            return Err(SourceFailure::transient("its answer holds no post"));
        }
        let mut draft = Draft::new(id, &self.user_name.0, &self.user_screen_name.0, &self.text.0);
        draft.mark_sensitive(self.possibly_sensitive.0);
        draft.add(id, self.shown());
        for other in [self.quoted.0, self.repeated.0].into_iter().flatten() {
            let Ok(owner) = PostId::x(&other.id.0.0) else { continue };
            let shown = other.shown();
            draft.mark_sensitive(other.possibly_sensitive.0 && !shown.is_empty());
            if owner != id {
                draft.quote(owner, &other.user_name.0, &other.user_screen_name.0);
                draft.add(owner, shown);
            }
        }
        draft.finish()
    }

    fn shown(&self) -> Vec<Option<Shown>> {
        if self.media_extended.is_empty() {
            // What the list of addresses alone tells: enough not to take the post for one without media.
            return self.media_urls.0.iter().map(|url| url.as_deref().and_then(bare)).collect();
        }
        let media = self.media_extended.0.iter();
        // Texts are listed only when asked for, and are no media.
        let media =
            media.filter(|media| !media.as_ref().is_some_and(|m| matches!(m.kind.0.as_str(), "txt" | "rtf")));
        media.map(|media| media.as_ref().and_then(Media::shown)).collect()
    }
}

impl Media {
    fn shown(&self) -> Option<Shown> {
        let kind = match self.kind.0.as_str() {
            "image" => MediumKind::Photo,
            "video" => MediumKind::Video,
            "gif" => MediumKind::Gif,
            _ => return None,
        };
        let pixels = |side: Option<Amount>| side.and_then(Amount::pixels);
        let size = size(pixels(self.size.0.width.0), pixels(self.size.0.height.0));
        let variants = if kind == MediumKind::Photo {
            address::photo(&self.url.0, size)
        } else {
            address::video(&self.url.0).into_iter().collect()
        };
        let duration = self.duration_millis.0.and_then(|millis| millis.time(0.001));
        Some(Shown { kind, alt: self.alt.0.clone(), duration, size, variants })
    }
}

/// A medium of which only the address is known.
fn bare(url: &str) -> Option<Shown> {
    use crate::domain::Container;
    let variant = address::video(url)?;
    let kind = match variant.container {
        Container::Image => MediumKind::Photo,
        Container::Mp4 | Container::WebM if address::is_loop(url) => MediumKind::Gif,
        Container::Mp4 | Container::WebM => MediumKind::Video,
        Container::Hls | Container::Other => return None,
    };
    let variants = if kind == MediumKind::Photo { address::photo(url, None) } else { vec![variant] };
    Some(Shown { kind, alt: String::new(), duration: None, size: None, variants })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::{Codec, PixelSize};

    fn read(json: &str) -> Result<Post, SourceFailure> {
        serde_json::from_str::<Tweet>(json).unwrap().into_post(PostId::x("20").unwrap())
    }

    #[test]
    fn every_medium_is_kept_in_order_with_its_description() {
        let post = read(
            r#"{"tweetID": "20", "user_name": "Ann", "user_screen_name": "ann", "text": "hi https://t.co/a",
            "lang": null, "likes": "many", "possibly_sensitive": true, "hasMedia": true,
            "mediaURLs": ["https://pbs.twimg.com/media/A.jpg"],
            "media_extended": [
              {"url": "https://pbs.twimg.com/media/A.jpg", "type": "image", "altText": "a cat",
               "size": {"width": 1200, "height": 800}},
              {"url": "https://video.twimg.com/amplify_video/1/vid/avc1/1280x720/v.mp4", "type": "video",
               "altText": null, "duration_millis": 10704, "size": {"width": 1280, "height": 720}},
              {"url": "https://video.twimg.com/tweet_video/g.mp4", "type": "gif", "duration_millis": 0,
               "size": {"width": 480, "height": 270}}],
            "qrt": {"tweetID": "19", "user_screen_name": "bob", "possibly_sensitive": false, "media_extended": [
              {"url": "https://video.twimg.com/q.mp4", "type": "video", "size": {}}]}}"#,
        )
        .unwrap();
        assert_eq!((post.author.name.as_str(), post.author.handle.as_str()), ("Ann", "ann"));
        assert_eq!(post.text, "hi");
        assert!(post.sensitive);
        let kinds: Vec<MediumKind> = post.media.iter().map(|medium| medium.kind).collect();
        use MediumKind::{Gif, Photo, Video};
        assert_eq!(kinds, [Photo, Video, Gif, Video]);
        assert_eq!(post.media[0].alt.as_deref(), Some("a cat"));
        assert_eq!(post.media[0].variants[0].url, "https://pbs.twimg.com/media/A.jpg?name=orig");
        assert_eq!(post.media[1].duration, Some(Duration::from_millis(10_704)));
        assert_eq!(post.media[1].variants[0].codec, Some(Codec::H264));
        assert_eq!(post.media[1].variants[0].size, Some(PixelSize { width: 1280, height: 720 }));
        assert_eq!((post.media[2].alt.as_deref(), post.media[2].duration), (None, None));
        assert_eq!(post.media[3].post.number(), 19);
        assert_eq!(post.author_of(&post.media[3]).unwrap().handle, "bob");
        assert_eq!(post.answer().count(), 3);
    }

    #[test]
    fn a_video_with_an_empty_address_makes_the_answer_a_part() {
        let json = r#"{"tweetID": "20", "media_extended": [
            {"url": "", "type": "video", "size": {"width": 1, "height": 1}},
            {"url": "https://pbs.twimg.com/media/A.jpg", "type": "image"}]}"#;
        let Err(SourceFailure::Partial(post)) = read(json) else { panic!("it is a part") };
        assert_eq!(post.media.len(), 1);
        assert_eq!(post.media[0].index.get(), 2);
    }

    #[test]
    fn a_sensitive_quote_makes_the_post_sensitive() {
        let post = read(
            r#"{"tweetID": "20", "possibly_sensitive": false, "media_extended": [],
            "qrt": {"tweetID": "19", "possibly_sensitive": true, "media_extended": [
              {"url": "https://video.twimg.com/q.mp4", "type": "video"}]}}"#,
        )
        .unwrap();
        assert!(post.sensitive);
        assert_eq!(post.answer().count(), 1);
    }

    #[test]
    fn a_list_of_addresses_alone_is_enough() {
        let post = read(
            r#"{"tweetID": "20", "mediaURLs": ["https://pbs.twimg.com/media/A.jpg", "https://video.twimg.com/v.mp4"]}"#,
        )
        .unwrap();
        assert_eq!(
            post.media.iter().map(|m| m.kind).collect::<Vec<_>>(),
            [MediumKind::Photo, MediumKind::Video]
        );
    }

    #[test]
    fn no_media_is_an_answer_and_no_post_is_none() {
        assert_eq!(
            read(r#"{"tweetID": "20", "hasMedia": false, "media_extended": []}"#),
            Err(SourceFailure::NoMedia)
        );
        assert!(matches!(read("{}"), Err(SourceFailure::Transient { .. })));
    }
}
