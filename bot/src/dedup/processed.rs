//! Where posts were delivered, so that the next who asks gets a pointer to it.
//!
//! In memory first, in the store behind it. A delivery keeps its first expiry wherever it is read from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use serde::{Deserialize, Serialize};

use crate::clock::{Clock, WallTime};
use crate::domain::{ChannelId, DeliveryKey, FrontEnd, MessageId};
use crate::store::{Shelf, Store};

/// How long and how many deliveries are remembered.
#[derive(Clone, Copy, Debug)]
pub struct ProcessedSettings {
    /// How long a delivery is remembered. Default: 24 h.
    pub ttl: Duration,
    /// Each one's time differs by up to this many percent either way, so that they do not all end together; at most
    /// 100. Default: 10.
    pub jitter_percent: u8,
    /// Deliveries in memory; those asked for least recently go first and stay in the store. Default: 100,000.
    pub capacity: u64,
}

impl Default for ProcessedSettings {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(86_400), jitter_percent: 10, capacity: 100_000 }
    }
}

/// Where something was delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// By which front end.
    pub front_end: FrontEnd,
    /// In which channel.
    pub channel: ChannelId,
    /// The messages that hold the media, in order.
    pub messages: Vec<MessageId>,
    /// When.
    pub at: WallTime,
}

/// What is remembered of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recall {
    /// It stands there.
    Delivered(Arc<Delivered>),
    /// It stood there, and its message was deleted.
    Forgotten,
    /// Nothing.
    Nothing,
}

/// The memory of deliveries. Clones share it.
#[derive(Clone, Debug)]
pub struct Processed {
    settings: ProcessedSettings,
    known: Cache<DeliveryKey, Known>,
    store: Store,
    clock: Clock,
    /// Grows with every change, so that a slow look into the store does not bring back what was changed meanwhile.
    changes: Arc<AtomicU64>,
}

#[derive(Clone, Debug)]
struct Known {
    /// `None`: it was forgotten.
    delivered: Option<Arc<Delivered>>,
    expires: WallTime,
}

impl Processed {
    /// The memory over this store. Reads nothing yet.
    pub fn new(settings: ProcessedSettings, store: Store, clock: Clock) -> Self {
        // Only a bound: what counts is each one's expiry. moka refuses, by a panic, more than 1000 years.
        let bound = settings.ttl.saturating_mul(2).min(Duration::from_secs(86_400 * 365));
        let known = Cache::builder()
            .max_capacity(settings.capacity)
            .eviction_policy(EvictionPolicy::lru())
            .time_to_live(bound)
            .build();
        Self { settings, known, store, clock, changes: Arc::default() }
    }

    /// Where this was delivered. Ask as the owner of a claim on the key, or the answer may be old when it comes.
    ///
    /// Cancel-safe. Takes at most as long as [`Store::get`].
    pub async fn get(&self, key: &DeliveryKey) -> Option<Arc<Delivered>> {
        match self.recall(key).await {
            Recall::Delivered(delivered) => Some(delivered),
            Recall::Forgotten | Recall::Nothing => None,
        }
    }

    /// The same, for somebody who has another source to ask when nothing is known here.
    ///
    /// Cancel-safe. Takes at most as long as [`Store::get`].
    pub async fn recall(&self, key: &DeliveryKey) -> Recall {
        if let Some(known) = self.known.get(key).filter(|known| self.clock.now() < known.expires) {
            return Recall::of(known.delivered);
        }
        let before = self.changes.load(Ordering::Acquire);
        let Some(record) = self.store.get(Shelf::Processed, &key.to_string()).await else {
            return Recall::Nothing;
        };
        let read = serde_json::from_slice::<Option<Delivered>>(&record.value)
            .inspect_err(|error| tracing::warn!(%error, %key, "a stored delivery cannot be read"));
        let Ok(delivered) = read else { return Recall::Nothing };
        let known = Known { delivered: delivered.map(Arc::new), expires: record.expires };
        self.known.insert(*key, known.clone());
        if self.changes.load(Ordering::Acquire) != before {
            // Whatever was changed stands in the store's queue.
            self.known.invalidate(key);
        }
        Recall::of(known.delivered)
    }

    /// Remembers a delivery, instead of an earlier one of the same key. Neither blocks nor fails.
    pub fn record(&self, key: &DeliveryKey, delivered: Delivered) {
        let expires = self.clock.now().plus(self.time_to_live());
        self.remember(key, Some(delivered), expires);
    }

    /// Remembers a delivery that another source has told of, until it would be forgotten; `None` when it would be by
    /// now. Neither blocks nor fails.
    pub fn restore(&self, key: &DeliveryKey, delivered: Delivered) -> Option<Delivered> {
        let percent = 100_u32.saturating_sub(u32::from(self.settings.jitter_percent.min(100)));
        let expires = delivered.at.plus(self.settings.ttl.saturating_mul(percent) / 100);
        if self.clock.now() >= expires {
            return None;
        }
        self.remember(key, Some(delivered.clone()), expires);
        Some(delivered)
    }

    /// Forgets a delivery, since its message was deleted, and that no other source is to be asked for it. Neither blocks
    /// nor fails.
    pub fn forget(&self, key: &DeliveryKey) {
        // By then no source is believed any more.
        let expires = self.clock.now().plus(self.settings.ttl);
        self.remember(key, None, expires);
    }

    /// Forgets this delivery, unless another one has taken its place by now.
    pub fn forget_this(&self, key: &DeliveryKey, delivered: &Delivered) {
        let known = self.known.get(key).and_then(|known| known.delivered);
        if known.is_none_or(|known| *known == *delivered) {
            self.forget(key);
        }
    }

    fn remember(&self, key: &DeliveryKey, delivered: Option<Delivered>, expires: WallTime) {
        // A delivery is plain data with text keys; if it had no JSON, it would be remembered until the restart.
        if let Ok(value) = serde_json::to_vec(&delivered) {
            self.store.put(Shelf::Processed, key.to_string(), value, expires);
        }
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.known.insert(*key, Known { delivered: delivered.map(Arc::new), expires });
    }

    fn time_to_live(&self) -> Duration {
        let percent = u32::from(self.settings.jitter_percent.min(100));
        let least = 100_u32.saturating_sub(percent);
        let percent = fastrand::u32(least..=percent.saturating_add(100));
        self.settings.ttl.saturating_mul(percent) / 100
    }
}

impl Recall {
    fn of(delivered: Option<Arc<Delivered>>) -> Self {
        delivered.map_or(Self::Forgotten, Self::Delivered)
    }
}

#[cfg(test)]
mod tests;
