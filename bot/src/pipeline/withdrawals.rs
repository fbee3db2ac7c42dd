//! Requests that were taken back: their work ends, and nobody is told.

use std::sync::Arc;

use dashmap::DashMap;
use tokio_util::sync::CancellationToken;

use crate::dedup::Recent;
use crate::domain::RequestId;

/// Requests that are remembered as taken back; they are looked at within a day, if ever.
const REMEMBERED: usize = 10_000;

/// What was taken back by those who asked for it. Clones share it.
#[derive(Clone, Debug)]
pub struct Withdrawals(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    withdrawn: Recent<RequestId>,
    running: DashMap<RequestId, CancellationToken>,
}

impl Default for Withdrawals {
    fn default() -> Self {
        Self(Arc::new(Inner { withdrawn: Recent::new(REMEMBERED), running: DashMap::new() }))
    }
}

impl Withdrawals {
    /// Takes a request back: the work on it ends now, or as soon as it would begin.
    pub fn withdraw(&self, request: RequestId) {
        self.0.withdrawn.insert(request);
        if let Some(running) = self.0.running.get(&request) {
            running.cancel();
        }
    }

    /// Whether a request was taken back.
    pub fn contains(&self, request: RequestId) -> bool {
        self.0.withdrawn.contains(&request)
    }

    /// Work on a request begins, which `cancel` ends; until what is returned is dropped.
    pub(super) fn begin(&self, request: RequestId, cancel: &CancellationToken) -> Running<'_> {
        self.0.running.insert(request, cancel.clone());
        // Looked at after it can be found: whoever takes it back in between finds the one or the other.
        if self.contains(request) {
            cancel.cancel();
        }
        Running { withdrawals: self, request }
    }
}

/// Work on a request that can be taken back.
#[derive(Debug)]
#[must_use = "dropping it says that the work is over"]
pub(super) struct Running<'a> {
    withdrawals: &'a Withdrawals,
    request: RequestId,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.withdrawals.0.running.remove(&self.request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_whether_it_began_before_or_after() {
        let withdrawals = Withdrawals::default();
        let request: RequestId = "discord-7-0".parse().unwrap();
        let (before, after) = (CancellationToken::new(), CancellationToken::new());
        let running = withdrawals.begin(request, &before);
        assert!(!before.is_cancelled() && !withdrawals.contains(request));
        withdrawals.withdraw(request);
        assert!(before.is_cancelled() && withdrawals.contains(request));
        drop(running);
        let _running = withdrawals.begin(request, &after);
        assert!(after.is_cancelled());
    }
}
