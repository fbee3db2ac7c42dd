//! FxTwitter's API: version 2, which says why a post cannot be shown, and version 1 when that gives no answer.

use futures_util::future::BoxFuture;
use serde::Deserialize;

use crate::domain::{Container, GoneReason, MediumKind, Post, PostId, Variant};
use crate::http::Http;
use crate::source::draft::{Draft, Shown, size};
use crate::source::failure::{SourceFailure, Weight};
use crate::source::web::{Told, Web};
use crate::source::wire::{Amount, Lax, Places, Text};
use crate::source::{Source, SourceName, SourceSettingsError, WebSourceSettings, address};

/// Asks FxTwitter.
#[derive(Debug)]
pub(super) struct FxTwitter(Web);

impl FxTwitter {
    pub(super) fn new(settings: &WebSourceSettings, http: Http) -> Result<Self, SourceSettingsError> {
        Web::new(SourceName::FxTwitter, settings, http).map(Self)
    }

    async fn ask(&self, id: PostId) -> Result<Post, SourceFailure> {
        let deadline = self.0.deadline();
        let second = match self.0.ask(&format!("/2/status/{}", id.number()), deadline).await {
            Ok(told) => read(&told, id),
            Err(failure) => Err(failure),
        };
        if !second.as_ref().is_err_and(asks_version_one) {
            return second;
        }
        let first = match self.0.ask(&format!("/i/status/{}", id.number()), deadline).await {
            Ok(told) => read(&told, id),
            Err(failure) => Err(failure),
        };
        match (first, second) {
            // The older version knows less: where it is at a loss, what the newer one said stands.
            (Err(SourceFailure::Unclear { .. }), second) => second,
            (first, _) => first,
        }
    }
}

impl Source for FxTwitter {
    fn name(&self) -> SourceName {
        SourceName::FxTwitter
    }

    fn fetch(&self, post: PostId) -> BoxFuture<'_, Result<Post, SourceFailure>> {
        Box::pin(self.ask(post))
    }
}

/// Whether what version 2 said can be a matter of that version: an older server does not know it.
fn asks_version_one(failure: &SourceFailure) -> bool {
    match failure {
        SourceFailure::Gone { weight: Weight::Witness, .. } | SourceFailure::Unclear { .. } => true,
        // A server that wants to be left alone is left alone.
        SourceFailure::Transient { retry_after, .. } => retry_after.is_none(),
        _ => false,
    }
}

