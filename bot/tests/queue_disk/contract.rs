//! The promises of every queue, kept by the one on disk.

use std::fs;
use std::sync::{Arc, Mutex};

use azalea_bot::clock::Clock;
use azalea_bot::queue::{BookSettings, EmbeddedQueue, EmbeddedSettings, Queue};
use tempfile::TempDir;

use crate::contract::{House, every_queue};

/// Folders in which a queue lives: the last one, and those in which it died.
struct Disk(Mutex<Vec<TempDir>>);

impl Disk {
    fn new() -> Self {
        Self(Mutex::new(vec![tempfile::tempdir().unwrap()]))
    }
}

impl House for Disk {
    fn open(&self, settings: BookSettings, clock: &Clock) -> Arc<dyn Queue> {
        let folder = self.0.lock().unwrap().last().unwrap().path().to_owned();
        let settings = EmbeddedSettings { book: settings, ballast_bytes: 0, ..EmbeddedSettings::new(folder) };
        Arc::new(EmbeddedQueue::open(settings, clock.clone()).unwrap())
    }

    /// What a killed process leaves is what it has written until then: a copy of the file, made while it is open.
    /// Processes that are really killed are in `crash.rs`.
    fn kill_and_open(&self, killed: Arc<dyn Queue>, settings: BookSettings, clock: &Clock) -> Arc<dyn Queue> {
        let left = tempfile::tempdir().unwrap();
        for file in ["queue.redb", "queue.marker"] {
            let from = self.0.lock().unwrap().last().unwrap().path().join(file);
            fs::copy(from, left.path().join(file)).unwrap();
        }
        self.0.lock().unwrap().push(left);
        drop(killed);
        self.open(settings, clock)
    }
}

every_queue!(disk, Disk::new());
