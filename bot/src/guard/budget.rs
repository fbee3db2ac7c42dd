//! How many requests a service may refuse us: the guard against being shut out for a while.
//!
//! Discord shuts an address out that had 10,000 requests refused within ten minutes. Long before that, sends are spaced
//! out, and then held back until most of the refusals are ten minutes old.
//!
//! Time is measured with the clock that only runs forward; the time of day is only told.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::{self, Clock, Instant, WallTime};

mod ledger;

use ledger::{Change, Ledger, Pace, Turn};

/// Counts refused requests and says when the next one may be sent. Nothing is kept over a restart.
#[derive(Debug)]
pub(crate) struct InvalidBudget {
    clock: Clock,
    began: Instant,
    ledger: Mutex<Ledger>,
}

/// When a request may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Admission {
    /// Now.
    Now,
    /// After this long, which is no longer than the caller would wait. The turn is the caller's.
    After(Duration),
    /// Not before this moment.
    Paused {
        /// When to ask again.
        until: WallTime,
    },
}

impl InvalidBudget {
    /// A budget of which nothing is used. The clock only names moments to others.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, began: clock::instant(), ledger: Mutex::default() }
    }

    /// Counts one refused request: an answer 401, 403 or 429, except a 429 whose scope is shared.
    pub(crate) fn count(&self) {
        let now = self.began.elapsed();
        let (change, refused) = {
            let mut ledger = self.ledger();
            (ledger.count(now), ledger.refused())
        };
        tell(change, refused);
    }

    /// Asks for a turn, for one who waits no longer than `patience`. Does not block.
    pub(crate) fn admit(&self, patience: Duration) -> Admission {
        let now = self.began.elapsed();
        let (turn, change, refused) = {
            let mut ledger = self.ledger();
            let change = ledger.look(now);
            (ledger.admit(now, patience), change, ledger.refused())
        };
        tell(change, refused);
        match turn {
            Turn::In(Duration::ZERO) => Admission::Now,
            Turn::In(wait) => Admission::After(wait),
            Turn::NotBefore(wait) => Admission::Paused { until: self.clock.now().plus(wait) },
        }
    }

    /// How many requests were refused within the last ten minutes.
    #[cfg(test)]
    pub(crate) fn refused(&self) -> u32 {
        let now = self.began.elapsed();
        let mut ledger = self.ledger();
        let change = ledger.look(now);
        let refused = ledger.refused();
        drop(ledger);
        tell(change, refused);
        refused
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // Every state that it can be left in is a valid one.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says once that the pace is another one.
fn tell(change: Option<Change>, refused: u32) {
    match change {
        None => {}
        Some(Change { from: Pace::Free, to: Pace::Slowed }) => {
            tracing::warn!(refused, "many requests were refused within ten minutes, so sends are spaced out");
        }
        Some(Change { to: Pace::Paused, .. }) => {
            tracing::error!(refused, "too many requests were refused within ten minutes, so sends pause");
        }
        Some(Change { to: Pace::Slowed, .. }) => {
            tracing::info!(refused, "fewer requests were refused by now, so sends go on, spaced out");
        }
        Some(Change { to: Pace::Free, .. }) => {
            tracing::info!(refused, "few requests were refused by now, so sends are as fast as before");
        }
    }
}

#[cfg(test)]
mod tests;
