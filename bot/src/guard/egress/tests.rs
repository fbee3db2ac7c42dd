//! What the guard lets through and what it refuses.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn guard(allow_private: bool, hosts: &[&str], always: &[&str]) -> Egress {
    let settings = EgressSettings {
        allow_private,
        allow_hosts: hosts.iter().map(ToString::to_string).collect(),
        always: always.iter().map(|text| Url::parse(text).unwrap()).collect(),
    };
    Egress::new(&settings).unwrap()
}

#[track_caller]
fn check(guard: &Egress, url: &str) -> Result<Reach, Refusal> {
    guard.check(&Url::parse(url).unwrap())
}

fn special(text: &str) -> Option<Special> {
    address::special(text.parse().unwrap())
}

#[test]
fn only_listed_hosts_are_asked_by_https_at_their_own_port() {
    let guard = guard(false, &["pbs.twimg.com", "*.video.twimg.com"], &[]);
    for good in [
        "https://pbs.twimg.com/media/a.jpg?name=orig",
        "https://PBS.TWIMG.COM:443/",
        "https://pbs.twimg.com./",
        "https://a.video.twimg.com/",
        "https://b.a.video.twimg.com/",
    ] {
        assert_eq!(check(&guard, good), Ok(Reach::Public), "{good}");
    }
    let host = |name: &str| Err(Refusal::Host(name.to_owned()));
    assert_eq!(check(&guard, "https://video.twimg.com/"), host("video.twimg.com"));
    assert_eq!(check(&guard, "https://evilvideo.twimg.com/"), host("evilvideo.twimg.com"));
    assert_eq!(check(&guard, "https://pbs.twimg.com.evil.example/"), host("pbs.twimg.com.evil.example"));
    assert_eq!(check(&guard, "http://pbs.twimg.com/"), Err(Refusal::Scheme("http".into())));
    assert_eq!(check(&guard, "https://pbs.twimg.com:8443/"), Err(Refusal::Port(8443)));
    assert_eq!(check(&guard, "https://pbs.twimg.com:80/"), Err(Refusal::Port(80)));
}

#[test]
fn other_schemes_and_users_are_refused_everywhere() {
    let guard = guard(true, &["localhost", "127.0.0.1"], &["http://127.0.0.1:3001"]);
    for (url, scheme) in
        [("file:///etc/passwd", "file"), ("ftp://localhost/", "ftp"), ("data:text/plain,a", "data")]
    {
        assert_eq!(check(&guard, url), Err(Refusal::Scheme(scheme.into())), "{url}");
    }
    assert_eq!(check(&guard, "http://ann@127.0.0.1:3001/"), Err(Refusal::User));
    assert_eq!(check(&guard, "http://:secret@127.0.0.1:3001/"), Err(Refusal::User));
}

#[test]
fn configured_origins_are_always_reachable_and_nothing_beside_them() {
    let guard = guard(false, &[], &["http://127.0.0.1:3001/base", "https://api.example"]);
    assert_eq!(check(&guard, "http://127.0.0.1:3001/other?a=b"), Ok(Reach::Anywhere));
    assert_eq!(check(&guard, "https://api.example:443/i/status/1"), Ok(Reach::Anywhere));
    for other in [
        "http://127.0.0.1:3002/",
        "https://127.0.0.1:3001/",
        "http://localhost:3001/",
        "http://api.example/",
        "https://api.example:444/",
        "https://sub.api.example/",
    ] {
        assert!(matches!(check(&guard, other), Err(Refusal::Host(_))), "{other}");
    }
}

#[test]
fn allowing_private_addresses_does_not_lift_the_list() {
    let guard = guard(true, &["127.0.0.1", "localhost", "::1", "media.example"], &[]);
    for good in [
        "http://127.0.0.1:9/",
        "http://localhost:9/",
        "http://[::1]:9/",
        "https://media.example:8443/",
        "http://0x7f.1:9/",
    ] {
        assert_eq!(check(&guard, good), Ok(Reach::Anywhere), "{good}");
    }
    assert!(guard.check_address(Ipv4Addr::LOCALHOST.into()).is_ok());
    assert!(matches!(check(&guard, "http://127.0.0.2:9/"), Err(Refusal::Host(_))));
    assert!(matches!(check(&guard, "https://other.example/"), Err(Refusal::Host(_))));
    assert_eq!(check(&guard, "http://media.example/"), Err(Refusal::Scheme("http".into())));
}

#[test]
fn an_address_is_the_same_in_every_spelling() {
    // The list names it, so only the rule for addresses stands between.
    let guard = guard(false, &["127.0.0.1", "169.254.169.254", "::ffff:a00:1"], &[]);
    for url in [
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://127.0.0.1./",
        "https://%31%32%37.0.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://0xa9fea9fe/",
        "https://[::ffff:10.0.0.1]/",
    ] {
        assert!(
            matches!(check(&guard, url), Err(Refusal::Address { .. })),
            "{url}: {:?}",
            check(&guard, url)
        );
    }
}

