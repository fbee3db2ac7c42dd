//! Why a call did not do what it should, as a class that says what can be done about it.

use std::time::Duration;

use serde_json::Value;

use super::cut::cut;
use crate::clock::WallTime;

/// Why a call did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// A file, or all of them, are larger than is taken here: smaller ones may be taken.
    #[error("the files are too large")]
    TooLarge,
    /// It is not allowed in this channel or server, until somebody changes something there.
    #[error("it is not allowed here (code {code})")]
    NoAccess {
        /// Discord's number of the reason.
        code: u32,
    },
    /// This content is not taken.
    #[error("the content is not taken (code {code}): {words}")]
    Content {
        /// Discord's number of the reason.
        code: u32,
        /// What Discord says about it.
        words: String,
    },
    /// The call was not as Discord wants it: our fault.
    #[error("the request is malformed: {message}")]
    Form {
        /// What Discord says about it.
        message: String,
    },
    /// A message must not be answered by one who cannot read what was said before; it can be sent as no answer.
    #[error("the history of the channel cannot be read")]
    NoHistory,
    /// There is no such message. Of a message with a nonce it says that the message was made before, and removed.
    #[error("there is no such message")]
    UnknownMessage,
    /// There were too many calls; nothing was done.
    #[error("too many calls ({scope}), for {} s more", .retry_after.as_secs_f32())]
    Limited {
        /// When to try again, from now.
        retry_after: Duration,
        /// Whose limit it is.
        scope: Scope,
    },
    /// It may work later. After an answer 5xx it may have worked already.
    #[error("{what}")]
    Later {
        /// What happened.
        what: String,
    },
    /// It may or may not have been done. With a nonce, within a few minutes, it can be tried again safely.
    #[error("it was sent, and whether it was taken is not known")]
    Unanswered,
    /// The token is not valid: nothing is sent with it any more.
    #[error("the token is not valid")]
    Unauthorized,
    /// Discord's gatekeeper lets none of our calls through.
    #[error("calls from here are blocked")]
    Blocked,
    /// So many calls were refused that none are made for a while, or this one's turn is too far away.
    #[error("too many calls were refused, so none are made for a while")]
    Paused {
        /// When to try again.
        until: WallTime,
    },
    /// Something of ours is missing or wrong; nothing was done.
    #[error("{what}")]
    Ours {
        /// What it is.
        what: String,
    },
    /// Anything else.
    #[error("the call was refused with status {status}")]
    Other {
        /// The status of the answer.
        status: u16,
        /// Discord's number of the reason, if it said one.
        code: Option<u32>,
    },
}

/// Whose limit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The bot's, for everything.
    Global,
    /// The bot's, for this route.
    User,
    /// That of all bots together, for this channel or server.
    Shared,
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::User => "user",
            Self::Shared => "shared",
        })
    }
}

/// What an answer that is no success says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) status: u16,
    /// Discord's number of the reason; 0, which stands for none, is left out.
    pub(super) code: Option<u32>,
    /// What it says about it, in one short line.
    pub(super) words: String,
}

impl Fault {
    /// Reads the body of an answer with this status. What has another shape says nothing.
    pub(super) fn read(status: u16, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let code = body.get("code").and_then(Value::as_u64).and_then(|code| u32::try_from(code).ok());
        let message = body.get("message").and_then(Value::as_str).unwrap_or_default();
        let mut words = message.to_owned();
        if let Some(errors) = body.get("errors") {
            let details = details(errors);
            if !details.is_empty() {
                words = format!("{words}: {}", details.join(", "));
            }
        }
        Self::new(status, code, &words)
    }

    pub(super) fn new(status: u16, code: Option<u32>, words: &str) -> Self {
        let line: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Self { status, code: code.filter(|code| *code != 0), words: cut(&line, MOST_WORDS).into_owned() }
    }

    /// The class of it. A 429 has its own reader, which knows how long to wait; here it is only known to be one.
    pub(super) fn refused(self) -> Refused {
        let Self { status, code, words } = self;
        match (code, status) {
            // The token of an interaction that is over, not ours.
            (Some(50_027), _) => Refused::Other { status, code },
            (_, 401) => Refused::Unauthorized,
            (Some(40_333), _) => Refused::Blocked,
            (Some(40_005 | 50_045), _) | (_, 413) => Refused::TooLarge,
            (
                Some(
                    code @ (10_003 | 40_058 | 50_001 | 50_008 | 50_013 | 50_083 | 160_005 | 160_006 | 160_007
                    | 400_001),
                ),
                _,
            ) => Refused::NoAccess { code },
            (Some(code @ (20_009 | 50_006 | 50_046 | 200_000 | 240_000)), _) => {
                Refused::Content { code, words }
            }
            (Some(50_035), _) => Refused::Form { message: words },
            (Some(160_002), _) => Refused::NoHistory,
            (Some(10_008), _) => Refused::UnknownMessage,
            (_, 429) => Refused::Limited { retry_after: SOON, scope: Scope::User },
            (Some(20_016 | 20_028 | 20_029 | 40_062 | 130_000), _) => Refused::Later { what: words },
            // A gateway that waited for its own time, and does not know.
            (_, 504 | 524) => Refused::Unanswered,
            (_, 500..=599) => Refused::Later { what: format!("Discord answered with status {status}") },
            _ => Refused::Other { status, code },
        }
    }
}

/// The places that are wrong with the names of what is wrong, at most [`MOST_DETAILS`]:
/// `{"embeds": {"0": {"_errors": [{"code": "X"}]}}}` gives `embeds.0: X`.
fn details(errors: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), errors)];
    while let Some((path, value)) = open.pop() {
        let Some(fields) = value.as_object() else { continue };
        for (name, value) in fields {
            if found.len() >= MOST_DETAILS {
                return found;
            }
            if name == "_errors" {
                let first = value.get(0).and_then(|error| error.get("code")).and_then(Value::as_str);
                found.extend(first.map(|code| format!("{path}: {code}")));
            } else if path.len() < MOST_WORDS {
                let dot = if path.is_empty() { "" } else { "." };
                open.push((format!("{path}{dot}{name}"), value));
            }
        }
    }
    found
}

/// What Discord says is for the log and for a person: a line or two.
const MOST_WORDS: usize = 300;
const MOST_DETAILS: usize = 3;

/// How long a limit lasts of which nothing is known.
pub(super) const SOON: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
