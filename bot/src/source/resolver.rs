//! Remembers answers, and asks once however many ask.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clock::{Clock, WallTime};
use crate::domain::{Failure, Post, PostId};
use crate::http::Http;
use crate::metrics::{Counter, Tracker};
use crate::source::fxtwitter::FxTwitter;
use crate::source::quorum::Quorum;
use crate::source::record::{self, Kept};
use crate::source::syndication::Syndication;
use crate::source::verdict::Found;
use crate::source::vxtwitter::VxTwitter;
use crate::source::ytdlp::YtDlp;
use crate::source::{ResolverSettings, Source, SourceName, SourceSettings, SourceSettingsError};
use crate::store::{Shelf, Store};

/// Turns the name of a post into the post. Clones share what they remember.
///
/// Look-ups run in tasks of their own, so that one that is under way serves all who ask meanwhile and outlives each
/// of them. Dropping the last clone ends them.
#[derive(Clone, Debug)]
pub struct Resolver {
    core: Arc<Core>,
    /// Owns the look-ups; they hold the core and never this.
    tasks: Arc<Mutex<JoinSet<()>>>,
}

#[derive(Debug)]
struct Core {
    quorum: Quorum,
    settings: ResolverSettings,
    store: Store,
    clock: Clock,
    tracker: Tracker,
    /// moka bounds number and age; whether an entry still counts is told by its own expiry.
    known: moka::sync::Cache<PostId, Arc<Known>>,
    under_way: Mutex<HashMap<PostId, watch::Receiver<Option<Outcome>>>>,
}

type Outcome = Result<Arc<Known>, Failure>;

/// An answer in memory.
#[derive(Debug)]
struct Known {
    kept: Kept,
    made: WallTime,
    expires: WallTime,
    /// How often it was answered with.
    asked: AtomicU32,
    /// How many answers of common size it is worth.
    weight: u32,
}

/// What a look-up is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Errand {
    /// Somebody waits for it.
    Answer,
    /// It replaces an answer that is about to expire.
    Renewal,
}

impl Resolver {
    /// Asks the sources that the settings name, in their order. Nothing is asked or read yet.
    ///
    /// # Errors
    /// When the settings name no source, or one whose address cannot be used.
    pub fn new(
        settings: &SourceSettings,
        http: &Http,
        store: Store,
        clock: Clock,
        tracker: Tracker,
    ) -> Result<Self, SourceSettingsError> {
        let mut sources: Vec<Arc<dyn Source>> = Vec::new();
        for name in &settings.order {
            if sources.iter().any(|source| source.name() == *name) {
                continue;
            }
            sources.push(match name {
                SourceName::VxTwitter => Arc::new(VxTwitter::new(&settings.vxtwitter, http.clone())?),
                SourceName::FxTwitter => Arc::new(FxTwitter::new(&settings.fxtwitter, http.clone())?),
                SourceName::Syndication => Arc::new(Syndication::new(&settings.syndication, http.clone())?),
                SourceName::YtDlp => Arc::new(YtDlp::new(settings.ytdlp.clone())),
            });
        }
        if sources.is_empty() {
            return Err(SourceSettingsError::NoSource);
        }
        let quorum = Quorum::new(sources, settings.hedge_delay, settings.breaker);
        Ok(Self::with(quorum, settings.resolver, store, clock, tracker))
    }

    fn with(
        quorum: Quorum,
        settings: ResolverSettings,
        store: Store,
        clock: Clock,
        tracker: Tracker,
    ) -> Self {
        let longest = [settings.post_ttl, settings.partial_ttl, settings.gone_ttl, settings.login_ttl];
        let longest = longest.into_iter().max().unwrap_or_default();
        let known = moka::sync::Cache::builder()
            .max_capacity(settings.capacity)
            .weigher(|_, known: &Arc<Known>| known.weight)
            // Above the longest life with its scatter; moka refuses times beyond a thousand years.
            .time_to_live(longest.saturating_mul(2).clamp(SHORTEST_BOUND, LONGEST_BOUND))
            .build();
        let under_way = Mutex::default();
        let core = Core { quorum, settings, store, clock, tracker, known, under_way };
        Self { core: Arc::new(core), tasks: Arc::default() }
    }

