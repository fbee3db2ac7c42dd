//! How things look on the wire.

use serde_json::{Value, json};
use serenity::model::Permissions;
use serenity::model::id::{ChannelId, GuildId, MessageId, UserId};

use super::rights::MODERATOR;
use super::state::{File, Message, State};
use super::world::{Kind, Whose};

impl State {
    pub(super) fn user_json(&self, user: UserId) -> Value {
        let known = &self.users[&user];
        json!({
            "id": user,
            "username": known.name,
            "discriminator": if known.bot { "4242" } else { "0" },
            "global_name": if known.bot { Value::Null } else { json!(known.name) },
            "avatar": null,
            "bot": known.bot,
            "public_flags": 0,
            "flags": 0,
        })
    }

    /// A member without the user, as events of messages have it.
    pub(super) fn member_json(&self, guild: GuildId, user: UserId) -> Value {
        let place = &self.guilds[&guild];
        let roles = if user == self.bot {
            vec![place.bot_role]
        } else if place.moderators.contains(&user) {
            vec![place.moderator_role]
        } else {
            Vec::new()
        };
        json!({
            "roles": roles,
            "nick": null,
            "avatar": null,
            "joined_at": "2026-01-01T00:00:00+00:00",
            "premium_since": null,
            "deaf": false,
            "mute": false,
            "pending": false,
            "flags": 0,
            "communication_disabled_until": null,
        })
    }

    fn role_json(id: &Value, name: &str, permissions: Permissions, tags: Option<Value>) -> Value {
        let mut role = json!({
            "id": id,
            "name": name,
            "color": 0,
            "colors": {"primary_color": 0, "secondary_color": null, "tertiary_color": null},
            "hoist": false,
            "icon": null,
            "unicode_emoji": null,
            "position": if tags.is_some() { 1 } else { 0 },
            "permissions": permissions.bits().to_string(),
            "managed": tags.is_some(),
            "mentionable": false,
            "flags": 0,
        });
        if let Some(tags) = tags {
            role["tags"] = tags;
        }
        role
    }

    pub(super) fn bot_role_json(&self, guild: GuildId) -> Value {
        let place = &self.guilds[&guild];
        let tags = json!({"bot_id": self.bot});
        Self::role_json(&json!(place.bot_role), "azalea", place.spec.bot_permissions, Some(tags))
    }

    pub(super) fn roles_json(&self, guild: GuildId) -> Value {
        let place = &self.guilds[&guild];
        json!([
            Self::role_json(&json!(guild), "@everyone", place.spec.everyone, None),
            self.bot_role_json(guild),
            Self::role_json(&json!(place.moderator_role), "moderators", MODERATOR, None),
        ])
    }

    /// A guild as REST gives it.
    pub(super) fn guild_json(&self, guild: GuildId) -> Value {
        let place = &self.guilds[&guild];
        json!({
            "id": guild,
            "name": place.spec.name,
            "icon": null,
            "splash": null,
            "discovery_splash": null,
            "owner_id": place.owner,
            "afk_channel_id": null,
            "afk_timeout": 300,
            "verification_level": 0,
            "default_message_notifications": 1,
            "explicit_content_filter": 0,
            "roles": self.roles_json(guild),
            "emojis": [],
            "features": [],
            "mfa_level": 0,
            "application_id": null,
            "system_channel_id": null,
            "system_channel_flags": 0,
            "rules_channel_id": null,
            "vanity_url_code": null,
            "description": null,
            "banner": null,
            "premium_tier": place.spec.premium_tier,
            "premium_subscription_count": 0,
            "preferred_locale": "en-US",
            "public_updates_channel_id": null,
            "nsfw_level": place.spec.nsfw_level,
            "stickers": [],
            "premium_progress_bar_enabled": false,
            "safety_alerts_channel_id": null,
        })
    }

    /// A guild as the gateway tells it.
    pub(super) fn guild_create_json(&self, guild: GuildId) -> Value {
        let mut told = self.guild_json(guild);
        let all = |threads| -> Vec<Value> {
            let channels = self.channels_of(guild, threads);
            let live = channels.iter().filter(|(id, channel)| {
                let archived = matches!(channel.spec.kind, Kind::PublicThread { archived: true, .. });
                !archived && (!threads || self.sees(**id))
            });
            live.map(|(id, _)| self.channel_json(*id)).collect()
        };
        let mut member = self.member_json(guild, self.bot);
        member["user"] = self.user_json(self.bot);
        let more = json!({
            "joined_at": "2026-01-01T00:00:00+00:00",
            "large": false,
            "unavailable": false,
            "member_count": self.users.len(),
            "voice_states": [],
            "members": [member],
            "channels": all(false),
            "threads": all(true),
            "presences": [],
            "stage_instances": [],
            "guild_scheduled_events": [],
            "soundboard_sounds": [],
        });
        merge(&mut told, more);
        told
    }

