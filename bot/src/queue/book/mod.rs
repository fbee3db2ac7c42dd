//! Everything that a queue knows, in memory and in order. Pure: it is told the time and stores nothing itself.
//!
//! A queue is a [`Book`] and where its [changes](Change) go. Invariants:
//!
//! - A job is in one state, and stands in the indexes where that state belongs; a key has one job or one result.
//! - Of all jobs of one delivery one is held at a time, and none while another one may have posted it.
//! - What happens to a job is decided by [`step`] alone.
//! - After [`roll_back`](Book::roll_back) everything is as it was at the last [`commit`](Book::commit).
//! - Its time never runs backwards. A clock that is put back a little is waited for; one that is put back further was
//!   wrong before, and then all that is still to come moves with it: waits stay as long as they were.

mod entry;
mod fair;
mod index;
mod journal;
mod lines;
mod results;
mod time;
mod view;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::WallTime;
use crate::queue::job::CRASHED;
use crate::queue::state::{Event, Refusal, Rules, step};
use crate::queue::{
    Completed, DeadReason, Enqueued, Held, Intent, JobId, JobResult, JobView, Lease, LeaseRef, LeaseToken,
    NewJob, QueueError, Reason, Retried, State, StateKind,
};

pub use self::entry::BookSettings;
use self::entry::attempt;
pub(crate) use self::entry::{Change, Counters, Ended, Entry, line};
use self::index::{Index, Turn};
use self::journal::Journal;
use self::results::Results;

/// The jobs of a queue and what is known of those that ended.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    settings: BookSettings,
    jobs: BTreeMap<JobId, Arc<Entry>>,
    index: Index,
    results: Results,
    next_job: u64,
    next_token: u64,
    journal: Journal,
}

impl Book {
    /// An empty one.
    pub(crate) fn new(settings: BookSettings) -> Self {
        Self {
            settings,
            jobs: BTreeMap::new(),
            index: Index::default(),
            results: Results::default(),
            next_job: 1,
            next_token: 1,
            journal: Journal::default(),
        }
    }

    /// The book that was stored, after the process that kept it has ended. What it held then is given back: see
    /// [`Event::Crash`]. That, and whatever was too much, are changes to be stored.
    pub(crate) fn restore(
        settings: BookSettings,
        mut entries: Vec<Entry>,
        ended: Vec<Ended>,
        counters: Counters,
        now: WallTime,
    ) -> Self {
        let mut book = Self::new(settings);
        book.index.clock = counters.clock;
        book.next_job = counters.next_job.max(book.next_job);
        book.next_token = counters.next_token.max(book.next_token);
        for one in ended {
            book.next_job = book.next_job.max(one.id.0.saturating_add(1));
            book.results.put(Arc::new(one));
        }
        entries.sort_unstable_by_key(|entry| entry.id);
        for entry in entries {
            // Whoever watched a job has ended with its process.
            let entry = Arc::new(Entry { watched: false, ..entry });
            book.next_job = book.next_job.max(entry.id.0.saturating_add(1));
            if let State::Leased { token, .. } = entry.state {
                book.next_token = book.next_token.max(token.0.saturating_add(1));
            }
            // Written by an older program, or found in a file that was mended: the first of a key counts, and what
            // has a result is over.
            let over = book.index.keys.contains_key(&entry.key()) || book.results.of(entry.key()).is_some();
            if over || entry.state == State::Done || book.jobs.contains_key(&entry.id) {
                book.journal.job(entry.id, Some(&entry));
                continue;
            }
            book.index.insert(&entry);
            book.jobs.insert(entry.id, entry);
        }
        let now = book.advance(now);
        let held: Vec<JobId> = book.index.leased.iter().map(|(_, id)| *id).collect();
        for id in held {
            let _ = book.happens(id, Event::Crash, now, |entry, before| {
                entry.remember(attempt(before.attempts, now, CRASHED));
            });
        }
        book.tick(now);
        book
    }

    /// Adds a job.
    ///
    /// # Errors
    /// [`QueueError::Full`] when there is no room.
    pub(crate) fn enqueue(&mut self, job: NewJob, now: WallTime) -> Result<Enqueued, QueueError> {
        self.add(job, false, now)
    }

    /// Adds a job that somebody in this process answers: it is not worked on before it is [let go](Self::let_go), or
    /// the process has ended.
    ///
    /// # Errors
    /// As [`enqueue`](Self::enqueue).
    pub(crate) fn enqueue_behind(&mut self, job: NewJob, now: WallTime) -> Result<Enqueued, QueueError> {
        self.add(job, true, now)
    }

