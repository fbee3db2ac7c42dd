//! Calls a service: one request, its body as it is read, and the answer with its headers.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, Stream, TryStreamExt};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::multipart::{Form, Part};
use reqwest::{Method, RequestBuilder, Response};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, Take};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::Http;
use super::error::{HttpError, find, host};
use super::headers;
use crate::clock;

/// What [`Http::call`] sends.
#[derive(Debug)]
pub(crate) struct CallRequest<'a> {
    /// What to do.
    pub(crate) verb: Verb,
    /// Where to.
    pub(crate) url: &'a Url,
    /// What the service calls us by.
    pub(crate) user_agent: &'a str,
    /// The whole value of the Authorization header; never shown.
    pub(crate) authorization: Authorization,
    /// How long it may take from resolving to the last byte of the answer.
    pub(crate) timeout: Duration,
    /// The most bytes of the answer's body.
    pub(crate) cap: u64,
    /// The body.
    pub(crate) body: CallBody,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    const fn method(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete => Method::DELETE,
        }
    }
}

/// A value of the Authorization header that is never shown.
#[derive(Clone)]
pub(crate) struct Authorization(HeaderValue);

impl Authorization {
    /// `None` when a header cannot hold the text.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let mut value = HeaderValue::from_str(text).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorization")
    }
}

/// The body of a request.
#[derive(Debug)]
pub(crate) enum CallBody {
    /// None.
    Nothing,
    /// `application/json`.
    Json(Bytes),
    /// `multipart/form-data`.
    Form(Vec<Field>),
}

/// One part of a form.
#[derive(Debug)]
pub(crate) struct Field {
    /// Its name.
    pub(crate) name: String,
    /// The name of the file that it holds.
    pub(crate) file_name: Option<String>,
    /// Its media type; what is none counts as bytes of any kind.
    pub(crate) media_type: String,
    /// Its bytes.
    pub(crate) content: FieldContent,
}

/// The bytes of a part.
#[derive(Debug)]
pub(crate) enum FieldContent {
    /// In memory.
    Memory(Bytes),
    /// In a file, from where it stands, read as it is sent. It is a failure when it ends earlier; what stands behind
    /// is not sent.
    File {
        /// The file.
        file: File,
        /// How many bytes of it.
        bytes: u64,
    },
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct CallAnswer {
    /// The status code. A redirect is an answer too: it is not followed, since it would get the credentials.
    pub(crate) status: u16,
    /// The headers.
    pub(crate) headers: AnswerHeaders,
    /// The body, or why it did not come.
    pub(crate) body: Result<Bytes, HttpError>,
}

/// The headers of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerHeaders(HeaderMap);

impl AnswerHeaders {
    /// The value of a header when it is text; the name in lower case.
    pub(crate) fn get(&self, name: &'static str) -> Option<&str> {
        headers::text(&self.0, &HeaderName::from_static(name))
    }

