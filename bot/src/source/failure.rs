//! What one source says when it does not give a post whole, with the weight of its word.

use std::time::Duration;

use crate::domain::{Failure, GoneReason, Post};

/// How much a word counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// It needs a second source that says the same.
    Witness,
    /// It is enough alone: the source names a reason that only X can have told it.
    Authority,
}

/// Why a source gave no post, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourceFailure {
    /// It says that the post is gone.
    Gone { reason: GoneReason, weight: Weight },
    /// It says that the post is for those who are logged in. As a witness it speaks for itself only: another source
    /// may be logged in.
    NeedsLogin(Weight),
    /// It does not show sensitive posts.
    Sensitive,
    /// It shows the post, and the post has no media.
    NoMedia,
    /// It shows something that is no use here. `what` reads well behind a colon, without full stop.
    Unsupported { what: String },
    /// It shows a part of the media, or cannot show all kinds; good when nobody has more.
    Partial(Box<Post>),
    /// It says something that fits a post that is gone as well as an outage.
    Unclear { what: String },
    /// It is in trouble, or not reached.
    Transient { what: String, retry_after: Option<Duration> },
    /// This service is at fault: a wrong setting, a program that is not there, an answer in an unknown form.
    Ours { what: String },
}

impl SourceFailure {
    /// A transient failure without a wish of the source.
    pub(crate) fn transient(what: impl Into<String>) -> Self {
        Self::Transient { what: what.into(), retry_after: None }
    }

    /// A word that fits several causes.
    pub(crate) fn unclear(what: impl Into<String>) -> Self {
        Self::Unclear { what: what.into() }
    }

    /// A fault of this service.
    pub(crate) fn ours(what: impl Into<String>) -> Self {
        Self::Ours { what: what.into() }
    }

    /// Whether it speaks of the source's trouble and not of the post: only then does the breaker count it.
    pub(crate) const fn is_trouble(&self) -> bool {
        match self {
            Self::Transient { .. } | Self::Ours { .. } => true,
            Self::Gone { .. }
            | Self::NeedsLogin(_)
            | Self::Sensitive
            | Self::NoMedia
            | Self::Unsupported { .. }
            | Self::Partial(_)
            | Self::Unclear { .. } => false,
        }
    }

    /// How long the source wants to be left alone, when it said so.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Transient { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// A short stable code for logs.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::Gone { .. } => "gone",
            Self::NeedsLogin(_) => "needs-login",
            Self::Sensitive => "sensitive",
            Self::NoMedia => "no-media",
            Self::Unsupported { .. } => "unsupported",
            Self::Partial(_) => "partial",
            Self::Unclear { .. } => "unclear",
            Self::Transient { .. } => "transient",
            Self::Ours { .. } => "ours",
        }
    }
}

/// What kept a request from being answered at all.
impl From<Failure> for SourceFailure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Transient { what, retry_after } => Self::Transient { what, retry_after },
            Failure::Ours { .. } => Self::ours(failure.to_string()),
            other => Self::transient(other.to_string()),
        }
    }
}

/// What X's own words in place of a post mean, when a source hands them on.
pub(super) fn tombstone(words: &str, weight: Weight) -> SourceFailure {
    let words = words.to_ascii_lowercase();
    let gone = |reason| SourceFailure::Gone { reason, weight };
    let says = |part: &str| words.contains(part);
    if says("age-restricted") || says("sensitive content") {
        SourceFailure::Sensitive
    } else if says("limits who can view") || says("protected") {
        SourceFailure::NeedsLogin(weight)
    } else if says("suspended account") {
        gone(GoneReason::Suspended)
    } else if says("deleted by") {
        gone(GoneReason::Deleted)
    } else if says("no longer exists") || says("no longer available") || says("unavailable") {
        gone(GoneReason::NotFound)
    } else {
        SourceFailure::unclear(format!("it shows in place of the post: {}", excerpt(&words)))
    }
}

/// The beginning of a stranger's words, in one line, fit for a log.
pub(super) fn excerpt(words: &str) -> String {
    let plain = words.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(LONGEST_EXCERPT).collect::<String>().trim().to_owned()
}

/// In characters.
const LONGEST_EXCERPT: usize = 200;
