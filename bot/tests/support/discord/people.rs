//! What people do.

use std::time::Instant;

use serde_json::{Value, json};
use serenity::model::Permissions;
use serenity::model::gateway::GatewayIntents;
use serenity::model::id::{ChannelId, InteractionId, MessageId, UserId};

use super::Discord;
use super::gateway::Event;
use super::messages::blank;
use super::state::{Interaction, Message, State};

/// Who uses a command, and where.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub(crate) channel: ChannelId,
    pub(crate) user: UserId,
    /// The `attachment_size_limit` that the bot is told; the guild's, if none.
    pub(crate) told_limit: Option<u64>,
    /// The limit that holds in truth; the one that is told, if none.
    pub(crate) real_limit: Option<u64>,
    /// What the bot is told that it may; what it may, if none.
    pub(crate) app_permissions: Option<Permissions>,
    /// Whether only the user has the app, and not the guild.
    pub(crate) user_only: bool,
}

impl Use {
    /// A use without anything special.
    pub(crate) fn new(channel: ChannelId, user: UserId) -> Self {
        Self { channel, user, told_limit: None, real_limit: None, app_permissions: None, user_only: false }
    }
}

/// The type of an interaction.
const COMMAND: u8 = 2;
const COMPONENT: u8 = 3;

impl Discord {
    /// Somebody writes.
    pub(crate) fn say(&self, channel: ChannelId, user: UserId, text: &str) -> MessageId {
        self.shared.change(|state| state.say_as(channel, user, text, None))
    }

    /// Somebody writes a reply, which mentions the author of the other message.
    pub(crate) fn reply(&self, channel: ChannelId, user: UserId, to: MessageId, text: &str) -> MessageId {
        self.shared.change(|state| state.say_as(channel, user, text, Some(to)))
    }

    /// Somebody changes what they wrote.
    pub(crate) fn rewrite(&self, message: MessageId, text: &str) {
        self.shared.change(|state| {
            let edited = state.messages.get_mut(&message).unwrap();
            edited.content = text.to_owned();
            edited.edits.push((Instant::now(), text.to_owned()));
            state.tell_message("MESSAGE_UPDATE", message);
        });
    }

    /// Somebody deletes a message, their own or another.
    pub(crate) fn delete(&self, message: MessageId) {
        self.shared.change(|state| state.delete(message));
    }

    /// A moderator deletes messages of a channel together.
    pub(crate) fn delete_bulk(&self, channel: ChannelId, messages: &[MessageId]) {
        self.shared.change(|state| state.delete_together(channel, messages));
    }

    /// The preview of the first link of a message arrives, even when embeds were suppressed before.
    pub(crate) fn embed_arrives(&self, message: MessageId) {
        self.shared.change(|state| {
            let shown = state.messages.get_mut(&message).unwrap();
            let url = shown.content.split_whitespace().find(|word| word.contains("://")).unwrap_or_default();
            shown.embeds = vec![json!({"type": "rich", "url": url, "title": "a preview"})];
            state.tell_message("MESSAGE_UPDATE", message);
        });
    }

    /// Somebody uses a typed command. The options are as Discord sends them: a list of `{name, type, value}`.
    ///
    /// # Panics
    ///
    /// When the bot has registered no such command.
    pub(crate) fn command(&self, how: &Use, name: &str, options: &Value) -> InteractionId {
        self.shared.change(|state| {
            let data = json!({"type": 1, "name": name, "options": options});
            state.use_command(how, 1, name, data)
        })
    }

    /// Somebody uses a command in the menu of a message.
    ///
    /// # Panics
    ///
    /// When the bot has registered no such command.
    pub(crate) fn context_menu(&self, how: &Use, name: &str, target: MessageId) -> InteractionId {
        self.shared.change(|state| {
            // Here the content is always there.
            let message = state.message_json(&state.messages[&target]);
            let resolved = json!({"messages": {target.to_string(): message}});
            let data = json!({"type": 3, "name": name, "target_id": target, "resolved": resolved});
            state.use_command(how, 3, name, data)
        })
    }

