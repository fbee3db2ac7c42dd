//! The clients below [`Http`](super::Http), and how they are set up.

use std::sync::Arc;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

use super::HttpSettings;
use super::error::HttpError;
use super::resolve::Resolver;
use super::rule::{AddressRule, Reach};

/// One client for each way of asking. They differ in what is fixed for a whole client, and share no connections: one
/// that was made to an address that only [`Reach::Anywhere`] allows is never used for [`Reach::Public`].
#[derive(Debug)]
pub(super) struct Clients {
    public: Pair,
    anywhere: Pair,
}

#[derive(Debug)]
struct Pair {
    /// Asks for gzip and undoes it.
    compressed: Client,
    /// Gives bytes as they are: ranges count those.
    plain: Client,
}

impl Clients {
    pub(super) fn new(settings: &HttpSettings) -> Result<Self, HttpError> {
        Ok(Self {
            public: Pair::new(settings, Some(&settings.egress.addresses))?,
            anywhere: Pair::new(settings, None)?,
        })
    }

    pub(super) fn pick(&self, reach: Reach, compressed: bool) -> &Client {
        let pair = match reach {
            Reach::Public => &self.public,
            Reach::Anywhere => &self.anywhere,
        };
        if compressed { &pair.compressed } else { &pair.plain }
    }
}

impl Pair {
    fn new(settings: &HttpSettings, rule: Option<&AddressRule>) -> Result<Self, HttpError> {
        let make = |gzip: bool| builder(settings, rule).gzip(gzip).build().map_err(HttpError::setup);
        Ok(Self { compressed: make(true)?, plain: make(false)? })
    }
}

fn builder(settings: &HttpSettings, rule: Option<&AddressRule>) -> ClientBuilder {
    let resolver = Resolver { timeout: settings.resolve_timeout, rule: rule.cloned() };
    Client::builder()
        .user_agent(USER_AGENT)
        .no_proxy()
        .referer(false)
        .redirect(Policy::none())
        .dns_resolver(Arc::new(resolver))
        .connect_timeout(settings.connect_timeout)
        .http1_max_headers(MAX_HEADERS)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
}

/// Names the program and where its operator finds it; one source refuses requests without a name.
const USER_AGENT: &str =
    concat!("azalea/", env!("CARGO_PKG_VERSION"), " (+self-hosted Discord bot for media of posts)");

/// More headers than any source sends. The bytes of an HTTP/1 head are bounded by the HTTP library (about 400 KiB).
const MAX_HEADERS: usize = 100;
/// The same bound for HTTP/2, in bytes of names and values.
const MAX_HEADER_BYTES: u32 = 64 * 1024;
