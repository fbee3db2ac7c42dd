//! Downloads over real sockets, against a server that does everything wrong that servers do.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on must fail")]

mod support;

use std::time::Duration;

use azalea_bot::domain::{Failure, Stage};
use azalea_bot::pipeline::download::{DownloadError, DownloadLimits, Downloaded, Sink, download};
use bytes::Bytes;
use support::reply::{Length, Reply};
use support::server::Server;
use support::{http_to, pattern};
use tokio_util::sync::CancellationToken;

/// What a sink was told.
#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    totals: Vec<Option<u64>>,
    /// Whether bytes can be taken back.
    forgets: bool,
    restarts: u32,
    /// Refuses to hold more than this.
    room: Option<usize>,
    /// Cancelled when the first bytes come.
    cancel_at_first: Option<CancellationToken>,
}

impl Sink for Kept {
    fn begin(&mut self, total: Option<u64>) {
        self.totals.push(total);
    }

    fn append(&mut self, chunk: Bytes) -> Result<(), Failure> {
        assert!(!self.totals.is_empty(), "bytes came before the file began");
        self.bytes.extend_from_slice(&chunk);
        if let Some(cancel) = &self.cancel_at_first {
            cancel.cancel();
        }
        match self.room {
            Some(room) if self.bytes.len() > room => Err(Failure::ours("no room")),
            _ => Ok(()),
        }
    }

    fn restart(&mut self) -> bool {
        if self.forgets {
            self.bytes.clear();
            self.restarts += 1;
        }
        self.forgets
    }
}

fn limits() -> DownloadLimits {
    DownloadLimits {
        timeout: Duration::from_secs(30),
        idle: Duration::from_secs(10),
        max_resumes: 3,
        backoff: Duration::from_millis(5),
        ..DownloadLimits::default()
    }
}

async fn fetch(
    server: &Server,
    limits: DownloadLimits,
    sink: &mut Kept,
) -> Result<Downloaded, DownloadError> {
    let http = http_to(&[server.base()]);
    download(&http, &server.url("/v.mp4?tag=secret"), limits, sink, &CancellationToken::new()).await
}

/// Runs a script for a file of `length` bytes and expects it whole and right.
#[track_caller]
fn arrived(got: Result<Downloaded, DownloadError>, sink: &Kept, length: usize) -> u32 {
    let got = got.unwrap();
    assert!(sink.bytes == *pattern(length), "other bytes came: {} of {length}", sink.bytes.len());
    assert_eq!(got.bytes, u64::try_from(length).unwrap());
    got.resumed
}

#[track_caller]
fn transient(got: Result<Downloaded, DownloadError>) -> (String, Option<Duration>) {
    match got {
        Err(DownloadError::Failed(Failure::Transient { what, retry_after })) => {
            assert!(!what.contains("secret"), "{what}");
            (what, retry_after)
        }
        other => panic!("{other:?}"),
    }
}

const FILE: usize = 300_000;
const HALF: usize = FILE / 2;

fn file() -> Reply {
    Reply::file(pattern(FILE))
}

#[tokio::test]
async fn a_file_comes_whole_in_one_request() {
    let server = Server::start().await;
    server.on("/v.mp4", [file()]);
    let mut sink = Kept::default();
    let got = fetch(&server, limits(), &mut sink).await;
    assert_eq!(got.as_ref().unwrap().content_type.as_deref(), Some("video/mp4"));
    assert_eq!(arrived(got, &sink, FILE), 0);
    assert_eq!(sink.totals, [Some(300_000)]);
    let [seen] = &server.seen("/v.mp4")[..] else { panic!() };
    assert_eq!((seen.header("range"), seen.header("accept-encoding")), (None, Some("identity")));
}

#[tokio::test]
async fn a_file_of_unknown_length_comes_whole() {
    for length in [Length::Unsaid, Length::Chunked] {
        let server = Server::start().await;
        server.on("/v.mp4", [file().length(length)]);
        let mut sink = Kept::default();
        assert_eq!(arrived(fetch(&server, limits(), &mut sink).await, &sink, FILE), 0);
        assert_eq!(sink.totals, [None]);
    }
}

#[tokio::test]
async fn a_broken_connection_is_resumed_where_it_stopped() {
    let server = Server::start().await;
    server.on("/v.mp4", [file().cut_after(HALF), file().cut_after(1000), file()]);
    let mut sink = Kept::default();
    assert_eq!(arrived(fetch(&server, limits(), &mut sink).await, &sink, FILE), 2);
    assert_eq!(sink.totals.len(), 1);
    let seen = server.seen("/v.mp4");
    let asked: Vec<_> = seen.iter().map(|seen| (seen.header("range"), seen.header("if-range"))).collect();
    assert_eq!(
        asked,
        [(None, None), (Some("bytes=150000-"), Some("\"v1\"")), (Some("bytes=151000-"), Some("\"v1\"")),]
    );
    assert_eq!(server.served("/v.mp4"), 300_000, "no byte was fetched twice");
}

