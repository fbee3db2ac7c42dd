//! Why a request ends without media, as a class that decides what happens next.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why something could not be had.
///
/// The class is decided where the failure is seen, with all that is known there; later rooms obey its
/// [disposition](Failure::disposition) and decide nothing themselves.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The post is not there any more, or never was.
    #[error("the post is gone ({0})")]
    Gone(GoneReason),
    /// The post is shown only to those who are logged in.
    #[error("the post can only be seen by those who are logged in")]
    NeedsLogin,
    /// The sources will not show it since it is marked as sensitive.
    #[error("the post is marked as sensitive and its source does not show it")]
    Sensitive,
    /// The post is there and has no media.
    #[error("the post has no media")]
    NoMedia,
    /// It is there, and nothing here can do anything with it.
    #[error("it cannot be used: {what}")]
    Unsupported {
        /// Why, or what it is, so that it reads well behind a colon; no full stop.
        what: String,
    },
    /// The post is there, and its server does not have, or give out, a file of it.
    #[error("{what}")]
    Missing {
        /// Who does not have it.
        what: String,
    },
    /// It may work later.
    #[error("{what}")]
    Transient {
        /// What was tried and what happened.
        what: String,
        /// The upstream asked for at least this long a pause.
        retry_after: Option<Duration>,
    },
    /// The media are there, and where they should go they are not taken now; it may work later.
    #[error("it could not be posted: {what}")]
    Undelivered {
        /// What happened.
        what: String,
        /// The other side asked for at least this long a pause.
        retry_after: Option<Duration>,
    },
    /// It cannot be made small enough.
    #[error("it cannot be made to fit: {what}")]
    CannotFit {
        /// What would be needed.
        what: String,
    },
    /// It is larger or longer than this service takes.
    #[error("it is too large: {what}")]
    TooLarge {
        /// Which bound, and what it was compared with.
        what: String,
    },
    /// An address that this service does not ask.
    #[error("not an allowed address: {what}")]
    Forbidden {
        /// The address, shortened, and why.
        what: String,
    },
    /// A stage took longer than it may.
    #[error("{stage} took too long")]
    TimedOut {
        /// The stage.
        stage: Stage,
    },
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// Our own fault: the operator should look.
    #[error("{what}")]
    Ours {
        /// What was tried and what happened.
        what: String,
    },
}

/// Who says that a post is gone, or how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoneReason {
    /// Its author deleted it.
    #[error("deleted")]
    Deleted,
    /// Its author's account is suspended.
    #[error("suspended")]
    Suspended,
    /// Its source says so without a reason.
    #[error("not found")]
    NotFound,
}

/// What to do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Try again, not before this long from now when the upstream said so.
    Retry(Option<Duration>),
    /// Trying again gives the same.
    GiveUp,
}

/// A step on the way from a link to a delivered file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// From a link to media.
    Resolve,
    /// From a URL to bytes.
    Download,
    /// From bytes to a file that fits.
    Optimize,
    /// From a file to a message.
    Upload,
}

impl Stage {
    /// All stages in their order.
    pub const ALL: [Self; 4] = [Self::Resolve, Self::Download, Self::Optimize, Self::Upload];

    /// A short stable code for logs and metrics.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Download => "download",
            Self::Optimize => "optimize",
            Self::Upload => "upload",
        }
    }

    /// Its place in [`Stage::ALL`].
    pub const fn index(self) -> usize {
        match self {
            Self::Resolve => 0,
            Self::Download => 1,
            Self::Optimize => 2,
            Self::Upload => 3,
        }
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}

impl Failure {
    /// A transient failure without a wish of the upstream.
    pub fn transient(what: impl Into<String>) -> Self {
        Self::Transient { what: what.into(), retry_after: None }
    }

    /// A fault of this service.
    pub fn ours(what: impl Into<String>) -> Self {
        Self::Ours { what: what.into() }
    }

    /// Each [`code`](Self::code).
    pub const CODES: [&str; 14] = [
        "gone",
        "needs-login",
        "sensitive",
        "no-media",
        "unsupported",
        "missing",
        "transient",
        "undelivered",
        "cannot-fit",
        "too-large",
        "forbidden",
        "timed-out",
        "cancelled",
        "ours",
    ];

