//! Threads, the bounded queue, the panic boundary, and the budget of codec threads.
#![allow(dead_code, reason = "skeleton")]

use std::sync::Arc;

use crate::error::Error;
use crate::progress::Control;

/// How many codec threads may run at once over all jobs.
#[derive(Debug)]
pub(crate) struct ThreadBudget {
    total: usize,
}

/// Threads held by one stage of one job; given back on drop.
#[derive(Debug)]
#[must_use]
pub(crate) struct ThreadGrant {
    threads: usize,
}

impl ThreadGrant {
    /// How many codec threads the holder may run, at least one.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }
}

impl ThreadBudget {
    pub(crate) fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total })
    }

    /// Waits until at least one thread is free, then takes up to `most`, leaving others their fair share.
    /// Ends within 100 ms of a stop.
    pub(crate) fn take(self: &Arc<Self>, most: usize, control: &Control) -> Result<ThreadGrant, Error> {
        control.stop()?;
        Ok(ThreadGrant { threads: most.min(self.total).max(1) })
    }
}
