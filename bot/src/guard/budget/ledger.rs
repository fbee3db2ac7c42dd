//! The count behind the budget. Pure: it is told the time, as a duration since it began.

use std::time::Duration;

/// The refusals of the last ten minutes, second by second.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// How many there were in second `n`, at place `n` modulo the number of places.
    seconds: [u32; SLOTS],
    /// The second that was counted in last.
    newest: u64,
    total: u32,
    pace: Pace,
    /// When the next turn begins while sends are spaced out.
    next: Duration,
}

/// How fast sends may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Free,
    Slowed,
    Paused,
}

/// The pace is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct Change {
    pub(super) from: Pace,
    pub(super) to: Pace,
}

/// When a send may begin, from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Then, and the turn is taken.
    In(Duration),
    /// Not before then, and no turn is taken.
    NotBefore(Duration),
}

impl Default for Ledger {
    fn default() -> Self {
        Self { seconds: [0; SLOTS], newest: 0, total: 0, pace: Pace::Free, next: Duration::ZERO }
    }
}

impl Ledger {
    /// Counts one.
    pub(super) fn count(&mut self, now: Duration) -> Option<Change> {
        self.forget(now);
        if let Some(second) = self.seconds.get_mut(place(self.newest)) {
            *second = second.saturating_add(1);
            self.total = self.total.saturating_add(1);
        }
        self.settle()
    }

    /// Forgets what is too old by now.
    pub(super) fn look(&mut self, now: Duration) -> Option<Change> {
        self.forget(now);
        self.settle()
    }

    /// How many were counted and are not too old.
    pub(super) const fn refused(&self) -> u32 {
        self.total
    }

    /// When a send may begin, as of the last look. A turn that lies further away than `patience` is not taken, or
    /// those who leave would push it away from those who stay.
    pub(super) fn admit(&mut self, now: Duration, patience: Duration) -> Turn {
        match self.pace {
            Pace::Free => Turn::In(Duration::ZERO),
            Pace::Paused => Turn::NotBefore(self.until_resumed(now)),
            Pace::Slowed => {
                let begins = self.next.max(now);
                let wait = begins.saturating_sub(now);
                if wait > patience {
                    return Turn::NotBefore(wait);
                }
                self.next = begins.saturating_add(self.spacing());
                Turn::In(wait)
            }
        }
    }

    /// So far apart that if every send of the next ten minutes were refused, they would just reach the pause.
    fn spacing(&self) -> Duration {
        let left = PAUSE_AT.saturating_sub(self.total).max(1);
        WINDOW.checked_div(left).unwrap_or(WINDOW)
    }

    /// How long until so many are too old that sends go on, if none are added.
    fn until_resumed(&self, now: Duration) -> Duration {
        let slots = u64::try_from(SLOTS).unwrap_or(u64::MAX);
        let oldest = self.newest.saturating_add(1).saturating_sub(slots);
        let mut left = self.total;
        for second in oldest..=self.newest {
            if left <= RESUME_AT {
                break;
            }
            left = left.saturating_sub(self.seconds.get(place(second)).copied().unwrap_or(0));
            if left <= RESUME_AT {
                return Duration::from_secs(second.saturating_add(slots)).saturating_sub(now);
            }
        }
        Duration::ZERO
    }

    fn forget(&mut self, now: Duration) {
        let slots = u64::try_from(SLOTS).unwrap_or(u64::MAX);
        // Threads read the clock a little out of order: what is earlier counts as now.
        let now = now.as_secs().max(self.newest);
        let first = self.newest.saturating_add(1).max(now.saturating_sub(slots).saturating_add(1));
        for second in first..=now {
            if let Some(old) = self.seconds.get_mut(place(second)) {
                self.total = self.total.saturating_sub(*old);
                *old = 0;
            }
        }
        self.newest = now;
    }

    /// Takes the pace that the count asks for. It is left at another count than it is taken up at, so that a count
    /// that goes up and down by one changes nothing.
    fn settle(&mut self) -> Option<Change> {
        let from = self.pace;
        self.pace = match (from, self.total) {
            (_, PAUSE_AT..) => Pace::Paused,
            (Pace::Paused, total) if total > RESUME_AT => Pace::Paused,
            (_, SLOW_AT..) => Pace::Slowed,
            (Pace::Slowed | Pace::Paused, total) if total > FREE_AT => Pace::Slowed,
            _ => Pace::Free,
        };
        (from != self.pace).then_some(Change { from, to: self.pace })
    }
}

fn place(second: u64) -> usize {
    let slots = u64::try_from(SLOTS).unwrap_or(u64::MAX);
    usize::try_from(second.checked_rem(slots).unwrap_or(0)).unwrap_or(0)
}

/// The time that Discord counts over.
pub(super) const WINDOW: Duration = Duration::from_secs(600);

/// One second more than the window, since the first and the last one are counted in part.
const SLOTS: usize = 601;

/// From a tenth of what is fatal on, sends are spaced out: a service in order does not come near it.
pub(super) const SLOW_AT: u32 = 1_000;

/// Spacing ends at half of that.
pub(super) const FREE_AT: u32 = 500;

/// At half of what is fatal sends pause. The other half is for requests that are not asked here, for a process that
/// was here before, and for others at the same address.
pub(super) const PAUSE_AT: u32 = 5_000;

/// A pause ends at half of that, so that there is room again to find out whether requests are still refused.
pub(super) const RESUME_AT: u32 = 2_500;
