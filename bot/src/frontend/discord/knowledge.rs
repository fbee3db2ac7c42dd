//! What is known of servers and channels without asking: who reads there, how much it takes, what the bot may do.

use std::num::NonZeroU64;
use std::sync::{Arc, PoisonError, RwLock};

use serenity::cache::Cache;
use serenity::model::Permissions;
use serenity::model::channel::GuildChannel;
use serenity::model::guild::{Guild, PremiumTier};

use crate::domain::{ChannelId, Destination, GuildId, LimitClass};
use crate::frontend::discord::ids::{from_channel, to_channel, to_guild};
use crate::guard::audience::Place;

/// What the gateway has told so far. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Knowledge {
    cache: Arc<RwLock<Arc<Cache>>>,
}

impl Knowledge {
    pub(super) fn new(cache: Arc<Cache>) -> Self {
        Self { cache: Arc::new(RwLock::new(cache)) }
    }

    /// From now on what another connection has told counts.
    pub(super) fn adopt(&self, cache: Arc<Cache>) {
        // A value that is replaced whole: a panic elsewhere has not harmed it.
        *self.cache.write().unwrap_or_else(PoisonError::into_inner) = cache;
    }

    fn cache(&self) -> Arc<Cache> {
        Arc::clone(&self.cache.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many servers there are.
    pub(super) fn guilds(&self) -> usize {
        self.cache().guild_count()
    }

    /// What the bot's roles lack in servers, a line for each of some servers.
    pub(super) fn lacks(&self) -> Vec<String> {
        let cache = self.cache();
        let me = cache.current_user().id;
        let mut lines = Vec::new();
        for id in cache.guilds() {
            let Some(guild) = cache.guild(id) else { continue };
            let Some(member) = guild.members.get(&me) else { continue };
            let missing = WANTED.difference(guild.member_permissions(member));
            if !missing.is_empty() {
                lines.push(format!("{} lacks the permissions {}", guild.name, names(missing)));
            }
            if lines.len() >= NAMED {
                break;
            }
        }
        lines
    }

    /// Who reads there. A thread is as its parent is.
    pub(super) fn place(&self, destination: &Destination) -> Place {
        let Some(guild) = destination.guild else { return Place::Direct };
        let cache = self.cache();
        let Some(guild) = cache.guild(to_guild(guild)) else { return Place::Unknown };
        match home_of(&guild, destination.channel) {
            Some(channel) if channel.nsfw => Place::AgeRestricted,
            Some(_) => Place::Ordinary,
            None => Place::Unknown,
        }
    }

    /// The largest file that a server takes by its boosts; `None` when they give no more than everybody has.
    pub(super) fn boosted(&self, guild: GuildId) -> Option<LimitClass> {
        let tier = self.cache().guild(to_guild(guild))?.premium_tier;
        let mebibytes: u64 = match tier {
            PremiumTier::Tier2 => 50,
            PremiumTier::Tier3 => 100,
            _ => return None,
        };
        NonZeroU64::new(mebibytes << 20).map(LimitClass::new)
    }

    /// What the bot may do there, and what kind of channel it is; `None` when nothing is known of it.
    pub(super) fn rights(&self, guild: Option<GuildId>, channel: ChannelId) -> Option<Rights> {
        let Some(guild) = guild else {
            return Some(Rights { permissions: Permissions::all(), thread: false });
        };
        let cache = self.cache();
        let guild = cache.guild(to_guild(guild))?;
        let home = home_of(&guild, channel)?;
        let me = cache.current_user().id;
        let member = guild.members.get(&me)?;
        let permissions = guild.user_permissions_in(home, member);
        let thread = home.id != to_channel(channel);
        Some(Rights { permissions, thread })
    }

    /// What must be there for a post and is not; empty when nothing is missing or nothing is known.
    pub(super) fn missing(&self, guild: Option<GuildId>, channel: ChannelId) -> Permissions {
        self.rights(guild, channel).map_or(Permissions::empty(), |rights| rights.missing())
    }

    /// The channel itself, and the one that it is a thread of.
    pub(super) fn with_parent(&self, guild: Option<GuildId>, channel: ChannelId) -> Vec<ChannelId> {
        let cache = self.cache();
        let guild = guild.and_then(|guild| cache.guild(to_guild(guild)));
        let parent = guild.and_then(|guild| home_of(&guild, channel).map(|home| from_channel(home.id)));
        let parent = parent.filter(|parent| *parent != channel);
        std::iter::once(channel).chain(parent).collect()
    }

    /// Whether the bot's own role is among these.
    pub(super) fn own_role(&self, guild: GuildId, roles: &[serenity::model::id::RoleId]) -> bool {
        let cache = self.cache();
        let Some(guild) = cache.guild(to_guild(guild)) else { return false };
        let me = cache.current_user().id;
        roles.iter().any(|role| guild.roles.get(role).is_some_and(|role| role.tags.bot_id == Some(me)))
    }
}

/// Servers that are named when they lack something.
const NAMED: usize = 5;

/// What the bot may do in a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rights {
    pub(super) permissions: Permissions,
    /// It is a thread, where other permissions count.
    pub(super) thread: bool,
}

impl Rights {
    /// What a post needs and is not there.
    pub(super) fn missing(self) -> Permissions {
        needed(self.thread).difference(self.permissions)
    }

    /// Whether words can be said there.
    pub(super) fn may_speak(self) -> bool {
        self.permissions.contains(needed(self.thread).difference(Permissions::ATTACH_FILES))
    }

    /// Whether a message can be answered there rather than followed.
    pub(super) fn may_answer(self) -> bool {
        self.permissions.contains(Permissions::READ_MESSAGE_HISTORY)
    }

    /// Whether the preview of somebody's link can be taken away.
    pub(super) fn may_suppress(self) -> bool {
        self.permissions.contains(Permissions::MANAGE_MESSAGES)
    }
}

/// What a post needs. In threads another permission stands for sending.
const fn needed(thread: bool) -> Permissions {
    let send = if thread { Permissions::SEND_MESSAGES_IN_THREADS } else { Permissions::SEND_MESSAGES };
    Permissions::VIEW_CHANNEL.union(send).union(Permissions::ATTACH_FILES)
}

/// All that the bot can make use of: what an invitation asks for.
pub(super) const WANTED: Permissions = needed(false)
    .union(needed(true))
    .union(Permissions::READ_MESSAGE_HISTORY)
    .union(Permissions::MANAGE_MESSAGES);

/// The channel whose settings hold: of a thread that of its parent.
fn home_of(guild: &Guild, channel: ChannelId) -> Option<&GuildChannel> {
    let id = to_channel(channel);
    if let Some(channel) = guild.channels.get(&id) {
        return Some(channel);
    }
    let thread = guild.threads.iter().find(|thread| thread.id == id)?;
    guild.channels.get(&thread.parent_id?)
}

/// The words for permissions that are missing, as Discord's own client has them.
pub(super) fn names(permissions: Permissions) -> String {
    permissions.get_permission_names().join(", ")
}
