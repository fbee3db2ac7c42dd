//! How large a file may be in a server: what its boosts give, until Discord says otherwise.
//!
//! Nothing here is known for certain: what Discord takes has changed several times, and what it says is not always
//! what it does. A refusal is believed and remembered for a while; then the larger size is tried again.

use std::num::NonZeroU64;
use std::time::Duration;

use dashmap::DashMap;

use crate::clock::{Clock, WallTime};
use crate::domain::{ChannelId, Destination, GuildId, LimitClass};
use crate::store::{Shelf, Store};

/// Sizes that Discord had or has as limits, in MiB. Learned limits are these, so that files are shared between servers.
const STEPS: [u64; 6] = [100, 50, 25, 20, 10, 8];
/// How long a refusal is believed. What it costs to find out again is one upload.
const BELIEVED: Duration = Duration::from_secs(7 * 86_400);
/// Servers that are remembered at most; those beyond it are found out anew.
const MOST: usize = 10_000;

/// A place that has a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Home {
    Guild(GuildId),
    Direct(ChannelId),
}

#[derive(Clone, Copy, Debug)]
struct Learned {
    most: LimitClass,
    until: WallTime,
}

/// Limits that were learned.
#[derive(Debug)]
pub(super) struct Limits {
    learned: DashMap<Home, Learned>,
    default: LimitClass,
    store: Store,
    clock: Clock,
}

impl Limits {
    pub(super) fn new(default: LimitClass, store: Store, clock: Clock) -> Self {
        Self { learned: DashMap::new(), default, store, clock }
    }

    /// The largest file there, where `boosted` is what the server's boosts give.
    pub(super) fn of(&self, destination: &Destination, boosted: Option<LimitClass>) -> LimitClass {
        let known = boosted.unwrap_or(self.default).max(self.default);
        let learned = self.learned.get(&home(destination));
        match learned {
            Some(learned) if learned.until > self.clock.now() => known.min(learned.most),
            _ => known,
        }
    }

    /// A file of `bytes` bytes was refused there as too large.
    pub(super) fn refused(&self, destination: &Destination, bytes: u64) {
        let below = STEPS.iter().map(|step| step << 20).find(|step| *step < bytes);
        // Below all of them: half of it, since anything must fit somewhere.
        let most = below.unwrap_or(bytes / 2).max(LEAST);
        let Some(most) = NonZeroU64::new(most).map(LimitClass::new) else { return };
        tracing::warn!(
            refused = bytes,
            most = most.get(),
            "Discord takes smaller files there than was known"
        );
        let (home, until) = (home(destination), self.clock.now().plus(BELIEVED));
        self.store.put(Shelf::Discord, key(home), most.get().to_le_bytes().to_vec(), until);
        self.keep(home, Learned { most, until });
    }

    /// Remembers what an earlier process learned about a place.
    pub(super) async fn recall(&self, destination: &Destination) {
        let home = home(destination);
        if self.learned.contains_key(&home) {
            return;
        }
        let Some(record) = self.store.get(Shelf::Discord, &key(home)).await else { return };
        let bytes = record.value.try_into().map(u64::from_le_bytes).ok().and_then(NonZeroU64::new);
        if let Some(most) = bytes.map(LimitClass::new) {
            self.keep(home, Learned { most, until: record.expires });
        }
    }

    fn keep(&self, home: Home, learned: Learned) {
        if self.learned.len() >= MOST {
            self.learned.clear();
        }
        self.learned.insert(home, learned);
    }
}

/// Nothing useful is smaller.
const LEAST: u64 = 256 << 10;

const fn home(destination: &Destination) -> Home {
    match destination.guild {
        Some(guild) => Home::Guild(guild),
        None => Home::Direct(destination.channel),
    }
}

fn key(home: Home) -> String {
    match home {
        Home::Guild(guild) => format!("limit/guild/{guild}"),
        Home::Direct(channel) => format!("limit/direct/{channel}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::FrontEnd;

    fn mebibytes(count: u64) -> LimitClass {
        LimitClass::new(NonZeroU64::new(count << 20).unwrap())
    }

    fn there(guild: &str) -> Destination {
        let (guild, channel) = (guild.parse().ok(), "7".parse().unwrap());
        Destination { front_end: FrontEnd::Discord, guild, channel, reply_to: None }
    }

    #[test]
    fn boosts_give_more_and_never_less() {
        let limits = Limits::new(mebibytes(10), Store::none(), Clock::system());
        assert_eq!(limits.of(&there("1"), None), mebibytes(10));
        assert_eq!(limits.of(&there("1"), Some(mebibytes(50))), mebibytes(50));
        let generous = Limits::new(mebibytes(200), Store::none(), Clock::system());
        assert_eq!(generous.of(&there("1"), Some(mebibytes(50))), mebibytes(200));
    }

    #[test]
    fn a_refusal_is_believed_for_that_server_for_a_while() {
        let clock = Clock::manual(WallTime::from_millis(1_000_000));
        let limits = Limits::new(mebibytes(10), Store::none(), clock.clone());
        limits.refused(&there("1"), 48 << 20);
        assert_eq!(limits.of(&there("1"), Some(mebibytes(50))), mebibytes(25));
        assert_eq!(limits.of(&there("2"), Some(mebibytes(50))), mebibytes(50));
        limits.refused(&there("1"), 9 << 20);
        assert_eq!(limits.of(&there("1"), Some(mebibytes(50))), mebibytes(8));
        limits.refused(&there("1"), 3 << 20);
        assert_eq!(limits.of(&there("1"), None).get(), 3 << 19);
        clock.set(clock.now().plus(BELIEVED));
        assert_eq!(limits.of(&there("1"), Some(mebibytes(50))), mebibytes(50));
    }
}
