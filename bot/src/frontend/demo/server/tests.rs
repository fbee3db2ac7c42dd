//! The server over real sockets. Nothing here depends on time: the API answers at once and the clip flies.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

struct Answer {
    status: String,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

fn clip() -> Bytes {
    (0..200_000_u32).map(|at| at.to_le_bytes()[0] ^ at.to_le_bytes()[1]).collect()
}

async fn start() -> DemoServer {
    let settings =
        ServerSettings { bytes_per_second: u64::MAX, api_delay: Duration::ZERO, ..ServerSettings::default() };
    DemoServer::start(clip(), settings).await.unwrap()
}

async fn ask(server: &DemoServer, path: &str, headers: &str) -> Answer {
    let mut socket = TcpStream::connect(server.address()).await.unwrap();
    socket.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n").as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).await.unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let body = bytes[end + 4..].to_vec();
    let answer = Answer { status: head.split(' ').nth(1).unwrap().to_owned(), head, body };
    assert_eq!(answer.header("Content-Length"), Some(answer.body.len().to_string().as_str()));
    answer
}

/// The path of the clip, as the API tells it.
async fn clip_path(server: &DemoServer) -> String {
    let answer = ask(server, "/i/status/20", "").await;
    let post: Value = serde_json::from_slice(&answer.body).unwrap();
    let url = post["media_extended"][0]["url"].as_str().unwrap();
    url.strip_prefix(server.base_url()).unwrap().to_owned()
}

#[tokio::test]
async fn a_post_is_described_as_vxtwitter_does() {
    let server = start().await;
    let answer = ask(&server, "/ann/status/1234567890123456789", "").await;
    assert_eq!((answer.status.as_str(), answer.header("Content-Type")), ("200", Some("application/json")));
    let post: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(post["tweetID"], "1234567890123456789");
    assert_eq!(post["user_screen_name"], "ann");
    assert!(!post["text"].as_str().unwrap().is_empty());
    assert_eq!(post["media_extended"].as_array().unwrap().len(), 1);
    let medium = &post["media_extended"][0];
    assert_eq!((&medium["type"], &medium["duration_millis"]), (&Value::from("video"), &Value::from(8_000)));
    assert_eq!((&medium["size"]["width"], &medium["size"]["height"]), (&640.into(), &360.into()));
    assert!(medium["altText"].as_str().unwrap().contains("azalea"));
    assert_eq!(post["mediaURLs"][0], medium["url"]);
    assert!(medium["url"].as_str().unwrap().ends_with(".mp4"));
}

#[tokio::test]
async fn the_clip_is_served_whole_and_in_parts() {
    let server = start().await;
    let path = clip_path(&server).await;
    let whole = ask(&server, &path, "").await;
    assert!(whole.status == "200" && whole.body == clip());
    assert_eq!(
        (whole.header("Accept-Ranges"), whole.header("Content-Type")),
        (Some("bytes"), Some("video/mp4"))
    );
    let tag = whole.header("ETag").unwrap();

    let rest = ask(&server, &path, "Range: bytes=150000-\r\n").await;
    assert!(rest.status == "206" && rest.body == clip()[150_000..]);
    assert_eq!(rest.header("Content-Range"), Some("bytes 150000-199999/200000"));
    assert_eq!(rest.header("ETag"), Some(tag));

    let same = ask(&server, &path, &format!("Range: bytes=5-9\r\nIf-Range: {tag}\r\n")).await;
    assert!(same.status == "206" && same.body == clip()[5..10]);
    let other = ask(&server, &path, "Range: bytes=5-9\r\nIf-Range: \"other\"\r\n").await;
    assert!(other.status == "200" && other.body == clip());

    let beyond = ask(&server, &path, "Range: bytes=200000-\r\n").await;
    assert_eq!((beyond.status.as_str(), beyond.body.len()), ("416", 0));
    assert_eq!(beyond.header("Content-Range"), Some("bytes */200000"));
}

#[tokio::test]
async fn nothing_else_is_here() {
    let server = start().await;
    for path in ["/", "/robots.txt", "/video/other.mp4", "/ann/status/0", "/ann/status/12x"] {
        assert_eq!(ask(&server, path, "").await.status, "404", "{path}");
    }
    let mut socket = TcpStream::connect(server.address()).await.unwrap();
    socket.write_all(b"hello\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(server.stop().await, Counts::default());
}

#[tokio::test]
async fn each_request_is_counted() {
    let server = start().await;
    let path = clip_path(&server).await;
    ask(&server, "/ann/status/20", "").await;
    ask(&server, &path, "Range: bytes=0-99\r\n").await;
    ask(&server, &path, "Range: bytes=-50\r\n").await;
    ask(&server, &path, "Range: bytes=900000-\r\n").await;
    let counts = Counts { api_requests: 2, media_requests: 3, media_bytes: 150 };
    assert_eq!(server.counts(), counts);
    assert_eq!(server.stop().await, counts);
}

#[tokio::test]
async fn more_clients_than_fit_at_once_are_all_served() {
    let server = start().await;
    // No more than the system's queue holds: it lets the others try again after a second.
    let asks = (0..MOST_CONNECTIONS + 36).map(|_| ask(&server, "/ann/status/20", ""));
    let answers = futures_util::future::join_all(asks).await;
    assert!(answers.iter().all(|answer| answer.status == "200"));
    assert_eq!(server.counts().api_requests, 100);
}

#[tokio::test]
async fn a_server_that_is_stopped_or_dropped_cuts_its_connections_and_listens_no_more() {
    for dropped in [true, false] {
        let server = start().await;
        let address = server.address();
        let mut silent = TcpStream::connect(address).await.unwrap();
        // Answered after the silent one was taken, so that one is being served.
        ask(&server, "/ann/status/20", "").await;
        if dropped {
            drop(server);
        } else {
            server.stop().await;
        }
        assert!(silent.read_to_end(&mut Vec::new()).await.is_ok_and(|count| count == 0));
        assert!(TcpStream::connect(address).await.is_err());
    }
}
