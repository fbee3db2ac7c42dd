//! Channels, and the messages in them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use serenity::model::Permissions;
use serenity::model::gateway::GatewayIntents;
use serenity::model::id::{ChannelId, GuildId, MessageId, UserId};

use super::answer::{Answer, Outcome};
use super::calls::{Call, Id};
use super::form::Form;
use super::gateway::Event;
use super::outgoing::list;
use super::schema::{BULK, CREATE, EDIT, RECIPIENT, check};
use super::shape::emoji_json;
use super::state::{DEFAULT_UPLOAD, EPHEMERAL, LOADING, Message, SUPPRESS_EMBEDS, State};
use super::world::Kind;

/// How old a message may be that is deleted together with others.
const BULK_AGE: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// A message without anything in it.
pub(super) fn blank(id: MessageId, channel: ChannelId, author: UserId) -> Message {
    Message {
        id,
        channel,
        author,
        content: String::new(),
        attachments: Vec::new(),
        embeds: Vec::new(),
        reference: None,
        flags: 0,
        components: json!([]),
        reactions: Vec::new(),
        nonce: None,
        interaction: None,
        kind: 0,
        at: Instant::now(),
        edits: Vec::new(),
        gone: None,
    }
}

impl State {
    /// What is below `/channels/{channel}`.
    pub(super) fn channel_route(
        &mut self,
        call: &Call,
        channel: &str,
        below: &[&str],
        form: &Form,
    ) -> Outcome {
        let Some(channel) = ChannelId::read(channel).filter(|channel| self.channels.contains_key(channel))
        else {
            return Err(Answer::unknown_channel());
        };
        if !self.sees(channel) {
            return Err(Answer::missing_access());
        }
        match (&*call.method, below) {
            ("GET", []) => Ok(Answer::ok(self.channel_json(channel))),
            ("POST", ["typing"]) => {
                self.check_may_send(channel)?;
                *self.typing.entry(channel).or_default() += 1;
                Ok(Answer::empty())
            }
            ("POST", ["messages"]) => self.create(call, channel, form),
            ("GET", ["messages"]) => self.list_messages(call, channel),
            ("POST", ["messages", "bulk-delete"]) => self.bulk_delete(channel, form),
            (method, ["messages", message, below @ ..]) => {
                let found = MessageId::read(message).and_then(|id| self.messages.get(&id));
                let found = found.filter(|message| message.channel == channel && message.gone.is_none());
                // What only one person sees is not in the channel.
                let found = found.filter(|message| !message.is_ephemeral()).map(|message| message.id);
                let message = found.ok_or_else(Answer::unknown_message)?;
                match (method, below) {
                    ("GET", []) => {
                        self.need(channel, Permissions::READ_MESSAGE_HISTORY)?;
                        Ok(Answer::ok(self.seen(message)))
                    }
                    ("PATCH", []) => self.edit(message, form),
                    ("DELETE", []) => {
                        if self.messages[&message].author != self.bot {
                            self.need(channel, Permissions::MANAGE_MESSAGES)?;
                        }
                        self.delete(message);
                        Ok(Answer::empty())
                    }
                    (_, ["reactions", emoji, who]) => self.react(method, message, emoji, who),
                    _ => Err(Answer::refusal(405, 0, "405: Method Not Allowed")),
                }
            }
            _ => {
                self.violate(format!("{} {} leads nowhere", call.method, call.path));
                Err(Answer::refusal(404, 0, "404: Not Found"))
            }
        }
    }

    pub(super) fn need(&self, channel: ChannelId, rights: Permissions) -> Result<(), Answer> {
        if self.own_rights(channel).contains(rights) { Ok(()) } else { Err(Answer::missing_permissions()) }
    }

