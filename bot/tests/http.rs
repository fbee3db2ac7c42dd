//! Requests over real sockets: what is asked, what is not, and how every wait ends.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on must fail")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use azalea_bot::domain::Failure;
use azalea_bot::guard::egress::EgressSettings;
use azalea_bot::http::{EgressRule, Http, HttpError, HttpSettings, Reach};
use support::reply::{Length, Reply};
use support::server::Server;
use support::{http_to, http_with, pattern};
use url::Url;

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(150);
const CAP: u64 = 10_000;

#[tokio::test]
async fn an_answer_has_status_type_and_body() {
    let server = Server::start().await;
    let reply = Reply::ok(&b"{}"[..]).header("Content-Type", "Application/JSON; charset=utf-8");
    server.on("/a", [reply, Reply::status(429).header("Retry-After", "7")]);
    let http = http_to(&[server.base()]);

    let good = http.get(&server.url("/a?id=1"), LONG, CAP).await.unwrap();
    assert_eq!((good.status, &*good.body), (200, &b"{}"[..]));
    assert_eq!(good.content_type.as_deref(), Some("application/json"));
    let busy = http.get(&server.url("/a?id=1"), LONG, CAP).await.unwrap();
    assert_eq!((busy.status, busy.retry_after), (429, Some(Duration::from_secs(7))));

    let [seen, _] = &server.seen("/a")[..] else { panic!() };
    assert_eq!(seen.target, "/a?id=1");
    assert!(seen.header("user-agent").unwrap().starts_with("azalea/"));
    assert_eq!(seen.header("accept-encoding"), Some("gzip"));
    assert_eq!((seen.header("cookie"), seen.header("referer")), (None, None));
}

#[tokio::test]
async fn redirects_are_followed_up_to_a_bound() {
    let server = Server::start().await;
    for hop in 0..9 {
        server.on(&format!("/{hop}"), [Reply::redirect(&format!("/{}", hop + 1))]);
    }
    server.on("/9", [Reply::ok(&b"end"[..])]);
    let http = http_to(&[server.base()]);

    assert_eq!(&*http.get(&server.url("/4"), LONG, CAP).await.unwrap().body, b"end");
    let error = http.get(&server.url("/0?secret"), LONG, CAP).await.unwrap_err();
    assert!(matches!(error, HttpError::Redirects { .. }), "{error}");
    assert_eq!(server.hits("/6"), 1, "only by the request that began at /4");
}

#[tokio::test]
async fn a_redirect_to_where_nobody_may_go_is_refused_unasked() {
    let (server, other) = (Server::start().await, Server::start().await);
    let http = http_to(&[server.base()]);
    let inward = other.url("/inside").to_string();
    for to in [
        "http://169.254.169.254/latest/meta-data/",
        "https://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        "https://[::ffff:169.254.169.254]/",
        "//localhost/",
        &inward,
    ] {
        server.on("/", [Reply::redirect(to)]);
        let error = http.get(&server.url("/"), LONG, CAP).await.unwrap_err();
        assert!(matches!(error, HttpError::Refused { .. }), "{to}: {error}");
        assert!(matches!(Failure::from(error), Failure::Forbidden { .. }));
    }
    assert_eq!(other.hits("/inside"), 0);
}

#[tokio::test]
async fn a_listed_host_is_not_asked_at_a_private_address() {
    // The name is allowed, and resolves to this machine: only the addresses give it away.
    let hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let http = http_with(&EgressSettings { allow_hosts: hosts.clone(), ..EgressSettings::default() });
    for url in ["https://localhost/", "https://127.0.0.1/", "https://2130706433/"] {
        let error = http.get(&Url::parse(url).unwrap(), LONG, CAP).await.unwrap_err();
        let HttpError::Refused { why, .. } = &error else { panic!("{url}: {error:?}") };
        assert!(why.contains("loopback"), "{why}");
    }

    let server = Server::start().await;
    server.on("/", [Reply::ok(&b"here"[..])]);
    let settings = EgressSettings { allow_private: true, allow_hosts: hosts, ..EgressSettings::default() };
    let answer = http_with(&settings).get(&server.url("/"), LONG, CAP).await.unwrap();
    assert_eq!(&*answer.body, b"here");
}

