//! What a book holds, and what changes in it.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::WallTime;
use crate::domain::{DeliveryKey, Request, RequestId};
use crate::queue::state::Life;
use crate::queue::{Attempt, Intent, JobId, JobResult, Priority, Reason, State};

/// A job that is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its number.
    pub(crate) id: JobId,
    /// What is wanted.
    pub(crate) request: Arc<Request>,
    /// Who comes first.
    pub(crate) priority: Priority,
    /// Where it is in its life; never `Done`.
    pub(crate) state: State,
    /// Attempts that were begun and are charged.
    pub(crate) attempts: u32,
    /// How often the process died while it was at the engine.
    pub(crate) suspicion: u32,
    /// How often the process died while it was held and had not come to the engine.
    pub(crate) spared: u32,
    /// Of one that is held: its media have come to the engine, and are not posted yet.
    pub(crate) engaged: bool,
    /// How often a person had it run again.
    pub(crate) generation: u32,
    /// When it was queued.
    pub(crate) enqueued_at: WallTime,
    /// When it is not tried any more.
    pub(crate) deadline: WallTime,
    /// What an attempt was about to post, and may have posted.
    pub(crate) intent: Option<Intent>,
    /// What its attempts came to, oldest first; at most 20 of them, the newest.
    pub(crate) history: Vec<Attempt>,
    /// The one who asked was told that it is dead.
    pub(crate) answered: bool,
    /// Somebody in this process waits for the end of another request of the same delivery, and answers for this one.
    /// Never stored: it ends with the process.
    pub(crate) watched: bool,
    /// Its [`line`]. Follows from the request.
    pub(crate) line: u64,
}

/// What jobs of the same delivery have in common, and others have not.
pub(crate) fn line(request: &Request) -> u64 {
    DeliveryKey::of(request).digest()
}

impl Entry {
    /// The job's key.
    pub(crate) fn key(&self) -> RequestId {
        self.request.id
    }

    /// What decides what may happen to it.
    pub(super) const fn life(&self) -> Life {
        Life {
            state: self.state,
            attempts: self.attempts,
            suspicion: self.suspicion,
            spared: self.spared,
            engaged: self.engaged,
            generation: self.generation,
            deadline: self.deadline,
        }
    }

    /// The same job with another life.
    pub(super) fn with(&self, life: Life) -> Self {
        let Life { state, attempts, suspicion, spared, engaged, generation, deadline } = life;
        Self { state, attempts, suspicion, spared, engaged, generation, deadline, ..self.clone() }
    }

    /// Adds to its history, at the price of the oldest. Attempts that were not charged have numbers of their own too, so
    /// no two have the same.
    pub(super) fn remember(&mut self, mut attempt: Attempt) {
        if let Some(last) = self.history.last() {
            attempt.number = attempt.number.max(last.number.saturating_add(1));
        }
        self.history.push(attempt);
        self.history.drain(..self.history.len().saturating_sub(MOST_HISTORY));
    }
}

/// An attempt of which nobody tells where it ended.
pub(super) fn attempt(number: u32, at: WallTime, code: &str) -> Attempt {
    Attempt { number, at, stage: None, code: code.to_owned(), chain: Vec::new() }
}

impl Reason {
    /// What the history says of an attempt that ended so, no longer than a history may be.
    pub(super) fn attempt(self, number: u32, at: WallTime) -> Attempt {
        let Self { stage, mut code, mut chain } = self;
        shorten(&mut code, MOST_CODE_BYTES);
        chain.truncate(MOST_LINES);
        for line in &mut chain {
            shorten(line, MOST_LINE_BYTES);
        }
        Attempt { number, at, stage, code, chain }
    }
}

/// Cuts between two characters.
fn shorten(text: &mut String, most: usize) {
    text.truncate(text.floor_char_boundary(most));
}

/// What is kept of a job that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The number it had.
    pub(crate) id: JobId,
    /// Its key.
    pub(crate) key: RequestId,
    /// How it ended.
    pub(crate) result: JobResult,
    /// When.
    pub(crate) at: WallTime,
    /// The [`line`] of its delivery; `None` when an older program stored it.
    pub(crate) line: Option<u64>,
}

/// What is to be stored: a record as it was, and as it is. `None` is no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Of a job that is not done.
    Job {
        /// Its number.
        id: JobId,
        /// As it was stored.
        before: Option<Arc<Entry>>,
        /// As it is to be stored.
        after: Option<Arc<Entry>>,
    },
    /// Of a result.
    Ended {
        /// Its job's key.
        key: RequestId,
        /// As it was stored.
        before: Option<Arc<Ended>>,
        /// As it is to be stored.
        after: Option<Arc<Ended>>,
    },
}

/// Numbers that outlive the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// The next job has at least this number.
    pub(crate) next_job: u64,
    /// The next lease has at least this token.
    pub(crate) next_token: u64,
    /// How late it is for the book. Its time never runs backwards, see [`Book`](super::Book).
    pub(crate) clock: WallTime,
}

/// The bounds of a queue. All are strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookSettings {
    /// Jobs that may wait or be held. Dead ones are not counted. 100,000.
    pub capacity: usize,
    /// How often a job is tried. 5.
    pub max_attempts: u32,
    /// How often the process may die while a job is alone at the engine; then the job is dead. 2.
    pub max_alone_crashes: u32,
    /// How often the process may die while a job is held that has not come to the engine; then the job counts as one
    /// that has. 20.
    pub max_spared: u32,
    /// How long a result is kept, and its request known as done. 7 days.
    pub results_for: Duration,
    /// Results that are kept at most, the newest ones. 8,192.
    pub results_most: usize,
    /// How long a dead job is kept. 90 days.
    pub dead_for: Duration,
    /// Dead jobs that are kept at most, the newest ones. 10,000.
    pub dead_most: usize,
}

impl Default for BookSettings {
    fn default() -> Self {
        Self {
            capacity: 100_000,
            max_attempts: 5,
            max_alone_crashes: 2,
            max_spared: 20,
            results_for: 7 * DAY,
            results_most: 8_192,
            dead_for: 90 * DAY,
            dead_most: 10_000,
        }
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A job's history has at most so many attempts.
const MOST_HISTORY: usize = 20;

/// Of a chain of errors so many lines are kept.
const MOST_LINES: usize = 8;

/// Of one line so many bytes are kept.
const MOST_LINE_BYTES: usize = 500;

/// Of a code so many bytes are kept.
const MOST_CODE_BYTES: usize = 64;
