//! Guilds, channels and people, and how tests make them.

use std::collections::BTreeMap;

use serenity::model::Permissions;
use serenity::model::gateway::GatewayIntents;
use serenity::model::id::{ChannelId, GuildId, RoleId, UserId};

use super::Discord;
use super::gateway::Event;
use super::state::{DEFAULT_UPLOAD, State};

/// A guild to be made.
#[derive(Clone, Debug)]
pub(crate) struct GuildSpec {
    pub(crate) name: String,
    pub(crate) premium_tier: u8,
    /// What everybody may, the bot too. Nothing, if not said, so that the bot may what its own role says.
    pub(crate) everyone: Permissions,
    /// What the bot's own role allows.
    pub(crate) bot_permissions: Permissions,
    /// 0 default, 1 explicit, 2 safe, 3 age-restricted.
    pub(crate) nsfw_level: u8,
    /// Whether the bot is there. Where it is not, it can only be used as an app of a user.
    pub(crate) bot_is_member: bool,
}

impl Default for GuildSpec {
    fn default() -> Self {
        Self {
            name: "a guild".to_owned(),
            premium_tier: 0,
            everyone: Permissions::empty(),
            bot_permissions: Permissions::VIEW_CHANNEL
                | Permissions::SEND_MESSAGES
                | Permissions::SEND_MESSAGES_IN_THREADS
                | Permissions::READ_MESSAGE_HISTORY
                | Permissions::ATTACH_FILES
                | Permissions::EMBED_LINKS
                | Permissions::ADD_REACTIONS
                | Permissions::MANAGE_MESSAGES,
            nsfw_level: 0,
            bot_is_member: true,
        }
    }
}

/// A channel to be made.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChannelSpec {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) nsfw: bool,
    pub(crate) overwrites: Vec<Overwrite>,
}

/// What a channel is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Text,
    News,
    Voice,
    Category,
    Forum,
    Media,
    PublicThread {
        parent: ChannelId,
        archived: bool,
        locked: bool,
    },
    /// A direct message.
    Dm,
}

/// What a channel allows and denies to somebody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overwrite {
    pub(crate) whose: Whose,
    pub(crate) allow: Permissions,
    pub(crate) deny: Permissions,
}

/// Whom an overwrite is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Everyone,
    /// The bot's own role.
    BotRole,
    Role(RoleId),
    Member(UserId),
}

/// A guild.
#[derive(Debug)]
pub(super) struct Guild {
    pub(super) spec: GuildSpec,
    pub(super) owner: UserId,
    pub(super) bot_role: RoleId,
    pub(super) moderator_role: RoleId,
    pub(super) moderators: Vec<UserId>,
    /// The largest file in bytes.
    pub(super) upload_limit: u64,
}

/// A channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) spec: ChannelSpec,
    /// `None` for direct messages.
    pub(super) guild: Option<GuildId>,
    /// The other one in direct messages.
    pub(super) recipient: Option<UserId>,
}

/// Somebody.
#[derive(Debug)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) bot: bool,
    pub(super) takes_dms: bool,
}

impl Kind {
    /// Discord's number for it.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Text => 0,
            Self::Dm => 1,
            Self::Voice => 2,
            Self::Category => 4,
            Self::News => 5,
            Self::PublicThread { .. } => 11,
            Self::Forum => 15,
            Self::Media => 16,
        }
    }
}

impl Discord {
    /// Makes a guild. The bot is told, where it is a member.
    pub(crate) fn add_guild(&self, spec: GuildSpec) -> GuildId {
        self.shared.change(|state| {
            let guild = GuildId::new(state.snowflake());
            let owner = state.user(&format!("owner of {guild}"));
            let (bot_role, moderator_role) = (state.role_id(), state.role_id());
            let upload_limit = match spec.premium_tier {
                2 => 52_428_800,
                3 => 104_857_600,
                _ => DEFAULT_UPLOAD,
            };
            let made = Guild { spec, owner, bot_role, moderator_role, moderators: Vec::new(), upload_limit };
            state.guilds.insert(guild, made);
            state.dispatch(&Event::of_guild("GUILD_CREATE", guild, state.guild_create_json(guild)));
            guild
        })
    }

    /// Makes a channel or a thread in a guild.
    pub(crate) fn add_channel(&self, guild: GuildId, spec: ChannelSpec) -> ChannelId {
        self.shared.change(|state| {
            assert!(state.guilds.contains_key(&guild), "no such guild");
            let channel = ChannelId::new(state.snowflake());
            let is_thread = matches!(spec.kind, Kind::PublicThread { .. });
            state.channels.insert(channel, Channel { spec, guild: Some(guild), recipient: None });
            let name = if is_thread { "THREAD_CREATE" } else { "CHANNEL_CREATE" };
            state.tell_channel(name, channel);
            channel
        })
    }

    /// A plain text channel.
    pub(crate) fn text_channel(&self, guild: GuildId) -> ChannelId {
        self.add_channel(guild, ChannelSpec { name: "talk".to_owned(), ..ChannelSpec::default() })
    }

    /// Somebody with this name, always the same one.
    pub(crate) fn user(&self, name: &str) -> UserId {
        self.shared.change(|state| state.user(name))
    }

    /// The channel for direct messages between the bot and somebody.
    pub(crate) fn dm(&self, user: UserId) -> ChannelId {
        self.shared.change(|state| state.dm(user))
    }

    /// Somebody takes no direct messages any more.
    pub(crate) fn close_dms(&self, user: UserId) {
        self.shared.change(|state| state.users.get_mut(&user).unwrap().takes_dms = false);
    }

