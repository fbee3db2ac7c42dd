//! Asks, follows redirects, and hands out the body as it comes.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header;
use reqwest::{RequestBuilder, Response};
use url::{Host, Url};

use super::error::{HttpError, host};
use super::headers::{self, ContentRange, Validator};
use super::rule::Reach;
use super::{Http, MAX_REDIRECTS};

/// What [`Http::open`] asks for.
#[derive(Clone, Debug)]
pub struct OpenRequest<'a> {
    /// The URL.
    pub url: &'a Url,
    /// How long the head of each hop's answer, and each part of the body, may take to come.
    pub idle: Duration,
    /// The most redirects to follow. [`MAX_REDIRECTS`] by default.
    pub max_redirects: u8,
    /// Where in the file to begin. `None` asks for the whole.
    pub range: Option<RangeFrom<'a>>,
    /// Lets the server compress the answer, which undoes lengths and ranges. False by default.
    pub compressed: bool,
}

/// Asks for a file from a place on.
#[derive(Clone, Copy, Debug)]
pub struct RangeFrom<'a> {
    /// The place of the first byte that is wanted.
    pub first: u64,
    /// The version that is meant; the server gives the whole when it has another one by now.
    pub version: &'a Validator,
}

impl<'a> OpenRequest<'a> {
    /// Asks for the whole of this URL.
    pub const fn new(url: &'a Url, idle: Duration) -> Self {
        Self { url, idle, max_redirects: MAX_REDIRECTS, range: None, compressed: false }
    }
}

/// An answer whose body is still to come.
#[derive(Debug)]
pub struct Opened {
    /// What stands before the body.
    pub head: Head,
    /// The body.
    pub body: Body,
}

/// What an answer says about itself.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The status code, after redirects.
    pub status: u16,
    /// The media type in lower case, without parameters.
    pub content_type: Option<String>,
    /// How many bytes the body is announced to have; `None` when that is not said, or when it is compressed.
    pub content_length: Option<u64>,
    /// Which part of the file it is, when it is a part.
    pub content_range: Option<ContentRange>,
    /// What tells this version of the file apart.
    pub version: Validator,
    /// Whether the bytes are compressed although that was not asked for: ranges and lengths then count other bytes.
    pub encoded: bool,
    /// How long a pause the server asked for, at most a day.
    pub retry_after: Option<Duration>,
    /// The host that answered, for errors.
    pub host: String,
}

/// A body as it comes. Dropping it ends the connection unless it was read to its end.
#[derive(Debug)]
pub struct Body {
    response: Response,
    host: String,
    idle: Duration,
}

impl Body {
    /// The next part of the body, of any length; `None` at its end.
    ///
    /// Can be dropped at any point, and loses nothing.
    ///
    /// # Errors
    /// [`HttpError::TimedOut`] when no bytes come for the idle time, [`HttpError::Cut`] when the connection breaks or
    /// the body ends before its announced length.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        match tokio::time::timeout(self.idle, self.response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) => Err(HttpError::from_library(self.host.clone(), error)),
            Err(_) => Err(HttpError::TimedOut { host: self.host.clone() }),
        }
    }
}

impl Http {
    /// Asks for a URL and gives the head of the answer, of whatever status; redirects are followed.
    ///
    /// Can be dropped at any point, which ends the request.
    ///
    /// # Errors
    /// Everything in [`HttpError`] but [`HttpError::TooLarge`].
    pub async fn open(&self, request: OpenRequest<'_>) -> Result<Opened, HttpError> {
        let mut url = request.url.clone();
        for _ in 0..=request.max_redirects {
            let response = self.hop(&url, &request).await?;
            match redirect(&response) {
                Some(Ok(location)) => url = join(&url, &location, request.url)?,
                Some(Err(why)) => return Err(HttpError::Redirects { host: host(request.url), why }),
                None => return Ok(self.opened(&url, response, request.idle)),
            }
        }
        Err(HttpError::Redirects { host: host(request.url), why: "there are too many" })
    }

    /// One request, without following where it leads.
    async fn hop(&self, url: &Url, request: &OpenRequest<'_>) -> Result<Response, HttpError> {
        let reach = self.judge(url).map_err(|why| HttpError::Refused { host: host(url), why })?;
        let mut builder = self.clients.pick(reach, request.compressed).get(url.clone());
        if !request.compressed {
            builder = builder.header(header::ACCEPT_ENCODING, "identity");
        }
        if let Some(range) = request.range {
            builder = ranged(builder, range);
        }
        match tokio::time::timeout(request.idle, builder.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(HttpError::from_library(host(url), error)),
            Err(_) => Err(HttpError::TimedOut { host: host(url) }),
        }
    }

    /// Whether a URL may be asked, and where. A written address never meets the resolver, so it is judged here.
    pub(super) fn judge(&self, url: &Url) -> Result<Reach, String> {
        let reach = (self.rule.urls)(url)?;
        let written: Option<IpAddr> = match url.host() {
            Some(Host::Ipv4(address)) => Some(address.into()),
            Some(Host::Ipv6(address)) => Some(address.into()),
            Some(Host::Domain(_)) | None => None,
        };
        if let (Reach::Public, Some(address)) = (reach, written) {
            (self.rule.addresses)(address)?;
        }
        Ok(reach)
    }

    fn opened(&self, url: &Url, response: Response, idle: Duration) -> Opened {
        let map = response.headers();
        let head = Head {
            status: response.status().as_u16(),
            content_type: headers::media_type(map),
            content_length: response.content_length(),
            content_range: ContentRange::read(map),
            version: Validator::read(map),
            encoded: headers::is_encoded(map),
            retry_after: headers::retry_after(map, self.clock.now()),
            host: host(url),
        };
        Opened { head, body: Body { response, host: host(url), idle } }
    }
}

fn ranged(builder: RequestBuilder, range: RangeFrom<'_>) -> RequestBuilder {
    let builder = builder.header(header::RANGE, format!("bytes={}-", range.first));
    match range.version.strongest() {
        Some(version) => builder.header(header::IF_RANGE, version),
        None => builder,
    }
}

/// Where a redirect leads; `None` when the answer is none.
fn redirect(response: &Response) -> Option<Result<String, &'static str>> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = headers::text(response.headers(), &header::LOCATION);
    Some(location.map(str::to_owned).ok_or("one names no place"))
}

fn join(base: &Url, location: &str, asked: &Url) -> Result<Url, HttpError> {
    let mut url = base
        .join(location)
        .map_err(|_| HttpError::Redirects { host: host(asked), why: "one names no valid place" })?;
    url.set_fragment(None);
    Ok(url)
}
