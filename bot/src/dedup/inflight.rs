//! Claims on work in flight: the first to ask for a key owns it, the others wait for what comes of it.
//!
//! A key has one slot in a cache. The first to pass the slot's turnstile, one atomic swap, owns it; the slot itself is
//! the owner's token, so a release names it and never another's. The cache's own bounds are only the last resort: how
//! long a claim lasts stands in the slot and is compared with a moment that the caller gives.

use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use moka::ops::compute::Op;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use tokio::sync::Notify;
use tokio::time::timeout_at;

use crate::clock::{Instant, instant};

/// How long claims last.
#[derive(Clone, Copy, Debug)]
pub struct InFlightSettings {
    /// How long a claim lasts from the start of its work. Default: the sum of [`WorkTimes::default`].
    pub work: Duration,
    /// How long a claim lasts whose work has not begun, since its job waits in a queue. Default: 1 h.
    pub queued: Duration,
    /// Claims at once; beyond that, the claims asked for least recently are forgotten. 0: all own. Default: 100,000.
    pub capacity: u64,
}

impl Default for InFlightSettings {
    fn default() -> Self {
        Self { work: WorkTimes::default().sum(), queued: Duration::from_secs(3_600), capacity: 100_000 }
    }
}

/// How long each part of the work may take.
#[derive(Clone, Copy, Debug)]
pub struct WorkTimes {
    /// The download. Default: 2 min.
    pub download: Duration,
    /// One transcode. Default: 10 min.
    pub transcode: Duration,
    /// The upload. Default: 2 min.
    pub upload: Duration,
}

impl Default for WorkTimes {
    fn default() -> Self {
        Self {
            download: Duration::from_secs(120),
            transcode: Duration::from_secs(600),
            upload: Duration::from_secs(120),
        }
    }
}

impl WorkTimes {
    /// How long a claim must last: download, two transcodes, as one may have to be repeated, upload, and 60 s for
    /// what lies between.
    pub fn sum(self) -> Duration {
        let Self { download, transcode, upload } = self;
        let between = Duration::from_secs(60);
        [download, transcode, transcode, upload, between]
            .into_iter()
            .fold(Duration::ZERO, Duration::saturating_add)
    }
}

/// What can be claimed by: all that can be a cache's key.
pub trait ClaimKey: Hash + Eq + Clone + Send + Sync + 'static {}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> ClaimKey for K {}

/// The claims on work in flight. Clones share them.
pub struct InFlight<K, V> {
    /// `None`: everybody owns.
    slots: Option<Cache<K, Arc<Slot<V>>>>,
    shared: Arc<Shared>,
}

/// What all claims of one kind have in common.
#[derive(Debug)]
struct Shared {
    settings: InFlightSettings,
    /// Moments are counted in milliseconds from here.
    base: Instant,
    next: AtomicU64,
}

/// Names one ownership, among all of this process and this [`InFlight`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u64);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One claim, from the first who asks until it is over.
struct Slot<V> {
    token: Token,
    /// The turnstile: whoever finds it open and shuts it owns the claim.
    owned: AtomicBool,
    /// When it expires, in milliseconds from the base.
    deadline: AtomicU64,
    /// How it ended. Set once, by the owner or by the one who takes an expired claim over, whoever is first.
    end: OnceLock<Option<V>>,
    ended: Notify,
}

/// The answer to a claim.
#[derive(Debug)]
#[must_use = "an ownership that is dropped is released"]
pub enum Claim<K: ClaimKey, V: Send + Sync + 'static> {
    /// The work is the caller's.
    Owner(Ownership<K, V>),
    /// Somebody works on it.
    Waiter(Waiter<V>),
}

/// How often an asker finds a claim that is just ending before it works without one. Each time, another claim has
/// ended meanwhile.
const ATTEMPTS: usize = 16;

/// A waiter looks by itself this often, in case it was not woken.
const POLL: Duration = Duration::from_secs(30);

