//! Who may do what where, as Discord computes it.

use serenity::model::Permissions;
use serenity::model::id::{ChannelId, GuildId, UserId};

use super::state::State;
use super::world::{Kind, Whose};

/// What a person may anywhere, in these guilds.
const PERSON: Permissions = Permissions::VIEW_CHANNEL
    .union(Permissions::SEND_MESSAGES)
    .union(Permissions::SEND_MESSAGES_IN_THREADS)
    .union(Permissions::READ_MESSAGE_HISTORY)
    .union(Permissions::ATTACH_FILES)
    .union(Permissions::EMBED_LINKS)
    .union(Permissions::ADD_REACTIONS)
    .union(Permissions::USE_APPLICATION_COMMANDS);
/// What moderators may besides.
pub(super) const MODERATOR: Permissions =
    Permissions::MANAGE_MESSAGES.union(Permissions::MANAGE_GUILD).union(Permissions::MANAGE_THREADS);
/// What both may in direct messages.
const DIRECT: Permissions = Permissions::VIEW_CHANNEL
    .union(Permissions::SEND_MESSAGES)
    .union(Permissions::READ_MESSAGE_HISTORY)
    .union(Permissions::ATTACH_FILES)
    .union(Permissions::EMBED_LINKS)
    .union(Permissions::ADD_REACTIONS);

impl State {
    /// What somebody may in a channel.
    pub(super) fn rights(&self, user: UserId, channel: ChannelId) -> Permissions {
        let Some(place) = self.channels.get(&channel) else { return Permissions::empty() };
        let Some(guild_id) = place.guild else { return DIRECT };
        let guild = &self.guilds[&guild_id];
        if user == self.bot && !guild.spec.bot_is_member {
            return Permissions::empty();
        }
        let mut rights = self.rights_in_guild(user, guild_id);
        if rights.contains(Permissions::ADMINISTRATOR) {
            return Permissions::all();
        }
        // A thread has no overwrites of its own.
        let overwrites = match place.spec.kind {
            Kind::PublicThread { parent, .. } => &self.channels[&parent].spec.overwrites,
            _ => &place.spec.overwrites,
        };
        let of_roles = |whose: Whose| match whose {
            Whose::BotRole => user == self.bot,
            Whose::Role(role) => role == guild.moderator_role && guild.moderators.contains(&user),
            Whose::Everyone | Whose::Member(_) => false,
        };
        let mut apply = |meant: &dyn Fn(Whose) -> bool| {
            let meant = || overwrites.iter().filter(|overwrite| meant(overwrite.whose));
            let denied = meant().fold(Permissions::empty(), |all, overwrite| all | overwrite.deny);
            let allowed = meant().fold(Permissions::empty(), |all, overwrite| all | overwrite.allow);
            rights = (rights & !denied) | allowed;
        };
        apply(&|whose| whose == Whose::Everyone);
        apply(&of_roles);
        apply(&|whose| whose == Whose::Member(user));
        if rights.contains(Permissions::VIEW_CHANNEL) { rights } else { Permissions::empty() }
    }

    fn rights_in_guild(&self, user: UserId, guild: GuildId) -> Permissions {
        let guild = &self.guilds[&guild];
        if user == guild.owner {
            Permissions::all()
        } else if user == self.bot {
            guild.spec.everyone | guild.spec.bot_permissions
        } else if guild.moderators.contains(&user) {
            guild.spec.everyone | PERSON | MODERATOR
        } else {
            guild.spec.everyone | PERSON
        }
    }

    /// What the bot may in a channel.
    pub(super) fn own_rights(&self, channel: ChannelId) -> Permissions {
        self.rights(self.bot, channel)
    }

    /// Whether the bot sees messages of the channel.
    pub(super) fn sees(&self, channel: ChannelId) -> bool {
        self.own_rights(channel).contains(Permissions::VIEW_CHANNEL)
    }
}
