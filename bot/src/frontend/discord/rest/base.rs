//! Where Discord is asked.

use std::sync::Arc;

use url::{Host, Url};

use crate::http::{Reach, UrlRule};

/// Why nothing can be asked at a base.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadBase {
    /// The token would go over the network in the clear.
    #[error("{host} must be asked by https: plain http is for this machine only")]
    Plain {
        /// The host.
        host: String,
    },
    /// It is no address of a web server.
    #[error("it must be an http or https URL with a host, and without a user")]
    Shape,
}

/// Whether the base can be asked: https anywhere, http at this machine.
///
/// # Errors
/// When it cannot, and why.
pub(crate) fn check_base(base: &Url) -> Result<(), BadBase> {
    let host = base.host().ok_or(BadBase::Shape)?;
    if !base.username().is_empty() || base.password().is_some() {
        return Err(BadBase::Shape);
    }
    match base.scheme() {
        "https" => Ok(()),
        "http" if is_this_machine(&host) => Ok(()),
        "http" => Err(BadBase::Plain { host: host.to_string() }),
        _ => Err(BadBase::Shape),
    }
}

/// Whether a host is this machine, whatever the network says.
pub(crate) fn is_this_machine(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// Lets nothing be asked but this base. The operator named it, so it may stand at any address.
pub(super) fn only(base: &Url) -> UrlRule {
    let checked = check_base(base).map_err(|bad| bad.to_string());
    let origin = base.origin();
    Arc::new(move |url| {
        checked.clone()?;
        if url.origin() == origin { Ok(Reach::Anywhere) } else { Err("it is not the configured base".into()) }
    })
}

/// Where a path of the interface is. The base may have a path of its own, as a proxy's does.
pub(super) fn below(base: &Url, path: &str, query: Option<&str>) -> Url {
    let mut url = base.clone();
    let path = format!("{}/api/v10{path}", base.path().trim_end_matches('/'));
    url.set_path(&path);
    url.set_query(query);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base: &str, expected: Result<(), &str>) {
        let checked = check_base(&Url::parse(base).unwrap()).map_err(|bad| bad.to_string());
        assert_eq!(checked, expected.map_err(str::to_owned), "{base}");
    }

    #[test]
    fn a_token_goes_in_the_clear_to_this_machine_only() {
        for good in [
            "https://discord.com",
            "https://proxy.example:8443/discord",
            "http://127.0.0.1:3001",
            "http://127.8.0.1",
            "http://[::1]:3001",
            "http://localhost:3001",
            "http://spacebar.localhost",
        ] {
            check(good, Ok(()));
        }
        let plain =
            |host: &str| format!("{host} must be asked by https: plain http is for this machine only");
        check("http://discord.com", Err(&plain("discord.com")));
        check("http://192.168.0.5:3001", Err(&plain("192.168.0.5")));
        check("http://localhost.example", Err(&plain("localhost.example")));
        let shape = "it must be an http or https URL with a host, and without a user";
        for bad in ["ftp://127.0.0.1", "mailto:a@b.example", "https://a@discord.com", "http://:b@127.0.0.1"] {
            check(bad, Err(shape));
        }
    }

    #[test]
    fn nothing_else_is_asked() {
        let rule = only(&Url::parse("https://discord.com").unwrap());
        let ask = |url: &str| rule(&Url::parse(url).unwrap());
        assert_eq!(ask("https://discord.com/api/v10/channels/1/messages"), Ok(Reach::Anywhere));
        for other in ["http://discord.com/", "https://discord.com:444/", "https://discord.example/"] {
            assert!(ask(other).is_err(), "{other}");
        }
    }

    #[test]
    fn everything_is_below_the_base() {
        let url = |base: &str| below(&Url::parse(base).unwrap(), "/channels/42/messages", None).to_string();
        assert_eq!(url("https://discord.com"), "https://discord.com/api/v10/channels/42/messages");
        assert_eq!(url("http://127.0.0.1:3001/"), "http://127.0.0.1:3001/api/v10/channels/42/messages");
        assert_eq!(url("https://a.example/b/?q#f"), "https://a.example/b/api/v10/channels/42/messages");
    }
}
