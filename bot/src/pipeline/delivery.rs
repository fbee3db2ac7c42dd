//! What the pipeline needs from a front end.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::config::SensitivePolicy;
use crate::dedup::Delivered;
use crate::domain::{Author, Destination, Failure, LimitClass, MediumKind, PostId, Request, Stage, Telling};
use crate::guard::audience;
use crate::pipeline::activity::Sight;
use crate::pipeline::optimize::Made;
use crate::pipeline::posting::Posting;

/// Finished files and what goes with them.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// The post that was asked for.
    pub post: PostId,
    /// Who wrote it.
    pub author: Author,
    /// Its words.
    pub text: String,
    /// Hide the files behind a spoiler.
    pub spoiler: bool,
    /// The files, in the post's order; never empty.
    pub files: Vec<ParcelFile>,
    /// Media of the post that are not among them, and why.
    pub missing: Vec<Failure>,
}

/// One finished file.
#[derive(Clone, Debug)]
pub struct ParcelFile {
    /// Its name: letters, digits, `-`, `_` and one dot.
    pub name: String,
    /// What it was at its source.
    pub kind: MediumKind,
    /// Its description for those who cannot see it.
    pub alt: Option<String>,
    /// It belongs to a post that the post quotes.
    pub quoted: bool,
    /// The file.
    pub made: Arc<Made>,
}

/// Something to say to the one who asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// What was asked for stands there already.
    Pointer(Delivered),
    /// There will be no media, and why.
    Failed(Failure),
}

/// Where results go. Implemented by each front end.
pub trait Delivery: fmt::Debug + Send + Sync + 'static {
    /// How large a file may be there.
    fn limit(&self, destination: &Destination) -> LimitClass;

    /// Learns what is to be known about a destination before anything else is asked about it.
    fn learn<'a>(&'a self, destination: &'a Destination) -> BoxFuture<'a, ()> {
        let _ = destination;
        Box::pin(std::future::ready(()))
    }

    /// What those who look after the place want to happen with sensitive media; the stricter of that and of what the
    /// operator wants holds.
    fn policy(&self, destination: &Destination) -> SensitivePolicy {
        let _ = destination;
        SensitivePolicy::Spoiler
    }

    /// What is known about who reads there.
    fn place(&self, destination: &Destination) -> audience::Place;

    /// Work on it has begun, or has come to another stage; `sight` says how far it is from now on. Nobody waits for this.
    fn progress(&self, request: &Request, stage: Stage, sight: Sight);

    /// Posts the files. Called again with the same request after a failure that may pass, or after a crash, it posts
    /// them once: `posting` has what it needs for that.
    fn deliver<'a>(
        &'a self,
        request: &'a Request,
        parcel: Parcel,
        posting: &'a Posting,
    ) -> BoxFuture<'a, Result<Delivered, Failure>>;

    /// Removes what was posted for a request that was taken back in the same moment.
    fn retract<'a>(&'a self, request: &'a Request, delivered: &'a Delivered) -> BoxFuture<'a, ()> {
        let _ = (request, delivered);
        Box::pin(std::future::ready(()))
    }

    /// Removes what earlier attempts have posted for a request that was taken back before it was whole.
    fn retract_begun<'a>(&'a self, request: &'a Request, posting: &'a Posting) -> BoxFuture<'a, ()> {
        let _ = (request, posting);
        Box::pin(std::future::ready(()))
    }

    /// Whether what was delivered still stands there. When nobody can say, it does.
    fn stands<'a>(&'a self, delivered: &'a Delivered) -> BoxFuture<'a, bool> {
        let _ = delivered;
        Box::pin(std::future::ready(true))
    }

    /// Says something to the one who asked. Called again after [`Telling::Later`], and after a crash, it says it once.
    fn tell<'a>(&'a self, request: &'a Request, notice: Notice) -> BoxFuture<'a, Telling>;
}
