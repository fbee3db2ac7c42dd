//! The rule for what may be asked, as this room sees it: two functions that somebody else fills in.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use url::Url;

/// At which addresses a URL may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only at those that pass the rule for addresses.
    Public,
    /// At any.
    Anywhere,
}

/// Judges a URL before it is asked; the error says what is wrong with it, without naming its query.
pub type UrlRule = Arc<dyn Fn(&Url) -> Result<Reach, String> + Send + Sync>;

/// Judges an address before it is connected to; the error says what is wrong with it.
pub type AddressRule = Arc<dyn Fn(IpAddr) -> Result<(), String> + Send + Sync>;

/// What may be asked.
#[derive(Clone)]
pub struct EgressRule {
    /// Asked for every hop.
    pub urls: UrlRule,
    /// Asked for every address of a host whose URL has [`Reach::Public`], whether written or resolved.
    pub addresses: AddressRule,
}

impl fmt::Debug for EgressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressRule").finish_non_exhaustive()
    }
}