    /// Whether the bot may send to a channel, which is a question of its kind, too.
    fn check_may_send(&self, channel: ChannelId) -> Result<(), Answer> {
        match self.channels[&channel].spec.kind {
            Kind::Forum | Kind::Media => {
                Err(Answer::refusal(400, 40058, "Cannot message this thread-only channel"))
            }
            Kind::Category => Err(Answer::refusal(400, 50008, "Cannot send messages in a non-text channel")),
            Kind::PublicThread { archived, locked: true, .. }
                if !self.own_rights(channel).contains(Permissions::MANAGE_THREADS) =>
            {
                Err(match archived {
                    true => Answer::refusal(400, 50083, "Thread is archived"),
                    false => Answer::refusal(400, 160_005, "Thread is locked"),
                })
            }
            Kind::PublicThread { .. } => self.need(channel, Permissions::SEND_MESSAGES_IN_THREADS),
            Kind::Text | Kind::News | Kind::Voice => self.need(channel, Permissions::SEND_MESSAGES),
            Kind::Dm => {
                let recipient = self.channels[&channel].recipient;
                let takes = recipient.is_none_or(|user| self.users[&user].takes_dms);
                if takes {
                    Ok(())
                } else {
                    Err(Answer::refusal(403, 50007, "Cannot send messages to this user"))
                }
            }
        }
    }

    /// The largest file that a channel takes.
    pub(super) fn upload_limit(&self, channel: ChannelId) -> u64 {
        self.channels[&channel].guild.map_or(DEFAULT_UPLOAD, |guild| self.guilds[&guild].upload_limit)
    }

    fn create(&mut self, call: &Call, channel: ChannelId, form: &Form) -> Outcome {
        self.check_may_send(channel)?;
        check(&form.body, CREATE)?;
        self.check_mentions("a new message", &form.body);
        self.check_nonce(call, &form.body);
        if !form.files.is_empty() {
            self.need(channel, Permissions::ATTACH_FILES)?;
        }
        let nonce = Some(form.body["nonce"].clone()).filter(|nonce| !nonce.is_null());
        let enforced = nonce.clone().filter(|_| form.body["enforce_nonce"] == true);
        let enforced = enforced.map(|nonce| nonce.as_str().map_or_else(|| nonce.to_string(), str::to_owned));
        if let Some(earlier) = enforced.as_ref().and_then(|nonce| self.same_nonce(nonce)) {
            return self.created_before(channel, earlier);
        }
        let files = self.take_files(form, self.upload_limit(channel))?;
        self.check_content(&form.body, &files)?;
        let reference = self.take_reference(channel, &form.body["message_reference"])?;
        self.unarchive(channel);

        let id = MessageId::new(self.snowflake());
        if let Some(nonce) = enforced {
            self.nonces.insert(nonce, (id, self.now));
        }
        let message = Message {
            content: form.body["content"].as_str().unwrap_or_default().to_owned(),
            embeds: list(&form.body, "embeds"),
            components: json!(list(&form.body, "components")),
            flags: form.body["flags"].as_u64().unwrap_or_default() & (SUPPRESS_EMBEDS | 1 << 12),
            attachments: files,
            reference,
            nonce,
            kind: if reference.is_some() { 19 } else { 0 },
            ..blank(id, channel, self.bot)
        };
        self.messages.insert(id, message);
        self.tell_message("MESSAGE_CREATE", id);
        Ok(Answer::ok(self.message_json(&self.messages[&id])))
    }

    /// The message that was made with this nonce a short while ago.
    fn same_nonce(&self, nonce: &str) -> Option<MessageId> {
        let (message, made) = self.nonces.get(nonce)?;
        (self.now <= *made + self.nonce_window).then_some(*message)
    }

    /// The answer to one who sends the same again.
    fn created_before(&mut self, channel: ChannelId, earlier: MessageId) -> Outcome {
        let message = &self.messages[&earlier];
        // The author is what counts, not the channel: then this message is lost.
        if message.channel != channel {
            let what = format!("a nonce of {} came again in {channel}", message.channel);
            self.violate(what);
        }
        let message = &self.messages[&earlier];
        match message.gone {
            Some(_) => Err(Answer::unknown_message()),
            None => Ok(Answer::ok(self.message_json(message))),
        }
    }

    /// The message that a new one is a reply to.
    fn take_reference(&self, channel: ChannelId, reference: &Value) -> Result<Option<MessageId>, Answer> {
        if reference.is_null() {
            return Ok(None);
        }
        if !(reference["type"].is_null() || reference["type"] == 0) {
            let message = "This double makes replies only.";
            return Err(Answer::form("message_reference.type", "BASE_TYPE_CHOICES", message));
        }
        if !self.own_rights(channel).contains(Permissions::READ_MESSAGE_HISTORY) {
            return Err(Answer::refusal(
                400,
                160_002,
                "Cannot reply without permission to read message history",
            ));
        }
        let text = reference["message_id"]
            .as_str()
            .map_or_else(|| reference["message_id"].to_string(), str::to_owned);
        let found = MessageId::read(&text).and_then(|id| self.messages.get(&id));
        let found = found.filter(|message| message.channel == channel && message.gone.is_none());
        match found {
            Some(message) => Ok(Some(message.id)),
            None if reference["fail_if_not_exists"] == false => Ok(None),
            None => Err(Answer::form("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")),
        }
    }

