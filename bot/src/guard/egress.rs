//! Which addresses the service may ask: the guard against links that lead into the operator's own network.

use std::net::IpAddr;

use url::{Host, Origin, Url};

mod address;
#[cfg(test)]
mod tests;

pub use address::Special;

/// What may be asked, as the operator wrote it.
#[derive(Clone, Debug, Default)]
pub struct EgressSettings {
    /// Lets addresses through that are not of the public internet, any port, and http to loopback hosts. Lifts
    /// nothing else: the host must still be allowed. False by default; for tests and the demo.
    pub allow_private: bool,
    /// The hosts that may be asked: a name or address as it is, or `*.example.com` for every name below
    /// `example.com` (not for itself). Empty by default, which allows no host.
    pub allow_hosts: Vec<String>,
    /// Base URLs that the operator configured. What has the same scheme, host and port is always reachable, by http
    /// too and at any address.
    pub always: Vec<Url>,
}

/// Judges URLs and addresses for one purpose. Pure: it resolves and connects to nothing.
#[derive(Clone, Debug)]
pub struct Egress {
    allow_private: bool,
    hosts: Vec<Pattern>,
    always: Vec<Origin>,
}

/// At which addresses a URL that passed may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only at addresses that [`Egress::check_address`] lets through.
    Public,
    /// At any address: it is configured, or private addresses are allowed.
    Anywhere,
}

/// Why something must not be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The scheme is not https, or not http where that is allowed.
    #[error("the scheme {0} is not allowed here")]
    Scheme(String),
    /// A user name or password stands in the URL.
    #[error("it names a user")]
    User,
    /// The URL has no host.
    #[error("it names no host")]
    NoHost,
    /// The host is not on the list.
    #[error("the host {0} is not on the list")]
    Host(String),
    /// The port is not the scheme's own.
    #[error("the port {0} is not allowed here")]
    Port(u16),
    /// The address is not of the public internet.
    #[error("the address {address} is {special}")]
    Address {
        /// The address.
        address: IpAddr,
        /// What it is instead.
        special: Special,
    },
}

/// A host pattern that names no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a host nor \"*.\" before a name")]
pub struct BadHost(String);

impl Egress {
    /// The guard with these settings.
    ///
    /// # Errors
    /// When one of the allowed hosts is no host: a list that is not understood must not be taken for another one.
    pub fn new(settings: &EgressSettings) -> Result<Self, BadHost> {
        let hosts = settings.allow_hosts.iter().map(|text| Pattern::parse(text)).collect::<Result<_, _>>()?;
        let always = settings.always.iter().map(Url::origin).filter(Origin::is_tuple).collect();
        Ok(Self { allow_private: settings.allow_private, hosts, always })
    }

    /// Judges a URL by what is written in it, before its host is resolved; asked again for each redirect.
    ///
    /// # Errors
    /// What is wrong with it first.
    pub fn check(&self, url: &Url) -> Result<Reach, Refusal> {
        let encrypted = match url.scheme() {
            "https" => true,
            "http" => false,
            other => return Err(Refusal::Scheme(other.to_owned())),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::User);
        }
        let host = url.host().map(undotted).ok_or(Refusal::NoHost)?;
        if self.always.contains(&url.origin()) {
            return Ok(Reach::Anywhere);
        }
        if !self.hosts.iter().any(|pattern| pattern.matches(&host)) {
            return Err(Refusal::Host(host.to_string()));
        }
        let this_machine = self.allow_private && is_loopback(&host);
        if !encrypted && !this_machine {
            return Err(Refusal::Scheme(url.scheme().to_owned()));
        }
        // The url crate gives no port when it is the scheme's own.
        match url.port() {
            Some(port) if !self.allow_private => return Err(Refusal::Port(port)),
            _ => {}
        }
        if self.allow_private {
            return Ok(Reach::Anywhere);
        }
        match host {
            Host::Ipv4(address) => self.check_address(address.into())?,
            Host::Ipv6(address) => self.check_address(address.into())?,
            Host::Domain(_) => {}
        }
        Ok(Reach::Public)
    }

    /// Judges an address that a host resolved to.
    ///
    /// # Errors
    /// When it is not of the public internet and private addresses are not allowed.
    pub fn check_address(&self, address: IpAddr) -> Result<(), Refusal> {
        match address::special(address) {
            Some(special) if !self.allow_private => Err(Refusal::Address { address, special }),
            _ => Ok(()),
        }
    }
}

/// One entry of the list of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Exact(Host<String>),
    /// Every name below this one, which is kept with its leading dot.
    Below(String),
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, BadHost> {
        let bad = || BadHost(text.to_owned());
        let trimmed = text.trim();
        let (name, below) = match trimmed.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (trimmed, false),
        };
        // An IPv6 address may stand without its brackets.
        let host = match name.parse() {
            Ok(address) => Host::Ipv6(address),
            Err(_) => Host::parse(name).map_err(|_| bad())?,
        };
        match (undotted(host), below) {
            (Host::Domain(name), _) if name.is_empty() || name.contains('*') => Err(bad()),
            (Host::Domain(name), true) => Ok(Self::Below(format!(".{name}"))),
            (_, true) => Err(bad()),
            (host, false) => Ok(Self::Exact(host)),
        }
    }

    fn matches(&self, host: &Host<String>) -> bool {
        match (self, host) {
            (Self::Exact(exact), host) => exact == host,
            (Self::Below(end), Host::Domain(name)) => name.len() > end.len() && name.ends_with(end.as_str()),
            (Self::Below(_), Host::Ipv4(_) | Host::Ipv6(_)) => false,
        }
    }
}

/// The host without the dot at its end that only says that it is a whole name.
fn undotted<S: AsRef<str>>(host: Host<S>) -> Host<String> {
    match host {
        Host::Domain(name) => {
            let name = name.as_ref();
            Host::Domain(name.strip_suffix('.').unwrap_or(name).to_owned())
        }
        Host::Ipv4(address) => Host::Ipv4(address),
        Host::Ipv6(address) => Host::Ipv6(address),
    }
}

/// Whether a host is this machine by its name alone.
fn is_loopback(host: &Host<String>) -> bool {
    match host {
        Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}
