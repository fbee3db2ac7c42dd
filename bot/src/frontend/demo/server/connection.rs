//! One connection: a request comes in, an answer goes out at its pace, the end.

use std::io;
use std::ops::Range;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{sleep, sleep_until, timeout};

use super::request::Request;
use super::{Site, answer};
use crate::clock;

/// Serves one request and closes. Dropping it cuts the connection.
///
/// # Errors
/// When the connection breaks, or the client takes too long to ask or to listen.
pub(super) async fn serve<S>(mut socket: S, site: &Site) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let refused = match within(HEAD_TIME, read_head(&mut socket)).await? {
        Head::Whole(head) => match Request::read(&head) {
            Some(request) => return reply(&mut socket, site, &request).await,
            None => answer::notice(answer::BAD_REQUEST, "this is no request\n"),
        },
        Head::TooLong => answer::notice(answer::HEAD_TOO_LONG, "this request is too long\n"),
        Head::None => return Ok(()),
    };
    send(&mut socket, refused.as_bytes()).await?;
    socket.shutdown().await?;
    drain(&mut socket).await
}

async fn reply<S: AsyncWrite + Unpin>(socket: &mut S, site: &Site, request: &Request) -> io::Result<()> {
    match request {
        Request::Post { id, user } => {
            site.tally.count_api_request();
            sleep(site.settings.api_delay).await;
            let post = answer::post(site, *id, user).to_string();
            let head = answer::head(answer::OK, "application/json", post.len(), &[]);
            send(socket, (head + &post).as_bytes()).await?;
        }
        Request::Clip { range, if_range } => {
            site.tally.count_media_request();
            let (head, part) = answer::clip(site, range.as_deref(), if_range.as_deref());
            send(socket, head.as_bytes()).await?;
            send_clip(socket, site, part).await?;
        }
        Request::Unknown => {
            send(socket, answer::notice(answer::NOT_FOUND, "this is not here\n").as_bytes()).await?;
        }
    }
    socket.shutdown().await
}

/// Sends a part of the clip, no faster than the settings say.
async fn send_clip<S: AsyncWrite + Unpin>(socket: &mut S, site: &Site, part: Range<usize>) -> io::Result<()> {
    let rate = site.settings.bytes_per_second;
    let start = clock::instant();
    let mut sent: u64 = 0;
    for piece in site.clip.get(part).unwrap_or_default().chunks(piece_bytes(rate)) {
        send(socket, piece).await?;
        site.tally.count_media_bytes(piece.len());
        sent = sent.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        // Counted from the start, so that a late piece is made up for and the pace is kept over all.
        if let Some(due) = start.checked_add(taken(sent, rate)) {
            sleep_until(due).await;
        }
    }
    Ok(())
}

/// How many bytes go out at once: twenty pieces a second, so that the pace looks even.
fn piece_bytes(rate: u64) -> usize {
    usize::try_from((rate / 20).clamp(1, LARGEST_PIECE)).unwrap_or(1)
}

