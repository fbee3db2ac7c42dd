//! The one door to the disk: records with an expiry in a database, and finished files.
//!
//! The service must run without this room: **a broken store never stops or slows an answer.** What cannot be read
//! is absent, what cannot be written is dropped and counted. Its invariants:
//!
//! - Nothing blocks the runtime, and nothing is read at start-up, however much is stored.
//! - A record keeps the expiry that it was put with, over restarts too.
//! - A batch is written as a whole or not at all. Every buffer has a bound and every wait an end.
//! - It never knows what the values mean.

mod artifact;
mod batch;
mod disk;
mod queue;
mod record;
mod trouble;
mod unfinished;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub use self::artifact::{Artifact, ArtifactSettings, Artifacts, ContentHash};
pub use self::record::Record;
pub(crate) use self::unfinished::Unfinished;
use crate::clock::{Clock, WallTime};
use crate::metrics::Tracker;
use crate::store::batch::{Shared, lock, run};
use crate::store::disk::Disk;
use crate::store::queue::Change;

/// What kind of records stand together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shelf {
    /// Where posts were delivered.
    Processed,
    /// What links lead to.
    Resolved,
    /// Counters and histograms.
    Metrics,
    /// What the front end for Discord learned and said.
    Discord,
}

impl Shelf {
    const ALL: [Self; 4] = [Self::Processed, Self::Resolved, Self::Metrics, Self::Discord];

    /// The name of its table. Stands in files.
    const fn code(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Resolved => "resolved",
            Self::Metrics => "metrics",
            Self::Discord => "discord",
        }
    }
}

/// Where and how records are kept.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// The folder of the database; it is created on first use. `None`: nothing is kept. Default: `None`.
    pub path: Option<PathBuf>,
    /// Changes per transaction; at least one. Ten times as many may wait. Default: 100.
    pub batch_size: usize,
    /// A change waits at most this long while the disk works. Default: 2 s.
    pub flush_interval: Duration,
    /// [`Store::close`] takes at most this long. Default: 5 s.
    pub close_within: Duration,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            path: None,
            batch_size: 100,
            flush_interval: Duration::from_secs(2),
            close_within: Duration::from_secs(5),
        }
    }
}

/// How the store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreHealth {
    /// In one word.
    pub state: StoreState,
    /// Changes that wait to be written.
    pub queued: usize,
    /// Changes that were never written: the queue was full, the value too large, or the store closed.
    pub dropped: u64,
    /// Failures since the last success.
    pub failures_in_a_row: u32,
    /// Where the last damaged file was moved to, in this run.
    pub moved_aside: Option<PathBuf>,
    /// The last failure, also when it works again.
    pub last_error: Option<String>,
}

/// The state of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreState {
    /// Nothing is wrong.
    Working,
    /// It failed and is tried again within seconds.
    Retrying,
    /// It failed often and is tried again every five minutes.
    Suspended,
    /// There is none, or it is closed.
    Off,
}

/// Keeps records on the disk, behind a queue. Clones are handles to the same store.
///
/// When the last handle is dropped, what waits is still written as long as the runtime lives; only
/// [`close`](Self::close) waits for it.
#[derive(Clone, Debug)]
pub struct Store(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    close_within: Duration,
    /// Dropping it tells the writer to finish, as does sending.
    stop: watch::Sender<bool>,
    /// Taken by the first to close.
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Store {
    /// The store in the settings' folder. Returns at once: the file is opened on first use, in the background.
    ///
    /// Outside a tokio runtime, and without a folder, it keeps nothing.
    pub fn open(settings: StoreSettings, clock: Clock, tracker: Tracker) -> Self {
        let StoreSettings { path, batch_size, flush_interval, close_within } = settings;
        let Some(folder) = path else { return Self::none() };
        let Ok(runtime) = Handle::try_current() else {
            tracing::error!("a store needs a runtime; nothing is stored");
            return Self::none();
        };
        let disk = Disk::new(folder, clock.clone());
        let shared = Arc::new(Shared::new(disk, batch_size, flush_interval, clock, tracker));
        let (stop, stopped) = watch::channel(false);
        let writer = runtime.spawn(run(Arc::clone(&shared), stopped));
        let writer = Mutex::new(Some(writer));
        Self(Some(Arc::new(Inner { shared, close_within, stop, writer })))
    }

    /// A store that keeps nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// The record, unless it is expired, was never put, or cannot be read within two seconds.
    ///
    /// Sees what was put, also before it is written. Cancel-safe.
    pub async fn get(&self, shelf: Shelf, key: &str) -> Option<Record> {
        self.0.as_ref()?.shared.get(shelf, key).await
    }

    /// Keeps `value` until `expires`. Never blocks and never fails; it is written soon.
    ///
    /// A value has at most 256 KiB. When the queue is full, its oldest change is dropped, and what stood there before
    /// stands again.
    pub fn put(&self, shelf: Shelf, key: String, value: Vec<u8>, expires: WallTime) {
        self.push(shelf, key, Change::Put { value: value.into(), expires });
    }

    /// Removes the record, as [`put`](Self::put) puts it.
    pub fn remove(&self, shelf: Shelf, key: String) {
        self.push(shelf, key, Change::Remove);
    }

    fn push(&self, shelf: Shelf, key: String, change: Change) {
        if let Some(inner) = &self.0 {
            inner.shared.push((shelf, key.into()), change);
        }
    }

    /// How it is.
    pub fn health(&self) -> StoreHealth {
        match &self.0 {
            Some(inner) => inner.shared.health(),
            None => StoreHealth {
                state: StoreState::Off,
                queued: 0,
                dropped: 0,
                failures_in_a_row: 0,
                moved_aside: None,
                last_error: None,
            },
        }
    }

    /// Writes what waits and closes the file, within [`StoreSettings::close_within`]. Later changes are dropped.
    ///
    /// Only the first call waits. Not cancel-safe: a call that is dropped leaves the writer to end by itself.
    pub async fn close(&self) {
        let Some(inner) = &self.0 else { return };
        inner.shared.close();
        // Nobody listens when the writer has ended already, and then there is nothing to tell.
        let _ = inner.stop.send(true);
        let Some(mut writer) = lock(&inner.writer).take() else { return };
        if timeout(inner.close_within, &mut writer).await.is_err() {
            writer.abort();
        }
        let lost = inner.shared.abandon();
        if lost > 0 {
            tracing::warn!(lost, "the store is closed before all was written");
        }
    }
}