impl<K, V> InFlight<K, V>
where
    K: ClaimKey,
    V: Clone + Send + Sync + 'static,
{
    /// No claims.
    pub fn new(settings: InFlightSettings) -> Self {
        let longest = settings.queued.saturating_add(settings.work);
        // moka refuses, by a panic, to think further than 1000 years.
        let bound = longest.saturating_mul(2).min(Duration::from_secs(86_400 * 365));
        let slots = (settings.capacity > 0).then(|| {
            Cache::builder()
                .max_capacity(settings.capacity)
                .eviction_policy(EvictionPolicy::lru())
                .time_to_live(bound)
                .build()
        });
        let shared = Arc::new(Shared { settings, base: instant(), next: AtomicU64::new(1) });
        Self { slots, shared }
    }

    /// Claims a key at the moment `now`: of all who ask until the claim ends, the first owns it.
    ///
    /// An expired claim is taken over. Does not wait, and allocates nothing for a waiter.
    pub fn claim(&self, key: &K, now: Instant) -> Claim<K, V> {
        let Some(slots) = &self.slots else { return self.unshared(key, now) };
        for _ in 0..ATTEMPTS {
            let slot = slots
                .get(key)
                .unwrap_or_else(|| slots.get_with_by_ref(key, || Arc::new(self.shared.slot(now))));
            if !slot.owned.swap(true, Ordering::AcqRel) {
                return self.owner(key, slot, self.slots.clone());
            }
            let over = match slot.end.get() {
                Some(end) => end.is_none(),
                None => self.shared.millis(now) >= slot.deadline.load(Ordering::Acquire),
            };
            // Of all who see the expiry one ends the claim, unless its owner completes it in this very moment.
            if !over || (!slot.finish(None) && matches!(slot.end.get(), Some(Some(_)))) {
                return Claim::Waiter(Waiter { slot, shared: Arc::clone(&self.shared) });
            }
            forget(slots, key, &slot);
        }
        self.unshared(key, now)
    }

    /// How many claims there are, roughly.
    pub fn count(&self) -> u64 {
        self.slots.as_ref().map_or(0, |slots| {
            slots.run_pending_tasks();
            slots.entry_count()
        })
    }

    fn owner(&self, key: &K, slot: Arc<Slot<V>>, slots: Option<Cache<K, Arc<Slot<V>>>>) -> Claim<K, V> {
        Claim::Owner(Ownership { key: key.clone(), slot, slots, shared: Arc::clone(&self.shared) })
    }

    /// An ownership that nobody else sees.
    fn unshared(&self, key: &K, now: Instant) -> Claim<K, V> {
        self.owner(key, Arc::new(self.shared.slot(now)), None)
    }
}

impl Shared {
    fn slot<V>(&self, now: Instant) -> Slot<V> {
        Slot {
            token: Token(self.next.fetch_add(1, Ordering::Relaxed)),
            owned: AtomicBool::new(false),
            deadline: AtomicU64::new(self.deadline(now, self.settings.queued)),
            end: OnceLock::new(),
            ended: Notify::new(),
        }
    }

    fn millis(&self, moment: Instant) -> u64 {
        u64::try_from(moment.saturating_duration_since(self.base).as_millis()).unwrap_or(u64::MAX)
    }

    fn deadline(&self, now: Instant, after: Duration) -> u64 {
        self.millis(now).saturating_add(u64::try_from(after.as_millis()).unwrap_or(u64::MAX))
    }
}

impl<V> Slot<V> {
    /// Ends the claim, unless it has ended; whether this was the end.
    fn finish(&self, end: Option<V>) -> bool {
        let first = self.end.set(end).is_ok();
        if first {
            self.ended.notify_waiters();
        }
        first
    }
}

/// Removes this claim from the cache, and no other of the same key.
fn forget<K, V>(slots: &Cache<K, Arc<Slot<V>>>, key: &K, slot: &Arc<Slot<V>>)
where
    K: ClaimKey,
    V: Send + Sync + 'static,
{
    slots.entry_by_ref(key).and_compute_with(|found| match found {
        Some(found) if Arc::ptr_eq(found.value(), slot) => Op::Remove,
        _ => Op::Nop,
    });
}

