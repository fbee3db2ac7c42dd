//! When a call may be made: what Discord said about the limits, and a queue for each route, a channel's messages say.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep_until, timeout_at};

use super::refused::Scope;
use super::signals::Signals;
use super::window::{Ready, Window};
use crate::clock::{self, Instant};

/// The lanes of all routes. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    lanes: Mutex<HashMap<String, Arc<Lane>>>,
    /// Until when nothing may be sent anywhere.
    everywhere: Mutex<Option<Instant>>,
}

/// One route's.
#[derive(Debug, Default)]
struct Lane {
    /// Who holds it waits for the next turn; the others queue up behind, in their order.
    turn: tokio::sync::Mutex<()>,
    window: Mutex<Window>,
    /// An answer came, or will not come. Only the holder of the turn waits for it.
    settled: Notify,
}

/// The right to make one call on a route. Dropping it says that its answer will not come.
#[derive(Debug)]
#[must_use = "dropping it ends the turn"]
pub(super) struct Permit {
    lane: Arc<Lane>,
    shared: Arc<Shared>,
}

/// There is no turn within the caller's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong {
    /// From now until it is worth to try again.
    pub(super) wait: Duration,
    pub(super) scope: Scope,
}

/// How the routes of interactions begin.
const INTERACTIONS: &str = "POST /interactions/";

impl Lanes {
    /// Waits for a turn on a route, no longer than until `end`.
    ///
    /// Can be dropped at any point, which leaves the queue.
    pub(super) async fn enter(&self, route: &str, end: Instant) -> Result<Permit, TooLong> {
        let lane = self.lane(route);
        let Ok(_turn) = timeout_at(end, lane.turn.lock()).await else {
            return Err(TooLong { wait: lane.wait(), scope: Scope::User });
        };
        // Who waits for answers waits no longer than that: one that does not come must not hold up the others.
        let patience = clock::instant().checked_add(FIRST_ANSWER).unwrap_or(end).min(end);
        loop {
            let now = clock::instant();
            // Answers to interactions are counted by themselves.
            let everywhere = if route.starts_with(INTERACTIONS) { None } else { self.0.everywhere(now) };
            let ready = lane.window().ready(now);
            let (at, scope) = match (everywhere, ready) {
                (Some(at), _) => (at, Scope::Global),
                (None, Ready::At(at)) => (at, Scope::User),
                (None, Ready::AfterAnswer) if now < patience => {
                    // Over or not, the window says what comes next.
                    let _ = timeout_at(patience, lane.settled.notified()).await;
                    continue;
                }
                (None, Ready::AfterAnswer) if patience >= end => {
                    return Err(TooLong { wait: lane.wait(), scope: Scope::User });
                }
                (None, Ready::Now | Ready::AfterAnswer) => {
                    lane.window().take(now);
                    return Ok(Permit { lane: Arc::clone(&lane), shared: Arc::clone(&self.0) });
                }
            };
            if at > end {
                return Err(TooLong { wait: at.saturating_duration_since(now), scope });
            }
            sleep_until(at).await;
        }
    }

    fn lane(&self, route: &str) -> Arc<Lane> {
        let mut lanes = self.0.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get(route) {
            return Arc::clone(lane);
        }
        if lanes.len() >= MOST_LANES {
            let now = clock::instant();
            let in_use = |lane: &Arc<Lane>| Arc::strong_count(lane) > 1;
            lanes.retain(|_, lane| in_use(lane) || lane.window().matters(now));
            // A limit that is forgotten is learned anew. Lanes in use are as many as messages on their way.
            if lanes.len() >= MOST_LANES {
                lanes.retain(|_, lane| in_use(lane));
            }
        }
        Arc::clone(lanes.entry(route.to_owned()).or_default())
    }

    /// How many routes are remembered.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.lanes.lock().unwrap().len()
    }
}

impl Shared {
    /// Until when nothing may be sent anywhere; `None` when that is over.
    fn everywhere(&self, now: Instant) -> Option<Instant> {
        self.everywhere.lock().unwrap_or_else(PoisonError::into_inner).filter(|until| *until > now)
    }

    fn pause(&self, until: Instant) {
        let mut everywhere = self.everywhere.lock().unwrap_or_else(PoisonError::into_inner);
        *everywhere = Some(everywhere.map_or(until, |other| other.max(until)));
    }
}

impl Lane {
    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// About how long until the next turn.
    fn wait(&self) -> Duration {
        let now = clock::instant();
        match self.window().ready(now) {
            Ready::At(at) => at.saturating_duration_since(now),
            Ready::Now | Ready::AfterAnswer => super::refused::SOON,
        }
    }
}

impl Permit {
    /// Notes what an answer says about limits.
    pub(super) fn answered(self, signals: &Signals) {
        self.lane.window().answered(signals, clock::instant());
    }

    /// Notes that the call was one too many.
    pub(super) fn limited(self, scope: Scope, retry_after: Duration) {
        let now = clock::instant();
        let Some(until) = now.checked_add(retry_after) else { return };
        match scope {
            Scope::Global => self.shared.pause(until),
            Scope::User | Scope::Shared => self.lane.window().blocked(until),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.lane.window().settle();
        self.lane.settled.notify_one();
    }
}

/// Routes whose limits are remembered; about 300 bytes each.
pub(super) const MOST_LANES: usize = 10_000;

/// How long others wait for the first answer, which tells the limit. A large upload takes longer than that.
const FIRST_ANSWER: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests;
