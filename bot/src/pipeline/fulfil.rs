//! From a request to a delivery, once: resolve, download and optimize, deliver.

use std::num::NonZeroU8;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::clock::instant;
use crate::dedup::{Delivered, Ended};
use crate::domain::{
    ArtifactKey, Disposition, Edits, Failure, LimitClass, MediaChoice, Medium, MediumKind, Post, PostId,
    Request, Stage,
};
use crate::guard::audience::{self, Audience};
use crate::metrics::Counter;
use crate::pipeline::activity::Activity;
use crate::pipeline::delivery::{Parcel, ParcelFile};
use crate::pipeline::optimize::{Made, Order, PROFILE};
use crate::pipeline::posting::Posting;
use crate::pipeline::worker::Worker;

impl Worker {
    /// From a request to a delivery, once, without claims and without another attempt.
    ///
    /// `cancel` ends the work until a delivery is begun: what a front end has begun to post it ends, and takes back where
    /// it finds that the request was. `stop` ends that too, wherever it is.
    ///
    /// # Errors
    /// What a stage failed with.
    pub async fn fulfil(
        &self,
        request: &Request,
        posting: &Posting,
        activity: &Activity,
        cancel: &CancellationToken,
        stop: &CancellationToken,
    ) -> Ended {
        let making = async {
            self.begin(request, Stage::Resolve, activity);
            self.delivery.learn(&request.destination).await;
            let post = self.resolve(request).await?;
            let whole = posting.attempt() < PARTS_FROM;
            let mut parcel = self.prepare(request, &post, whole, activity, cancel).await;
            // Addresses of media change: what is remembered of the post may be old.
            if lacks_files(&parcel)
                && let Some(renewed) = self.renew(request).await
            {
                parcel = self.prepare(request, &renewed, whole, activity, cancel).await;
            }
            parcel
        };
        let parcel = unless(cancel, request, making).await?;
        self.begin(request, Stage::Upload, activity);
        unless(stop, request, self.deliver(request, parcel, posting)).await
    }

    fn begin(&self, request: &Request, stage: Stage, activity: &Activity) {
        activity.begin(stage);
        self.delivery.progress(request, stage, activity.sight());
    }

    async fn resolve(&self, request: &Request) -> Result<Arc<Post>, Failure> {
        let begun = instant();
        let resolved = timeout(self.settings.resolve_timeout, self.resolver.resolve(request.post())).await;
        let result = resolved.unwrap_or(Err(Failure::TimedOut { stage: Stage::Resolve }));
        match &result {
            Ok(_) => self.tracker.stage(Stage::Resolve, instant().saturating_duration_since(begun)),
            Err(failure) => self.tracker.failure(Stage::Resolve, failure.code()),
        }
        result
    }

    /// The post as it is now, unless what is known of it is new.
    async fn renew(&self, request: &Request) -> Option<Arc<Post>> {
        let renewed = timeout(self.settings.resolve_timeout, self.resolver.renew(request.post()));
        // What goes wrong here says nothing about the media that were missing.
        renewed.await.ok().flatten()?.ok()
    }

    /// Makes the files that are wanted; those of the post that cannot be had are named. As long as it should be `whole`,
    /// one that may be had later is a reason to try again.
    async fn prepare(
        &self,
        request: &Request,
        post: &Post,
        whole: bool,
        activity: &Activity,
        cancel: &CancellationToken,
    ) -> Result<Parcel, Failure> {
        let wanted = wanted(post, request.choice(), request.options.quoted);
        if wanted.is_empty() {
            return Err(Failure::NoMedia);
        }
        let content = audience::Content { sensitive: post.sensitive, spoiler_wished: request.spoiler() };
        let place = self.delivery.place(&request.destination);
        let policy = audience::stricter(self.settings.sensitive, self.delivery.policy(&request.destination));
        let spoiler = match audience::judge(policy, content, place) {
            Audience::Deliver { spoiler } => spoiler,
            Audience::Refuse(_) => return Err(Failure::Sensitive),
        };
        self.begin(request, Stage::Download, activity);
        let limit = self.delivery.limit(&request.destination);
        let edits = request.options.edits;
        activity.parts(wanted.len());
        let making: Vec<_> = wanted
            .iter()
            .enumerate()
            .map(|(part, medium)| self.make(post.id, medium, edits, limit, activity.part(part), cancel))
            .collect();
        let made: Vec<Result<Arc<Made>, Failure>> =
            stream::iter(making).buffered(self.settings.at_once.max(1)).collect().await;
        let (mut files, mut missing) = (Vec::new(), Vec::new());
        for (medium, made) in wanted.iter().zip(made) {
            match made {
                Ok(made) => files.push(ParcelFile {
                    name: file_name(post, medium, &made),
                    kind: medium.kind,
                    alt: medium.alt.clone(),
                    quoted: medium.is_quoted(post.id),
                    made,
                }),
                // One that may work later is worth another attempt; those that are made by then are kept.
                Err(failure) if whole && matches!(failure.disposition(), Disposition::Retry(_)) => {
                    return Err(failure);
                }
                Err(Failure::Cancelled) => return Err(Failure::Cancelled),
                Err(failure) => missing.push(failure),
            }
        }
        if files.is_empty() {
            // Where one of them may be had later, that is worth more than to know why another cannot.
            let later = |failure: &Failure| matches!(failure.disposition(), Disposition::Retry(_));
            let first = missing.iter().position(later).unwrap_or_default();
            return Err(missing.into_iter().nth(first).unwrap_or(Failure::NoMedia));
        }
        let (author, text) = (post.author.clone(), post.text.clone());
        Ok(Parcel { post: post.id, author, text, spoiler, files, missing })
    }