    /// The post: as it is remembered, else as the sources give it.
    ///
    /// It answers after the sources' time-outs at the latest. Cancel-safe: a look-up that others may wait for goes on.
    ///
    /// # Errors
    /// With why there is no media; its disposition says whether asking again can help.
    pub async fn resolve(&self, post: PostId) -> Result<Arc<Post>, Failure> {
        let now = self.core.clock.now();
        if let Some(known) = self.core.remembered(post, now) {
            if known.is_due(now) {
                drop(self.look_up(post, Errand::Renewal));
            }
            self.core.count_hit(&known);
            self.core.tracker.note(post, now, "the post: remembered in memory", None);
            return known.kept.answer();
        }
        let mut look_up = self.look_up(post, Errand::Answer);
        let outcome = match look_up.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone(),
            Err(_) => None,
        };
        outcome
            .unwrap_or_else(|| Err(Failure::ours(format!("the look-up of {post} ended without an outcome"))))?
            .kept
            .answer()
    }

    /// The post as the sources give it now, since what was remembered is of no use; `None` when that is so new that they
    /// would say the same. Cancel-safe, as [`resolve`](Self::resolve).
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub async fn renew(&self, post: PostId) -> Option<Result<Arc<Post>, Failure>> {
        let now = self.core.clock.now();
        let known = self.core.remembered(post, now)?;
        if now.since(known.made) < NEW {
            return None;
        }
        let mut look_up = self.look_up(post, Errand::Renewal);
        let outcome = look_up.wait_for(Option::is_some).await.ok()?.clone()?;
        Some(outcome.and_then(|known| known.kept.answer()))
    }

    /// The look-up of this post that is under way, or a new one.
    fn look_up(&self, post: PostId, errand: Errand) -> watch::Receiver<Option<Outcome>> {
        let mut under_way = self.core.under_way();
        if let Some(running) = under_way.get(&post) {
            return running.clone();
        }
        // One that ended since the cache was asked has left its answer there before it left the list.
        if errand == Errand::Answer
            && let Some(known) = self.core.remembered(post, self.core.clock.now())
        {
            self.core.count_hit(&known);
            return watch::channel(Some(Ok(known))).1;
        }
        let (sender, receiver) = watch::channel(None);
        under_way.insert(post, receiver.clone());
        let listed = Listed { core: Arc::clone(&self.core), post };
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(ended) = tasks.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(%error, "a look-up ended by a fault");
            }
        }
        tasks.spawn(async move {
            let outcome = listed.core.find(listed.post, errand).await;
            sender.send_replace(Some(outcome));
        });
        receiver
    }
}

/// A look-up's place in the list of those under way; dropping it takes it off, however the look-up ends.
struct Listed {
    core: Arc<Core>,
    post: PostId,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.core.under_way().remove(&self.post);
    }
}

impl Core {
    fn under_way(&self) -> MutexGuard<'_, HashMap<PostId, watch::Receiver<Option<Outcome>>>> {
        // The list is whole after each of its steps, whoever panicked.
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known about the post and still counts.
    fn remembered(&self, post: PostId, now: WallTime) -> Option<Arc<Known>> {
        self.known.get(&post).filter(|known| known.counts(now))
    }

    /// Counts an answer from memory or from the store. Who joins a look-up that is under way is counted with it.
    fn count_hit(&self, known: &Known) {
        let counter = match known.kept {
            Kept::Post(_) => Counter::ResolverHits,
            Kept::Gone(_) | Kept::NeedsLogin => Counter::ResolverNegativeHits,
        };
        self.tracker.count(counter, 1);
    }