    /// Makes somebody a moderator: a role that manages messages and the guild.
    pub(crate) fn make_moderator(&self, guild: GuildId, user: UserId) {
        self.shared.change(|state| state.guild_mut(guild).moderators.push(user));
    }

    /// The bot's own role in a guild, which people mention by mistake.
    pub(crate) fn bot_role(&self, guild: GuildId) -> RoleId {
        self.look(|state| state.guilds[&guild].bot_role)
    }

    /// Changes what the bot's own role allows, and tells the bot.
    pub(crate) fn set_permissions(&self, guild: GuildId, permissions: Permissions) {
        self.shared.change(|state| {
            state.guild_mut(guild).spec.bot_permissions = permissions;
            let role = state.bot_role_json(guild);
            state.dispatch(&Event::of_guild(
                "GUILD_ROLE_UPDATE",
                guild,
                serde_json::json!({"guild_id": guild, "role": role}),
            ));
        });
    }

    /// Changes a channel, and tells the bot.
    pub(crate) fn change_channel(&self, channel: ChannelId, change: impl FnOnce(&mut ChannelSpec)) {
        self.shared.change(|state| {
            change(&mut state.channels.get_mut(&channel).unwrap().spec);
            let is_thread = matches!(state.channels[&channel].spec.kind, Kind::PublicThread { .. });
            state.tell_channel(if is_thread { "THREAD_UPDATE" } else { "CHANNEL_UPDATE" }, channel);
        });
    }

    /// The bot is thrown out of a guild.
    pub(crate) fn throw_out(&self, guild: GuildId) {
        self.shared.change(|state| {
            state.dispatch(&Event::of_guild("GUILD_DELETE", guild, serde_json::json!({"id": guild})));
            state.guild_mut(guild).spec.bot_is_member = false;
        });
    }

    /// Sets the largest file that a guild takes, in bytes. Discord tells nobody.
    pub(crate) fn set_upload_limit(&self, guild: GuildId, bytes: u64) {
        self.shared.change(|state| state.guild_mut(guild).upload_limit = bytes);
    }

    /// Sets the most bytes that all files of a request may have.
    pub(crate) fn set_request_limit(&self, bytes: Option<u64>) {
        self.shared.change(|state| state.request_limit = bytes);
    }

    /// Whether files are kept as they come; with large ones, tests that measure memory want only their hashes.
    pub(crate) fn keep_bytes(&self, keep: bool) {
        self.shared.change(|state| state.keep_bytes = keep);
    }

    /// Gives the application the privileged intent for content, or takes it.
    pub(crate) fn grant_content(&self, granted: bool) {
        self.shared.change(|state| state.content_granted = granted);
    }

    /// Whether the message that a reply is to comes with its content without the intent. Nobody could say, so tests try
    /// both.
    pub(crate) fn reveal_referenced(&self, revealed: bool) {
        self.shared.change(|state| state.referenced_has_content = revealed);
    }

    /// How many shards Discord recommends.
    pub(crate) fn set_shards(&self, shards: u64) {
        self.shared.change(|state| state.shards = shards);
    }

    /// How many sessions may still be started today.
    pub(crate) fn set_starts_left(&self, left: u64) {
        self.shared.change(|state| state.starts_left = left);
    }

    /// Whether the gateway takes no connections; the rest of Discord is there.
    pub(crate) fn shut_gateway(&self, shut: bool) {
        self.shared.change(|state| state.gateway_is_shut = shut);
    }

    /// Whether the gateway says nothing to those who connect.
    pub(crate) fn silence_gateway(&self, silent: bool) {
        self.shared.change(|state| state.gateway_is_silent = silent);
    }

    /// Moves the double's own time on: interactions grow old, nonces are forgotten.
    pub(crate) fn advance(&self, by: std::time::Duration) {
        self.shared.change(|state| state.now += by);
    }
}

impl State {
    pub(super) fn guild_mut(&mut self, guild: GuildId) -> &mut Guild {
        self.guilds.get_mut(&guild).unwrap()
    }

    pub(super) fn user(&mut self, name: &str) -> UserId {
        let known = self.users.iter().find(|(_, user)| user.name == name && !user.bot);
        if let Some((id, _)) = known {
            return *id;
        }
        let id = UserId::new(self.snowflake());
        self.users.insert(id, User { name: name.to_owned(), bot: false, takes_dms: true });
        id
    }

    pub(super) fn dm(&mut self, user: UserId) -> ChannelId {
        let known = self.channels.iter().find(|(_, channel)| channel.recipient == Some(user));
        if let Some((id, _)) = known {
            return *id;
        }
        let id = ChannelId::new(self.snowflake());
        let spec = ChannelSpec { kind: Kind::Dm, ..ChannelSpec::default() };
        self.channels.insert(id, Channel { spec, guild: None, recipient: Some(user) });
        id
    }

    /// Tells the bot of a channel.
    pub(super) fn tell_channel(&mut self, name: &'static str, channel: ChannelId) {
        let guild = self.channels[&channel].guild;
        let data = self.channel_json(channel);
        self.dispatch(&Event { name, guild, channel: Some(channel), needs: GatewayIntents::GUILDS, data });
    }

    /// The channels of a guild, or its threads.
    pub(super) fn channels_of(&self, guild: GuildId, threads: bool) -> BTreeMap<ChannelId, &Channel> {
        let is_thread = |channel: &Channel| matches!(channel.spec.kind, Kind::PublicThread { .. });
        let all = self.channels.iter().filter(|(_, channel)| channel.guild == Some(guild));
        all.filter(|(_, channel)| is_thread(channel) == threads).map(|(id, channel)| (*id, channel)).collect()
    }
}
