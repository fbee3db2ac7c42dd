//! A request, taken apart.

use std::collections::HashMap;
use std::time::Instant;

use axum::http::request::Parts;
use serenity::model::id::{ChannelId, GuildId, InteractionId, MessageId};
use url::form_urlencoded;

/// Where all paths begin.
const ROOT: &str = "/api/v10";

/// A request, without its body.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: String,
    /// Below `/api/v10`.
    pub(super) path: String,
    parts: Vec<String>,
    pub(super) query: HashMap<String, String>,
    pub(super) authorization: Option<String>,
    pub(super) agent: Option<String>,
    /// Whether it asks for the version that we speak.
    pub(super) known_version: bool,
}

/// A request that is done with.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) status: u16,
    /// Whether it was a 429 for all.
    pub(super) shared: bool,
    pub(super) at: Instant,
}

impl Call {
    pub(super) fn new(parts: &Parts) -> Self {
        let whole = parts.uri.path();
        let below = whole.strip_prefix(ROOT).filter(|path| path.starts_with('/'));
        let header =
            |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let path = below.unwrap_or(whole).to_owned();
        let query = parts.uri.query().unwrap_or_default();
        Self {
            method: parts.method.to_string(),
            parts: path.trim_start_matches('/').split('/').map(decoded).collect(),
            path,
            query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
            authorization: header("authorization"),
            agent: header("user-agent"),
            known_version: below.is_some(),
        }
    }

    /// A segment of the path; empty when there is none.
    pub(super) fn part(&self, at: usize) -> &str {
        self.parts.get(at).map_or("", String::as_str)
    }

    /// Method and segments, to be matched.
    pub(super) fn route(&self) -> (&str, Vec<&str>) {
        (&self.method, self.parts.iter().map(String::as_str).collect())
    }

    /// What is limited together: the method and the kind of route, with the channel, guild or webhook in it.
    pub(super) fn bucket(&self) -> String {
        let has_major = ["channels", "guilds", "webhooks"].contains(&self.part(0));
        let mut bucket = self.method.clone();
        for (at, part) in self.parts.iter().enumerate() {
            let is_major = has_major && at == 1;
            let is_id = part.parse::<u64>().is_ok() || part.len() > 30;
            bucket.push('/');
            bucket.push_str(if is_id && !is_major { "*" } else { part });
            if part == "reactions" {
                break;
            }
        }
        bucket
    }
}

/// Takes `%xx` apart.
fn decoded(part: &str) -> String {
    let plus = part.replace('+', "%2B");
    form_urlencoded::parse(plus.as_bytes()).next().map(|(name, _)| name.into_owned()).unwrap_or_default()
}

/// Ids out of paths and forms.
pub(super) trait Id: Sized {
    fn made(id: u64) -> Self;

    /// Reads an id; zero is none.
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|id| *id != 0).map(Self::made)
    }
}

impl Id for ChannelId {
    fn made(id: u64) -> Self {
        Self::new(id)
    }
}

impl Id for GuildId {
    fn made(id: u64) -> Self {
        Self::new(id)
    }
}

impl Id for MessageId {
    fn made(id: u64) -> Self {
        Self::new(id)
    }
}

impl Id for InteractionId {
    fn made(id: u64) -> Self {
        Self::new(id)
    }
}