#[tokio::test]
async fn a_silent_connection_is_resumed_too() {
    let server = Server::start().await;
    server.on("/v.mp4", [file().stall_after(HALF), Reply::silent(), file()]);
    let mut sink = Kept::default();
    let hasty = DownloadLimits { idle: Duration::from_millis(300), ..limits() };
    // On a machine with much to do the good answers may be late too.
    assert!(arrived(fetch(&server, hasty, &mut sink).await, &sink, FILE) >= 2);
}

/// Once, a server from which nothing came was asked until the download's whole time was over.
#[tokio::test]
async fn a_server_from_which_nothing_comes_is_soon_given_up() {
    let server = Server::start().await;
    server.on("/v.mp4", [Reply::silent()]);
    let hasty = DownloadLimits { idle: Duration::from_millis(200), ..limits() };
    let failed = fetch(&server, hasty, &mut Kept::default()).await.unwrap_err();
    assert!(matches!(failed, DownloadError::Failed(Failure::Transient { .. })), "{failed:?}");
    assert_eq!(server.hits("/v.mp4"), 2);
}

#[tokio::test]
async fn a_chunked_body_that_breaks_is_resumed() {
    let server = Server::start().await;
    server.on("/v.mp4", [file().length(Length::Chunked).cut_after(HALF), file()]);
    let mut sink = Kept::default();
    assert_eq!(arrived(fetch(&server, limits(), &mut sink).await, &sink, FILE), 1);
}

#[tokio::test]
async fn a_server_that_stays_silent_after_the_last_byte_costs_nothing() {
    let server = Server::start().await;
    server.on("/v.mp4", [file().stall_after(FILE)]);
    let mut sink = Kept::default();
    let patient = DownloadLimits { idle: Duration::from_secs(25), ..limits() };
    assert_eq!(arrived(fetch(&server, patient, &mut sink).await, &sink, FILE), 0);
}

#[tokio::test]
async fn a_busy_answer_to_a_resume_is_waited_out() {
    let server = Server::start().await;
    server.on("/v.mp4", [file().cut_after(HALF), Reply::status(503), Reply::status(429), file()]);
    let mut sink = Kept::default();
    arrived(fetch(&server, limits(), &mut sink).await, &sink, FILE);
    assert_eq!(server.hits("/v.mp4"), 4);
}

#[tokio::test]
async fn attempts_without_progress_are_bounded() {
    let server = Server::start().await;
    server.on("/v.mp4", [file().cut_after(1)]);
    let mut sink = Kept::default();
    let (what, _) = transient(fetch(&server, limits(), &mut sink).await);
    assert_eq!(server.hits("/v.mp4"), 4, "{what}");
    assert!(sink.bytes == pattern(FILE)[..4]);
}

#[tokio::test]
async fn attempts_that_get_on_are_not_counted_against_a_large_file() {
    const LARGE: usize = 8 << 20;
    let server = Server::start().await;
    // Seven cuts, where two without progress would be the end.
    server.on("/v.mp4", [Reply::file(pattern(LARGE)).cut_after(1 << 20)]);
    let mut sink = Kept::default();
    let got = fetch(&server, DownloadLimits { max_resumes: 1, ..limits() }, &mut sink).await;
    assert_eq!(arrived(got, &sink, LARGE), 7);
}

#[tokio::test]
async fn a_body_shorter_than_its_announced_length_is_no_whole_file() {
    let server = Server::start().await;
    let short = file().no_ranges().length(Length::Claimed(300_001));
    server.on("/v.mp4", [short]);
    let mut sink = Kept::default();
    transient(fetch(&server, limits(), &mut sink).await);
    assert_eq!(server.hits("/v.mp4"), 4);
}

#[tokio::test]
async fn the_same_file_from_its_beginning_is_skipped_up_to_where_it_stopped() {
    let server = Server::start().await;
    server.on("/v.mp4", [file().no_ranges().cut_after(HALF), file().no_ranges()]);
    let mut sink = Kept { forgets: true, ..Kept::default() };
    assert_eq!(arrived(fetch(&server, limits(), &mut sink).await, &sink, FILE), 1);
    assert_eq!((sink.restarts, sink.totals.len()), (0, 1));
}