    /// A message in an archived thread takes it out of the archive.
    pub(super) fn unarchive(&mut self, channel: ChannelId) {
        let spec = &mut self.channels.get_mut(&channel).unwrap().spec;
        if let Kind::PublicThread { archived: archived @ true, .. } = &mut spec.kind {
            *archived = false;
            self.tell_channel("THREAD_UPDATE", channel);
        }
    }

    /// Tells the bot of a message, if others see it as well.
    pub(super) fn tell_message(&mut self, name: &'static str, message: MessageId) {
        let told = &self.messages[&message];
        if told.flags & EPHEMERAL != 0 {
            return;
        }
        let channel = told.channel;
        let guild = self.channels[&channel].guild;
        let data = self.message_event(message);
        self.dispatch(&Event { name, guild, channel: Some(channel), needs: messages_of(guild), data });
    }

    /// A message as REST shows it to the bot.
    fn seen(&self, message: MessageId) -> Value {
        let mut told = self.message_json(&self.messages[&message]);
        if !self.content_granted {
            self.conceal(&mut told);
        }
        told
    }

    fn list_messages(&mut self, call: &Call, channel: ChannelId) -> Outcome {
        let query = |name: &str| call.query.get(name).map(String::as_str);
        let limit = query("limit").map_or(Some(50), |limit| limit.parse().ok());
        let Some(limit) = limit.filter(|limit| (1..=100).contains(limit)) else {
            return Err(Answer::form("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100."));
        };
        let (after, before) = (query("after").map(MessageId::read), query("before").map(MessageId::read));
        if [after, before].contains(&Some(None)) || query("around").is_some() {
            return Err(Answer::form("after", "NUMBER_TYPE_COERCE", "Value is not snowflake."));
        }
        if !self.own_rights(channel).contains(Permissions::READ_MESSAGE_HISTORY) {
            return Ok(Answer::ok(json!([])));
        }
        let mut found: Vec<MessageId> = self
            .messages(channel)
            .iter()
            .filter(|message| !message.is_ephemeral())
            .map(|message| message.id)
            .collect();
        found.retain(|id| after.flatten().is_none_or(|after| *id > after));
        found.retain(|id| before.flatten().is_none_or(|before| *id < before));
        if after.is_some() {
            found.truncate(limit);
            found.reverse();
        } else {
            found.reverse();
            found.truncate(limit);
        }
        Ok(Answer::ok(json!(found.into_iter().map(|id| self.seen(id)).collect::<Vec<_>>())))
    }

    fn edit(&mut self, id: MessageId, form: &Form) -> Outcome {
        check(&form.body, EDIT)?;
        let message = self.messages[&id].clone();
        if message.author != self.bot {
            return self.edit_flags_of_another(&message, &form.body);
        }
        if form.body.get("content").is_some() {
            self.check_mentions("an edit", &form.body);
        }
        self.check_may_send(message.channel)?;
        let limit = self.upload_limit(message.channel);
        self.rewrite(id, form, limit)?;
        Ok(Answer::ok(self.message_json(&self.messages[&id])))
    }

    /// Changes a message of the bot as a form says, and tells of it.
    pub(super) fn rewrite(&mut self, id: MessageId, form: &Form, most_bytes: u64) -> Result<(), Answer> {
        let body = &form.body;
        let files = self.take_files(form, most_bytes)?;
        let mut message = self.messages[&id].clone();
        if let Some(content) = body.get("content") {
            message.content = content.as_str().unwrap_or_default().to_owned();
        }
        if body.get("embeds").is_some() {
            message.embeds = list(body, "embeds");
        }
        if body.get("components").is_some() {
            message.components = json!(list(body, "components"));
        }
        if let Some(flags) = body["flags"].as_u64() {
            message.flags = (message.flags & !SUPPRESS_EMBEDS) | (flags & SUPPRESS_EMBEDS);
        }
        if body["attachments"].is_array() {
            let kept = list(body, "attachments");
            message.attachments.retain(|file| kept.iter().any(|entry| entry["id"] == json!(file.id)));
        }
        message.attachments.extend(files);
        let whole = json!({
            "content": message.content, "embeds": message.embeds, "components": message.components,
        });
        self.check_content(&whole, &message.attachments)?;
        message.flags &= !LOADING;
        message.edits.push((Instant::now(), message.content.clone()));
        self.messages.insert(id, message);
        self.tell_message("MESSAGE_UPDATE", id);
        Ok(())
    }

