//! A small X and CDN on loopback: what the demo asks, and what it downloads from.
//!
//! Any post of any user is the same post with the same clip. One request is answered on each connection, then it is
//! closed, which every client understands. Strangers on the same machine can reach it, so it is bounded: in
//! connections, in the size of a request, and in how long it waits for either side.

mod answer;
mod connection;
mod request;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::domain::PixelSize;
use crate::frontend::demo::clip;

/// How the server behaves and what it says of its clip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// How fast the clip goes out, in bytes a second, on each connection. Default 8,000,000; 0 counts as 1.
    pub bytes_per_second: u64,
    /// How long the API thinks before each answer. Default 150 ms.
    pub api_delay: Duration,
    /// How long the clip plays, as the API tells it. Default 8 s.
    pub clip_length: Duration,
    /// The clip's size, as the API tells it. Default [`clip::SIZE`].
    pub clip_size: PixelSize,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            bytes_per_second: 8_000_000,
            api_delay: Duration::from_millis(150),
            clip_length: Duration::from_secs(8),
            clip_size: clip::SIZE,
        }
    }
}

/// How often the server was asked, up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Questions for a post.
    pub api_requests: u64,
    /// Requests for the clip or a part of it, those for a part that it does not have included.
    pub media_requests: u64,
    /// Bytes of the clip that were handed to the network.
    pub media_bytes: u64,
}

/// A server that runs until it is dropped or [stopped](DemoServer::stop).
#[derive(Debug)]
#[must_use = "a server that is dropped stops"]
pub struct DemoServer {
    address: SocketAddr,
    site: Arc<Site>,
    /// Tells the task to end, when it is dropped.
    running: DropGuard,
    /// Owns all connections.
    task: JoinHandle<()>,
}

impl DemoServer {
    /// Listens on a free port of 127.0.0.1 and serves this clip. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(clip: Bytes, settings: ServerSettings) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let site =
            Arc::new(Site { clip, settings, base: format!("http://{address}"), tally: Tally::default() });
        let stop = CancellationToken::new();
        let task = tokio::spawn(accept(listener, Arc::clone(&site), stop.clone()));
        Ok(Self { address, site, running: stop.drop_guard(), task })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address as a base URL without a slash at its end: `http://127.0.0.1:40123`.
    pub fn base_url(&self) -> &str {
        &self.site.base
    }

    /// How often it was asked, up to now.
    pub fn counts(&self) -> Counts {
        self.site.tally.snapshot()
    }

    /// Cuts all connections, ends, and tells how often it was asked in all. What is dropped half-way ends as well.
    pub async fn stop(self) -> Counts {
        drop(self.running);
        if let Err(error) = self.task.await {
            tracing::debug!(%error, "the demo's server did not end by itself");
        }
        self.site.tally.snapshot()
    }
}

/// What all connections share.
#[derive(Debug)]
struct Site {
    clip: Bytes,
    settings: ServerSettings,
    base: String,
    tally: Tally,
}

/// [`Counts`] while they grow. Each stands for itself, so no order between them is needed.
#[derive(Debug, Default)]
struct Tally {
    api_requests: AtomicU64,
    media_requests: AtomicU64,
    media_bytes: AtomicU64,
}

impl Tally {
    fn count_api_request(&self) {
        self.api_requests.fetch_add(1, Ordering::Relaxed);
    }

    fn count_media_request(&self) {
        self.media_requests.fetch_add(1, Ordering::Relaxed);
    }

    fn count_media_bytes(&self, bytes: usize) {
        self.media_bytes.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn snapshot(&self) -> Counts {
        Counts {
            api_requests: self.api_requests.load(Ordering::Relaxed),
            media_requests: self.media_requests.load(Ordering::Relaxed),
            media_bytes: self.media_bytes.load(Ordering::Relaxed),
        }
    }
}

/// Takes connections until it is told to stop; ends when the last of them is cut.
async fn accept(listener: TcpListener, site: Arc<Site>, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        let room = connections.len() < MOST_CONNECTIONS;
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if room => match accepted {
                Ok((socket, _)) => {
                    let site = Arc::clone(&site);
                    connections.spawn(async move {
                        if let Err(error) = connection::serve(socket, &site).await {
                            tracing::debug!(%error, "a connection of the demo's server broke");
                        }
                    });
                }
                Err(error) => {
                    // Out of file descriptors, as a rule: some come back when a connection ends.
                    tracing::debug!(%error, "the demo's server could not take a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    // First, so that whoever sees its connection cut finds nobody listening.
    drop(listener);
    connections.shutdown().await;
}

/// How many are served at once; more wait in the system's own queue. Ten askers need far fewer.
const MOST_CONNECTIONS: usize = 64;

/// How long to wait after a connection could not be taken.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;
