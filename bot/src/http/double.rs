//! A service on loopback that takes requests with their bodies, and answers by a script. For tests.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use url::Url;

/// The n-th request gets the n-th reply, and the last one again and again. Dropping it closes all connections.
#[derive(Debug)]
pub(crate) struct Double {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct Shared {
    script: Vec<Say>,
    taken: Vec<Taken>,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    /// Method and path.
    pub(crate) line: String,
    /// Names in lower case.
    pub(crate) headers: HashMap<String, String>,
    /// The first bytes of the body, up to a mebibyte.
    pub(crate) body: Vec<u8>,
    /// How many bytes of it came.
    pub(crate) bytes: u64,
}

/// What is said to one request.
#[derive(Clone, Debug)]
pub(crate) enum Say {
    /// This, once the body is there.
    Answer(Reply),
    /// This, once so many bytes of the body are there; then the connection is closed.
    Early(u64, Reply),
    /// The head of this, half of its body, and the connection is closed.
    Cut(Reply),
    /// The connection is closed when so many bytes of the body are there.
    Close(u64),
    /// Nothing, ever.
    Nothing,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

pub(crate) fn reply(status: u16, body: impl Into<String>) -> Reply {
    Reply { status, headers: Vec::new(), body: body.into() }
}

impl Reply {
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("HTTP/1.1 {} Said\r\nContent-Length: {}\r\n", self.status, self.body.len());
        for (name, value) in &self.headers {
            bytes += &format!("{name}: {value}\r\n");
        }
        bytes += "\r\n";
        bytes += &self.body;
        bytes.into_bytes()
    }
}

impl From<Reply> for Say {
    fn from(reply: Reply) -> Self {
        Self::Answer(reply)
    }
}

impl Double {
    pub(crate) async fn start(script: impl IntoIterator<Item = Say>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared =
            Arc::new(Mutex::new(Shared { script: script.into_iter().collect(), ..Shared::default() }));
        let task = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Self { address, shared, task }
    }

    pub(crate) fn base(&self) -> Url {
        Url::parse(&format!("http://{}", self.address)).unwrap()
    }

    /// The requests so far.
    pub(crate) fn taken(&self) -> Vec<Taken> {
        self.shared.lock().unwrap().taken.clone()
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Taken {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Mutex<Shared>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move { drop(serve(stream, &shared).await) });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, shared: &Mutex<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(mut taken) = head(&mut stream).await? {
        let say = {
            let shared = shared.lock().unwrap();
            shared.script.get(shared.taken.len()).or(shared.script.last()).unwrap().clone()
        };
        let announced = taken.header("content-length").parse().unwrap_or(0);
        let wanted = match &say {
            Say::Answer(_) | Say::Cut(_) | Say::Nothing => announced,
            Say::Early(bytes, _) | Say::Close(bytes) => announced.min(*bytes),
        };
        let mut piece = vec![0; 16 * 1024];
        while taken.bytes < wanted {
            let most = usize::try_from(wanted - taken.bytes).unwrap().min(piece.len());
            let read = stream.read(&mut piece[..most]).await?;
            if read == 0 {
                break;
            }
            taken.bytes += u64::try_from(read).unwrap();
            if taken.body.len() < 1 << 20 {
                taken.body.extend_from_slice(&piece[..read]);
            }
        }
        shared.lock().unwrap().taken.push(taken);
        match say {
            Say::Answer(reply) => stream.write_all(&reply.bytes()).await?,
            Say::Early(_, reply) => {
                stream.write_all(&reply.bytes()).await?;
                stream.shutdown().await?;
                // Closing it with bytes unread would reset the connection, and take the answer back.
                tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
                break;
            }
            Say::Cut(reply) => {
                let bytes = reply.bytes();
                stream.write_all(&bytes[..bytes.len() - reply.body.len() / 2]).await?;
                break;
            }
            Say::Close(_) => break,
            Say::Nothing => {
                // Until the other side gives up.
                tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
            }
        }
    }
    stream.shutdown().await
}

async fn head(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Taken>> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let words: Vec<&str> = line.split(' ').take(2).collect();
    if words.len() < 2 {
        return Ok(None);
    }
    let words = words.join(" ");
    let mut headers = HashMap::new();
    loop {
        line.clear();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Ok(Some(Taken { line: words, headers, body: Vec::new(), bytes: 0 }))
}