fn read(told: &Told, id: PostId) -> Result<Post, SourceFailure> {
    let envelope: Envelope = match told.read() {
        Ok(envelope) => envelope,
        Err(_) if !told.is_success() => {
            return Err(SourceFailure::unclear(format!("it answered with status {}", told.status)));
        }
        Err(failure) => return Err(failure),
    };
    envelope.into_post(told.status, id)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Envelope {
    code: Lax<Option<Amount>>,
    message: Lax<String>,
    /// Version 2.
    status: Lax<Option<Status>>,
    /// Version 1.
    tweet: Lax<Option<Status>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(rename = "type")]
    kind: Lax<String>,
    reason: Lax<String>,
    id: Lax<Text>,
    text: Lax<String>,
    author: Lax<Author>,
    possibly_sensitive: Lax<bool>,
    media: Lax<MediaLists>,
    quote: Lax<Option<Box<Status>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Author {
    name: Lax<String>,
    screen_name: Lax<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MediaLists {
    all: Places<Media>,
    photos: Places<Media>,
    videos: Places<Media>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Media {
    #[serde(rename = "type")]
    kind: Lax<String>,
    url: Lax<String>,
    width: Lax<Option<Amount>>,
    height: Lax<Option<Amount>>,
    #[serde(rename = "altText")]
    alt: Lax<String>,
    duration: Lax<Option<Amount>>,
    formats: Places<Format>,
    variants: Places<Format>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Format {
    url: Lax<String>,
    bitrate: Lax<Option<Amount>>,
    container: Lax<String>,
    content_type: Lax<String>,
    codec: Lax<String>,
    size: Lax<Option<Amount>>,
    width: Lax<Option<Amount>>,
    height: Lax<Option<Amount>>,
}

impl Envelope {
    fn into_post(self, http_status: u16, id: PostId) -> Result<Post, SourceFailure> {
        let told = self.code.0.and_then(Amount::whole);
        let code = told.unwrap_or_else(|| u64::from(http_status));
        if let Some(status) = self.status.0.or(self.tweet.0) {
            return if status.kind.0 == "tombstone" { Err(status.tombstone()) } else { status.into_post(id) };
        }
        let message = self.message.0.as_str();
        Err(match (code, message) {
            (401, "PRIVATE_TWEET") => SourceFailure::NeedsLogin(Weight::Authority),
            // It says no more than that it does not find the post, and it has said so of posts that are there.
            (404, "NOT_FOUND") => {
                SourceFailure::Gone { reason: GoneReason::NotFound, weight: Weight::Witness }
            }
            // A request without a name of its program gets this without a code: no word about the post.
            (401, _) if told.is_none() => SourceFailure::ours("it refuses this program (status 401)"),
            (404 | 410, _) => SourceFailure::unclear(format!("it answered with code {code}")),
            (200, _) => SourceFailure::unclear("its answer holds no post"),
            _ => SourceFailure::transient(format!("it answered with code {code}")),
        })
    }
}

impl Status {
    fn tombstone(&self) -> SourceFailure {
        let gone = |reason| SourceFailure::Gone { reason, weight: Weight::Authority };
        match self.reason.0.as_str() {
            "deleted" => gone(GoneReason::Deleted),
            "suspended" => gone(GoneReason::Suspended),
            "private" => SourceFailure::NeedsLogin(Weight::Authority),
            // The account that FxTwitter uses is blocked; others may see it.
            "blocked" => SourceFailure::NeedsLogin(Weight::Witness),
            _ => SourceFailure::unclear("it says that the post is unavailable"),
        }
    }

    fn into_post(self, id: PostId) -> Result<Post, SourceFailure> {
        let author = &self.author.0;
        if self.id.0.0.is_empty() && author.screen_name.0.is_empty() {
            return Err(SourceFailure::unclear("its answer holds no post"));
        }
        let mut draft = Draft::new(id, &author.name.0, &author.screen_name.0, &self.text.0);
        draft.mark_sensitive(self.possibly_sensitive.0);
        draft.add(id, self.media.0.shown());
        if let Some(quote) = self.quote.0
            && let Ok(owner) = PostId::x(&quote.id.0.0)
            && owner != id
        {
            let shown = quote.media.0.shown();
            draft.mark_sensitive(quote.possibly_sensitive.0 && !shown.is_empty());
            draft.quote(owner, &quote.author.0.name.0, &quote.author.0.screen_name.0);
            draft.add(owner, shown);
        }
        draft.finish()
    }
}

impl MediaLists {
    fn shown(&self) -> Vec<Option<Shown>> {
        let listed = if self.all.is_empty() {
            // Only the list of all tells the order between photos and videos.
            self.photos.0.iter().chain(&self.videos.0).collect::<Vec<_>>()
        } else {
            self.all.0.iter().collect()
        };
        listed.into_iter().map(|media| media.as_ref().and_then(Media::shown)).collect()
    }
}

impl Media {
    fn shown(&self) -> Option<Shown> {
        let size = size(pixels(self.width.0), pixels(self.height.0));
        let kind = match self.kind.0.as_str() {
            "photo" => MediumKind::Photo,
            "video" => MediumKind::Video,
            "gif" => MediumKind::Gif,
            _ => return None,
        };
        let variants = if kind == MediumKind::Photo {
            address::photo(&self.url.0, size)
        } else {
            let listed = if self.formats.is_empty() { &self.variants } else { &self.formats };
            let mut variants: Vec<Variant> = listed.readable().filter_map(Format::variant).collect();
            if let Some(main) = address::video(&self.url.0)
                && variants.iter().all(|variant| variant.url != main.url)
            {
                variants.insert(0, main);
            }
            variants
        };
        let duration = self.duration.0.and_then(|seconds| seconds.time(1.0));
        Some(Shown { kind, alt: self.alt.0.clone(), duration, size, variants })
    }
}

impl Format {
    fn variant(&self) -> Option<Variant> {
        let told = address::video(&self.url.0)?;
        let container = match (self.container.0.as_str(), self.content_type.0.as_str()) {
            ("mp4", _) | (_, "video/mp4") => Container::Mp4,
            ("webm", _) | (_, "video/webm") => Container::WebM,
            ("m3u8", _) | (_, "application/x-mpegURL") => Container::Hls,
            _ => told.container,
        };
        Some(Variant {
            container,
            codec: address::codec(&self.codec.0).or(told.codec),
            bit_rate: self.bitrate.0.and_then(Amount::whole),
            size: size(pixels(self.width.0), pixels(self.height.0)).or(told.size),
            bytes: self.size.0.and_then(Amount::whole),
            url: told.url,
        })
    }
}

fn pixels(side: Option<Amount>) -> Option<u32> {
    side.and_then(Amount::pixels)
}

#[cfg(test)]
mod tests;
