//! Turns names into addresses that were judged.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::rule::AddressRule;

/// Resolves by the system, and gives out a name's addresses only when all of them pass.
pub(super) struct Resolver {
    pub(super) timeout: Duration,
    /// `None` lets every address through.
    pub(super) rule: Option<AddressRule>,
}

/// Why a name gave no addresses.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResolveError {
    /// The rule refused one of them.
    #[error("{0}")]
    Refused(String),
    /// The system did not answer in time.
    #[error("its name was not resolved in time")]
    TimedOut,
    /// There are none.
    #[error("its name has no address")]
    NoAddress,
    /// The system said no.
    #[error("its name cannot be resolved")]
    Lookup(#[source] std::io::Error),
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (timeout, rule) = (self.timeout, self.rule.clone());
        Box::pin(async move {
            // The port is filled in by the connector.
            let lookup = tokio::net::lookup_host((name.as_str(), 0));
            let found: Vec<SocketAddr> = match tokio::time::timeout(timeout, lookup).await {
                Ok(Ok(found)) => found.collect(),
                Ok(Err(error)) => return Err(ResolveError::Lookup(error).into()),
                Err(_) => return Err(ResolveError::TimedOut.into()),
            };
            if found.is_empty() {
                return Err(ResolveError::NoAddress.into());
            }
            if let Some(rule) = rule {
                // One bad address among good ones is an attack or a mistake; neither is to be picked from.
                for address in &found {
                    rule(address.ip()).map_err(ResolveError::Refused)?;
                }
            }
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}