    async fn find(&self, post: PostId, errand: Errand) -> Outcome {
        if errand == Errand::Answer
            && let Some(known) = self.stored(post).await
        {
            let known = Arc::new(known);
            self.known.insert(post, Arc::clone(&known));
            self.count_hit(&known);
            self.tracker.note(post, self.clock.now(), "the post: remembered in the store", None);
            return Ok(known);
        }
        if errand == Errand::Answer {
            self.tracker.count(Counter::ResolverMisses, 1);
        }
        let heard = |source: SourceName, what: &'static str, took| {
            self.tracker.note(post, self.clock.now(), format!("{source}: {what}"), Some(took));
        };
        let (kept, life) = match self.quorum.ask_aloud(post, &heard).await {
            Ok(Found { post, whole: true }) => (Kept::Post(Arc::new(post)), self.settings.post_ttl),
            Ok(Found { post, whole: false }) => (Kept::Post(Arc::new(post)), self.settings.partial_ttl),
            Err(Failure::Gone(reason)) => (Kept::Gone(reason), self.settings.gone_ttl),
            Err(Failure::NeedsLogin) => (Kept::NeedsLogin, self.settings.login_ttl),
            // Never remembered: it may be otherwise the next time.
            Err(failure) => return Err(failure),
        };
        // Read after the wait: the answer is as old as it is now.
        let made = self.clock.now();
        let expires = made.plus(scattered(life, fastrand::u32(0..=2 * SCATTER)));
        let bytes = record::encode(made, &kept);
        let known = Arc::new(Known::new(kept, made, expires, bytes.as_deref().unwrap_or_default()));
        if expires > made {
            self.known.insert(post, Arc::clone(&known));
            if let Some(bytes) = bytes {
                self.store.put(Shelf::Resolved, post.to_string(), bytes, expires);
            }
        }
        Ok(known)
    }

    /// What an earlier run of the program remembered about the post; nothing when the store is slow or broken.
    async fn stored(&self, post: PostId) -> Option<Known> {
        let key = post.to_string();
        let stored = tokio::time::timeout(STORE_PATIENCE, self.store.get(Shelf::Resolved, &key)).await;
        let stored = stored.ok().flatten()?;
        let Some((made, kept)) = record::decode(&stored.value, post) else {
            tracing::warn!(%post, "a stored answer is unreadable and is removed");
            self.store.remove(Shelf::Resolved, key);
            return None;
        };
        let known = Known::new(kept, made, stored.expires, &stored.value);
        known.counts(self.clock.now()).then_some(known)
    }
}

impl Known {
    /// An answer that nobody was given yet, with its record.
    fn new(kept: Kept, made: WallTime, expires: WallTime, record: &[u8]) -> Self {
        let weight = u32::try_from(record.len() / COMMON_SIZE).unwrap_or(u32::MAX).saturating_add(1);
        Self { kept, made, expires, asked: AtomicU32::new(0), weight }
    }

    /// Whether it still counts. One whose end is farther away than twice its life is from a clock that was wrong.
    fn counts(&self, now: WallTime) -> bool {
        let life = self.expires.since(self.made);
        now < self.expires && self.expires.since(now) <= life.saturating_mul(2)
    }

    /// Whether it should be renewed: it is asked for again and again, and the last tenth of its life has begun.
    /// Counts this asking.
    fn is_due(&self, now: WallTime) -> bool {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let (life, left) = (self.expires.since(self.made), self.expires.since(now));
        asked >= HOT && left.saturating_mul(10) < life
    }
}

/// `life` made up to a tenth shorter or longer; `roll` is from 0 to twice [`SCATTER`].
fn scattered(life: Duration, roll: u32) -> Duration {
    let permille = 1_000_u32.saturating_sub(SCATTER).saturating_add(roll);
    life.checked_mul(permille).map_or(life, |product| product / 1_000)
}

/// In bytes: what the record of a post with one video takes, in most cases.
const COMMON_SIZE: usize = 4_096;
/// In thousandths.
const SCATTER: u32 = 100;
/// An answer that is no older than this is what the sources would say now.
const NEW: Duration = Duration::from_secs(60);
/// So many answers from memory make a post one that is asked for again and again.
const HOT: u32 = 3;
/// A store that is this slow is not waited for: asking anew takes about as long.
const STORE_PATIENCE: Duration = Duration::from_secs(1);
const SHORTEST_BOUND: Duration = Duration::from_secs(1);
const LONGEST_BOUND: Duration = Duration::from_secs(366 * 24 * 3_600);

#[cfg(test)]
mod tests;
