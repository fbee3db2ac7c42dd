//! The one place that turns an outcome into an exit code and an error into its line.

use std::process::ExitCode;

use azalea_bot::config::ConfigError;
use azalea_bot::domain::{Failure, RequestId};
use azalea_bot::frontend::discord::GatewayFailure;
use azalea_bot::frontend::operator::OperatorError;
use azalea_bot::queue::JobId;
use azalea_engine::ErrorKind;
use serde_json::{Value, json};

use crate::cli::Format;
use crate::terminal::{self, Screen};

/// How the program ends. The numbers are a promise to scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything was done.
    Done,
    /// Our fault, or the machine's: an internal error, a disk that is full.
    Fault,
    /// The command line or the configuration makes no sense.
    Usage,
    /// The input cannot be used.
    Input,
    /// Nothing watchable fits into the limit.
    CannotFit,
    /// Cancelled or out of time.
    Stopped,
    /// The network, or who was asked over it, failed.
    Network,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl Exit {
    /// The exit code.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Fault => 1,
            Self::Usage => 2,
            Self::Input => 3,
            Self::CannotFit => 4,
            Self::Stopped => 5,
            Self::Network => 6,
        }
    }

    /// The exit code that `error` deserves.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        Verdict::of(error).exit
    }
}

/// A command line that makes no sense although clap could read it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UsageError(pub(crate) String);

/// A job that is not there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoSuchJob(pub(crate) JobId);

/// A request that nothing is known of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoSuchRequest(pub(crate) RequestId);

/// A queue of which nothing outlives its process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NothingKept;

/// A result that could not be put where it was wanted.
#[derive(Debug)]
pub(crate) struct OutputError(pub(crate) String);

impl OutputError {
    /// Standard output could not be written because of `cause`.
    pub(crate) fn stdout(cause: &std::io::Error) -> Self {
        Self(format!("cannot write to standard output: {cause}"))
    }
}

/// The reader of our standard output has gone before it had the result. Nobody is left to tell.
#[derive(Debug)]
pub(crate) struct ReaderGone;

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::fmt::Display for OutputError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the reader of standard output is gone")
    }
}

impl std::fmt::Display for NoSuchJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no job {}", self.0)
    }
}

impl std::fmt::Display for NoSuchRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "nothing is known of request {}: there was none, or it ended too long ago", self.0)
    }
}

impl std::fmt::Display for NothingKept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nothing is kept: queue.backend is memory, and no service runs")
    }
}

impl std::error::Error for UsageError {}
impl std::error::Error for NoSuchJob {}
impl std::error::Error for NoSuchRequest {}
impl std::error::Error for NothingKept {}
impl std::error::Error for OutputError {}
impl std::error::Error for ReaderGone {}

/// Tells `error` as one line on standard error, and on standard output as JSON if so asked.
pub(crate) fn report(error: &anyhow::Error, format: Format, screen: &Screen) -> Exit {
    let exit = Exit::of(error);
    if is_silent(error) {
        return exit;
    }
    screen.complain("error", &line(error));
    if format == Format::Json {
        // What cannot be printed has no better place to be told than the exit code.
        let _ = screen.print(&json!({ "error": object(error) }).to_string());
    }
    exit
}

/// Whether nobody is left to tell the error to.
pub(crate) fn is_silent(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ReaderGone>().is_some()
}

/// The error as the value of `error` in JSON: a stable kind and a text for people.
pub(crate) fn object(error: &anyhow::Error) -> Value {
    json!({ "kind": Verdict::of(error).kind, "message": text(error) })
}

/// The error with its causes in one line that cannot drive a terminal.
pub(crate) fn line(error: &anyhow::Error) -> String {
    terminal::escape(&text(error))
}

