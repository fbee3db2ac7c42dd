//! One request of a download: what it asks for, and where its bytes go.

use bytes::Bytes;
use url::Url;

use super::verdict::{Held, Next, judge};
use super::{DownloadError, DownloadLimits, Sink};
use crate::domain::Failure;
use crate::http::{Body, Http, HttpError, OpenRequest, Opened, RangeFrom};

/// One request.
pub(super) struct Attempt<'a> {
    pub(super) http: &'a Http,
    pub(super) url: &'a Url,
    pub(super) limits: DownloadLimits,
    pub(super) sink: &'a mut dyn Sink,
    pub(super) held: &'a mut Held,
}

/// How an attempt ended without the whole file.
#[derive(Debug)]
pub(super) enum Trouble {
    /// No further attempt would help, or it is not for us to make.
    Final(DownloadError),
    /// Another attempt may get further; the failure is the answer when there is none.
    Again {
        failure: Failure,
        /// The server asked for at least this long a pause.
        retry_after: Option<std::time::Duration>,
    },
}

impl Trouble {
    pub(super) fn again(what: impl Into<String>) -> Self {
        Self::Again { failure: Failure::transient(what), retry_after: None }
    }

    pub(super) fn fail(failure: Failure) -> Self {
        Self::Final(DownloadError::Failed(failure))
    }
}

impl From<HttpError> for Trouble {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::TimedOut { .. } | HttpError::Unreachable { .. } | HttpError::Cut { .. } => {
                Self::Again { failure: error.into(), retry_after: None }
            }
            HttpError::TooLarge { .. }
            | HttpError::Refused { .. }
            | HttpError::Redirects { .. }
            | HttpError::Setup(_) => Self::fail(error.into()),
        }
    }
}

impl Attempt<'_> {
    /// Asks for what is not held yet, and gives it to the sink. Whatever came before an error is held.
    pub(super) async fn run(mut self) -> Result<(), Trouble> {
        let version = self.held.version.clone();
        let range = self.held.resume_at().map(|first| RangeFrom { first, version: &version });
        let request = OpenRequest {
            max_redirects: self.limits.max_redirects,
            range,
            ..OpenRequest::new(self.url, self.limits.idle)
        };
        let Opened { head, body } = self.http.open(request).await?;
        let next = judge(&head, self.held, self.limits.max_bytes)?;
        let mut skip = 0;
        match next {
            Next::Begin => {
                self.held.begin(&head);
                self.sink.begin(self.held.total);
            }
            Next::Continue => self.held.learn(&head),
            Next::Skip => {
                self.held.learn(&head);
                skip = self.held.bytes;
            }
            Next::RangesAreNoHelp { what } => {
                self.held.ranges = false;
                return Err(Trouble::again(what));
            }
            Next::Anew { or_skip } => {
                if self.sink.restart() {
                    self.held.begin(&head);
                    self.sink.begin(self.held.total);
                } else if or_skip {
                    skip = self.held.bytes;
                } else {
                    let what = format!("the file of {} changed while it was fetched", head.host);
                    return Err(Trouble::fail(Failure::transient(what)));
                }
            }
        }
        self.drain(body, skip, &head.host).await
    }

    /// Reads the body, leaving out its first `skip` bytes.
    async fn drain(&mut self, mut body: Body, mut skip: u64, host: &str) -> Result<(), Trouble> {
        // The end is where the length says: a server that then keeps the connection open costs nothing.
        while self.held.total.is_none_or(|total| self.held.bytes < total) {
            let Some(mut chunk) = body.chunk().await? else { break };
            skip = cut_front(&mut chunk, skip);
            if !chunk.is_empty() {
                self.take(chunk, host)?;
            }
        }
        match self.held.total {
            _ if skip > 0 => Err(Trouble::again(format!("{host} sent less than the time before"))),
            Some(total) if self.held.bytes < total => {
                let what = format!("{host} sent {} of {total} bytes", self.held.bytes);
                Err(Trouble::again(what))
            }
            _ if self.held.bytes == 0 => {
                Err(Trouble::fail(Failure::transient(format!("{host} sent an empty file"))))
            }
            _ => Ok(()),
        }
    }

    fn take(&mut self, chunk: Bytes, host: &str) -> Result<(), Trouble> {
        let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        let bytes = self.held.bytes.saturating_add(length);
        if bytes > self.limits.max_bytes {
            let what = format!("the file of {host} has more than {} bytes", self.limits.max_bytes);
            return Err(Trouble::fail(Failure::TooLarge { what }));
        }
        if let Some(total) = self.held.total.filter(|total| bytes > *total) {
            let what = format!("{host} sent more than the {total} bytes that it announced");
            return Err(Trouble::fail(Failure::transient(what)));
        }
        self.sink.append(chunk).map_err(Trouble::fail)?;
        self.held.bytes = bytes;
        Ok(())
    }
}

/// Takes up to `skip` bytes off the front, and gives how many are still to be taken off what follows.
fn cut_front(chunk: &mut Bytes, skip: u64) -> u64 {
    let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
    match usize::try_from(skip) {
        Ok(front) if skip < length => {
            drop(chunk.split_to(front));
            0
        }
        _ => {
            chunk.clear();
            skip.saturating_sub(length)
        }
    }
}