    /// Of another's message only the embeds can be suppressed.
    fn edit_flags_of_another(&mut self, message: &Message, body: &Value) -> Outcome {
        let only_flags = body.as_object().is_some_and(|body| body.keys().all(|name| name == "flags"));
        let Some(flags) = body["flags"].as_u64().filter(|_| only_flags) else {
            return Err(Answer::refusal(403, 50005, "Cannot edit a message authored by another user"));
        };
        self.need(message.channel, Permissions::MANAGE_MESSAGES)?;
        if (flags ^ message.flags) & !SUPPRESS_EMBEDS != 0 {
            self.violate(format!("the edit of {} would change more than whether embeds show", message.id));
        }
        let edited = self.messages.get_mut(&message.id).unwrap();
        edited.flags = (edited.flags & !SUPPRESS_EMBEDS) | (flags & SUPPRESS_EMBEDS);
        if edited.is_suppressed() {
            edited.embeds.clear();
        }
        self.tell_message("MESSAGE_UPDATE", message.id);
        Ok(Answer::ok(self.seen(message.id)))
    }

    /// Deletes a message, and tells of it.
    pub(super) fn delete(&mut self, id: MessageId) {
        let message = self.messages.get_mut(&id).unwrap();
        message.gone = Some(Instant::now());
        let (channel, hidden) = (message.channel, message.is_ephemeral());
        let guild = self.channels[&channel].guild;
        let mut data = json!({"id": id, "channel_id": channel});
        if let Some(guild) = guild {
            data["guild_id"] = json!(guild);
        }
        if !hidden {
            let needs = messages_of(guild);
            self.dispatch(&Event { name: "MESSAGE_DELETE", guild, channel: Some(channel), needs, data });
        }
    }

    /// Deletes messages together, and tells of it once.
    pub(super) fn delete_together(&mut self, channel: ChannelId, ids: &[MessageId]) {
        for id in ids {
            self.messages.get_mut(id).unwrap().gone = Some(Instant::now());
        }
        let guild = self.channels[&channel].guild;
        let data = json!({"ids": ids, "channel_id": channel, "guild_id": guild});
        let needs = messages_of(guild);
        self.dispatch(&Event { name: "MESSAGE_DELETE_BULK", guild, channel: Some(channel), needs, data });
    }

    fn bulk_delete(&mut self, channel: ChannelId, form: &Form) -> Outcome {
        check(&form.body, BULK)?;
        self.need(channel, Permissions::MANAGE_MESSAGES)?;
        let ids: BTreeSet<MessageId> =
            list(&form.body, "messages").iter().filter_map(|id| MessageId::read(id.as_str()?)).collect();
        if ids.len() < 2 {
            return Err(Answer::refusal(400, 50016, "Provided too few or too many messages to delete."));
        }
        let youngest = self.snowflake() >> 22;
        let age = |id: &MessageId| Duration::from_millis(youngest - (id.get() >> 22));
        if ids.iter().any(|id| age(id) > BULK_AGE) {
            return Err(Answer::refusal(
                400,
                50034,
                "You can only bulk delete messages that are under 14 days old.",
            ));
        }
        let here = |id: &MessageId| {
            self.messages.get(id).is_some_and(|message| message.channel == channel && message.gone.is_none())
        };
        let ids: Vec<MessageId> = ids.into_iter().filter(here).collect();
        self.delete_together(channel, &ids);
        Ok(Answer::empty())
    }