    pub(super) fn channel_json(&self, channel: ChannelId) -> Value {
        let place = &self.channels[&channel];
        let last = self.messages(channel).last().map(|message| message.id);
        let mut told = json!({
            "id": channel,
            "type": place.spec.kind.number(),
            "flags": 0,
            "last_message_id": last,
        });
        let Some(guild) = place.guild else {
            let recipients: Vec<Value> = place.recipient.iter().map(|user| self.user_json(*user)).collect();
            told["recipients"] = json!(recipients);
            return told;
        };
        told["guild_id"] = json!(guild);
        told["name"] = json!(place.spec.name);
        if let Kind::PublicThread { parent, archived, locked } = place.spec.kind {
            // A thread has no word on age; its parent has.
            let more = json!({
                "parent_id": parent,
                "owner_id": self.guilds[&guild].owner,
                "message_count": 0,
                "member_count": 1,
                "rate_limit_per_user": 0,
                "total_message_sent": 0,
                "thread_metadata": {
                    "archived": archived,
                    "locked": locked,
                    "auto_archive_duration": 1440,
                    "archive_timestamp": "2026-01-01T00:00:00+00:00",
                    "create_timestamp": "2026-01-01T00:00:00+00:00",
                },
            });
            merge(&mut told, more);
            return told;
        }
        let bot_role = self.guilds[&guild].bot_role;
        let overwrite = |overwrite: &super::world::Overwrite| {
            let (id, kind) = match overwrite.whose {
                Whose::Everyone => (json!(guild), 0),
                Whose::BotRole => (json!(bot_role), 0),
                Whose::Role(role) => (json!(role), 0),
                Whose::Member(user) => (json!(user), 1),
            };
            let (allow, deny) = (overwrite.allow.bits().to_string(), overwrite.deny.bits().to_string());
            json!({"id": id, "type": kind, "allow": allow, "deny": deny})
        };
        let more = json!({
            "parent_id": null,
            "position": 0,
            "topic": null,
            "nsfw": place.spec.nsfw,
            "rate_limit_per_user": 0,
            "permission_overwrites": place.spec.overwrites.iter().map(overwrite).collect::<Vec<_>>(),
        });
        merge(&mut told, more);
        told
    }

    /// A message with everything in it, as REST gives it to those who may see all.
    pub(super) fn message_json(&self, message: &Message) -> Value {
        let (mut users, roles) = self.mentions(&message.content);
        // A person's reply mentions the other author, except under the answer to an interaction.
        let replied =
            message.reference.filter(|_| message.author != self.bot).and_then(|id| self.messages.get(&id));
        let replied = replied.filter(|message| message.interaction.is_none()).map(|message| message.author);
        users.extend(replied.filter(|author| !users.contains(author)));
        let reaction = |(emoji, users): &(String, Vec<UserId>)| {
            json!({
                "count": users.len(),
                "count_details": {"burst": 0, "normal": users.len()},
                "me": users.contains(&self.bot),
                "me_burst": false,
                "emoji": emoji_json(emoji),
                "burst_colors": [],
            })
        };
        let mut told = json!({
            "id": message.id,
            "channel_id": message.channel,
            "author": self.user_json(message.author),
            "content": message.content,
            "timestamp": message.id.created_at().to_string(),
            "edited_timestamp": (!message.edits.is_empty()).then(|| message.id.created_at().to_string()),
            "tts": false,
            "mention_everyone": false,
            "mentions": users.iter().map(|user| self.user_json(*user)).collect::<Vec<_>>(),
            "mention_roles": roles,
            "attachments": message.attachments.iter().map(|file| file.json(message.channel)).collect::<Vec<_>>(),
            "embeds": message.embeds,
            "pinned": false,
            "type": message.kind,
            "flags": message.flags,
            "components": message.components,
        });
        if !message.reactions.is_empty() {
            told["reactions"] = json!(message.reactions.iter().map(reaction).collect::<Vec<_>>());
        }
        if let Some(nonce) = &message.nonce {
            told["nonce"] = nonce.clone();
        }
        if message.author == self.bot {
            told["application_id"] = json!(self.application);
        }
        if let Some(reference) = message.reference {
            let guild = self.channels[&message.channel].guild;
            told["message_reference"] =
                json!({"type": 0, "message_id": reference, "channel_id": message.channel, "guild_id": guild});
            let there = self.messages.get(&reference).filter(|message| message.gone.is_none());
            // One level deep, as Discord gives it.
            told["referenced_message"] = there.map_or(Value::Null, |message| {
                self.message_json(&Message { reference: None, ..message.clone() })
            });
        }
        told
    }

