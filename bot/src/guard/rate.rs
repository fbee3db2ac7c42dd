//! How often people may ask: per person, per channel and per server.
//!
//! Limits are measured with the clock that only runs forward. A jump of the time of day, forward or back, neither
//! locks anybody out nor lets anybody through.

use std::num::NonZeroU32;
use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::{Clock as GovernorClock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter as Governor};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::clock::{self, Instant};
use crate::config::RateAlgorithm;
use crate::domain::{ChannelId, GuildId, UserId};

/// How often people may ask. The default is what the configuration's defaults are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateSettings {
    /// The most requests of one person within a window; 0 lifts all limits.
    pub max_requests: u32,
    /// How long a window is; whole milliseconds.
    pub window: Duration,
    /// How requests within a window are counted.
    pub algorithm: RateAlgorithm,
    /// How many times as many requests one channel may make; 0 lifts the limit of channels.
    pub channel_multiple: u32,
    /// How many times as many requests one server may make; 0 lifts the limit of servers.
    pub guild_multiple: u32,
    /// How many people, channels and servers are remembered; beyond that, who has not asked for longest is
    /// forgotten and begins anew.
    pub capacity: u64,
}

impl Default for RateSettings {
    fn default() -> Self {
        Self {
            max_requests: 30,
            window: Duration::from_secs(60),
            algorithm: RateAlgorithm::Fixed,
            channel_multiple: 5,
            guild_multiple: 20,
            capacity: 100_000,
        }
    }
}

/// Who asks, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requester {
    /// The person.
    pub user: UserId,
    /// The channel.
    pub channel: ChannelId,
    /// `None` in a direct message.
    pub guild: Option<GuildId>,
}

/// Whether a request may be made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum RateAnswer {
    /// It may, and has been counted.
    Allowed,
    /// It may not.
    Limited {
        /// Whose limit is reached.
        scope: RateScope,
        /// When it is worth to ask again, from now; more than zero, and at most a window.
        retry_after: Duration,
    },
}

/// Whose limit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateScope {
    /// One person's.
    User,
    /// One channel's.
    Channel,
    /// One server's.
    Guild,
}

/// Counts requests. Clones share their counts. Memory is bounded by [`RateSettings::capacity`].
#[derive(Clone, Debug)]
pub struct RateLimiter(Option<Rules>);

#[derive(Clone, Debug)]
struct Rules {
    forward: Forward,
    window: Duration,
    algorithm: RateAlgorithm,
    /// The most requests of a user, a channel and a server in a window; `None` for no limit.
    most: [Option<NonZeroU32>; 3],
    meters: Cache<Subject, Arc<Meter>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Subject {
    User(UserId),
    Channel(ChannelId),
    Guild(GuildId),
}

impl RateLimiter {
    /// A limiter that has counted nothing yet. Settings that make no sense lift all limits, with one warning.
    pub fn new(settings: &RateSettings) -> Self {
        let Some(user) = NonZeroU32::new(settings.max_requests) else { return Self(None) };
        if settings.window < MIN_WINDOW || settings.capacity == 0 {
            tracing::warn!(
                window = ?settings.window,
                capacity = settings.capacity,
                "the rate limit makes no sense, so there is none"
            );
            return Self(None);
        }
        let window = settings.window.min(MAX_WINDOW);
        let times = |multiple| NonZeroU32::new(multiple).map(|multiple| user.saturating_mul(multiple));
        let meters = Cache::builder()
            .max_capacity(settings.capacity)
            // The default policy would rather not admit newcomers when it is full, and then nobody counts them.
            .eviction_policy(EvictionPolicy::lru())
            // Only a bound on memory: who has not asked for a whole window has a fresh one anyway.
            .time_to_idle(window.saturating_mul(2))
            .build();
        Self(Some(Rules {
            forward: Forward(clock::instant()),
            window,
            algorithm: settings.algorithm,
            most: [Some(user), times(settings.channel_multiple), times(settings.guild_multiple)],
            meters,
        }))
    }

    /// Counts a request if it may be made now. Does not block.
    ///
    /// With [`RateAlgorithm::Fixed`] a refused request counts against nobody. With [`RateAlgorithm::Gcra`] one that
    /// the channel or the server has no room for counts against the person, and one that the server has no room for
    /// against the channel as well.
    pub fn check(&self, requester: &Requester) -> RateAnswer {
        match &self.0 {
            Some(rules) => rules.check(requester),
            None => RateAnswer::Allowed,
        }
    }
}

impl Rules {
    fn check(&self, requester: &Requester) -> RateAnswer {
        let subjects = [
            Some((RateScope::User, Subject::User(requester.user))),
            Some((RateScope::Channel, Subject::Channel(requester.channel))),
            requester.guild.map(|guild| (RateScope::Guild, Subject::Guild(guild))),
        ];
        let mut meters = self.most.into_iter().zip(subjects).map(|(most, subject)| {
            let (scope, subject) = subject?;
            Some((scope, self.meter(subject, most?)?))
        });
        let meters: [_; 3] = std::array::from_fn(|_| meters.next().flatten());
        let now = self.forward.now();
        let refused = |scope, retry_after: Duration| RateAnswer::Limited {
            scope,
            retry_after: retry_after.clamp(MIN_WINDOW, self.window),
        };
        // All that can be asked are asked before any counts, so that who is refused loses nothing.
        for (scope, meter) in meters.iter().flatten() {
            if let Err(retry_after) = meter.peek(now) {
                return refused(*scope, retry_after);
            }
        }
        for (scope, meter) in meters.iter().flatten() {
            if let Err(retry_after) = meter.take(now) {
                return refused(*scope, retry_after);
            }
        }
        RateAnswer::Allowed
    }