    fn react(&mut self, method: &str, id: MessageId, emoji: &str, who: &str) -> Outcome {
        let message = &self.messages[&id];
        let channel = message.channel;
        let known = message.reactions.iter().any(|(used, _)| used == emoji);
        let user = match who {
            "@me" => self.bot,
            _ => {
                self.need(channel, Permissions::MANAGE_MESSAGES)?;
                let user = self.users.keys().find(|user| user.to_string() == who).copied();
                user.ok_or_else(|| Answer::refusal(404, 10013, "Unknown User"))?
            }
        };
        let name = match (method, who) {
            ("PUT", "@me") => {
                if emoji.is_ascii() && !emoji.contains(':') {
                    return Err(Answer::refusal(400, 10014, "Unknown Emoji"));
                }
                self.need(channel, Permissions::READ_MESSAGE_HISTORY)?;
                if !known {
                    self.need(channel, Permissions::ADD_REACTIONS)?;
                }
                "MESSAGE_REACTION_ADD"
            }
            ("DELETE", _) => "MESSAGE_REACTION_REMOVE",
            _ => return Err(Answer::refusal(405, 0, "405: Method Not Allowed")),
        };
        let reactions = &mut self.messages.get_mut(&id).unwrap().reactions;
        if name == "MESSAGE_REACTION_ADD" {
            if !known {
                reactions.push((emoji.to_owned(), Vec::new()));
            }
            let users = reactions.iter_mut().find(|(used, _)| used == emoji).map(|(_, users)| users);
            users.into_iter().filter(|users| !users.contains(&user)).for_each(|users| users.push(user));
        } else {
            for (_, users) in reactions.iter_mut().filter(|(used, _)| used == emoji) {
                users.retain(|used| *used != user);
            }
            reactions.retain(|(_, users)| !users.is_empty());
        }
        let guild = self.channels[&channel].guild;
        let needs = GatewayIntents::GUILD_MESSAGE_REACTIONS | GatewayIntents::DIRECT_MESSAGE_REACTIONS;
        let data = json!({
            "user_id": user, "channel_id": channel, "message_id": id, "guild_id": guild,
            "emoji": emoji_json(emoji), "burst": false, "type": 0,
        });
        self.dispatch(&Event { name, guild, channel: Some(channel), needs, data });
        Ok(Answer::empty())
    }

    /// Opens the channel for direct messages with somebody.
    pub(super) fn open_dm(&mut self, form: &Form) -> Outcome {
        check(&form.body, RECIPIENT)?;
        let user = self.users.keys().find(|user| json!(user) == form.body["recipient_id"]).copied();
        let Some(user) = user.filter(|user| *user != self.bot) else {
            return Err(Answer::refusal(400, 50033, "Invalid Recipient(s)"));
        };
        let channel = self.dm(user);
        Ok(Answer::ok(self.channel_json(channel)))
    }

    pub(super) fn get_user(&self, user: &str) -> Outcome {
        let user = self.users.keys().find(|known| known.to_string() == user);
        user.map(|user| Answer::ok(self.user_json(*user)))
            .ok_or_else(|| Answer::refusal(404, 10013, "Unknown User"))
    }

    /// What is below `/guilds/{guild}`.
    pub(super) fn get_guild(&self, guild: &str, below: &[&str]) -> Outcome {
        let guild = GuildId::read(guild).filter(|guild| self.guilds.contains_key(guild));
        let guild = guild.ok_or_else(|| Answer::refusal(404, 10004, "Unknown Guild"))?;
        if !self.guilds[&guild].spec.bot_is_member {
            return Err(Answer::missing_access());
        }
        match below {
            [] => Ok(Answer::ok(self.guild_json(guild))),
            ["roles"] => Ok(Answer::ok(self.roles_json(guild))),
            ["channels"] => {
                let channels = self.channels_of(guild, false);
                Ok(Answer::ok(json!(channels.keys().map(|id| self.channel_json(*id)).collect::<Vec<_>>())))
            }
            ["members", user] => {
                let user = self.users.keys().find(|known| known.to_string() == *user);
                let user = *user.ok_or_else(|| Answer::refusal(404, 10007, "Unknown Member"))?;
                let mut member = self.member_json(guild, user);
                member["user"] = self.user_json(user);
                Ok(Answer::ok(member))
            }
            _ => Err(Answer::refusal(404, 0, "404: Not Found")),
        }
    }
}

/// The intents for messages there.
pub(super) fn messages_of(guild: Option<GuildId>) -> GatewayIntents {
    if guild.is_some() { GatewayIntents::GUILD_MESSAGES } else { GatewayIntents::DIRECT_MESSAGES }
}