fn text(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Some errors already tell their cause in their own text.
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

struct Verdict {
    exit: Exit,
    kind: &'static str,
}

impl Verdict {
    fn of(error: &anyhow::Error) -> Self {
        if error.downcast_ref::<UsageError>().is_some() {
            return Self { exit: Exit::Usage, kind: "usage" };
        }
        if error.downcast_ref::<ConfigError>().is_some() {
            return Self { exit: Exit::Usage, kind: "config" };
        }
        if error.downcast_ref::<OutputError>().is_some() || error.downcast_ref::<ReaderGone>().is_some() {
            return Self { exit: Exit::Fault, kind: "output" };
        }
        if error.downcast_ref::<NoSuchJob>().is_some() || error.downcast_ref::<NoSuchRequest>().is_some() {
            return Self { exit: Exit::Input, kind: "absent" };
        }
        if error.downcast_ref::<OperatorError>().is_some() || error.downcast_ref::<NothingKept>().is_some() {
            return Self { exit: Exit::Fault, kind: "queue" };
        }
        if let Some(failure) = error.downcast_ref::<GatewayFailure>() {
            let exit = if failure.may_pass() { Exit::Network } else { Exit::Usage };
            return Self { exit, kind: "discord" };
        }
        if let Some(failure) = error.downcast_ref::<Failure>() {
            return Self { exit: exit_of(failure), kind: failure.code() };
        }
        let Some(error) = error.downcast_ref::<azalea_engine::Error>() else {
            return Self { exit: Exit::Fault, kind: ErrorKind::Internal.code() };
        };
        let kind = error.kind();
        let exit = match kind {
            ErrorKind::Unsupported | ErrorKind::Corrupt | ErrorKind::TooLarge | ErrorKind::Io => Exit::Input,
            ErrorKind::CannotFit => Exit::CannotFit,
            ErrorKind::Cancelled | ErrorKind::Deadline => Exit::Stopped,
            // A kind that is new to the program is the program's fault; the engine's list may grow.
            _ => Exit::Fault,
        };
        Self { exit, kind: kind.code() }
    }
}

/// The exit code of a failure of the service.
const fn exit_of(failure: &Failure) -> Exit {
    match failure {
        Failure::Gone(_)
        | Failure::NeedsLogin
        | Failure::Sensitive
        | Failure::NoMedia
        | Failure::Unsupported { .. }
        | Failure::Missing { .. }
        | Failure::TooLarge { .. }
        | Failure::Forbidden { .. } => Exit::Input,
        Failure::CannotFit { .. } => Exit::CannotFit,
        Failure::TimedOut { .. } | Failure::Cancelled => Exit::Stopped,
        Failure::Transient { .. } | Failure::Undelivered { .. } => Exit::Network,
        // A class that is new to the program is the program's fault.
        _ => Exit::Fault,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use azalea_engine::{ByteSize, Error, LimitKind};

    use super::*;

    #[test]
    fn each_kind_of_error_has_its_exit_code() {
        let what = || "x".to_owned();
        let io = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let size = ByteSize::mebibytes(1);
        for (error, code, kind) in [
            (anyhow::Error::new(UsageError(what())), 2, "usage"),
            (Error::Unsupported { what: what() }.into(), 3, "unsupported"),
            (Error::Corrupt { what: what() }.into(), 3, "corrupt"),
            (Error::TooLarge { limit: LimitKind::Frames, found: 2, allowed: 1 }.into(), 3, "too_large"),
            (Error::Io { what: what(), cause: io() }.into(), 3, "io"),
            (Error::CannotFit { limit: size, min_bytes: size, what: what() }.into(), 4, "cannot_fit"),
            (Error::Cancelled.into(), 5, "cancelled"),
            (Error::Deadline { allowed: std::time::Duration::from_secs(1) }.into(), 5, "deadline"),
            (Error::Internal { what: what() }.into(), 1, "internal"),
            (Error::Busy { depth: 1 }.into(), 1, "busy"),
            (OutputError(what()).into(), 1, "output"),
            (NoSuchJob(JobId(1)).into(), 3, "absent"),
            (NoSuchRequest("discord-1-0".parse().unwrap()).into(), 3, "absent"),
            (OperatorError::Silent.into(), 1, "queue"),
            (GatewayFailure::Token.into(), 2, "discord"),
            (GatewayFailure::Silent.into(), 6, "discord"),
            (io().into(), 1, "internal"),
        ] {
            assert_eq!(Exit::of(&error).code(), code, "{error:?}");
            assert_eq!(object(&error)["kind"], kind, "{error:?}");
        }
    }

    #[test]
    fn context_keeps_the_kind_and_precedes_the_text() {
        let result: Result<(), _> = Err(Error::Corrupt { what: "no moov".to_owned() });
        let error = result.context("a.mp4").unwrap_err();
        assert_eq!(Exit::of(&error), Exit::Input);
        assert_eq!(line(&error), "a.mp4: no moov");
    }

    #[test]
    fn a_line_is_one_line_that_cannot_drive_a_terminal() {
        let error = anyhow::Error::new(UsageError("a\nb\r\x1b[2Jc\u{202e}d".to_owned()));
        assert_eq!(line(&error), "a\\nb\\r\\u{1b}[2Jc\\u{202e}d");
        assert_eq!(object(&error)["message"], "a\nb\r\x1b[2Jc\u{202e}d");
    }
}