    /// Headers with these names and values.
    #[cfg(test)]
    pub(crate) fn of(pairs: &[(&'static str, &str)]) -> Self {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        Self(pairs.iter().map(pair).collect())
    }
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// Nothing of the body was sent.
    #[error("nothing was sent")]
    Unsent(#[source] HttpError),
    /// What was to be sent could not be read, so it was not sent whole.
    #[error("what was to be sent cannot be read")]
    Source(#[source] io::Error),
    /// The body was sent, in part or whole: it may have been taken.
    #[error("it was sent, and there is no answer")]
    Unanswered(#[source] HttpError),
}

impl Http {
    /// Sends a request and gives the answer, whatever its status. The rule for URLs is asked; redirects are not
    /// followed.
    ///
    /// Can be dropped at any point, which breaks the request off; it may have been taken by then.
    ///
    /// # Errors
    /// When no answer began. They say whether anything was sent.
    pub(crate) async fn call(&self, request: CallRequest<'_>) -> Result<CallAnswer, CallError> {
        let CallRequest { verb, url, user_agent, authorization, timeout, cap, body } = request;
        let reach =
            self.judge(url).map_err(|why| CallError::Unsent(HttpError::Refused { host: host(url), why }))?;
        let begun = Begun::default();
        let builder = self.clients.pick(reach, false).request(verb.method(), url.clone());
        let builder = builder
            .header(header::USER_AGENT, user_agent)
            .header(header::AUTHORIZATION, authorization.0)
            .header(header::ACCEPT_ENCODING, "identity");
        // Without a body the request itself is what may have been taken.
        if matches!(body, CallBody::Nothing) && verb != Verb::Get {
            begun.set();
        }
        let builder = with_body(builder, body, &begun);
        // A wait that has no end on the clock ends in a year.
        let now = clock::instant();
        let end = now.checked_add(timeout).or_else(|| now.checked_add(YEAR)).unwrap_or(now);
        let error = match timeout_at(end, builder.send()).await {
            Ok(Ok(response)) => return Ok(answer(url, response, end, cap).await),
            Ok(Err(error)) => {
                if let Some(SourceError(error)) = find::<SourceError>(&error) {
                    return Err(CallError::Source(io::Error::new(error.kind(), error.to_string())));
                }
                HttpError::from_library(host(url), error)
            }
            Err(_) => HttpError::TimedOut { host: host(url) },
        };
        Err(if begun.get() { CallError::Unanswered(error) } else { CallError::Unsent(error) })
    }
}

async fn answer(url: &Url, mut response: Response, end: Instant, cap: u64) -> CallAnswer {
    let status = response.status().as_u16();
    let headers = AnswerHeaders(response.headers().clone());
    let host = host(url);
    let mut whole = BytesMut::new();
    let body = loop {
        match timeout_at(end, response.chunk()).await {
            Ok(Ok(Some(chunk))) => {
                let total = whole.len().saturating_add(chunk.len());
                if u64::try_from(total).map_or(true, |total| total > cap) {
                    break Err(HttpError::TooLarge { host, cap });
                }
                whole.extend_from_slice(&chunk);
            }
            Ok(Ok(None)) => break Ok(whole.freeze()),
            Ok(Err(error)) => break Err(HttpError::from_library(host, error)),
            Err(_) => break Err(HttpError::TimedOut { host }),
        }
    };
    CallAnswer { status, headers, body }
}

fn with_body(builder: RequestBuilder, body: CallBody, begun: &Begun) -> RequestBuilder {
    match body {
        // A length is said all the same: some servers want one with every POST and PUT.
        CallBody::Nothing => builder.header(header::CONTENT_LENGTH, 0),
        CallBody::Json(bytes) => {
            let length = bytes.len();
            builder
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::CONTENT_LENGTH, length)
                .body(reqwest::Body::wrap_stream(once(bytes, begun)))
        }
        // The length of each part is known, so the library knows and says that of the whole.
        CallBody::Form(fields) => {
            let form = Form::new().percent_encode_noop();
            builder.multipart(fields.into_iter().fold(form, |form, field| {
                let part = match field.content {
                    FieldContent::Memory(bytes) => {
                        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                        Part::stream_with_length(reqwest::Body::wrap_stream(once(bytes, begun)), length)
                    }
                    FieldContent::File { file, bytes } => {
                        Part::stream_with_length(reqwest::Body::wrap_stream(read(file, bytes, begun)), bytes)
                    }
                };
                form.part(field.name, labelled(part, field.file_name, &field.media_type))
            }))
        }
    }
}

fn labelled(part: Part, file_name: Option<String>, media_type: &str) -> Part {
    // Tried on another part, since a failure keeps the part it was tried on.
    let known = Part::text("").mime_str(media_type).is_ok();
    let part = match part.mime_str(if known { media_type } else { "application/octet-stream" }) {
        Ok(part) => part,
        Err(_) => Part::text(""),
    };
    match file_name {
        Some(name) => part.file_name(name),
        None => part,
    }
}

/// Whether any of the body was asked for by the connection.
#[derive(Clone, Debug, Default)]
struct Begun(Arc<AtomicBool>);

impl Begun {
    fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

fn once(bytes: Bytes, begun: &Begun) -> impl Stream<Item = Result<Bytes, SourceError>> + Send + 'static {
    let begun = begun.clone();
    stream::once(async move {
        begun.set();
        Ok(bytes)
    })
}

/// The next bytes of a file, piece by piece.
fn read(
    mut file: File,
    bytes: u64,
    begun: &Begun,
) -> impl Stream<Item = Result<Bytes, SourceError>> + Send + 'static {
    file.set_max_buf_size(PIECE);
    let begun = begun.clone();
    let pieces = stream::try_unfold(file.take(bytes), move |mut file| {
        begun.set();
        async move { Ok(next_piece(&mut file).await?.map(|piece| (piece, file))) }
    });
    pieces.map_err(SourceError)
}

/// `None` when all has been read.
async fn next_piece(file: &mut Take<File>) -> io::Result<Option<Bytes>> {
    if file.limit() == 0 {
        return Ok(None);
    }
    let mut piece = BytesMut::with_capacity(PIECE);
    if file.read_buf(&mut piece).await? == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is shorter than it was"));
    }
    Ok(Some(piece.freeze()))
}

/// What is to be sent cannot be read.
#[derive(Debug)]
struct SourceError(io::Error);

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for SourceError {}

/// What is read of a file at once. Two or three of them are in memory at a time.
const PIECE: usize = 64 * 1024;

const YEAR: Duration = Duration::from_secs(365 * 86_400);

#[cfg(test)]
mod tests;
