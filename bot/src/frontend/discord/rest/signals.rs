//! What an answer says about limits.

use std::time::Duration;

use serde_json::Value;

use super::refused::{SOON, Scope};
use crate::http::AnswerHeaders;

/// What an answer says about the limit of its route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Signals {
    /// Discord's name for the limit.
    pub(super) bucket: Option<String>,
    /// The limit; `None` when the answer does not tell all of it.
    pub(super) limit: Option<Told>,
    /// Whether the call did what it should.
    pub(super) success: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// So many in each window.
    pub(super) most: u32,
    /// So many are left in this one.
    pub(super) remaining: u32,
    /// When the next one begins, from when the answer came.
    pub(super) reset_after: Duration,
}

impl Signals {
    pub(super) fn read(status: u16, headers: &AnswerHeaders) -> Self {
        let number = |name| headers.get(name)?.parse().ok();
        let limit = || {
            Some(Told {
                most: number("x-ratelimit-limit")?,
                remaining: number("x-ratelimit-remaining")?,
                reset_after: seconds(headers.get("x-ratelimit-reset-after")?.parse().ok()?)?,
            })
        };
        Self {
            bucket: headers.get("x-ratelimit-bucket").map(str::to_owned),
            limit: limit(),
            success: (200..300).contains(&status),
        }
    }
}

/// Whose limit an answer 429 speaks of, and how long to wait.
pub(super) fn limited(headers: &AnswerHeaders, body: &[u8]) -> (Scope, Duration) {
    let body: Option<Value> = serde_json::from_slice(body).ok();
    let field = |name| body.as_ref().and_then(|body| body.get(name));
    let everything = field("global").and_then(Value::as_bool) == Some(true)
        || headers.get("x-ratelimit-global").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let scope = match headers.get("x-ratelimit-scope") {
        Some("shared") => Scope::Shared,
        Some("global") => Scope::Global,
        _ if everything => Scope::Global,
        Some(_) => Scope::User,
        // What does not speak Discord's language stands before it and counts everything.
        None if field("retry_after").is_none() => Scope::Global,
        None => Scope::User,
    };
    // The body has fractions of a second, and is the one of the two that a proxy does not write.
    let wait = field("retry_after")
        .and_then(Value::as_f64)
        .or_else(|| headers.get("retry-after")?.parse().ok())
        .or_else(|| headers.get("x-ratelimit-reset-after")?.parse().ok())
        .and_then(seconds)
        .unwrap_or(SOON);
    (scope, wait.max(SHORTEST))
}

/// `None` for what is no time; at most a day.
fn seconds(seconds: f64) -> Option<Duration> {
    if seconds.is_nan() || seconds < 0.0 {
        return None;
    }
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST).min(LONGEST))
}

/// Longer pauses are not believed.
const LONGEST: Duration = Duration::from_secs(86_400);

/// A pause of nothing would ask again at once, and each time be refused.
const SHORTEST: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;