    fn add(&mut self, job: NewJob, watched: bool, now: WallTime) -> Result<Enqueued, QueueError> {
        let now = self.tick(now);
        let key = job.key();
        if let Some(entry) = self.index.keys.get(&key).and_then(|id| self.jobs.get(id)) {
            return Ok(Enqueued::Duplicate(entry.id, entry.state.kind(now)));
        }
        if let Some(ended) = self.results.of(key) {
            return Ok(Enqueued::Duplicate(ended.id, StateKind::Done));
        }
        if self.index.living() >= self.settings.capacity {
            return Err(QueueError::Full { capacity: self.settings.capacity });
        }
        self.journal.counters(self.next_job, self.next_token);
        let id = JobId(self.next_job);
        self.next_job = self.next_job.saturating_add(1);
        let entry = Entry {
            id,
            line: line(&job.request),
            watched,
            request: Arc::new(job.request),
            priority: job.priority,
            state: State::Scheduled { run_at: job.not_before.max(now) },
            attempts: 0,
            suspicion: 0,
            spared: 0,
            engaged: false,
            generation: 0,
            enqueued_at: now,
            deadline: job.deadline,
            intent: None,
            history: Vec::new(),
            answered: false,
        };
        self.set(id, Some(Arc::new(entry)));
        Ok(Enqueued::New(id))
    }

    /// Leases at most `most` jobs whose turn it is. While one is alone there are no others, and it is only given out
    /// when there are none.
    pub(crate) fn claim(&mut self, most: usize, visibility: Duration, now: WallTime) -> Vec<Lease> {
        let now = self.tick(now);
        let mut leases = Vec::new();
        while leases.len() < most
            && let Some(turn) = self.index.turn()
        {
            let (id, alone) = match turn {
                Turn::Fair(place) => {
                    self.index.fair.served(place);
                    (place.id, false)
                }
                Turn::Suspect(id) => (id, true),
            };
            self.journal.counters(self.next_job, self.next_token);
            let token = LeaseToken(self.next_token);
            let until = now.plus(visibility);
            let Ok(Some(entry)) = self.happens(id, Event::Lease { token, until }, now, |_, _| {}) else {
                break;
            };
            self.next_token = self.next_token.saturating_add(1);
            leases.push(Lease {
                lease: LeaseRef { job: id, token },
                request: (*entry.request).clone(),
                attempt: entry.attempts,
                generation: entry.generation,
                enqueued_at: entry.enqueued_at,
                until,
                alone,
                intent: entry.intent.clone(),
            });
        }
        leases
    }

    /// Holds a job for `visibility` from now. Nothing that must be stored: after a restart no lease is held.
    pub(crate) fn extend(&mut self, lease: LeaseRef, visibility: Duration, now: WallTime) -> Held {
        let now = self.advance(now);
        let until = now.plus(visibility);
        let Some(entry) = self.jobs.get(&lease.job).cloned() else { return Held::Lost };
        let event = Event::Extend { token: lease.token, until };
        let Ok(Some(life)) = step(entry.life(), event, now, self.rules()) else { return Held::Lost };
        let State::Leased { until: before, .. } = entry.state else { return Held::Lost };
        let longer = Arc::new(entry.with(life));
        self.index.extend(lease.job, before, until);
        // A change of the same job that is taken back does not take this back.
        self.journal.extend(lease, life.state);
        self.jobs.insert(lease.job, longer);
        Held::Until(until)
    }

    /// Nobody in this process answers a job any more. Nothing that must be stored.
    pub(crate) fn let_go(&mut self, id: JobId, now: WallTime) {
        self.advance(now);
        if let Some(entry) = self.jobs.get(&id).filter(|entry| entry.watched).cloned() {
            let alone = Arc::new(Entry { watched: false, ..Entry::clone(&entry) });
            self.index.remove(&entry);
            self.index.insert(&alone);
            // A change of the same job that is taken back does not take this back.
            self.journal.let_go(id);
            self.jobs.insert(id, alone);
        }
    }

    /// Notes that a job's media are given to the engine.
    pub(crate) fn engage(&mut self, lease: LeaseRef, now: WallTime) -> Held {
        let now = self.tick(now);
        let after = self.happens(lease.job, Event::Engage { token: lease.token }, now, |_, _| {});
        held(after.ok().flatten())
    }

