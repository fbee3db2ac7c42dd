//! What comes of it that time passes, or that the clock is put back.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::WallTime;
use crate::queue::State;
use crate::queue::book::entry::attempt;
use crate::queue::book::{Book, Entry};
use crate::queue::job::EXPIRED;
use crate::queue::state::{Event, Life};

impl Book {
    /// Does what is due: leases that ran out come back, what is past its deadline is put aside, what is too old is
    /// dropped. Every other call but [`extend`](Self::extend) does it too. Gives how late it is for the book.
    pub(crate) fn tick(&mut self, now: WallTime) -> WallTime {
        let now = self.advance(now);
        while let Some((until, id)) = self.index.leased.first().copied()
            && until <= now
        {
            let expired = self.happens(id, Event::Expire, now, |entry, before| {
                entry.remember(attempt(before.attempts, until, EXPIRED));
            });
            if expired.is_err() {
                break;
            }
        }
        while let Some((deadline, id)) = self.index.deadlines.first().copied()
            && deadline <= now
        {
            if self.happens(id, Event::Deadline, now, |_, _| {}).is_err() {
                break;
            }
        }
        self.trim(now);
        now
    }

    /// Drops what is too old or too much.
    pub(super) fn trim(&mut self, now: WallTime) {
        let dead_before = |at: WallTime| at.plus(self.settings.dead_for) <= now;
        let mut gone = Vec::new();
        let too_many = self.index.dead.len().saturating_sub(self.settings.dead_most);
        for (place, (at, id)) in self.index.dead.iter().enumerate() {
            if place >= too_many && !dead_before(*at) {
                break;
            }
            gone.push(*id);
        }
        for id in gone {
            self.set(id, None);
        }
        while let Some(oldest) = self.results.oldest()
            && (self.results.len() > self.settings.results_most
                || oldest.at.plus(self.settings.results_for) <= now)
        {
            self.results.remove(oldest.key);
            self.journal.ended(oldest.key, Some(&oldest));
        }
    }

    /// Goes on to `now`, and gives how late it is then.
    pub(super) fn advance(&mut self, now: WallTime) -> WallTime {
        if now.plus(MOST_BACK) < self.index.clock {
            self.move_with(now);
        }
        let now = now.max(self.index.clock);
        if now > self.index.clock {
            self.index.advance(now, &self.jobs);
        }
        now
    }

    /// The clock was wrong and is put back: what is still to come is as far away as it was.
    fn move_with(&mut self, now: WallTime) {
        let was = self.index.clock;
        self.journal.clock(was);
        let moved = |at: WallTime| if at > was { now.plus(at.since(was)) } else { at.min(now) };
        self.index.clock = now;
        let all: Vec<Arc<Entry>> = self.jobs.values().cloned().collect();
        for entry in all {
            let state = match entry.state {
                State::Scheduled { run_at } => State::Scheduled { run_at: moved(run_at) },
                State::Suspect { run_at } => State::Suspect { run_at: moved(run_at) },
                State::Leased { token, until, alone } => State::Leased { token, until: moved(until), alone },
                State::Dead { reason, at } => State::Dead { reason, at: moved(at) },
                State::Done => State::Done,
            };
            let life = Life { state, deadline: moved(entry.deadline), ..entry.life() };
            self.set(entry.id, Some(Arc::new(entry.with(life))));
        }
    }
}

/// A clock that is put back further than this was wrong before. Corrections by a time server in running operation are
/// below a second; until such a difference is made up for, nothing becomes ready.
const MOST_BACK: Duration = Duration::from_secs(60);