#[tokio::test]
async fn a_file_without_marks_is_begun_anew_or_else_skipped_by_its_length() {
    for forgets in [true, false] {
        let server = Server::start().await;
        let bare = || file().no_ranges().without("ETag");
        server.on("/v.mp4", [bare().cut_after(HALF), bare()]);
        let mut sink = Kept { forgets, ..Kept::default() };
        assert_eq!(arrived(fetch(&server, limits(), &mut sink).await, &sink, FILE), 1);
        assert_eq!(sink.restarts, u32::from(forgets));
        assert_eq!(sink.totals.len(), if forgets { 2 } else { 1 });
    }
}

#[tokio::test]
async fn a_file_that_changed_is_never_mixed_with_the_old_one() {
    let old = || Reply::file(vec![7; FILE]).header("ETag", "\"v0\"").cut_after(HALF);

    let server = Server::start().await;
    server.on("/v.mp4", [old(), file()]);
    let mut sink = Kept { forgets: true, ..Kept::default() };
    arrived(fetch(&server, limits(), &mut sink).await, &sink, FILE);
    assert_eq!(sink.restarts, 1);

    let server = Server::start().await;
    server.on("/v.mp4", [old(), file()]);
    let mut sink = Kept::default();
    let (what, _) = transient(fetch(&server, limits(), &mut sink).await);
    assert!(what.contains("changed"), "{what}");
    assert!(sink.bytes == [7; HALF]);
}

#[tokio::test]
async fn a_part_that_does_not_continue_is_not_appended() {
    let server = Server::start().await;
    let wrong = Reply::ok(&pattern(FILE)[HALF + 10..])
        .header("Content-Type", "video/mp4")
        .header("Content-Range", "bytes 150010-299999/300000");
    let wrong = Reply { status: 206, ..wrong };
    server.on("/v.mp4", [file().cut_after(HALF), wrong, file()]);
    let mut sink = Kept::default();
    arrived(fetch(&server, limits(), &mut sink).await, &sink, FILE);
    let seen = server.seen("/v.mp4");
    assert_eq!(seen.last().unwrap().header("range"), None, "it is not asked for a part again");
}

#[tokio::test]
async fn a_part_that_ends_before_the_file_is_not_its_end() {
    let server = Server::start().await;
    let part = Reply::ok(&pattern(FILE)[HALF..HALF + 1000])
        .header("Content-Type", "video/mp4")
        .header("Content-Range", "bytes 150000-150999/300000");
    let part = Reply { status: 206, ..part };
    server.on("/v.mp4", [file().cut_after(HALF), part, file()]);
    let mut sink = Kept::default();
    assert_eq!(arrived(fetch(&server, limits(), &mut sink).await, &sink, FILE), 2);
}

#[tokio::test]
async fn a_file_that_is_not_there_is_its_own_answer() {
    let server = Server::start().await;
    for status in [404, 410] {
        server.on("/v.mp4", [Reply::status(status)]);
        let got = fetch(&server, limits(), &mut Kept::default()).await;
        assert!(matches!(got, Err(DownloadError::Missing { status: got, .. }) if got == status));
    }
    server.on("/v.mp4", [Reply::status(403)]);
    let got = fetch(&server, limits(), &mut Kept::default()).await;
    assert!(matches!(got, Err(DownloadError::Denied { status: 403, .. })));
    assert_eq!(server.hits("/v.mp4"), 3);
}

#[tokio::test]
async fn a_busy_server_is_told_on_with_the_pause_that_it_wants() {
    let server = Server::start().await;
    server.on("/v.mp4", [Reply::status(429).header("Retry-After", "9"), Reply::status(502)]);
    let (_, pause) = transient(fetch(&server, limits(), &mut Kept::default()).await);
    assert_eq!(pause, Some(Duration::from_secs(9)));
    let (what, pause) = transient(fetch(&server, limits(), &mut Kept::default()).await);
    assert_eq!((what.contains("502"), pause), (true, None));
    assert_eq!(server.hits("/v.mp4"), 2);
}

#[tokio::test]
async fn a_pause_beyond_the_time_limit_is_not_waited_for() {
    let server = Server::start().await;
    let busy = Reply::status(503).header("Retry-After", "3600");
    server.on("/v.mp4", [file().cut_after(HALF), busy]);
    let (_, pause) = transient(fetch(&server, limits(), &mut Kept::default()).await);
    assert_eq!(pause, Some(Duration::from_secs(3600)));
}

#[tokio::test]
async fn a_page_or_nothing_where_media_was_expected_is_transient() {
    let server = Server::start().await;
    let page = Reply::ok(&b"<html>sorry"[..]).header("Content-Type", "text/html; charset=utf-8");
    let packed = file().header("Content-Encoding", "gzip");
    server.on("/v.mp4", [page, Reply::file(&[][..]), packed]);
    for _ in 0..3 {
        let mut sink = Kept::default();
        transient(fetch(&server, limits(), &mut sink).await);
        assert_eq!(sink.bytes.len(), 0);
    }
}