/// How long so many bytes take at a rate, to the nanosecond below.
fn taken(bytes: u64, rate: u64) -> Duration {
    let rate = rate.max(1);
    let nanos = u128::from(bytes % rate) * 1_000_000_000 / u128::from(rate);
    Duration::from_secs(bytes / rate) + Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

/// What came in before the empty line.
enum Head {
    Whole(Vec<u8>),
    TooLong,
    /// The client left before it had asked.
    None,
}

async fn read_head<S: AsyncRead + Unpin>(socket: &mut S) -> io::Result<Head> {
    const END: &[u8] = b"\r\n\r\n";
    let mut head = Vec::new();
    let mut piece = [0_u8; 1024];
    loop {
        let count = socket.read(&mut piece).await?;
        if count == 0 {
            return Ok(Head::None);
        }
        // The end may lie across two pieces.
        let from = head.len().saturating_sub(END.len());
        head.extend_from_slice(piece.get(..count).unwrap_or_default());
        let end = head.windows(END.len()).skip(from).position(|four| four == END);
        if let Some(end) = end {
            head.truncate(from.saturating_add(end));
            return Ok(Head::Whole(head));
        }
        if head.len() >= LONGEST_HEAD {
            return Ok(Head::TooLong);
        }
    }
}

/// Reads on for a while what nobody wants: closing on unread bytes would destroy the answer on its way.
async fn drain<S: AsyncRead + Unpin>(socket: &mut S) -> io::Result<()> {
    let mut socket = socket.take(LONGEST_REST);
    // Whether the client left, went on, or fell silent: the connection is over.
    let _ = timeout(REST_TIME, tokio::io::copy(&mut socket, &mut tokio::io::sink())).await;
    Ok(())
}

async fn send<S: AsyncWrite + Unpin>(socket: &mut S, bytes: &[u8]) -> io::Result<()> {
    within(SEND_TIME, socket.write_all(bytes)).await
}

async fn within<T>(limit: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(limit, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The longest head; those of real clients have a tenth of it. Strict to one read of 1 KiB.
const LONGEST_HEAD: usize = 8 * 1024;

/// How long a client may take to ask.
const HEAD_TIME: Duration = Duration::from_secs(5);

/// How long a client may leave one piece unread.
const SEND_TIME: Duration = Duration::from_secs(30);

/// The largest piece of the clip that is sent at once.
const LARGEST_PIECE: u64 = 64 * 1024;

/// How much is read, and for how long, of what a refused client still sends.
const LONGEST_REST: u64 = 64 * 1024;
const REST_TIME: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use tokio::io::{DuplexStream, duplex};
    use tokio::task::JoinHandle;

    use super::super::{ServerSettings, Tally};
    use super::*;

    fn site(bytes_per_second: u64, api_delay: Duration) -> Arc<Site> {
        let settings = ServerSettings { bytes_per_second, api_delay, ..ServerSettings::default() };
        let clip = Bytes::from(vec![7; 100_000]);
        Arc::new(Site { clip, settings, base: "http://127.0.0.1:1".to_owned(), tally: Tally::default() })
    }

    /// A client's end, in which `room` bytes fit, and the server at work on the other.
    fn connect(site: &Arc<Site>, room: usize) -> (DuplexStream, JoinHandle<io::Result<()>>) {
        let (ours, theirs) = duplex(room);
        let site = Arc::clone(site);
        (ours, tokio::spawn(async move { serve(theirs, &site).await }))
    }

    const CLIP: &[u8] = b"GET /video/azalea.mp4 HTTP/1.1\r\n\r\n";

    #[tokio::test(start_paused = true)]
    async fn the_clip_takes_as_long_as_its_rate_says() {
        let site = site(40_000, Duration::ZERO);
        let (mut client, server) = connect(&site, 1 << 20);
        let start = clock::instant();
        client.write_all(CLIP).await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        server.await.unwrap().unwrap();
        let took = start.elapsed();
        assert!((2_500..2_520).contains(&took.as_millis()), "{took:?}");
        assert!(answer.ends_with(&[7; 100_000]));
        assert_eq!(site.tally.snapshot().media_bytes, 100_000);
    }

    #[tokio::test(start_paused = true)]
    async fn the_api_thinks_before_it_answers() {
        let site = site(1, Duration::from_millis(700));
        let (mut client, server) = connect(&site, 1 << 20);
        let start = clock::instant();
        client.write_all(b"GET /ann/status/20 HTTP/1.1\r\n\r\n").await.unwrap();
        server.await.unwrap().unwrap();
        assert_eq!(start.elapsed().as_millis(), 700);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_asks_or_never_listens_is_left() {
        for (request, limit) in [(&b"GET /"[..], HEAD_TIME), (CLIP, SEND_TIME)] {
            let (mut client, server) = connect(&site(u64::MAX, Duration::ZERO), 64);
            let start = clock::instant();
            client.write_all(request).await.unwrap();
            let error = server.await.unwrap().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert_eq!(start.elapsed().as_secs(), limit.as_secs());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_may_come_byte_by_byte() {
        let (mut client, server) = connect(&site(u64::MAX, Duration::ZERO), 1 << 20);
        for byte in b"GET /i/status/20 HTTP/1.1\r\nHost: a\r\n\r\n" {
            client.write_all(&[*byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        server.await.unwrap().unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_end_is_refused_and_not_kept() {
        let (mut client, server) = connect(&site(u64::MAX, Duration::ZERO), 1 << 20);
        client.write_all(&[b'a'; 20_000]).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
        server.await.unwrap().unwrap();
    }

    #[test]
    fn time_follows_from_bytes_without_overflow() {
        assert_eq!(taken(2_500_000, 1_000_000), Duration::from_millis(2_500));
        assert_eq!(taken(3, 0), Duration::from_secs(3));
        assert_eq!(taken(u64::MAX, u64::MAX), Duration::from_secs(1));
        assert_eq!(taken(u64::MAX, 1), Duration::from_secs(u64::MAX));
        assert_eq!([0, 40_000, u64::MAX].map(piece_bytes), [1, 2_000, 65_536]);
    }
}