    /// Somebody presses a button.
    ///
    /// # Panics
    ///
    /// When the message has no such button, or is gone.
    pub(crate) fn press(&self, message: MessageId, user: UserId, custom_id: &str) -> InteractionId {
        self.shared.change(|state| {
            let pressed = &state.messages[&message];
            let has = pressed.buttons().iter().any(|(_, id)| id == custom_id);
            assert!(has && pressed.gone.is_none(), "{message} has no button {custom_id:?}");
            let how = Use::new(pressed.channel, user);
            let whole = state.message_json(pressed);
            let data = json!({"custom_id": custom_id, "component_type": 2});
            let id = state.interact(&how, COMPONENT, &data, json!({"message": whole}));
            state.interactions.get_mut(&id).unwrap().pressed = Some(message);
            id
        })
    }
}

impl State {
    fn say_as(&mut self, channel: ChannelId, user: UserId, text: &str, to: Option<MessageId>) -> MessageId {
        let id = MessageId::new(self.snowflake());
        let said = Message {
            content: text.to_owned(),
            reference: to,
            kind: if to.is_some() { 19 } else { 0 },
            ..blank(id, channel, user)
        };
        self.unarchive(channel);
        self.messages.insert(id, said);
        self.tell_message("MESSAGE_CREATE", id);
        id
    }

    fn use_command(&mut self, how: &Use, kind: u64, name: &str, mut data: Value) -> InteractionId {
        let guild = self.channels[&how.channel].guild;
        data["id"] = self.command_named(guild, kind, name)["id"].clone();
        if let Some(guild) = guild.filter(|_| !how.user_only) {
            data["guild_id"] = json!(guild);
        }
        self.interact(how, COMMAND, &data, json!({}))
    }

    /// Makes an interaction, and tells the bot.
    fn interact(&mut self, how: &Use, kind: u8, data: &Value, more: Value) -> InteractionId {
        let id = InteractionId::new(self.snowflake());
        let token = format!("aW50ZXJhY3Rpb246{:x}{:x}", id.get(), self.snowflake());
        let guild = self.channels[&how.channel].guild;
        let told_limit = how.told_limit.unwrap_or_else(|| self.upload_limit(how.channel));
        let made = Interaction {
            id,
            token: token.clone(),
            channel: how.channel,
            user: how.user,
            upload_limit: how.real_limit.unwrap_or(told_limit),
            pressed: None,
            response: None,
            answered_after: None,
            original: None,
            follow_ups: Vec::new(),
            user_only: how.user_only,
            made: self.now,
            at: Instant::now(),
        };
        self.interactions.insert(id, made);
        let rights = how.app_permissions.unwrap_or_else(|| self.own_rights(how.channel));
        // Where a guild has the app, it is the guild; else the user.
        let owners = match guild.filter(|_| !how.user_only) {
            Some(guild) => json!({"0": guild}),
            None => json!({"1": how.user}),
        };
        let mut event = json!({
            "id": id,
            "application_id": self.application,
            "type": kind,
            "data": data,
            "channel": self.channel_json(how.channel),
            "channel_id": how.channel,
            "token": token,
            "version": 1,
            "app_permissions": rights.bits().to_string(),
            "locale": "en-US",
            "entitlements": [],
            "authorizing_integration_owners": owners,
            "context": if guild.is_some() { 0 } else { 1 },
            "attachment_size_limit": told_limit,
        });
        super::shape::merge(&mut event, more);
        if let Some(guild) = guild {
            let mut member = self.member_json(guild, how.user);
            member["user"] = self.user_json(how.user);
            member["permissions"] = json!(self.rights(how.user, how.channel).bits().to_string());
            event["guild_id"] = json!(guild);
            event["guild_locale"] = json!("en-US");
            event["member"] = member;
        } else {
            event["user"] = self.user_json(how.user);
        }
        let needs = GatewayIntents::empty();
        self.dispatch(&Event { name: "INTERACTION_CREATE", guild, channel: None, needs, data: event });
        id
    }
}