#[test]
fn a_list_that_names_no_host_is_refused() {
    for bad in ["", "*", "*.", "*.*.example", "a b", "http://example.com", "*.127.0.0.1", "a*.example"] {
        let settings = EgressSettings { allow_hosts: vec![bad.into()], ..EgressSettings::default() };
        assert!(Egress::new(&settings).is_err(), "{bad:?}");
    }
    let empty = guard(false, &[], &[]);
    assert!(matches!(check(&empty, "https://example.com/"), Err(Refusal::Host(_))));
}

#[test]
fn a_list_reads_names_as_urls_do() {
    let guard = guard(false, &["Bücher.example", "*.BÜCHER.example", " spaced.example "], &[]);
    for good in ["https://bücher.example/", "https://a.xn--bcher-kva.example/", "https://spaced.example/"] {
        assert_eq!(check(&guard, good), Ok(Reach::Public), "{good}");
    }
}

#[test]
fn public_addresses_pass() {
    for good in [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2a00:1450::1",
        "::ffff:1.1.1.1",
        "64:ff9b::1.1.1.1",
        "2002:101:101::1",
        "2001:200::1",
    ] {
        assert_eq!(special(good), None, "{good}");
    }
}

#[test]
fn special_addresses_are_named() {
    for (text, what) in [
        ("0.0.0.0", Special::Unspecified),
        ("0.255.255.255", Special::Unspecified),
        ("10.0.0.0", Special::Private),
        ("10.255.255.255", Special::Private),
        ("100.64.0.0", Special::Carrier),
        ("100.127.255.255", Special::Carrier),
        ("100.100.100.200", Special::Metadata),
        ("127.0.0.1", Special::Loopback),
        ("127.255.255.255", Special::Loopback),
        ("168.63.129.16", Special::Metadata),
        ("169.254.0.1", Special::LinkLocal),
        ("169.254.169.254", Special::Metadata),
        ("172.16.0.0", Special::Private),
        ("172.31.255.255", Special::Private),
        ("192.0.0.8", Special::Reserved),
        ("192.0.2.255", Special::Documentation),
        ("192.168.0.1", Special::Private),
        ("198.18.0.0", Special::Benchmark),
        ("198.19.255.255", Special::Benchmark),
        ("198.51.100.7", Special::Documentation),
        ("203.0.113.7", Special::Documentation),
        ("224.0.0.1", Special::Multicast),
        ("239.255.255.255", Special::Multicast),
        ("240.0.0.1", Special::Reserved),
        ("255.255.255.255", Special::Reserved),
        ("::", Special::Unspecified),
        ("::1", Special::Loopback),
        ("::127.0.0.1", Special::Loopback),
        ("::ffff:127.0.0.1", Special::Loopback),
        ("::ffff:0:10.0.0.1", Special::Private),
        ("64:ff9b::10.0.0.1", Special::Private),
        ("64:ff9b::a9fe:a9fe", Special::Metadata),
        ("64:ff9b:1::1", Special::Private),
        ("2002:7f00:1::", Special::Loopback),
        ("2002:c0a8:101::1", Special::Private),
        ("2001::1", Special::Reserved),
        ("2001:2::1", Special::Benchmark),
        ("2001:db8::1", Special::Documentation),
        ("3fff:fff::1", Special::Documentation),
        ("fc00::1", Special::Private),
        ("fd00:ec2::254", Special::Metadata),
        ("fdff::1", Special::Private),
        ("fe80::1", Special::LinkLocal),
        ("febf::1", Special::LinkLocal),
        ("fec0::1", Special::Private),
        ("ff02::1", Special::Multicast),
        ("100::1", Special::Reserved),
        ("4000::1", Special::Reserved),
        ("5f00::1", Special::Reserved),
    ] {
        assert_eq!(special(text), Some(what), "{text}");
    }
}

proptest! {
    /// Wrapping an address never makes it look better than it is.
    #[test]
    fn a_wrapped_address_is_judged_as_what_it_wraps(bits: u32) {
        let plain = Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = plain.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let judged = address::special(plain.into());
        for wrapped in [
            plain.to_ipv6_mapped(),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
        ] {
            prop_assert_eq!(address::special(wrapped.into()), judged);
        }
    }

    /// What the standard library calls private, local or special is never let through.
    #[test]
    fn nothing_that_std_calls_special_passes(bits: u32) {
        let address = Ipv4Addr::from_bits(bits);
        let known = address.is_private()
            || address.is_loopback()
            || address.is_link_local()
            || address.is_multicast()
            || address.is_broadcast()
            || address.is_documentation()
            || address.is_unspecified();
        prop_assert!(!known || address::special(address.into()).is_some());
    }

    /// Any text that reads as a URL gets an answer, and only https passes without leave.
    #[test]
    fn no_text_panics(text in "(https?|file|ftp)://[a-z0-9.:@%\\[\\]-]{0,40}/.{0,10}") {
        if let Ok(url) = Url::parse(&text)
            && guard(false, &["*.example", "127.0.0.1"], &[]).check(&url).is_ok()
        {
            prop_assert_eq!(url.scheme(), "https");
        }
    }
}