    fn make<'a>(
        &'a self,
        post: PostId,
        medium: &'a Medium,
        edits: Edits,
        limit: LimitClass,
        activity: Activity,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Arc<Made>, Failure>> {
        let edits = edits_for(medium.kind, edits);
        let asked = post;
        let key = ArtifactKey { post: medium.post, medium: medium.index, edits, limit, profile: PROFILE };
        let order = Order { key, medium, activity };
        async move {
            let begun = instant();
            let made = self.optimizer.make(&order, cancel).await;
            order.activity.made(1.0);
            let took = instant().saturating_duration_since(begun);
            let what = match &made {
                Ok(made) => made.facts.action.as_str(),
                Err(failure) => failure.code(),
            };
            let place = order.medium.index.get();
            self.tracker.note(asked, self.clock.now(), format!("medium {place}: {what}"), Some(took));
            made
        }
        .boxed()
    }

    async fn deliver(
        &self,
        request: &Request,
        parcel: Parcel,
        posting: &Posting,
    ) -> Result<Delivered, Failure> {
        let bytes = parcel.files.iter().map(|file| file.made.facts.bytes).sum();
        let begun = instant();
        let delivered =
            timeout(self.settings.upload_timeout, self.delivery.deliver(request, parcel, posting)).await;
        let result = delivered.unwrap_or(Err(Failure::TimedOut { stage: Stage::Upload }));
        let what = result.as_ref().map_or_else(Failure::code, |_| "done");
        let took = instant().saturating_duration_since(begun);
        self.tracker.note(request.post(), self.clock.now(), format!("posting it: {what}"), Some(took));
        match &result {
            Ok(_) => {
                self.tracker.stage(Stage::Upload, instant().saturating_duration_since(begun));
                self.tracker.count(Counter::UploadBytes, bytes);
            }
            Err(failure) => self.tracker.failure(Stage::Upload, failure.code()),
        }
        result
    }
}

/// Does some work, unless it is cancelled. A panic in it is a failure.
async fn unless<T>(
    cancel: &CancellationToken,
    request: &Request,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    // What a job works with is its own, or whole after each of its steps: nothing half done is seen by others.
    let work = AssertUnwindSafe(work).catch_unwind();
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Failure::Cancelled),
        ended = work => ended.unwrap_or_else(|_| {
            tracing::error!(request = %request.id, "a fault in the program ended the work on a request");
            Err(Failure::ours("a fault in the program ended the work on it"))
        }),
    }
}

/// From this attempt on, what can be had of a post is delivered, and the rest is named.
const PARTS_FROM: u32 = 3;

/// Whether files are missing that may stand elsewhere by now.
fn lacks_files(parcel: &Result<Parcel, Failure>) -> bool {
    let lacks = |failure: &Failure| matches!(failure, Failure::Missing { .. });
    match parcel {
        Ok(parcel) => parcel.missing.iter().any(lacks),
        Err(failure) => lacks(failure),
    }
}

/// The media that a choice means, of the post alone or of what it quotes too. A place that the post does not have means all of them: better too much than an
/// answer about numbers.
pub(super) fn wanted(post: &Post, choice: Option<MediaChoice>, quoted: bool) -> Vec<&Medium> {
    let all: Vec<&Medium> = if quoted { post.media.iter().collect() } else { post.answer().collect() };
    let place = |place: NonZeroU8| usize::from(place.get()) - 1;
    let chosen = match choice {
        Some(MediaChoice::Photo(position) | MediaChoice::Video(position)) => all.get(place(position)),
        None => None,
    };
    chosen.map_or(all.clone(), |medium| vec![*medium])
}

/// What edits mean for a medium of this kind: a still picture has no part and no sound.
fn edits_for(kind: MediumKind, edits: Edits) -> Edits {
    match kind {
        MediumKind::Photo => Edits::default(),
        MediumKind::Video | MediumKind::Gif => edits,
    }
}

/// A name that says where the file is from: `handle-1234567890-1.mp4`, with the handle of the post that has it.
pub(super) fn file_name(post: &Post, medium: &Medium, made: &Made) -> String {
    let handle = post.author_of(medium).map_or("", |author| author.handle.as_str());
    let handle: String = handle.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(32).collect();
    let handle = if handle.is_empty() { "post".to_owned() } else { handle };
    format!("{handle}-{}-{}.{}", medium.post.number(), medium.index.get(), made.facts.extension)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Author, MediumIndex, PostId};

    fn medium(post: PostId, place: u8) -> Medium {
        let index = MediumIndex::new(NonZeroU8::new(place).unwrap());
        let kind = MediumKind::Photo;
        Medium { post, index, kind, alt: None, duration: None, size: None, variants: Vec::new() }
    }

    #[test]
    fn quoted_media_come_where_they_are_wished_or_there_are_no_others() {
        let (own, other) = (PostId::x("20").unwrap(), PostId::x("21").unwrap());
        let media = vec![medium(own, 1), medium(own, 2), medium(other, 1)];
        let author = Author::default();
        let post = Post { id: own, author, text: String::new(), sensitive: false, media, quoted: Vec::new() };
        let count = |choice, quoted| wanted(&post, choice, quoted).len();
        assert_eq!((count(None, false), count(None, true)), (2, 3));
        assert_eq!(wanted(&post, MediaChoice::photo("3"), true), [&post.media[2]]);
        // A place that the post does not have means all of them.
        assert_eq!(count(MediaChoice::photo("3"), false), 2);
        let only = Post { media: vec![medium(other, 1)], ..post };
        assert_eq!(wanted(&only, None, false).len(), 1);
    }
}
