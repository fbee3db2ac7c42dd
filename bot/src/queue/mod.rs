//! Requests between those who take them and those who do the work.
//!
//! This room never knows what a request is for. Its invariants: a job is held by one worker at a time, comes back when
//! it is handed back, and the number of jobs is bounded.

mod memory;

use crate::domain::Request;

pub use self::memory::{MemoryQueue, QueueError};

/// A request on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What is wanted.
    pub request: Request,
    /// Which attempt this is, from 1; counted when it is handed to a worker.
    pub attempt: u32,
}
