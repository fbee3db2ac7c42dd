//! What the sources that are asked over HTTP have in common.

use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use url::Url;

use crate::clock::{self, Instant};
use crate::http::Http;
use crate::source::failure::SourceFailure;
use crate::source::{SourceName, SourceSettingsError, WebSourceSettings};

/// One source's door to the web.
#[derive(Clone, Debug)]
pub(super) struct Web {
    http: Http,
    base: String,
    timeout: Duration,
}

/// An answer whose trouble, if it had any, was already told apart.
#[derive(Debug)]
pub(super) struct Told {
    /// 200 to 299, 401, 404 or 410; everything else is a failure.
    pub(super) status: u16,
    json: Option<Bytes>,
}

impl Web {
    /// The door to the source at the configured address.
    ///
    /// # Errors
    /// When that is no address that paths can be put behind.
    pub(super) fn new(
        name: SourceName,
        settings: &WebSourceSettings,
        http: Http,
    ) -> Result<Self, SourceSettingsError> {
        let address = settings.base_url.trim();
        let bad = |why| SourceSettingsError::Address { source_name: name, address: address.to_owned(), why };
        let url = Url::parse(address).map_err(|_| bad("it is no URL"))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(bad("it begins with neither http:// nor https://"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(bad("it has a query or a fragment"));
        }
        Ok(Self { http, base: address.trim_end_matches('/').to_owned(), timeout: settings.timeout })
    }

    /// When a look-up that begins now must have ended.
    pub(super) fn deadline(&self) -> Option<Instant> {
        clock::instant().checked_add(self.timeout)
    }

    /// Asks for `path`, which begins with a slash, until `deadline`; `None` means as long as the time-out allows.
    ///
    /// # Errors
    /// When there is no answer, or one that speaks of the source's trouble.
    pub(super) async fn ask(&self, path: &str, deadline: Option<Instant>) -> Result<Told, SourceFailure> {
        let url = Url::parse(&format!("{}{path}", self.base))
            .map_err(|_| SourceFailure::ours("the address of the post cannot be built"))?;
        let left =
            deadline.map_or(self.timeout, |deadline| deadline.saturating_duration_since(clock::instant()));
        let answer = self.http.get(&url, left, MOST_BYTES).await.map_err(crate::domain::Failure::from)?;
        let what = || format!("it answered with status {}", answer.status);
        match answer.status {
            200..=299 | 401 | 404 | 410 => {}
            408 | 425 | 429 | 500..=599 => {
                return Err(SourceFailure::Transient { what: what(), retry_after: answer.retry_after });
            }
            // 403 is what the guards before these services give to whom they take for a robot.
            _ => return Err(SourceFailure::transient(what())),
        }
        let is_json = answer.content_type.is_some_and(|kind| kind.to_ascii_lowercase().contains("json"));
        Ok(Told { status: answer.status, json: is_json.then_some(answer.body) })
    }
}

impl Told {
    /// What it says.
    ///
    /// # Errors
    /// Transient, when it is no JSON: an error page with the status of a success is what an outage looks like.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, SourceFailure> {
        let Some(json) = &self.json else {
            return Err(SourceFailure::transient(format!("it answered {} without JSON", self.status)));
        };
        // The depth is bounded by serde_json, the size by what was asked for.
        serde_json::from_slice(json)
            .map_err(|error| SourceFailure::transient(format!("its JSON is unreadable ({error})")))
    }

    /// Whether its status is a success.
    pub(super) const fn is_success(&self) -> bool {
        matches!(self.status, 200..=299)
    }
}

/// A post with a long text, a quote and many variants has some 40 KiB.
const MOST_BYTES: u64 = 2 * 1_024 * 1_024;
