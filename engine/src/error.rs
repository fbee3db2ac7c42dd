//! What can go wrong, by whose matter it is.

use std::io;
use std::time::Duration;

use crate::limits::LimitKind;
use crate::progress::StopReason;
use crate::units::ByteSize;

/// Why a job gave no result. `Display` is one line for people; causes hang in `source()`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is nothing that the engine opens: an unknown format, a playlist, a codec that is not allowed.
    #[error("{what}")]
    Unsupported {
        /// What it is and why it is not taken.
        what: String,
    },
    /// The input claims to be media but cannot be read as such.
    #[error("{what}")]
    Corrupt {
        /// What is wrong with it.
        what: String,
    },
    /// The input is larger than the job's [`Limits`](crate::Limits) allow.
    #[error("{}", too_large(*.limit, *.found, *.allowed))]
    TooLarge {
        /// Which limit.
        limit: LimitKind,
        /// What was found, in the limit's unit.
        found: u64,
        /// What is allowed, in the limit's unit.
        allowed: u64,
    },
    /// No watchable result has so few bytes.
    #[error("cannot fit into {limit}: {what}; the smallest limit that would work is about {}", .min_bytes.rounded_up())]
    CannotFit {
        /// The limit that was asked for.
        limit: ByteSize,
        /// The smallest limit that would work.
        min_bytes: ByteSize,
        /// What the request is too small for.
        what: String,
    },
    /// The job was cancelled, or its last handle dropped.
    #[error("cancelled")]
    Cancelled,
    /// The job took longer than it was allowed to.
    #[error("out of time after {} s", .allowed.as_secs_f64())]
    Deadline {
        /// The wall time that was allowed.
        allowed: Duration,
    },
    /// The queue is full; try again later.
    #[error("the queue is full ({depth} jobs waiting)")]
    Busy {
        /// How many jobs the queue holds.
        depth: usize,
    },
    /// The input could not be read or the output not written.
    #[error("{what}: {cause}")]
    Io {
        /// What was tried.
        what: String,
        /// The operating system's answer.
        cause: io::Error,
    },
    /// A fault of the engine or of the libav it is linked to.
    #[error("internal error: {what}")]
    Internal {
        /// What happened.
        what: String,
    },
}

/// The kinds of [`Error`], to match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// See [`Error::Unsupported`].
    Unsupported,
    /// See [`Error::Corrupt`].
    Corrupt,
    /// See [`Error::TooLarge`].
    TooLarge,
    /// See [`Error::CannotFit`].
    CannotFit,
    /// See [`Error::Cancelled`].
    Cancelled,
    /// See [`Error::Deadline`].
    Deadline,
    /// See [`Error::Busy`].
    Busy,
    /// See [`Error::Io`].
    Io,
    /// See [`Error::Internal`].
    Internal,
}

impl ErrorKind {
    /// A short stable code for logs and metrics.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unsupported => "unsupported",
            Self::Corrupt => "corrupt",
            Self::TooLarge => "too_large",
            Self::CannotFit => "cannot_fit",
            Self::Cancelled => "cancelled",
            Self::Deadline => "deadline",
            Self::Busy => "busy",
            Self::Io => "io",
            Self::Internal => "internal",
        }
    }
}

impl Error {
    /// The kind, to match on.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::CannotFit { .. } => ErrorKind::CannotFit,
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Deadline { .. } => ErrorKind::Deadline,
            Self::Busy { .. } => ErrorKind::Busy,
            Self::Io { .. } => ErrorKind::Io,
            Self::Internal { .. } => ErrorKind::Internal,
        }
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into() }
    }

    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt { what: what.into() }
    }

    pub(crate) fn internal(what: impl Into<String>) -> Self {
        Self::Internal { what: what.into() }
    }
}

impl From<StopReason> for Error {
    fn from(reason: StopReason) -> Self {
        match reason {
            StopReason::Cancelled => Self::Cancelled,
            StopReason::Deadline { allowed } => Self::Deadline { allowed },
        }
    }
}

fn too_large(limit: LimitKind, found: u64, allowed: u64) -> String {
    match limit {
        LimitKind::InputBytes => {
            let (size, most) = (ByteSize::new(found), ByteSize::new(allowed));
            if size.to_string() == most.to_string() {
                format!("the input is too large: {found} bytes, allowed are {allowed}")
            } else {
                format!("the input is too large: {size}, allowed are {most}")
            }
        }
        LimitKind::FramePixels => {
            format!("the picture is too large: {found} pixels, allowed are {allowed}")
        }
        LimitKind::Duration => format!("the input is too long: {found} s, allowed are {allowed} s"),
        LimitKind::Frames => format!("the input has too many frames: {found}, allowed are {allowed}"),
        LimitKind::Streams => format!("the input has too many streams: {found}, allowed are {allowed}"),
    }
}
