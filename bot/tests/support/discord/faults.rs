//! Faults on demand: the next requests that match go wrong in a chosen way.

use super::Discord;
use super::answer::Answer;
use super::calls::Call;

/// A way in which a request goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An answer with this status that is no JSON, such as 502 from a server in between. Nothing was done.
    Status(u16),
    /// An error of Discord's own: status and code. Nothing was done.
    Code(u16, u32),
    /// The request is read, then the connection is closed without an answer. Nothing was done.
    Drop,
    /// The request is done, then the connection is closed without an answer.
    DropAfterDone,
    /// The request is read and never answered. Nothing was done.
    Hang,
    /// 429, for so many milliseconds.
    Limited { scope: Scope, retry_after_ms: u64 },
    /// The request is done, and answered so many milliseconds later.
    Late(u64),
    /// None: one request that goes well, before the next fault.
    Spared,
}

/// Whom a 429 is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// This bot, on this route.
    User,
    /// This bot, on all routes.
    Global,
    /// All who use this resource; not counted as invalid.
    Shared,
}

/// Faults that are yet to come.
#[derive(Debug)]
pub(super) struct Armed {
    method: String,
    template: String,
    fault: Fault,
    left: usize,
}

impl Discord {
    /// Lets the next `times` requests go wrong that have this method and path.
    ///
    /// The path stands below `/api/v10`, `*` in it is any one segment, `**` at its end any number of them; the method
    /// `*` is any. Faults that were asked for earlier come first.
    pub(crate) fn fail_next(&self, method: &str, path: &str, fault: Fault, times: usize) {
        let armed = Armed { method: method.to_owned(), template: path.to_owned(), fault, left: times };
        self.shared.change(|state| state.faults.push(armed));
    }

    /// Forgets all faults that have not come yet.
    pub(crate) fn heal(&self) {
        self.shared.change(|state| state.faults.clear());
    }
}

impl Scope {
    /// The word in the header.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Global => "global",
            Self::Shared => "shared",
        }
    }
}

impl Armed {
    /// The fault for this call, if there is one for it.
    pub(super) fn take(armed: &mut Vec<Self>, call: &Call) -> Option<Fault> {
        let found = armed.iter_mut().find(|armed| {
            armed.left > 0
                && ["*", &call.method].contains(&&*armed.method)
                && fits(&armed.template, &call.path)
        })?;
        found.left -= 1;
        let fault = found.fault;
        armed.retain(|armed| armed.left > 0);
        Some(fault)
    }
}

/// Whether a path is as a template says.
pub(super) fn fits(template: &str, path: &str) -> bool {
    let mut parts = path.trim_matches('/').split('/');
    for wanted in template.trim_matches('/').split('/') {
        match (wanted, parts.next()) {
            ("**", _) => return true,
            ("*", Some(_)) => {}
            (wanted, Some(part)) if wanted == part => {}
            _ => return false,
        }
    }
    parts.next().is_none()
}

/// The words for a code that a test asks for.
pub(super) fn refused(status: u16, code: u32) -> Answer {
    let words = match code {
        0 => "401: Unauthorized",
        20009 => "Explicit content cannot be sent to the desired recipient(s)",
        20016 => "This action cannot be performed due to slowmode rate limit",
        20028 | 20029 => "The write action you are performing has hit the write rate limit",
        40005 => "Request entity too large",
        40062 => "Service resource is being rate limited",
        40333 => "internal network error",
        50045 => "File uploaded exceeds the maximum size",
        50083 => "Thread is archived",
        130_000 => "API resource is currently overloaded. Try again a little later",
        200_000 => "Message was blocked by automatic moderation",
        240_000 => "Message blocked by harmful links filter",
        _ => "An error on demand",
    };
    Answer::refusal(status, code, words)
}