    /// A short stable code for logs, metrics and `--json`: one of [`CODES`](Self::CODES).
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Gone(_) => "gone",
            Self::NeedsLogin => "needs-login",
            Self::Sensitive => "sensitive",
            Self::NoMedia => "no-media",
            Self::Unsupported { .. } => "unsupported",
            Self::Missing { .. } => "missing",
            Self::Transient { .. } => "transient",
            Self::Undelivered { .. } => "undelivered",
            Self::CannotFit { .. } => "cannot-fit",
            Self::TooLarge { .. } => "too-large",
            Self::Forbidden { .. } => "forbidden",
            Self::TimedOut { .. } => "timed-out",
            Self::Cancelled => "cancelled",
            Self::Ours { .. } => "ours",
        }
    }

    /// The failure that had this code and these words, in this stage; `None` when there is none such.
    pub fn recall(code: &str, words: &str, stage: Option<Stage>) -> Option<Self> {
        let after = |start: &str| words.strip_prefix(start).unwrap_or(words).to_owned();
        Some(match code {
            "gone" => {
                let reasons = [GoneReason::Deleted, GoneReason::Suspended, GoneReason::NotFound];
                let same = reasons.map(Self::Gone).into_iter().find(|gone| gone.to_string() == words);
                same.unwrap_or(Self::Gone(GoneReason::NotFound))
            }
            "needs-login" => Self::NeedsLogin,
            "sensitive" => Self::Sensitive,
            "no-media" => Self::NoMedia,
            "unsupported" => Self::Unsupported { what: after("it cannot be used: ") },
            "missing" => Self::Missing { what: words.to_owned() },
            "transient" => Self::transient(words),
            "undelivered" => Self::Undelivered { what: after("it could not be posted: "), retry_after: None },
            "cannot-fit" => Self::CannotFit { what: after("it cannot be made to fit: ") },
            "too-large" => Self::TooLarge { what: after("it is too large: ") },
            "forbidden" => Self::Forbidden { what: after("not an allowed address: ") },
            "timed-out" => Self::TimedOut { stage: stage? },
            "cancelled" => Self::Cancelled,
            "ours" => Self::ours(words),
            _ => return None,
        })
    }

    /// What to do about it.
    pub const fn disposition(&self) -> Disposition {
        match self {
            Self::Transient { retry_after, .. } | Self::Undelivered { retry_after, .. } => {
                Disposition::Retry(*retry_after)
            }
            Self::TimedOut { .. } | Self::Ours { .. } => Disposition::Retry(None),
            Self::Gone(_)
            | Self::NeedsLogin
            | Self::Sensitive
            | Self::NoMedia
            | Self::Unsupported { .. }
            | Self::Missing { .. }
            | Self::CannotFit { .. }
            | Self::TooLarge { .. }
            | Self::Forbidden { .. }
            | Self::Cancelled => Disposition::GiveUp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_work_later_is_tried_again() {
        let later = Duration::from_secs(7);
        let limited = Failure::Transient { what: "429".into(), retry_after: Some(later) };
        assert_eq!(limited.disposition(), Disposition::Retry(Some(later)));
        assert_eq!(Failure::TimedOut { stage: Stage::Download }.disposition(), Disposition::Retry(None));
        for failure in [Failure::Gone(GoneReason::Deleted), Failure::NeedsLogin, Failure::Cancelled] {
            assert_eq!(failure.disposition(), Disposition::GiveUp, "{failure}");
        }
    }

    #[test]
    fn a_thing_and_a_reason_both_read_as_words() {
        // Once, "cannot be used" stood behind both.
        for (what, text) in [
            ("a stream without a file", "it cannot be used: a stream without a file"),
            ("not a media file that Azalea knows", "it cannot be used: not a media file that Azalea knows"),
            (
                "cannot open x: it is a folder, not a regular file",
                "it cannot be used: cannot open x: it is a folder, not a regular file",
            ),
        ] {
            assert_eq!(Failure::Unsupported { what: what.to_owned() }.to_string(), text);
        }
    }

    #[test]
    fn stages_know_their_place() {
        for (index, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage.index(), index);
        }
    }

    #[test]
    fn each_code_is_among_the_codes_once() {
        let (stage, what) = (Stage::Upload, String::new);
        let failures = [
            Failure::Gone(GoneReason::Deleted),
            Failure::NeedsLogin,
            Failure::Sensitive,
            Failure::NoMedia,
            Failure::Unsupported { what: what() },
            Failure::Missing { what: what() },
            Failure::transient(what()),
            Failure::Undelivered { what: what(), retry_after: None },
            Failure::CannotFit { what: what() },
            Failure::TooLarge { what: what() },
            Failure::Forbidden { what: what() },
            Failure::TimedOut { stage },
            Failure::Cancelled,
            Failure::ours(what()),
        ];
        assert_eq!(failures.each_ref().map(Failure::code), Failure::CODES);
    }

    #[test]
    fn what_was_written_down_is_recalled() {
        let what = || "a reason: with a colon".to_owned();
        let (stage, reasons) =
            (Stage::Optimize, [GoneReason::Deleted, GoneReason::Suspended, GoneReason::NotFound]);
        let mut failures = vec![
            Failure::NeedsLogin,
            Failure::Sensitive,
            Failure::NoMedia,
            Failure::Unsupported { what: what() },
            Failure::Missing { what: what() },
            Failure::transient(what()),
            Failure::Undelivered { what: what(), retry_after: None },
            Failure::CannotFit { what: what() },
            Failure::TooLarge { what: what() },
            Failure::Forbidden { what: what() },
            Failure::TimedOut { stage },
            Failure::Cancelled,
            Failure::ours(what()),
        ];
        failures.extend(reasons.map(Failure::Gone));
        for failure in failures {
            let recalled = Failure::recall(failure.code(), &failure.to_string(), Some(stage));
            assert_eq!(recalled, Some(failure));
        }
        assert_eq!(Failure::recall("crashed", "", None), None);
    }
}
