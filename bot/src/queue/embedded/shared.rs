//! What the writer tells everybody.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// How a queue on disk is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueHealth {
    /// In one word.
    pub state: QueueState,
    /// The last failure, also when it works again; `None` when there was none since the start.
    pub last_error: Option<String>,
    /// Failures since the last success.
    pub failures_in_a_row: u32,
    /// Where a damaged file was moved to, since the start.
    pub moved_aside: Option<PathBuf>,
    /// At the start the file of a queue was missing or empty that had jobs in it.
    pub file_was_missing: bool,
    /// Records that could not be read at the start. They are in the file's table `broken`.
    pub broken_records: usize,
    /// Whether room is held back for a full disk.
    pub ballast_held: bool,
    /// The length of the file in bytes, as of the last change.
    pub file_bytes: u64,
}

impl QueueHealth {
    /// Why nothing new is stored now.
    pub(super) fn trouble(&self) -> Option<String> {
        match self.state {
            QueueState::Working | QueueState::Closed => None,
            QueueState::Full => Some("its disk is full".to_owned()),
            QueueState::Failing => {
                Some(self.last_error.clone().unwrap_or_else(|| "its disk fails".to_owned()))
            }
        }
    }
}

/// The state of a queue on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueState {
    /// Nothing is wrong.
    #[default]
    Working,
    /// The disk is full: what is there is worked off, and nothing new is taken.
    Full,
    /// The disk fails and is tried again within a minute; nothing can be changed until then.
    Failing,
    /// It is closed.
    Closed,
}

/// What the writer and the handle share.
#[derive(Debug)]
pub(super) struct Shared {
    health: Mutex<QueueHealth>,
    /// Whether there may be something to claim.
    pub(super) ready: watch::Sender<bool>,
    /// Whether the file is closed for good.
    pub(super) ended: watch::Sender<bool>,
    closing: AtomicBool,
}

impl Shared {
    pub(super) fn new(health: QueueHealth) -> Self {
        Self {
            health: Mutex::new(health),
            ready: watch::Sender::new(false),
            ended: watch::Sender::new(false),
            closing: AtomicBool::new(false),
        }
    }

    /// The health, to be read or changed. Held for moments.
    pub(super) fn health(&self) -> MutexGuard<'_, QueueHealth> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes no more calls.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Tells all who wait for a job whether there may be one.
    pub(super) fn set_ready(&self, ready: bool) {
        self.ready.send_if_modified(|told| std::mem::replace(told, ready) != ready);
    }
}