    /// Notes what is about to be posted, or what of it stands there by now.
    pub(crate) fn intend(&mut self, lease: LeaseRef, intent: Intent, now: WallTime) -> Held {
        let now = self.tick(now);
        let event = Event::Intend { token: lease.token };
        let after = self.happens(lease.job, event, now, |entry, _| entry.intent = Some(intent));
        held(after.ok().flatten())
    }

    /// Ends a job.
    pub(crate) fn complete(&mut self, lease: LeaseRef, result: JobResult, now: WallTime) -> Completed {
        let now = self.tick(now);
        if let Some(ended) = self.results.of_job(lease.job) {
            return Completed::Already(ended.result.clone());
        }
        match self.happens(lease.job, Event::Complete { token: lease.token }, now, |_, _| {}) {
            Ok(Some(entry)) => {
                let key = entry.key();
                let line = matches!(result, JobResult::Delivered { .. }).then_some(entry.line);
                let ended = Ended { id: lease.job, key, result, at: now, line };
                let before = self.results.put(Arc::new(ended));
                self.journal.ended(key, before.as_ref());
                self.trim(now);
                Completed::Done
            }
            Ok(None) | Err(_) => Completed::Lost,
        }
    }

    /// Gives a job back that is to be tried again.
    pub(crate) fn retry(
        &mut self,
        lease: LeaseRef,
        after: Duration,
        reason: Reason,
        now: WallTime,
    ) -> Retried {
        let now = self.tick(now);
        let event = Event::Retry { token: lease.token, run_at: now.plus(after) };
        let after = self.happens(lease.job, event, now, |entry, before| {
            entry.remember(reason.attempt(before.attempts, now));
        });
        self.trim(now);
        match after {
            Ok(Some(entry)) => match entry.state {
                State::Scheduled { run_at } | State::Suspect { run_at } => Retried::At(run_at),
                State::Dead { reason, .. } => Retried::Dead(reason),
                State::Leased { .. } | State::Done => Retried::Lost,
            },
            Ok(None) | Err(_) => Retried::Lost,
        }
    }

    /// Puts a job aside.
    pub(crate) fn bury(&mut self, lease: LeaseRef, reason: Reason, why: DeadReason, now: WallTime) -> Held {
        let now = self.tick(now);
        let event = Event::Bury { token: lease.token, why };
        let after = self.happens(lease.job, event, now, |entry, before| {
            entry.remember(reason.attempt(before.attempts, now));
        });
        self.trim(now);
        if after.is_ok() { Held::Until(now) } else { Held::Lost }
    }

    /// Gives a job back as if it had not been leased, to be leased again `after` this time.
    pub(crate) fn release(&mut self, lease: LeaseRef, after: Duration, now: WallTime) -> Held {
        let now = self.tick(now);
        let event = Event::Release { token: lease.token, run_at: now.plus(after) };
        let after = self.happens(lease.job, event, now, |_, _| {});
        if after.is_ok() { Held::Until(now) } else { Held::Lost }
    }

    /// Gives back all that are held, as if they had not been leased. For a queue that closes in good order: what is
    /// held at its end was not what ended it.
    pub(crate) fn release_all(&mut self, now: WallTime) {
        let now = self.tick(now);
        let held: Vec<JobId> = self.index.leased.iter().map(|(_, id)| *id).collect();
        for id in held {
            if let Some(State::Leased { token, .. }) = self.jobs.get(&id).map(|entry| entry.state) {
                let _ = self.happens(id, Event::Release { token, run_at: now }, now, |_, _| {});
            }
        }
    }

    /// Has a dead job run again. What it was about to post is kept, so that it looks for that first.
    pub(crate) fn revive(&mut self, id: JobId, deadline: WallTime, now: WallTime) -> bool {
        let now = self.tick(now);
        self.happens(id, Event::Revive { deadline }, now, |entry, _| entry.answered = false).is_ok()
    }

    /// Notes that the one who asked for a dead job was told.
    pub(crate) fn answered(&mut self, id: JobId, now: WallTime) -> bool {
        self.tick(now);
        let Some(entry) = self.jobs.get(&id).filter(|entry| matches!(entry.state, State::Dead { .. })) else {
            return false;
        };
        let told = Entry { answered: true, ..Entry::clone(entry) };
        self.set(id, Some(Arc::new(told)));
        true
    }

