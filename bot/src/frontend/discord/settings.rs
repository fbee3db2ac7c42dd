//! What the moderators of a server want of the bot there.
//!
//! Kept in the store, without an end. They only make the bot quieter, stricter or fuller than the operator has it, and never
//! lift what the operator set.

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::clock::Clock;
use crate::domain::{ChannelId, GuildId};
use crate::store::{Shelf, Store};

/// Channels that one server can name.
pub(super) const MOST_CHANNELS: usize = 50;
/// Servers whose settings are in memory; those beyond it are read when they are wanted.
const MOST: usize = 10_000;
/// As good as for ever.
const KEPT: Duration = Duration::from_secs(50 * 366 * 86_400);

/// What is wanted in a server. Records of earlier versions lack what came later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct GuildSettings {
    /// Links are answered without a mention.
    pub(super) auto: bool,
    /// Media come without author and text.
    pub(super) bare: bool,
    /// The media of a quoted post come too.
    pub(super) quoted: bool,
    /// Sensitive media come in age-restricted channels only, whatever the operator has.
    pub(super) strict: bool,
    /// The bot posts in these channels only, if there are any.
    pub(super) channels: Vec<ChannelId>,
}

/// The settings of all servers.
#[derive(Debug)]
pub(super) struct AllSettings {
    known: DashMap<GuildId, Arc<GuildSettings>>,
    /// One change after the other.
    changing: Mutex<()>,
    store: Store,
    clock: Clock,
}

impl AllSettings {
    pub(super) fn new(store: Store, clock: Clock) -> Self {
        Self { known: DashMap::new(), changing: Mutex::default(), store, clock }
    }

    /// What is wanted there; the defaults in direct messages.
    pub(super) async fn of(&self, guild: Option<GuildId>) -> Arc<GuildSettings> {
        let Some(guild) = guild else { return Arc::default() };
        if let Some(known) = self.known.get(&guild) {
            return Arc::clone(&known);
        }
        let stored = self.store.get(Shelf::Discord, &key(guild)).await;
        // What cannot be read is as if nobody had wanted anything.
        let read = stored.and_then(|record| serde_json::from_slice(&record.value).ok());
        let settings: Arc<GuildSettings> = Arc::new(read.unwrap_or_default());
        if self.known.len() >= MOST {
            self.known.clear();
        }
        // Somebody may have changed them meanwhile.
        Arc::clone(&self.known.entry(guild).or_insert(settings))
    }

    /// What is wanted there, as far as it is in memory.
    pub(super) fn known(&self, guild: Option<GuildId>) -> Arc<GuildSettings> {
        guild.and_then(|guild| self.known.get(&guild).map(|known| Arc::clone(&known))).unwrap_or_default()
    }

    /// Changes what is wanted there; what it is then.
    pub(super) async fn change(
        &self,
        guild: GuildId,
        change: impl FnOnce(&mut GuildSettings),
    ) -> Arc<GuildSettings> {
        let _one = self.changing.lock().await;
        let mut settings = GuildSettings::clone(&*self.of(Some(guild)).await);
        change(&mut settings);
        settings.channels.truncate(MOST_CHANNELS);
        if let Ok(bytes) = serde_json::to_vec(&settings) {
            self.store.put(Shelf::Discord, key(guild), bytes, self.clock.now().plus(KEPT));
        }
        let settings = Arc::new(settings);
        self.known.insert(guild, Arc::clone(&settings));
        settings
    }
}

impl GuildSettings {
    /// Whether the bot posts in one of these: a channel, and the one that it is a thread of.
    pub(super) fn allows(&self, channels: &[ChannelId]) -> bool {
        self.channels.is_empty() || channels.iter().any(|channel| self.channels.contains(channel))
    }

    /// In words, a line each. `content` says whether the operator lets the bot see all messages.
    pub(super) fn lines(&self, content: bool) -> String {
        let on = |yes: bool| if yes { "on" } else { "off" };
        let sensitive =
            if self.strict { "in age-restricted channels only" } else { "as the operator has it" };
        let channels = if self.channels.is_empty() {
            "everywhere".to_owned()
        } else {
            self.channels.iter().map(|channel| format!("<#{channel}>")).collect::<Vec<_>>().join(" ")
        };
        let why = if content {
            ""
        } else {
            " (without effect: this bot does not see messages that do not mention it)"
        };
        format!(
            "Links without a mention: {}{}\nAuthor and text above the media: {}\nMedia of quoted posts: {}\n\
             Sensitive media: {sensitive}\nI post: {channels}",
            on(self.auto),
            if self.auto { why } else { "" },
            on(!self.bare),
            on(self.quoted),
        )
    }
}

fn key(guild: GuildId) -> String {
    format!("settings/{guild}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_changed_holds_in_that_server_and_nowhere_else() {
        let all = AllSettings::new(Store::none(), Clock::system());
        let (one, other): (GuildId, GuildId) = ("1".parse().unwrap(), "2".parse().unwrap());
        let here: ChannelId = "7".parse().unwrap();
        all.change(one, |settings| settings.bare = true).await;
        let changed = all.change(one, |settings| settings.channels.push(here)).await;
        assert_eq!((changed.bare, changed.channels.as_slice()), (true, &[here][..]));
        assert_eq!(*all.of(Some(other)).await, GuildSettings::default());
        assert_eq!(all.of(None).await, all.known(None));
        assert!(changed.allows(&[here]) && !changed.allows(&["8".parse().unwrap()]));
        assert!(GuildSettings::default().allows(&[here]));
    }

    #[test]
    fn records_of_other_versions_are_read_as_far_as_they_are_known() {
        let read: GuildSettings = serde_json::from_str(r#"{"auto": true, "new": 1}"#).unwrap();
        assert_eq!(read, GuildSettings { auto: true, ..GuildSettings::default() });
    }

    #[test]
    fn settings_are_told_in_words() {
        let text = GuildSettings { auto: true, ..GuildSettings::default() }.lines(false);
        assert!(text.starts_with("Links without a mention: on (without effect"), "{text}");
        assert!(text.ends_with("I post: everywhere"), "{text}");
    }
}