    /// The subject's meter; `None` when it cannot have one, and then it has no limit.
    fn meter(&self, subject: Subject, most: NonZeroU32) -> Option<Arc<Meter>> {
        // Asked first: making one allocates.
        if let Some(meter) = self.meters.get(&subject) {
            return Some(meter);
        }
        let meter = match self.algorithm {
            RateAlgorithm::Fixed => Meter::Fixed(Window::new(self.window, most)),
            RateAlgorithm::Gcra => {
                let quota = Quota::with_period(self.window.checked_div(most.get())?)?.allow_burst(most);
                Meter::Gcra(Governor::direct_with_clock(quota, self.forward))
            }
        };
        Some(self.meters.get_with(subject, || Arc::new(meter)))
    }
}

/// One subject's count.
#[derive(Debug)]
enum Meter {
    Fixed(Window),
    Gcra(Governor<NotKeyed, InMemoryState, Forward, NoOpMiddleware<Moment>>),
}

impl Meter {
    /// Whether one more would be let through, or when to ask again.
    fn peek(&self, now: Moment) -> Result<(), Duration> {
        match self {
            Self::Fixed(window) => window.peek(now),
            // It can only take.
            Self::Gcra(_) => Ok(()),
        }
    }

    /// Counts one more, or says when to ask again.
    fn take(&self, now: Moment) -> Result<(), Duration> {
        match self {
            Self::Fixed(window) => window.take(now),
            Self::Gcra(governor) => governor.check().map_err(|refused| refused.wait_time_from(now)),
        }
    }
}

/// A fixed window in one atomic: the millisecond it began in above, how many were let through in it below.
#[derive(Debug)]
struct Window {
    state: AtomicU64,
    millis: u64,
    most: u64,
}

impl Window {
    fn new(window: Duration, most: NonZeroU32) -> Self {
        let millis = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        Self { state: AtomicU64::new(0), millis, most: u64::from(most.get()).min(COUNT_MASK) }
    }

    fn peek(&self, now: Moment) -> Result<(), Duration> {
        self.next(self.state.load(Ordering::Relaxed), now).map(drop)
    }

    fn take(&self, now: Moment) -> Result<(), Duration> {
        let mut refused = Duration::ZERO;
        let step = |state| self.next(state, now).map_err(|retry_after| refused = retry_after).ok();
        // Relaxed: the count guards no other memory.
        self.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).map_or(Err(refused), |_| Ok(()))
    }

    /// The state after one more, or how long the window still lasts.
    fn next(&self, state: u64, now: Moment) -> Result<u64, Duration> {
        let now = (now.0 / NANOS_PER_MILLI) & START_MASK;
        let (start, count) = (state >> COUNT_BITS, state & COUNT_MASK);
        // Threads read the clock a little out of order. What is a whole window off, on either side, is another one.
        let (start, count) =
            if count == 0 || now.abs_diff(start) >= self.millis { (now, 0) } else { (start, count) };
        if count >= self.most {
            return Err(Duration::from_millis(start.saturating_add(self.millis).saturating_sub(now)));
        }
        Ok((start << COUNT_BITS) | count.saturating_add(1))
    }
}

/// The clock that only runs forward, as the rate limiters read it: nanoseconds since this one was made.
#[derive(Clone, Copy, Debug)]
struct Forward(Instant);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Moment(u64);

impl GovernorClock for Forward {
    type Instant = Moment;

    fn now(&self) -> Moment {
        let since = clock::instant().saturating_duration_since(self.0);
        Moment(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Reference for Moment {
    fn duration_since(&self, earlier: Self) -> Nanos {
        self.0.saturating_sub(earlier.0).into()
    }

    fn saturating_sub(&self, duration: Nanos) -> Self {
        Self(self.0.checked_sub(duration.as_u64()).unwrap_or(self.0))
    }
}

impl Add<Nanos> for Moment {
    type Output = Self;

    fn add(self, other: Nanos) -> Self {
        Self(self.0.saturating_add(other.as_u64()))
    }
}

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Twenty bits count to a million, which is no limit any more; the other 44 hold 557 years of milliseconds.
const COUNT_BITS: u32 = 20;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const START_MASK: u64 = u64::MAX >> COUNT_BITS;

/// Windows are measured in milliseconds.
const MIN_WINDOW: Duration = Duration::from_millis(1);

/// Longer windows mean this one: a year. The cache takes no bound above a thousand years.
const MAX_WINDOW: Duration = Duration::from_secs(365 * 86_400);

#[cfg(test)]
mod tests;
