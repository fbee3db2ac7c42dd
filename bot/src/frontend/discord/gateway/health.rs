//! Whether a connection is worth keeping: the library itself tries for ever, and identifies as often as it likes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serenity::gateway::{ConnectionStage, ShardManager};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::GatewayFailure;
use crate::clock::instant;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);

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
}

impl Health {
    pub(super) fn of(shards: Arc<ShardManager>, count: u32, identified: Arc<AtomicU64>, most: u64) -> Self {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { shards, count, identified, most, look, away: None }
    }

    /// Waits until the connection is not worth keeping any more, since it identified too often or some part of it is away
    /// for this long, and says why. Cancel-safe.
    pub(super) async fn fails(&mut self, patience: Duration) -> GatewayFailure {
        loop {
            self.look.tick().await;
            if self.identified.load(Ordering::Relaxed) >= self.most {
                let what = "it broke too often, and each time costs an identification";
                return GatewayFailure::Other(what.to_owned());
            }
            let shards = self.shards.runners.lock().await;
            let there = shards.values().filter(|shard| shard.stage == ConnectionStage::Connected).count();
            drop(shards);
            if there >= self.count {
                self.away = None;
            } else if instant().saturating_duration_since(*self.away.get_or_insert_with(instant)) >= patience
            {
                return GatewayFailure::Away;
            }
        }
    }
}