/// The right to work on a key.
///
/// Dropping it releases the key: those who wait are told to claim again. When the claim has expired and was taken
/// over, dropping and completing do nothing to the one who has it now.
#[must_use = "dropping it releases the key"]
pub struct Ownership<K: ClaimKey, V: Send + Sync + 'static> {
    key: K,
    slot: Arc<Slot<V>>,
    slots: Option<Cache<K, Arc<Slot<V>>>>,
    shared: Arc<Shared>,
}

impl<K, V> Ownership<K, V>
where
    K: ClaimKey,
    V: Clone + Send + Sync + 'static,
{
    /// What names this ownership.
    pub fn token(&self) -> Token {
        self.slot.token
    }

    /// The key.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Says that the work begins at the moment `now`: from here the claim lasts [`InFlightSettings::work`]. Each call
    /// begins anew, as for another attempt.
    pub fn begin_work(&self, now: Instant) {
        let deadline = self.shared.deadline(now, self.shared.settings.work);
        self.slot.deadline.store(deadline, Ordering::Release);
    }

    /// Whether the claim is still this owner's. `false` once another has taken it over.
    pub fn is_held(&self) -> bool {
        self.slot.end.get().is_none()
    }

    /// Ends the claim with the result of the work, for all who wait. Whether the claim was still this owner's.
    pub fn complete(self, result: V) -> bool {
        // Dropping then removes the slot.
        self.slot.finish(Some(result))
    }
}

impl<K, V> Drop for Ownership<K, V>
where
    K: ClaimKey,
    V: Send + Sync + 'static,
{
    fn drop(&mut self) {
        self.slot.finish(None);
        if let Some(slots) = &self.slots {
            forget(slots, &self.key, &self.slot);
        }
    }
}

impl<K, V> fmt::Debug for Ownership<K, V>
where
    K: ClaimKey,
    V: Send + Sync + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ownership").field("token", &self.slot.token).finish_non_exhaustive()
    }
}

/// What came of waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitOutcome<V> {
    /// The owner's result.
    Done(V),
    /// The owner gave up, or its claim expired: claim again.
    ClaimAgain,
}

/// A place among those who wait for somebody's work. Dropping it leaves.
#[must_use = "it does nothing unless it is waited for"]
pub struct Waiter<V> {
    slot: Arc<Slot<V>>,
    shared: Arc<Shared>,
}

impl<V: Clone> Waiter<V> {
    /// What names the ownership that is waited for.
    pub fn token(&self) -> Token {
        self.slot.token
    }

    /// Waits until the work ends or its claim expires. Cancel-safe; holds no thread.
    pub async fn wait(&self) -> WaitOutcome<V> {
        loop {
            let ended = self.slot.ended.notified();
            let mut ended = std::pin::pin!(ended);
            // Listening comes before looking, or an end between the two would be missed.
            ended.as_mut().enable();
            match self.slot.end.get() {
                Some(Some(result)) => return WaitOutcome::Done(result.clone()),
                Some(None) => return WaitOutcome::ClaimAgain,
                None => {}
            }
            let now = instant();
            let left = self.slot.deadline.load(Ordering::Acquire).saturating_sub(self.shared.millis(now));
            if left == 0 {
                return WaitOutcome::ClaimAgain;
            }
            let look = now.checked_add(POLL.min(Duration::from_millis(left)));
            let _ = timeout_at(look.unwrap_or(now), ended).await;
        }
    }
}

impl<V> fmt::Debug for Waiter<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("token", &self.slot.token).finish_non_exhaustive()
    }
}

impl<K, V> Clone for InFlight<K, V> {
    fn clone(&self) -> Self {
        Self { slots: self.slots.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<K, V> fmt::Debug for InFlight<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
