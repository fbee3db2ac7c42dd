//! The thread that ends jobs at their deadline, whatever their own threads are doing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use super::job::Job;
use super::{join, lock, spawn, wait, wait_at_most};
use crate::error::Error;

/// Owns the thread `azalea-clock`, which sleeps until the earliest deadline. Dropping it ends the thread.
pub(super) struct Clock<T: Send + 'static> {
    deadlines: Arc<Deadlines<T>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Clock<T> {
    pub(super) fn start() -> Result<Self, Error> {
        let agenda = Agenda { due: BTreeMap::new(), next: 0, closed: false };
        let deadlines = Arc::new(Deadlines { agenda: Mutex::new(agenda), changed: Condvar::new() });
        let thread = spawn("azalea-clock".to_owned(), {
            let deadlines = Arc::clone(&deadlines);
            move || deadlines.keep()
        })?;
        Ok(Self { deadlines, thread: Some(thread) })
    }

    pub(super) fn deadlines(&self) -> Arc<Deadlines<T>> {
        Arc::clone(&self.deadlines)
    }
}

impl<T: Send + 'static> Drop for Clock<T> {
    fn drop(&mut self) {
        lock(&self.deadlines.agenda).closed = true;
        self.deadlines.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            join(thread);
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Clock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// The deadlines of running jobs: never more than there are workers.
pub(super) struct Deadlines<T> {
    agenda: Mutex<Agenda<T>>,
    changed: Condvar,
}

struct Agenda<T> {
    /// By time; the number keeps jobs with the same deadline apart.
    due: BTreeMap<(Instant, u64), Arc<Job<T>>>,
    next: u64,
    closed: bool,
}

impl<T> Deadlines<T> {
    /// Ends `job` at its deadline, unless the answer is dropped before. `None` when it has no deadline.
    pub(super) fn watch(self: &Arc<Self>, job: &Arc<Job<T>>) -> Option<Watch<T>> {
        let at = job.control().deadline()?;
        let mut agenda = lock(&self.agenda);
        let key = (at, agenda.next);
        agenda.next = agenda.next.wrapping_add(1);
        agenda.due.insert(key, Arc::clone(job));
        let earliest = agenda.due.first_key_value().is_some_and(|(first, _)| *first == key);
        drop(agenda);
        if earliest {
            self.changed.notify_all();
        }
        Some(Watch { deadlines: Arc::clone(self), key })
    }

    fn keep(&self) {
        let mut agenda = lock(&self.agenda);
        while !agenda.closed {
            let Some(entry) = agenda.due.first_entry() else {
                agenda = wait(&self.changed, agenda);
                continue;
            };
            let (at, _) = *entry.key();
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let job = entry.remove();
                drop(agenda);
                job.expire();
                agenda = lock(&self.agenda);
            } else {
                agenda = wait_at_most(&self.changed, agenda, left);
            }
        }
    }
}

/// A deadline that is being kept; dropping it forgets the deadline.
#[must_use]
pub(super) struct Watch<T> {
    deadlines: Arc<Deadlines<T>>,
    key: (Instant, u64),
}

impl<T> Drop for Watch<T> {
    fn drop(&mut self) {
        // The clock may wake once for nothing at the old time.
        let forgotten = lock(&self.deadlines.agenda).due.remove(&self.key);
        drop(forgotten);
    }
}