    /// Takes out all that wait, whatever they wait for.
    pub(crate) fn drain(&mut self, now: WallTime) -> Vec<JobView> {
        let now = self.tick(now);
        let waiting = self.index.scheduled.iter().chain(&self.index.suspects);
        let waiting: Vec<JobId> = waiting.map(|(_, id)| *id).collect();
        let taken: Vec<JobView> = waiting.iter().filter_map(|id| self.show(*id, now)).collect();
        for id in waiting {
            self.set(id, None);
        }
        taken
    }

    /// Forgets a job that is not held and not done. A result is never forgotten early: the same would be posted again.
    pub(crate) fn forget(&mut self, id: JobId, now: WallTime) -> bool {
        let now = self.tick(now);
        self.happens(id, Event::Forget, now, |_, _| {}).is_ok()
    }

    /// Numbers that outlive the process.
    pub(crate) const fn counters(&self) -> Counters {
        Counters { next_job: self.next_job, next_token: self.next_token, clock: self.index.clock }
    }

    /// What has changed since the last [`commit`](Self::commit) or [`roll_back`](Self::roll_back), one change for each
    /// record. The [counters](Self::counters) are stored with it.
    pub(crate) fn changes(&self) -> Vec<Change> {
        self.journal.changes(&self.jobs, &self.results)
    }

    /// All there is, as if it had just come: what a new file is to hold.
    pub(crate) fn image(&self) -> Vec<Change> {
        let jobs = self.jobs.values().map(|entry| Change::Job {
            id: entry.id,
            before: None,
            after: Some(Arc::clone(entry)),
        });
        let ended = self.results.all_in_order().map(|ended| Change::Ended {
            key: ended.key,
            before: None,
            after: Some(Arc::clone(ended)),
        });
        jobs.chain(ended).collect()
    }

    /// The changes are stored.
    pub(crate) fn commit(&mut self) {
        self.journal = Journal::default();
        self.index.fair.commit();
    }

    /// The changes are not stored: everything is again as it was before the first of them, but not earlier. Leases
    /// that were extended stay so.
    pub(crate) fn roll_back(&mut self) {
        let journal = std::mem::take(&mut self.journal);
        if let Some(clock) = journal.clock_before {
            self.index.clock = clock;
        }
        // First all out, then all in: two of them may have had the same key one after the other.
        for id in journal.jobs.keys() {
            if let Some(entry) = self.jobs.remove(id) {
                self.index.remove(&entry);
            }
        }
        for (id, entry) in journal.jobs {
            if let Some(entry) = entry {
                self.index.insert(&entry);
                self.jobs.insert(id, entry);
            }
        }
        for (key, ended) in journal.ended {
            self.results.remove(key);
            if let Some(ended) = ended {
                self.results.put(ended);
            }
        }
        if let Some((next_job, next_token)) = journal.counters_before {
            self.next_job = next_job;
            self.next_token = next_token;
        }
        self.index.fair.roll_back();
    }

    /// Lets `event` happen to a job and `note` what else changes with it, given the job as it is and as it was.
    fn happens(
        &mut self,
        id: JobId,
        event: Event,
        now: WallTime,
        note: impl FnOnce(&mut Entry, &Entry),
    ) -> Result<Option<Arc<Entry>>, Refusal> {
        let before = self.jobs.get(&id).cloned().ok_or(Refusal::Lost)?;
        let Some(life) = step(before.life(), event, now, self.rules())? else {
            self.set(id, None);
            return Ok(None);
        };
        let mut after = before.with(life);
        note(&mut after, &before);
        let after = Arc::new(after);
        self.set(id, Some(Arc::clone(&after)).filter(|entry| entry.state != State::Done));
        Ok(Some(after))
    }

    /// Puts a job's record into the place of the one that stands there.
    fn set(&mut self, id: JobId, after: Option<Arc<Entry>>) {
        let before = self.jobs.remove(&id);
        if let Some(before) = &before {
            self.index.remove(before);
        }
        if let Some(after) = after {
            self.index.insert(&after);
            self.jobs.insert(id, after);
        }
        self.journal.job(id, before.as_ref());
    }

    const fn rules(&self) -> Rules {
        let BookSettings { max_attempts, max_alone_crashes, max_spared, .. } = self.settings;
        Rules { max_attempts, max_alone_crashes, max_spared }
    }
}

/// Until when a job is held.
fn held(entry: Option<Arc<Entry>>) -> Held {
    match entry.map(|entry| entry.state) {
        Some(State::Leased { until, .. }) => Held::Until(until),
        _ => Held::Lost,
    }
}
