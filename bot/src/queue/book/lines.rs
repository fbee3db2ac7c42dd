//! Who waits for whom: jobs of the same delivery stand in a line, and only the first of it is worked on.
//!
//! So a post never comes into a channel twice: whoever is next finds the result of the one before, or an intent that is
//! settled first. First is who is held, then who may have posted already, then who came first. Whoever is answered by
//! somebody in this process stands behind all others, and is never worked on.

use std::collections::BTreeMap;

use crate::clock::WallTime;
use crate::queue::book::Entry;
use crate::queue::book::fair::Place;
use crate::queue::{JobId, State};

/// All lines. What stands in it follows from the jobs.
#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub(super) struct Lines(BTreeMap<(u64, Standing, JobId), Seat>);

/// What decides who is first, before the number does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Held,
    /// An attempt may have posted it.
    Begun,
    Waits,
    Watched,
}

/// One that stands in a line, and where it waits when it is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) id: JobId,
    pub(super) run_at: WallTime,
    /// `None`: it is a suspect.
    pub(super) place: Option<Place>,
}

/// Who may be worked on as far as its line goes, before a change and after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shift {
    pub(super) before: Option<Seat>,
    pub(super) after: Option<Seat>,
}

impl Lines {
    /// A job comes.
    pub(super) fn insert(&mut self, entry: &Entry) -> Shift {
        self.shift(entry, |lines, key| {
            lines.insert(key, seat(entry));
        })
    }

    /// A job goes, as it came.
    pub(super) fn remove(&mut self, entry: &Entry) -> Shift {
        self.shift(entry, |lines, key| {
            lines.remove(&key);
        })
    }

    /// Whether a job that waits may be worked on, as far as its line goes.
    pub(super) fn is_next(&self, entry: &Entry) -> bool {
        self.next(entry.line).is_some_and(|seat| seat.id == entry.id)
    }

    /// The first of a job's line, unless that is the job itself.
    pub(super) fn ahead_of(&self, entry: &Entry) -> Option<JobId> {
        self.first(entry.line).map(|(_, seat)| seat.id).filter(|id| *id != entry.id)
    }

    fn shift(
        &mut self,
        entry: &Entry,
        change: impl FnOnce(&mut BTreeMap<(u64, Standing, JobId), Seat>, (u64, Standing, JobId)),
    ) -> Shift {
        let Some(standing) = standing(entry) else { return Shift { before: None, after: None } };
        let before = self.next(entry.line);
        change(&mut self.0, (entry.line, standing, entry.id));
        Shift { before, after: self.next(entry.line) }
    }

    fn first(&self, line: u64) -> Option<(Standing, Seat)> {
        let all = (line, Standing::Held, JobId(0))..=(line, Standing::Watched, JobId(u64::MAX));
        self.0.range(all).next().map(|((_, standing, _), seat)| (*standing, *seat))
    }

    /// The first of a line, if it may be worked on.
    fn next(&self, line: u64) -> Option<Seat> {
        self.first(line).and_then(|(standing, seat)| match standing {
            Standing::Begun | Standing::Waits => Some(seat),
            Standing::Held | Standing::Watched => None,
        })
    }
}

/// `None` for one that stands in no line any more.
fn standing(entry: &Entry) -> Option<Standing> {
    match entry.state {
        State::Leased { .. } => Some(Standing::Held),
        State::Scheduled { .. } | State::Suspect { .. } if entry.watched => Some(Standing::Watched),
        State::Scheduled { .. } | State::Suspect { .. } if entry.intent.is_some() => Some(Standing::Begun),
        State::Scheduled { .. } | State::Suspect { .. } => Some(Standing::Waits),
        State::Dead { .. } | State::Done => None,
    }
}

fn seat(entry: &Entry) -> Seat {
    let (run_at, place) = match entry.state {
        State::Scheduled { run_at } => (run_at, Some(Place::of(entry))),
        State::Suspect { run_at } => (run_at, None),
        // It is not asked for.
        State::Leased { .. } | State::Dead { .. } | State::Done => (WallTime::default(), None),
    };
    Seat { id: entry.id, run_at, place }
}
