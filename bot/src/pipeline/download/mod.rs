//! From a URL to bytes, which go to whoever wants them while they come.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::clock;
use crate::domain::{Failure, Stage};
use crate::http::Http;

mod attempt;
mod verdict;

use attempt::{Attempt, Trouble};
use verdict::Held;

/// The bounds of one download. All are strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DownloadLimits {
    /// The most bytes that a file may have. 512 MiB by default.
    pub max_bytes: u64,
    /// How long the whole download may take, attempts and pauses included. 5 minutes by default.
    pub timeout: Duration,
    /// How long nothing may come before a connection counts as broken. 15 s by default.
    pub idle: Duration,
    /// The most redirects of one request. 5 by default.
    pub max_redirects: u8,
    /// How many broken attempts may follow each other without much progress before it is given up. 5 by default.
    pub max_resumes: u32,
    /// The pause before the first resume; each further one is about twice as long, up to 5 s. 250 ms by default.
    pub backoff: Duration,
}

impl Default for DownloadLimits {
    fn default() -> Self {
        Self {
            max_bytes: 512 * 1024 * 1024,
            timeout: Duration::from_secs(300),
            idle: Duration::from_secs(15),
            max_redirects: 5,
            max_resumes: 5,
            backoff: Duration::from_millis(250),
        }
    }
}

/// Takes the bytes of a download as they come.
pub trait Sink: Send {
    /// The file begins; it has `total` bytes when that is known. Called once before the first bytes, and again after
    /// each [restart](Sink::restart) that was granted.
    fn begin(&mut self, total: Option<u64>);

    /// The next bytes of the file. Must not block.
    ///
    /// # Errors
    /// Ends the download with this failure.
    fn append(&mut self, chunk: Bytes) -> Result<(), Failure>;

    /// Forgets all bytes, since the file begins anew. False when what was given cannot be taken back.
    fn restart(&mut self) -> bool;
}

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Downloaded {
    /// The length of the file.
    pub bytes: u64,
    /// Its media type as the server named it, in lower case, without parameters.
    pub content_type: Option<String>,
    /// How often it was taken up again after it broke off.
    pub resumed: u32,
    /// The server said how long it is, so that all of it came. Without that, its end may be that of a connection.
    pub announced: bool,
}

/// Why a file did not come.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DownloadError {
    /// It is not there (404 or 410); another variant of the same medium may be.
    #[error("{host} does not have the file (status {status})")]
    Missing {
        /// The host.
        host: String,
        /// The status code.
        status: u16,
    },
    /// The server does not give it out (another 4xx); another variant may be given.
    #[error("{host} does not give the file out (status {status})")]
    Denied {
        /// The host.
        host: String,
        /// The status code.
        status: u16,
    },
    /// Something else.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl From<DownloadError> for Failure {
    /// The class when no variant is left to try. The file's absence does not prove the post's: what is known about
    /// the post may be old, so it is asked for anew before this is the last word.
    fn from(error: DownloadError) -> Self {
        match error {
            DownloadError::Missing { .. } | DownloadError::Denied { .. } => {
                Self::Missing { what: error.to_string() }
            }
            DownloadError::Failed(failure) => failure,
        }
    }
}

/// Fetches a file into `sink`.
///
/// A connection that breaks or falls silent is taken up again where it stopped, when the server can do that and the
/// file is still the same; else the file is begun anew, when the sink can do that. Bytes are never given twice and
/// never mixed from two versions.
///
/// Can be dropped at any point; the sink then has whole chunks from the beginning of the file. Cancelling takes effect
/// at the next await, which is at once, since nothing here blocks.
///
/// # Errors
/// [`DownloadError::Missing`] and [`DownloadError::Denied`] when another variant may help. In
/// [`DownloadError::Failed`]: `TooLarge` above `max_bytes`, before a byte is read when the length is announced;
/// `TimedOut` after `timeout`; `Forbidden` when a hop must not be asked; `Cancelled`; what the sink said; `Transient`
/// for everything that the network or the server did.
pub async fn download(
    http: &Http,
    url: &Url,
    limits: DownloadLimits,
    sink: &mut dyn Sink,
    cancel: &CancellationToken,
) -> Result<Downloaded, DownloadError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Failure::Cancelled.into()),
        fetched = tokio::time::timeout(limits.timeout, fetch(http, url, limits, sink)) => match fetched {
            Ok(fetched) => fetched,
            Err(_) => Err(Failure::TimedOut { stage: Stage::Download }.into()),
        },
    }
}

async fn fetch(
    http: &Http,
    url: &Url,
    limits: DownloadLimits,
    sink: &mut dyn Sink,
) -> Result<Downloaded, DownloadError> {
    let end = clock::instant().checked_add(limits.timeout);
    let pauses = ExponentialBuilder::new()
        .with_min_delay(limits.backoff)
        .with_max_delay(LONGEST_BACKOFF.max(limits.backoff))
        .with_max_times(usize::try_from(limits.max_resumes).unwrap_or(usize::MAX))
        .with_jitter();
    let mut pause = pauses.build();
    let mut held = Held::default();
    let mut furthest = 0;
    let mut resumed: u32 = 0;
    let mut silent: u32 = 0;
    loop {
        let attempt = Attempt { http, url, limits, sink: &mut *sink, held: &mut held };
        let begun = clock::instant();
        let (failure, retry_after) = match attempt.run().await {
            Ok(()) => {
                let announced = held.total.is_some();
                return Ok(Downloaded {
                    bytes: held.bytes,
                    content_type: held.content_type,
                    resumed,
                    announced,
                });
            }
            Err(Trouble::Final(error)) => return Err(error),
            Err(Trouble::Again { failure, retry_after }) => (failure, retry_after),
        };
        let took = begun.elapsed();
        // The bound on attempts is there against servers that bring nothing. One that brings a good part each time
        // gets there, and the length of the file bounds how often; beginning anew is no progress.
        if held.bytes.saturating_sub(furthest) >= GOOD_PART {
            furthest = held.bytes;
            pause = pauses.build();
        }
        // A server from which nothing at all comes is not waited for to the end: another variant may be had by then.
        silent = if held.bytes == 0 && took >= limits.idle { silent.saturating_add(1) } else { 0 };
        if silent >= MOST_SILENT {
            return Err(failure.into());
        }
        let Some(backoff) = pause.next() else { return Err(failure.into()) };
        let wait = retry_after.map_or(backoff, |asked| asked.max(backoff));
        // A pause beyond the end helps nobody: better to say now what is wrong and when to come back.
        if clock::instant().checked_add(wait).zip(end).is_none_or(|(then, end)| then >= end) {
            return Err(failure.into());
        }
        tokio::time::sleep(wait).await;
        if held.bytes > 0 {
            resumed = resumed.saturating_add(1);
        }
    }
}

/// The longest pause between two attempts that we choose ourselves.
const LONGEST_BACKOFF: Duration = Duration::from_secs(5);

/// Attempts in a row that end by the idle time-out without a byte.
const MOST_SILENT: u32 = 2;

/// As many bytes as make a broken attempt worth another one, whatever came before: 1 MiB.
const GOOD_PART: u64 = 1024 * 1024;
