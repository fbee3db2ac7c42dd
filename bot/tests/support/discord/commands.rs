//! The commands of the application, and how they are registered.

use std::collections::HashSet;

use serde_json::{Value, json};
use serenity::model::id::GuildId;

use super::answer::{Answer, Outcome};
use super::calls::Id;
use super::form::Form;
use super::outgoing::list;
use super::schema::{COMMAND, OPTION, check};
use super::shape::merge;
use super::state::State;

impl State {
    /// What is below `/applications/{application}`.
    pub(super) fn commands_route(&mut self, method: &str, below: &[&str], form: &Form) -> Outcome {
        let (guild, below) = match below {
            ["guilds", guild, below @ ..] => (Some(self.known_guild(guild)?), below),
            below => (None, below),
        };
        match (method, below) {
            ("GET", ["commands"]) => Ok(Answer::ok(json!(self.commands_of(guild)))),
            ("PUT", ["commands"]) => {
                let Value::Array(wanted) = &form.body else {
                    return Err(Answer::form("", "LIST_TYPE_CONVERT", "Only iterables may be used here."));
                };
                let mut seen = HashSet::new();
                for command in wanted {
                    check_command(command)?;
                    if !seen.insert((kind_of(command), command["name"].to_string())) {
                        let message = "Application command names must be unique";
                        return Err(Answer::form("", "APPLICATION_COMMANDS_DUPLICATE_NAME", message));
                    }
                }
                self.registrations += 1;
                let made: Vec<Value> = wanted.iter().map(|command| self.made(guild, command)).collect();
                *self.commands_of(guild) = made.clone();
                Ok(Answer::ok(json!(made)))
            }
            ("POST", ["commands"]) => {
                check_command(&form.body)?;
                self.registrations += 1;
                let made = self.made(guild, &form.body);
                let commands = self.commands_of(guild);
                commands.retain(|known| !is_same(known, &made));
                commands.push(made.clone());
                Ok(Answer::ok(made))
            }
            ("DELETE", ["commands", id]) => {
                let commands = self.commands_of(guild);
                let before = commands.len();
                commands.retain(|known| known["id"] != **id);
                if commands.len() == before {
                    return Err(Answer::refusal(404, 10063, "Unknown application command"));
                }
                Ok(Answer::empty())
            }
            _ => Err(Answer::refusal(404, 0, "404: Not Found")),
        }
    }

    fn known_guild(&self, guild: &str) -> Result<GuildId, Answer> {
        let guild = GuildId::read(guild).filter(|guild| self.guilds.contains_key(guild));
        guild.ok_or_else(Answer::missing_access)
    }

    fn commands_of(&mut self, guild: Option<GuildId>) -> &mut Vec<Value> {
        match guild {
            Some(guild) => self.guild_commands.entry(guild).or_default(),
            None => &mut self.commands,
        }
    }

    /// A command as it is after registering: one that was there keeps its id.
    fn made(&mut self, guild: Option<GuildId>, wanted: &Value) -> Value {
        let known = self.commands_of(guild).iter().find(|known| is_same(known, wanted));
        let id = known.map_or(Value::Null, |known| known["id"].clone());
        let id = if id.is_null() { json!(self.snowflake().to_string()) } else { id };
        let mut made = json!({
            "type": 1,
            "description": "",
            "options": [],
            "default_member_permissions": null,
            "nsfw": false,
            "integration_types": [0],
            "contexts": null,
        });
        merge(&mut made, wanted.clone());
        let more = json!({
            "id": id,
            "application_id": self.application,
            "version": self.snowflake().to_string(),
        });
        merge(&mut made, more);
        if let Some(guild) = guild {
            made["guild_id"] = json!(guild);
        }
        made
    }

    /// The command that somebody uses in a guild, or anywhere.
    ///
    /// # Panics
    ///
    /// When the bot has registered none like it.
    pub(super) fn command_named(&self, guild: Option<GuildId>, kind: u64, name: &str) -> &Value {
        let own = guild.and_then(|guild| self.guild_commands.get(&guild)).into_iter().flatten();
        let mut all = own.chain(&self.commands);
        let found = all.find(|command| kind_of(command) == kind && command["name"] == name);
        found.unwrap_or_else(|| panic!("no command {name:?} of type {kind} is registered"))
    }
}

fn kind_of(command: &Value) -> u64 {
    command["type"].as_u64().unwrap_or(1)
}

fn is_same(one: &Value, other: &Value) -> bool {
    kind_of(one) == kind_of(other) && one["name"] == other["name"]
}

/// Whether a command is one.
fn check_command(command: &Value) -> Result<(), Answer> {
    check(command, COMMAND)?;
    let name = command["name"].as_str().unwrap_or_default();
    let description = command["description"].as_str().unwrap_or_default();
    let is_typed = kind_of(command) == 1;
    if name.is_empty() || (is_typed && !is_plain(name)) {
        return Err(Answer::form("name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid"));
    }
    if is_typed == description.is_empty() {
        let message = "A typed command needs a description, one of a menu must not have one.";
        return Err(Answer::form("description", "BASE_TYPE_REQUIRED", message));
    }
    if !is_typed && !list(command, "options").is_empty() {
        return Err(Answer::form("options", "APPLICATION_COMMAND_OPTIONS_NOT_ALLOWED", "No options here"));
    }
    check_options(command, 0)
}

fn check_options(of: &Value, depth: usize) -> Result<(), Answer> {
    let mut optional_seen = false;
    for option in list(of, "options") {
        check(&option, OPTION)?;
        let (name, kind) = (option["name"].as_str().unwrap_or_default(), option["type"].as_u64());
        let description = option["description"].as_str().unwrap_or_default();
        if !is_plain(name) || description.is_empty() || !(1..=11).contains(&kind.unwrap_or_default()) {
            let message = "An option has a type, a plain name and a description.";
            return Err(Answer::form("options", "APPLICATION_COMMAND_INVALID_OPTION", message));
        }
        let required = option["required"] == true;
        if required && optional_seen {
            let message = "Required options must be placed before non-required options";
            return Err(Answer::form("options", "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", message));
        }
        optional_seen |= !required;
        if depth < 2 {
            check_options(&option, depth + 1)?;
        }
    }
    Ok(())
}

fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    (1..=32).contains(&name.len()) && name.chars().all(plain)
}
