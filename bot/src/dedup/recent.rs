//! A bounded memory of what came lately.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The newest values that were put in, up to a number.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    most: usize,
    known: Mutex<(HashSet<T>, VecDeque<T>)>,
}

impl<T: Copy + Eq + Hash> Recent<T> {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, known: Mutex::default() }
    }

    /// Keeps a value; whether it was not known before.
    pub(crate) fn insert(&self, value: T) -> bool {
        let mut known = self.lock();
        if !known.0.insert(value) {
            return false;
        }
        known.1.push_back(value);
        if known.1.len() > self.most
            && let Some(oldest) = known.1.pop_front()
        {
            known.0.remove(&oldest);
        }
        true
    }

    /// Forgets a value.
    pub(crate) fn remove(&self, value: &T) {
        let mut known = self.lock();
        if known.0.remove(value) {
            known.1.retain(|kept| kept != value);
        }
    }

    pub(crate) fn contains(&self, value: &T) -> bool {
        self.lock().0.contains(value)
    }

    fn lock(&self) -> MutexGuard<'_, (HashSet<T>, VecDeque<T>)> {
        // Whole after each step: a panic elsewhere has not harmed it.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_known() {
        let recent = Recent::new(2);
        assert!(recent.insert(1) && !recent.insert(1) && recent.insert(2) && recent.insert(3));
        assert!(!recent.contains(&1) && recent.contains(&2) && recent.contains(&3));
        assert!(recent.insert(1));
        recent.remove(&3);
        assert!(recent.insert(2) && recent.contains(&1) && !recent.contains(&3));
    }
}
