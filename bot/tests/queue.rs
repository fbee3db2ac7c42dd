//! What every queue promises, checked on each kind of queue.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

#[path = "queue/mod.rs"]
mod contract;

use std::sync::Arc;

use azalea_bot::clock::Clock;
use azalea_bot::queue::{BookSettings, MemoryQueue, Queue};

use crate::contract::{House, every_queue};

/// Where a queue lives that does not outlive its process.
struct Memory;

impl House for Memory {
    fn open(&self, settings: BookSettings, clock: &Clock) -> Arc<dyn Queue> {
        Arc::new(MemoryQueue::new(settings, clock.clone()))
    }

    fn kill_and_open(&self, killed: Arc<dyn Queue>, settings: BookSettings, clock: &Clock) -> Arc<dyn Queue> {
        drop(killed);
        self.open(settings, clock)
    }
}

every_queue!(memory, Memory);
