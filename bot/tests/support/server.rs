//! A server on loopback that does what its script says, and remembers what it was asked.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use url::Url;

use super::reply::{End, Length, Reply};

/// A server on loopback. Each path has a script: the n-th request for it gets the n-th reply, and the last one again
/// and again. An unknown path gets 404. Dropping it closes all connections.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Path and query.
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: HashMap<String, String>,
}

#[derive(Debug, Default)]
struct Shared {
    routes: Mutex<HashMap<String, Route>>,
    /// Counts requests over all paths, for those who wait for one.
    requests: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Route {
    replies: Vec<Reply>,
    seen: Vec<Seen>,
    served: u64,
}

impl Server {
    /// Starts to listen on a free port.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let task = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Self { address, shared, task }
    }

    /// The server's origin.
    pub(crate) fn base(&self) -> Url {
        Url::parse(&format!("http://{}", self.address)).unwrap()
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> Url {
        self.base().join(path).unwrap()
    }

    /// Sets the script of a path.
    pub(crate) fn on(&self, path: &str, replies: impl IntoIterator<Item = Reply>) {
        self.shared.lock().entry(path.to_owned()).or_default().replies = replies.into_iter().collect();
    }

    /// The requests for a path, in order.
    pub(crate) fn seen(&self, path: &str) -> Vec<Seen> {
        self.shared.lock().get(path).map(|route| route.seen.clone()).unwrap_or_default()
    }

    /// How many requests there were for a path.
    pub(crate) fn hits(&self, path: &str) -> usize {
        self.seen(path).len()
    }

    /// How many bytes of bodies were sent for a path.
    pub(crate) fn served(&self, path: &str) -> u64 {
        self.shared.lock().get(path).map_or(0, |route| route.served)
    }

    /// Waits until there were so many requests, over all paths.
    pub(crate) async fn requests(&self, count: u64) {
        let mut requests = self.shared.requests.subscribe();
        requests.wait_for(|requests| *requests >= count).await.unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Seen {
    /// A header of the request.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Route>> {
        self.routes.lock().unwrap()
    }

    /// Notes a request and gives the reply to it.
    fn ask(&self, seen: Seen) -> Reply {
        let path = path_of(&seen.target);
        let mut routes = self.lock();
        let route = routes.entry(path).or_default();
        let reply = route.replies.get(route.seen.len()).or(route.replies.last()).cloned();
        route.seen.push(seen);
        drop(routes);
        self.requests.send_modify(|requests| *requests += 1);
        reply.unwrap_or_else(|| Reply::status(404))
    }

    fn served(&self, target: &str, bytes: usize) {
        let mut routes = self.lock();
        routes.entry(path_of(target)).or_default().served += u64::try_from(bytes).unwrap();
    }
}

fn path_of(target: &str) -> String {
    target.split('?').next().unwrap_or_default().to_owned()
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Owned here, so that they end with the server.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        // A client that goes away is no failure of the server.
        connections.spawn(async move { drop(serve(stream, &shared).await) });
        while connections.try_join_next().is_some() {}
    }
}

/// Answers requests for as long as each reply shows where it ends, then closes the connection.
async fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(seen) = read_request(&mut stream).await? {
        if !answer(&mut stream, shared, seen).await? {
            break;
        }
    }
    stream.shutdown().await
}

/// Answers a request, and says whether the connection can take another one.
async fn answer(stream: &mut BufReader<TcpStream>, shared: &Shared, seen: Seen) -> io::Result<bool> {
    let target = seen.target.clone();
    let range = seen.header("range").and_then(parse_range);
    let if_range = seen.header("if-range").map(str::to_owned);
    let reply = shared.ask(seen);
    if matches!(reply.end, End::Silent) {
        return wait_for_close(stream).await;
    }
    let same = if_range.is_none_or(|version| reply.headers.iter().any(|(_, value)| *value == version));
    let range = range.filter(|_| reply.ranges && same && reply.status == 200);
    let total = reply.body.len();
    let (status, first) = match range {
        Some(first) if first >= total => (416, total),
        Some(first) => (206, first),
        None => (reply.status, 0),
    };
    stream.write_all(head(&reply, status, first).as_bytes()).await?;

    let body = &reply.body[first..];
    let (sent, stalls) = match reply.end {
        End::Whole | End::Silent => (body, false),
        End::CutAfter(bytes) => (&body[..bytes.min(body.len())], false),
        End::StallAfter(bytes) => (&body[..bytes.min(body.len())], true),
    };
    let piece = reply.pace.map_or(16 * 1024, |pace| pace.bytes);
    let mut ticks = reply.pace.map(|pace| tokio::time::interval(pace.every));
    for part in sent.chunks(piece) {
        if let Some(ticks) = &mut ticks {
            ticks.tick().await;
        }
        if matches!(reply.length, Length::Chunked) {
            stream.write_all(format!("{:x}\r\n", part.len()).as_bytes()).await?;
        }
        stream.write_all(part).await?;
        if matches!(reply.length, Length::Chunked) {
            stream.write_all(b"\r\n").await?;
        }
        shared.served(&target, part.len());
    }
    stream.flush().await?;
    if stalls {
        return wait_for_close(stream).await;
    }
    if matches!((reply.length, reply.end), (Length::Chunked, End::Whole)) {
        stream.write_all(b"0\r\n\r\n").await?;
        stream.flush().await?;
    }
    Ok(matches!((reply.length, reply.end), (Length::True | Length::Chunked, End::Whole)))
}

/// The head of an answer whose body begins at `first`.
fn head(reply: &Reply, status: u16, first: usize) -> String {
    let total = reply.body.len();
    let mut head = format!("HTTP/1.1 {status} Said\r\n");
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    match reply.length {
        Length::True => head += &format!("Content-Length: {}\r\n", total - first),
        Length::Claimed(length) => head += &format!("Content-Length: {length}\r\n"),
        Length::Unsaid => head += "Connection: close\r\n",
        Length::Chunked => head += "Transfer-Encoding: chunked\r\n",
    }
    match status {
        206 => head += &format!("Content-Range: bytes {first}-{}/{total}\r\n", total - 1),
        416 => head += &format!("Content-Range: bytes */{total}\r\n"),
        _ => {}
    }
    head + "\r\n"
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Seen>> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let Some(target) = line.split(' ').nth(1).map(str::to_owned) else { return Ok(None) };
    let mut headers = HashMap::new();
    loop {
        line.clear();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Ok(Some(Seen { target, headers }))
}

/// The place where a request for a part begins. Parts that end before the file are not asked for here.
fn parse_range(text: &str) -> Option<usize> {
    text.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
}

async fn wait_for_close(stream: &mut BufReader<TcpStream>) -> io::Result<bool> {
    stream.fill_buf().await.map(|_| false)
}