#[tokio::test]
async fn an_announced_length_above_the_cap_is_refused_before_a_byte_is_read() {
    let server = Server::start().await;
    server.on("/v.mp4", [file().stall_after(0)]);
    let tight = DownloadLimits { max_bytes: 299_999, ..limits() };
    let mut sink = Kept::default();
    let got = fetch(&server, tight, &mut sink).await;
    assert!(matches!(got, Err(DownloadError::Failed(Failure::TooLarge { .. }))), "{got:?}");
    assert_eq!(sink.totals.len(), 0);
}

#[tokio::test]
async fn an_endless_body_is_stopped_at_the_cap() {
    let server = Server::start().await;
    server.on("/v.mp4", [Reply::file(pattern(4 << 20)).length(Length::Unsaid)]);
    let tight = DownloadLimits { max_bytes: 100_000, ..limits() };
    let mut sink = Kept::default();
    let got = fetch(&server, tight, &mut sink).await;
    assert!(matches!(got, Err(DownloadError::Failed(Failure::TooLarge { .. }))), "{got:?}");
    assert!(sink.bytes.len() <= 100_000);
}

#[tokio::test]
async fn a_server_slower_than_the_time_limit_is_given_up() {
    let server = Server::start().await;
    server.on("/v.mp4", [file().bytes_per_second(5_000)]);
    let hasty = DownloadLimits { timeout: Duration::from_millis(200), ..limits() };
    let mut sink = Kept::default();
    let got = fetch(&server, hasty, &mut sink).await;
    let late = DownloadError::Failed(Failure::TimedOut { stage: Stage::Download });
    assert_eq!(got, Err(late));
    assert!(sink.bytes.len() < HALF);
}

#[tokio::test]
async fn redirects_are_bounded_and_guarded() {
    let server = Server::start().await;
    server.on("/v.mp4", [Reply::redirect("/w.mp4")]);
    server.on("/w.mp4", [file()]);
    let mut sink = Kept::default();
    assert_eq!(arrived(fetch(&server, limits(), &mut sink).await, &sink, FILE), 0);
    let none = DownloadLimits { max_redirects: 0, ..limits() };
    transient(fetch(&server, none, &mut Kept::default()).await);
    for to in ["http://169.254.169.254/latest/", "file:///etc/passwd"] {
        server.on("/v.mp4", [Reply::redirect(to)]);
        let got = fetch(&server, limits(), &mut Kept::default()).await;
        assert!(matches!(got, Err(DownloadError::Failed(Failure::Forbidden { .. }))), "{to}: {got:?}");
    }
}

#[tokio::test]
async fn what_the_sink_says_ends_the_download() {
    let server = Server::start().await;
    server.on("/v.mp4", [file()]);
    let mut sink = Kept { room: Some(1000), ..Kept::default() };
    let got = fetch(&server, limits(), &mut sink).await;
    assert_eq!(got, Err(DownloadError::Failed(Failure::ours("no room"))));
    assert_eq!(server.hits("/v.mp4"), 1);
}

#[tokio::test]
async fn a_cancel_takes_effect_in_every_state() {
    let patient = DownloadLimits {
        idle: Duration::from_secs(600),
        timeout: Duration::from_secs(600),
        backoff: Duration::from_secs(300),
        ..limits()
    };
    // While a head, the next bytes, or the time for another attempt is waited for.
    for reply in [Reply::silent(), file().stall_after(0), file().cut_after(0)] {
        let server = Server::start().await;
        server.on("/v.mp4", [reply]);
        let (http, url) = (http_to(&[server.base()]), server.url("/v.mp4"));
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        let task =
            tokio::spawn(async move { download(&http, &url, patient, &mut Kept::default(), &token).await });
        server.requests(1).await;
        cancel.cancel();
        assert_eq!(task.await.unwrap(), Err(DownloadError::Failed(Failure::Cancelled)));
    }
    // In the middle of the bytes.
    let server = Server::start().await;
    server.on("/v.mp4", [file().bytes_per_second(5_000)]);
    let cancel = CancellationToken::new();
    let mut sink = Kept { cancel_at_first: Some(cancel.clone()), ..Kept::default() };
    let http = http_to(&[server.base()]);
    let got = download(&http, &server.url("/v.mp4"), patient, &mut sink, &cancel).await;
    assert_eq!(got, Err(DownloadError::Failed(Failure::Cancelled)));
    assert!(sink.bytes.len() < FILE);
    // Before it begins.
    let got = download(&http, &server.url("/v.mp4"), patient, &mut sink, &cancel).await;
    assert_eq!((got.is_err(), server.hits("/v.mp4")), (true, 1));
}
