//! Why a request has no answer.

use std::error::Error;

use url::Url;

use super::resolve::ResolveError;
use crate::domain::Failure;

/// What stands behind an [`HttpError`]; its texts name no URL.
pub type Cause = Box<dyn Error + Send + Sync + 'static>;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The connection, the answer or the next bytes did not come in time.
    #[error("{host} did not answer in time")]
    TimedOut {
        /// The host, with its port when that is not the scheme's own.
        host: String,
    },
    /// There is no connection.
    #[error("{host} cannot be reached")]
    Unreachable {
        /// The host.
        host: String,
        /// Why not.
        #[source]
        cause: Cause,
    },
    /// The connection broke, or what came over it was no HTTP.
    #[error("the answer of {host} broke off")]
    Cut {
        /// The host.
        host: String,
        /// How it broke.
        #[source]
        cause: Cause,
    },
    /// The body is longer than the caller takes.
    #[error("the answer of {host} is longer than {cap} bytes")]
    TooLarge {
        /// The host.
        host: String,
        /// The caller's bound, bytes.
        cap: u64,
    },
    /// The rule refused the URL or an address of its host; nothing was sent to it.
    #[error("{host} must not be asked: {why}")]
    Refused {
        /// The host, or the scheme of a URL that has none.
        host: String,
        /// What is wrong with it.
        why: String,
    },
    /// One redirect led to the next too often, or to no URL.
    #[error("the redirects of {host} lead nowhere: {why}")]
    Redirects {
        /// The host that was asked first.
        host: String,
        /// What is wrong with them.
        why: &'static str,
    },
    /// The client could not be made: our own matter.
    #[error("the HTTP client cannot be set up")]
    Setup(#[source] Cause),
}

impl HttpError {
    pub(super) fn setup(error: reqwest::Error) -> Self {
        Self::Setup(error.without_url().into())
    }

    /// What the library said about a request to `host`.
    pub(super) fn from_library(host: String, error: reqwest::Error) -> Self {
        let error = error.without_url();
        if let Some(resolve) = find::<ResolveError>(&error) {
            match resolve {
                ResolveError::Refused(why) => return Self::Refused { host, why: why.clone() },
                ResolveError::TimedOut => return Self::TimedOut { host },
                ResolveError::NoAddress | ResolveError::Lookup(_) => {}
            }
        }
        if error.is_timeout() {
            Self::TimedOut { host }
        } else if error.is_connect() {
            Self::Unreachable { host, cause: error.into() }
        } else {
            Self::Cut { host, cause: error.into() }
        }
    }

    /// The text with that of the innermost cause, in one line.
    fn line(&self) -> String {
        let mut last = None;
        let mut next = self.source();
        while let Some(cause) = next {
            last = Some(cause);
            next = cause.source();
        }
        last.map_or_else(|| self.to_string(), |cause| format!("{self}: {cause}"))
    }
}

impl From<HttpError> for Failure {
    /// The class that the error has when nothing more is known: what the network did may be better later, what was
    /// refused will not.
    fn from(error: HttpError) -> Self {
        match &error {
            HttpError::TimedOut { .. }
            | HttpError::Unreachable { .. }
            | HttpError::Cut { .. }
            | HttpError::Redirects { .. } => Self::transient(error.line()),
            HttpError::TooLarge { .. } => Self::TooLarge { what: error.line() },
            HttpError::Refused { host, why } => Self::Forbidden { what: format!("{host}, since {why}") },
            HttpError::Setup(_) => Self::ours(error.line()),
        }
    }
}

/// The first error of this type in the chain.
pub(super) fn find<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// How a URL is named in errors: its host, and its port when that is not the scheme's own.
pub(super) fn host(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => format!("{}:", url.scheme()),
    }
}
