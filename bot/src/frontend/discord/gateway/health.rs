//! Whether a connection is worth keeping: the library itself tries for ever, and identifies as often as it likes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serenity::all::ShardId;
use serenity::gateway::{ConnectionStage, ShardManager};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::GatewayFailure;
use crate::clock::instant;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// How long a connection may be in trouble before it is made anew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Without all of its parts. What is written meanwhile is not heard.
    pub(crate) away: Duration,
    /// Without an answer to a heartbeat; Discord asks for one about every 41 s.
    pub(crate) silent: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { away: Duration::from_secs(180), silent: Duration::from_secs(180) }
    }
}

/// What is watched of a connection.
#[derive(Debug)]
pub(super) struct Health {
    shards: Arc<ShardManager>,
    /// How many parts it has.
    count: usize,
    /// How often it identified, and how often it may.
    identified: Arc<AtomicU64>,
    most: u64,
    look: Interval,
    /// Since when not all parts are there.
    away: Option<Instant>,
    /// When each part had a heartbeat answered last, or was first seen.
    alive: HashMap<ShardId, Instant>,
}

impl Health {
    pub(super) fn of(shards: Arc<ShardManager>, count: u32, identified: Arc<AtomicU64>, most: u64) -> Self {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { shards, count, identified, most, look, away: None, alive: HashMap::new() }
    }

    /// Waits until the connection is not worth keeping any more, since it identified too often, or some part of it is away
    /// or answers no heartbeat for longer than it may, and says why. Cancel-safe.
    pub(super) async fn fails(&mut self, patience: Patience) -> GatewayFailure {
        loop {
            self.look.tick().await;
            if self.identified.load(Ordering::Relaxed) >= self.most {
                let what = "it broke too often, and each time costs an identification";
                return GatewayFailure::Other(what.to_owned());
            }
            let now = instant();
            let mut shards = self.shards.runners.lock().await;
            self.alive.retain(|id, _| shards.contains_key(id));
            for (id, shard) in shards.iter_mut() {
                // The library writes it with each answer to a heartbeat. Taken away here, so that the next one is seen:
                // what it says of the stage is old while it waits without end for a new connection.
                let answered = shard.latency.take().is_some();
                let alive = self.alive.entry(*id).or_insert(now);
                if answered {
                    *alive = now;
                }
            }
            let there = shards.values().filter(|shard| shard.stage == ConnectionStage::Connected).count();
            drop(shards);
            let since = |moment: Instant| now.saturating_duration_since(moment);
            if there >= self.count {
                self.away = None;
            } else if since(*self.away.get_or_insert(now)) >= patience.away {
                return GatewayFailure::Away;
            }
            if self.alive.values().any(|alive| since(*alive) >= patience.silent) {
                return GatewayFailure::Away;
            }
        }
    }
}
