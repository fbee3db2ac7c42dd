//! Asks HTTP servers: the one door to the network, but for what a front end's own library does.
//!
//! This room never knows what is asked for, nor why an address is allowed: the rule for that is given to it. Its
//! invariants:
//!
//! - Each hop of a redirect passes the rule for URLs; each address that is connected to passes the rule for addresses,
//!   unless the rule for URLs said that the URL may be asked anywhere. Names are resolved once, by us, and the
//!   connection goes to the very addresses that were judged.
//! - The environment changes nothing: no proxies. Nothing is remembered or told beyond the request: no cookies, no
//!   referer, no credentials but those that the caller of a POST gives, which follow no redirect.
//! - Every wait ends and every body is bounded.
//! - Errors name the host and what happened, never a path or a query.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use url::Url;

use crate::clock::Clock;

mod call;
mod client;
#[cfg(test)]
pub(crate) mod double;
mod error;
mod headers;
mod open;
mod resolve;
mod rule;

pub(crate) use call::{
    AnswerHeaders, Authorization, CallAnswer, CallBody, CallError, CallRequest, Field, FieldContent, Verb,
};
pub use error::{Cause, HttpError};
pub use headers::{ContentRange, Validator};
pub use open::{Body, Head, OpenRequest, Opened, RangeFrom};
pub use rule::{AddressRule, EgressRule, Reach, UrlRule};

use client::Clients;

/// How requests are made.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// What may be asked.
    pub egress: EgressRule,
    /// How long a name may take to be resolved. 5 s by default.
    pub resolve_timeout: Duration,
    /// How long a connection may take from resolving to the end of the TLS handshake. 10 s by default.
    pub connect_timeout: Duration,
    /// Tells the time of day, against which a Retry-After date is held.
    pub clock: Clock,
}

impl HttpSettings {
    /// The default settings with this rule. There is no default rule, since it would let everything or nothing
    /// through.
    pub fn new(egress: EgressRule) -> Self {
        Self {
            egress,
            resolve_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(10),
            clock: Clock::system(),
        }
    }
}

/// Asks HTTP servers. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Http {
    clients: Arc<Clients>,
    rule: EgressRule,
    clock: Clock,
}

/// The whole answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code. Any code is an answer; redirects were followed.
    pub status: u16,
    /// The media type in lower case, without parameters.
    pub content_type: Option<String>,
    /// How long a pause the server asked for, at most a day.
    pub retry_after: Option<Duration>,
    /// The body, decompressed.
    pub body: Bytes,
}

impl Http {
    /// Makes the connections' settings; connects to nothing.
    ///
    /// # Errors
    /// [`HttpError::Setup`] when the system's certificates cannot be used.
    pub fn new(settings: HttpSettings) -> Result<Self, HttpError> {
        let clients = Arc::new(Clients::new(&settings)?);
        Ok(Self { clients, rule: settings.egress, clock: settings.clock })
    }

    /// The same, with another rule for URLs: what one purpose may ask, another may not. Shares connections and the
    /// rule for addresses.
    #[must_use]
    pub fn with_urls(&self, urls: UrlRule) -> Self {
        let mut other = self.clone();
        other.rule.urls = urls;
        other
    }

    /// Fetches a whole answer of at most `cap` bytes (after decompression) within `timeout`, over at most
    /// [`MAX_REDIRECTS`] redirects.
    ///
    /// Can be dropped at any point, which ends the request.
    ///
    /// # Errors
    /// Everything in [`HttpError`] but a status code, which is an answer.
    pub async fn get(&self, url: &Url, timeout: Duration, cap: u64) -> Result<Answer, HttpError> {
        let whole = async {
            let request = OpenRequest { compressed: true, ..OpenRequest::new(url, timeout) };
            let Opened { head, mut body } = self.open(request).await?;
            let host = head.host;
            if head.content_length.is_some_and(|length| length > cap) {
                return Err(HttpError::TooLarge { host, cap });
            }
            let mut whole = BytesMut::new();
            while let Some(chunk) = body.chunk().await? {
                let total = whole.len().saturating_add(chunk.len());
                if u64::try_from(total).map_or(true, |total| total > cap) {
                    return Err(HttpError::TooLarge { host, cap });
                }
                whole.extend_from_slice(&chunk);
            }
            Ok(Answer {
                status: head.status,
                content_type: head.content_type,
                retry_after: head.retry_after,
                body: whole.freeze(),
            })
        };
        match tokio::time::timeout(timeout, whole).await {
            Ok(answer) => answer,
            Err(_) => Err(HttpError::TimedOut { host: error::host(url) }),
        }
    }
}

/// The most redirects that [`Http::get`] follows.
pub const MAX_REDIRECTS: u8 = 5;
