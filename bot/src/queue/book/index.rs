//! The jobs by what is to be found: the next turn, the next moment, the key.
//!
//! What stands here follows from the jobs and from how late it is. Only whose turn it is has a memory of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::WallTime;
use crate::domain::RequestId;
use crate::queue::book::Entry;
use crate::queue::book::fair::{Fair, Place};
use crate::queue::book::lines::{Lines, Shift};
use crate::queue::{JobId, State};

type ByTime = BTreeSet<(WallTime, JobId)>;

#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub(super) struct Index {
    /// How late it is: those that wait until then stand in `fair`.
    pub(super) clock: WallTime,
    pub(super) keys: HashMap<RequestId, JobId>,
    /// Who waits for whom.
    pub(super) lines: Lines,
    /// All that are scheduled, by the moment that they wait for.
    pub(super) scheduled: ByTime,
    /// Those of them who are the first of their line.
    pub(super) next: ByTime,
    /// Those of these whose moment has come.
    pub(super) fair: Fair,
    /// By the moment that they wait for. They come one after the other, so they need no turns.
    pub(super) suspects: ByTime,
    /// Those of them who are the first of their line.
    pub(super) next_suspects: ByTime,
    /// By the end of their lease.
    pub(super) leased: ByTime,
    /// The one of them that is alone.
    pub(super) alone: Option<JobId>,
    /// Those that wait, by their deadline.
    pub(super) deadlines: ByTime,
    /// Since when.
    pub(super) dead: ByTime,
    /// Those of them whose requesters were not told.
    pub(super) unanswered: ByTime,
}

/// What may be leased next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Fair(Place),
    Suspect(JobId),
}

impl Index {
    pub(super) fn insert(&mut self, entry: &Entry) {
        self.keys.insert(entry.key(), entry.id);
        match entry.state {
            State::Scheduled { run_at } => {
                self.scheduled.insert((run_at, entry.id));
                self.deadlines.insert((entry.deadline, entry.id));
            }
            State::Suspect { run_at } => {
                self.suspects.insert((run_at, entry.id));
                self.deadlines.insert((entry.deadline, entry.id));
            }
            State::Leased { until, alone, .. } => {
                self.leased.insert((until, entry.id));
                if alone {
                    self.alone = Some(entry.id);
                }
            }
            State::Dead { at, .. } => {
                self.dead.insert((at, entry.id));
                if !entry.answered {
                    self.unanswered.insert((at, entry.id));
                }
            }
            State::Done => {}
        }
        let shift = self.lines.insert(entry);
        self.shift(shift);
    }

    pub(super) fn remove(&mut self, entry: &Entry) {
        self.keys.remove(&entry.key());
        match entry.state {
            State::Scheduled { run_at } => {
                self.scheduled.remove(&(run_at, entry.id));
                self.deadlines.remove(&(entry.deadline, entry.id));
            }
            State::Suspect { run_at } => {
                self.suspects.remove(&(run_at, entry.id));
                self.deadlines.remove(&(entry.deadline, entry.id));
            }
            State::Leased { until, .. } => {
                self.leased.remove(&(until, entry.id));
                if self.alone == Some(entry.id) {
                    self.alone = None;
                }
            }
            State::Dead { at, .. } => {
                self.dead.remove(&(at, entry.id));
                self.unanswered.remove(&(at, entry.id));
            }
            State::Done => {}
        }
        let shift = self.lines.remove(entry);
        self.shift(shift);
    }

    /// A lease becomes longer, and all else is as it was.
    pub(super) fn extend(&mut self, id: JobId, until: WallTime, longer: WallTime) {
        self.leased.remove(&(until, id));
        self.leased.insert((longer, id));
    }

    /// Another one is the first of its line. It comes before the other goes, so that a server with one job each keeps
    /// its turn.
    fn shift(&mut self, Shift { before, after }: Shift) {
        if before == after {
            return;
        }
        if let Some(seat) = after {
            match seat.place {
                Some(place) => {
                    self.next.insert((seat.run_at, seat.id));
                    if seat.run_at <= self.clock {
                        self.fair.insert(place);
                    }
                }
                None => {
                    self.next_suspects.insert((seat.run_at, seat.id));
                }
            }
        }
        if let Some(seat) = before {
            match seat.place {
                Some(place) => {
                    self.next.remove(&(seat.run_at, seat.id));
                    self.fair.remove(place);
                }
                None => {
                    self.next_suspects.remove(&(seat.run_at, seat.id));
                }
            }
        }
    }

    /// It is `now`, which is not before it was.
    pub(super) fn advance(&mut self, now: WallTime, jobs: &BTreeMap<JobId, Arc<Entry>>) {
        for (_, id) in between(&self.next, self.clock, now) {
            if let Some(entry) = jobs.get(id) {
                self.fair.insert(Place::of(entry));
            }
        }
        self.clock = now;
    }

    /// What may be leased at `now`, when it is so late.
    pub(super) fn turn(&self) -> Option<Turn> {
        let suspect = self.next_suspects.first().filter(|(run_at, _)| *run_at <= self.clock);
        if self.alone.is_some() {
            return None;
        }
        match suspect {
            Some((_, id)) if self.leased.is_empty() => Some(Turn::Suspect(*id)),
            // What is held ends some day, and then it is alone.
            Some((run_at, _)) if self.clock.since(*run_at) >= SUSPECTS_WAIT => None,
            _ => self.fair.next().map(Turn::Fair),
        }
    }

    /// Those that wait or are held.
    pub(super) fn living(&self) -> usize {
        self.scheduled.len().saturating_add(self.suspects.len()).saturating_add(self.leased.len())
    }

    /// How many may be worked on at `now`, suspects among them.
    pub(super) fn ready(&self, now: WallTime) -> usize {
        let come = between(&self.next, self.clock, now).count();
        let suspects = self.next_suspects.range(..=(now, LAST)).count();
        self.fair.len().saturating_add(come).saturating_add(suspects)
    }

    /// When the next one that waits for a moment may be worked on.
    pub(super) fn next_delayed(&self) -> Option<WallTime> {
        let next = |set: &ByTime| {
            set.range((Bound::Excluded((self.clock, LAST)), Bound::Unbounded)).next().map(|(at, _)| *at)
        };
        next(&self.next).into_iter().chain(next(&self.next_suspects)).min()
    }

    /// Whether one of the scheduled has come since it was as late as it is.
    pub(super) fn any_come(&self, now: WallTime) -> bool {
        between(&self.next, self.clock, now).next().is_some()
    }
}

/// Those after `from`, up to and with `until`.
fn between(set: &ByTime, from: WallTime, until: WallTime) -> impl Iterator<Item = &(WallTime, JobId)> {
    // A range whose end is before its beginning panics.
    let until = until.max(from);
    set.range((Bound::Excluded((from, LAST)), Bound::Included((until, LAST))))
}

/// Behind every other number.
const LAST: JobId = JobId(u64::MAX);

/// Then nothing else is leased until it had its turn alone.
const SUSPECTS_WAIT: Duration = Duration::from_secs(30);