    /// Takes the content out of a message for those who may not see it: all but the bot's own messages, direct ones, and
    /// those that mention the bot.
    pub(super) fn conceal(&self, told: &mut Value) {
        let bot = json!(self.bot);
        let channel = told["channel_id"].as_str().and_then(|id| id.parse().ok()).map(ChannelId::new);
        let is_direct = channel.is_some_and(|id| self.channels[&id].guild.is_none());
        let mentions =
            told["mentions"].as_array().is_some_and(|users| users.iter().any(|user| user["id"] == bot));
        if told["referenced_message"].is_object() && !self.referenced_has_content {
            self.conceal(&mut told["referenced_message"]);
        }
        if is_direct || mentions || told["author"]["id"] == bot {
            return;
        }
        told["content"] = json!("");
        for list in ["embeds", "attachments", "components"] {
            told[list] = json!([]);
        }
    }

    /// Who is mentioned in a text: people and roles.
    fn mentions(&self, text: &str) -> (Vec<UserId>, Vec<String>) {
        let (mut users, mut roles): (Vec<UserId>, Vec<String>) = (Vec::new(), Vec::new());
        for part in text.split("<@").skip(1) {
            let Some((inner, _)) = part.split_once('>') else { continue };
            if let Some(role) = inner.strip_prefix('&').filter(|role| role.parse::<u64>().is_ok()) {
                roles.push(role.to_owned());
            } else if let Ok(id) = inner.trim_start_matches('!').parse::<u64>() {
                let known = self.users.keys().find(|user| user.get() == id).copied();
                users.extend(known.filter(|user| !users.contains(user)));
            }
        }
        (users, roles)
    }

    pub(super) fn application_json(&self) -> Value {
        // Limited content intent of an application that is in few guilds.
        let flags = if self.content_granted { 1 << 19 } else { 0 };
        json!({
            "id": self.application,
            "name": "azalea",
            "icon": null,
            "description": "",
            "bot_public": true,
            "bot_require_code_grant": false,
            "verify_key": "00",
            "flags": flags,
            "approximate_guild_count": self.guilds.len(),
            "integration_types_config": {"0": {}, "1": {}},
        })
    }

    pub(super) fn guilds_in_short(&self) -> Value {
        let member = self.guilds.iter().filter(|(_, guild)| guild.spec.bot_is_member);
        let short = member.map(|(id, guild)| {
            let permissions = (guild.spec.everyone | guild.spec.bot_permissions).bits().to_string();
            json!({"id": id, "name": guild.spec.name, "icon": null, "owner": false, "permissions": permissions,
                "features": []})
        });
        json!(short.collect::<Vec<_>>())
    }

    /// A message as an event: with guild and member.
    pub(super) fn message_event(&self, message: MessageId) -> Value {
        let message = &self.messages[&message];
        let mut told = self.message_json(message);
        if let Some(guild) = self.channels[&message.channel].guild {
            told["guild_id"] = json!(guild);
            told["member"] = self.member_json(guild, message.author);
        }
        told
    }
}

impl File {
    fn json(&self, channel: ChannelId) -> Value {
        let url = format!("https://cdn.discordapp.com/attachments/{channel}/{}/{}", self.id, self.name);
        let mut told = json!({
            "id": self.id,
            "filename": self.name,
            "size": self.length,
            "url": format!("{url}?ex=0&is=0&hm=0"),
            "proxy_url": url.replace("cdn.discordapp.com", "media.discordapp.net"),
            "flags": if self.spoiler { 1 << 3 } else { 0 },
        });
        if let Some(description) = &self.description {
            told["description"] = json!(description);
        }
        told
    }
}

/// An emoji out of a path: `name:id` or the character itself.
pub(super) fn emoji_json(emoji: &str) -> Value {
    match emoji.split_once(':') {
        Some((name, id)) => json!({"id": id, "name": name}),
        None => json!({"id": null, "name": emoji}),
    }
}

/// Puts the fields of one object into another.
pub(super) fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}
