//! Which files are in use in this process, so that none is removed under its reader.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::store::artifact::ContentHash;

/// The files in use, each with the number of its leases.
#[derive(Clone, Debug, Default)]
pub(super) struct Leases(Arc<Mutex<HashMap<ContentHash, usize>>>);

impl Leases {
    /// Holds a file, whether or not it is there. Look for it afterwards.
    pub(super) fn take(&self, hash: ContentHash) -> Lease {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(hash).or_default();
        *count = count.saturating_add(1);
        Lease(Arc::new(Held { hash, leases: self.clone() }))
    }

    /// Does something to a file that nobody holds, and lets nobody hold it meanwhile.
    pub(super) fn unless_held<T>(&self, hash: ContentHash, deed: impl FnOnce() -> T) -> Option<T> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.contains_key(&hash) { None } else { Some(deed()) }
    }
}

/// A hold on one file. The last clone that is dropped ends it.
#[derive(Clone)]
pub(super) struct Lease(Arc<Held>);

struct Held {
    hash: ContentHash,
    leases: Leases,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.leases.0.lock().unwrap_or_else(PoisonError::into_inner);
        match held.get_mut(&self.hash) {
            Some(count) if *count > 1 => *count = count.saturating_sub(1),
            _ => {
                held.remove(&self.hash);
            }
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease").field(&self.0.hash).finish()
    }
}
