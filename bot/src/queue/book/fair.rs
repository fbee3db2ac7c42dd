//! Whose turn it is among those that may be worked on now.
//!
//! Somebody who waits comes before nobody who does, but every sixteenth turn is for the background. Servers take
//! turns; in a server its people take turns; one person's jobs come in the order in which they were asked for. Whoever
//! writes privately is a server of one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::domain::{GuildId, UserId};
use crate::queue::book::Entry;
use crate::queue::{JobId, Priority};

/// Jobs that may be worked on now. What stands in it depends on the jobs alone; whose turn it is, on whose it was.
#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub(super) struct Fair {
    interactive: Lane,
    background: Lane,
    /// Interactive jobs in a row that a background job had to wait for.
    streak: u32,
    /// How to take back what the turns have become since the last commit.
    log: Vec<Undo>,
}

/// Where a job waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    priority: Priority,
    party: Party,
    user: UserId,
    pub(super) id: JobId,
}

/// Who takes turns with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Party {
    Guild(GuildId),
    Person(UserId),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Lane {
    parties: BTreeMap<Party, People>,
    /// Whose turn it was.
    last: Option<Party>,
    jobs: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct People {
    jobs: BTreeMap<UserId, BTreeSet<JobId>>,
    /// Whose turn it was.
    last: Option<UserId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Undo {
    Streak(u32),
    Party(Priority, Option<Party>),
    Person(Priority, Party, Option<UserId>),
}

impl Place {
    pub(super) fn of(entry: &Entry) -> Self {
        let user = entry.request.requester;
        let party = entry.request.destination.guild.map_or(Party::Person(user), Party::Guild);
        Self { priority: entry.priority, party, user, id: entry.id }
    }
}

impl Fair {
    pub(super) const fn len(&self) -> usize {
        self.interactive.jobs.saturating_add(self.background.jobs)
    }

    /// All that wait for a turn.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> Vec<Place> {
        let lanes = [(Priority::Interactive, &self.interactive), (Priority::Background, &self.background)];
        let places = lanes.into_iter().flat_map(|(priority, lane)| {
            lane.parties.iter().flat_map(move |(party, people)| {
                people.jobs.iter().flat_map(move |(user, jobs)| {
                    jobs.iter().map(move |id| Place { priority, party: *party, user: *user, id: *id })
                })
            })
        });
        places.collect()
    }

    pub(super) fn insert(&mut self, place: Place) {
        let lane = self.lane(place.priority);
        if lane.parties.entry(place.party).or_default().jobs.entry(place.user).or_default().insert(place.id) {
            lane.jobs = lane.jobs.saturating_add(1);
        }
    }

    /// Takes a job out, if it is there.
    pub(super) fn remove(&mut self, place: Place) {
        let lane = self.lane(place.priority);
        let Some(people) = lane.parties.get_mut(&place.party) else { return };
        let Some(jobs) = people.jobs.get_mut(&place.user) else { return };
        if !jobs.remove(&place.id) {
            return;
        }
        lane.jobs = lane.jobs.saturating_sub(1);
        if jobs.is_empty() {
            people.jobs.remove(&place.user);
        }
        if people.jobs.is_empty() {
            let last = people.last;
            lane.parties.remove(&place.party);
            self.log.push(Undo::Person(place.priority, place.party, last));
        }
    }

    /// Whose turn is next.
    pub(super) fn next(&self) -> Option<Place> {
        let interactive = || self.interactive.next(Priority::Interactive);
        let background = || self.background.next(Priority::Background);
        if self.streak >= MOST_IN_A_ROW {
            background().or_else(interactive)
        } else {
            interactive().or_else(background)
        }
    }

    /// It was this one's turn. To be said before the job is taken out.
    pub(super) fn served(&mut self, place: Place) {
        self.log.push(Undo::Streak(self.streak));
        self.streak = match place.priority {
            Priority::Interactive if self.background.jobs > 0 => self.streak.saturating_add(1),
            Priority::Interactive | Priority::Background => 0,
        };
        let lane = self.lane(place.priority);
        let party = lane.last.replace(place.party);
        let person = lane.parties.get_mut(&place.party).and_then(|people| people.last.replace(place.user));
        self.log.push(Undo::Party(place.priority, party));
        self.log.push(Undo::Person(place.priority, place.party, person));
    }

    /// What the turns are now is what they stay.
    pub(super) fn commit(&mut self) {
        self.log.clear();
    }

    /// Takes back what the turns have become since the last commit. To be said when the jobs stand again where they
    /// stood: that they were moved back is taken back with the rest.
    pub(super) fn roll_back(&mut self) {
        for undo in std::mem::take(&mut self.log).into_iter().rev() {
            match undo {
                Undo::Streak(streak) => self.streak = streak,
                Undo::Party(priority, last) => self.lane(priority).last = last,
                Undo::Person(priority, party, last) => {
                    if let Some(people) = self.lane(priority).parties.get_mut(&party) {
                        people.last = last;
                    }
                }
            }
        }
    }

    const fn lane(&mut self, priority: Priority) -> &mut Lane {
        match priority {
            Priority::Interactive => &mut self.interactive,
            Priority::Background => &mut self.background,
        }
    }
}

impl Lane {
    fn next(&self, priority: Priority) -> Option<Place> {
        let (party, people) = after(&self.parties, self.last)?;
        let (user, jobs) = after(&people.jobs, people.last)?;
        let id = jobs.first()?;
        Some(Place { priority, party: *party, user: *user, id: *id })
    }
}

/// The first one behind `last`, or else the first one of all.
fn after<K: Ord + Copy, V>(ring: &BTreeMap<K, V>, last: Option<K>) -> Option<(&K, &V)> {
    last.and_then(|last| ring.range((Bound::Excluded(last), Bound::Unbounded)).next())
        .or_else(|| ring.first_key_value())
}

/// Then the background has a turn.
const MOST_IN_A_ROW: u32 = 15;