#[tokio::test]
async fn a_connection_that_was_allowed_anywhere_is_not_used_for_the_public() {
    let server = Server::start().await;
    server.on("/", [Reply::ok(&b"here"[..])]);
    let rule = EgressRule {
        urls: Arc::new(|url| Ok(if url.path() == "/" { Reach::Anywhere } else { Reach::Public })),
        addresses: Arc::new(|address| Err(format!("{address} is refused"))),
    };
    let http = Http::new(HttpSettings::new(rule)).unwrap();
    let mut url = server.url("/");
    url.set_host(Some("localhost")).unwrap();
    assert_eq!(http.get(&url, LONG, CAP).await.unwrap().status, 200);
    // As a name and as an address, which never meets the resolver.
    for public in [url.join("/public").unwrap(), server.url("/public")] {
        assert!(matches!(http.get(&public, LONG, CAP).await, Err(HttpError::Refused { .. })), "{public}");
    }
    assert_eq!(server.hits("/public"), 0);
}

#[tokio::test]
async fn one_purpose_may_ask_what_another_may_not() {
    let server = Server::start().await;
    let http = http_to(&[server.base()]);
    let none = http.with_urls(Arc::new(|_| Err("nothing is allowed".into())));
    assert_eq!(http.get(&server.url("/"), LONG, CAP).await.unwrap().status, 404);
    assert!(matches!(none.get(&server.url("/"), LONG, CAP).await, Err(HttpError::Refused { .. })));
    assert_eq!(server.hits("/"), 1);
}

#[tokio::test]
async fn a_body_above_the_cap_is_refused_announced_or_not() {
    let server = Server::start().await;
    let cap = usize::try_from(CAP).unwrap();
    server.on("/fits", [Reply::ok(pattern(cap))]);
    server.on("/announced", [Reply::ok(pattern(cap + 1)).stall_after(0)]);
    server.on("/chunked", [Reply::ok(pattern(cap + 1)).length(Length::Chunked)]);
    server.on("/endless", [Reply::ok(pattern(50 * cap)).length(Length::Unsaid)]);
    let http = http_to(&[server.base()]);

    assert_eq!(&*http.get(&server.url("/fits"), LONG, CAP).await.unwrap().body, &*pattern(cap));
    for path in ["/announced", "/chunked", "/endless"] {
        let error = http.get(&server.url(path), LONG, CAP).await.unwrap_err();
        assert!(matches!(error, HttpError::TooLarge { cap: CAP, .. }), "{path}: {error}");
    }
}

#[tokio::test]
async fn a_small_answer_that_unpacks_to_a_large_one_is_refused() {
    // 200,000 zero bytes, packed.
    let packed: &[u8] = include_bytes!("support/zeros.gz");
    let server = Server::start().await;
    server.on("/", [Reply::ok(packed).header("Content-Encoding", "gzip")]);
    let http = http_to(&[server.base()]);
    assert!(matches!(http.get(&server.url("/"), LONG, CAP).await, Err(HttpError::TooLarge { .. })));
    let whole = http.get(&server.url("/"), LONG, 200_000).await.unwrap();
    assert_eq!((whole.body.len(), whole.body.iter().max()), (200_000, Some(&0)));
}

#[tokio::test]
async fn a_silent_or_slow_server_is_given_up_in_time() {
    let server = Server::start().await;
    server.on("/silent", [Reply::silent()]);
    server.on("/stalls", [Reply::ok(pattern(100)).stall_after(10)]);
    server.on("/slow", [Reply::ok(pattern(5000)).bytes_per_second(500)]);
    let http = http_to(&[server.base()]);
    for path in ["/silent", "/stalls", "/slow"] {
        let error = http.get(&server.url(path), SHORT, CAP).await.unwrap_err();
        assert!(matches!(error, HttpError::TimedOut { .. }), "{path}: {error}");
        assert!(matches!(Failure::from(error), Failure::Transient { .. }));
    }
}

#[tokio::test]
async fn a_body_that_is_shorter_than_announced_is_cut() {
    let server = Server::start().await;
    server.on("/", [Reply::ok(pattern(100)).length(Length::Claimed(101))]);
    server.on("/chunked", [Reply::ok(pattern(100)).length(Length::Chunked).cut_after(100)]);
    let http = http_to(&[server.base()]);
    for path in ["/", "/chunked"] {
        let error = http.get(&server.url(path), LONG, CAP).await.unwrap_err();
        assert!(matches!(error, HttpError::Cut { .. }), "{path}: {error}");
    }
}

#[tokio::test]
async fn errors_name_the_host_and_no_secret() {
    let server = Server::start().await;
    let url = server.url("/path-secret?token=secret");
    let http = http_to(&[server.base()]);
    drop(server);
    let error = http.get(&url, LONG, CAP).await.unwrap_err();
    assert!(matches!(error, HttpError::Unreachable { .. }), "{error:?}");
    let texts = [error.to_string(), format!("{error:?}"), Failure::from(error).to_string()];
    for text in texts {
        assert!(text.contains("127.0.0.1") && !text.contains("secret"), "{text}");
    }
}
