//! Answers to interactions: the first one within three seconds, the others within a quarter of an hour.

use std::time::Duration;

use serde_json::{Value, json};
use serenity::model::id::{InteractionId, MessageId};

use super::answer::{Answer, Outcome};
use super::calls::{Call, Id};
use super::form::Form;
use super::messages::blank;
use super::outgoing::list;
use super::schema::{CALLBACK, EDIT, FOLLOW_UP, check};
use super::state::{EPHEMERAL, LOADING, Message, SUPPRESS_EMBEDS, State};

/// How long the first answer may take.
const FIRST_ANSWER: Duration = Duration::from_secs(3);
/// How long the token of an interaction lives.
const TOKEN: Duration = Duration::from_secs(15 * 60);
/// How many more messages an app may send that only its user has.
const USER_FOLLOW_UPS: usize = 5;

/// The types of the first answer.
const MESSAGE: u64 = 4;
const DEFERRED_MESSAGE: u64 = 5;
const DEFERRED_UPDATE: u64 = 6;
const UPDATE: u64 = 7;
const AUTOCOMPLETE: u64 = 8;
const MODAL: u64 = 9;

impl State {
    /// `POST /interactions/{interaction}/{token}/callback`
    pub(super) fn callback(&mut self, call: &Call, id: &str, token: &str, form: &Form) -> Outcome {
        let unknown = || Answer::refusal(404, 10062, "Unknown interaction");
        let found =
            InteractionId::read(id).and_then(|id| self.interactions.get(&id)).filter(|it| it.token == token);
        let interaction = found.ok_or_else(unknown)?.clone();
        if interaction.response.is_some() {
            return Err(Answer::refusal(400, 40060, "Interaction has already been acknowledged."));
        }
        if self.now > interaction.made + FIRST_ANSWER {
            return Err(unknown());
        }
        check(&form.body, CALLBACK)?;
        let data = &form.body["data"];
        let kind = form.body["type"].as_u64().unwrap_or_default();
        // What is asked of a message is asked of its data here.
        let message = Form { body: data.clone(), files: form.files.clone(), length: form.length };
        let original = match (kind, interaction.pressed) {
            (MESSAGE, _) => {
                self.check_mentions("the answer to an interaction", data);
                Some(self.answer_message(interaction.id, &message)?)
            }
            (DEFERRED_MESSAGE, _) => {
                let id = MessageId::new(self.snowflake());
                let flags = LOADING | (data["flags"].as_u64().unwrap_or_default() & EPHEMERAL);
                let announced = Message {
                    flags,
                    kind: 20,
                    interaction: Some(interaction.id),
                    ..blank(id, interaction.channel, self.bot)
                };
                self.messages.insert(id, announced);
                self.tell_message("MESSAGE_CREATE", id);
                Some(id)
            }
            (DEFERRED_UPDATE, Some(pressed)) => Some(pressed),
            (UPDATE, Some(pressed)) => {
                self.check_mentions("the update of a message", data);
                self.rewrite(pressed, &message, interaction.upload_limit)?;
                Some(pressed)
            }
            (AUTOCOMPLETE | MODAL, _) => None,
            _ => return Err(Answer::form("type", "BASE_TYPE_CHOICES", "This cannot be answered so.")),
        };
        let interaction = self.interactions.get_mut(&interaction.id).unwrap();
        interaction.response = Some((kind, data.clone()));
        interaction.answered_after = Some(interaction.at.elapsed());
        interaction.original = original;
        if call.query.get("with_response").is_none_or(|with| with != "true") {
            return Ok(Answer::empty());
        }
        let told = original.map(|id| self.message_json(&self.messages[&id]));
        let resource = json!({"type": kind, "message": told});
        Ok(Answer::ok(json!({"interaction": {"id": id, "type": 2}, "resource": resource})))
    }

    /// A new message that answers an interaction.
    fn answer_message(&mut self, interaction: InteractionId, form: &Form) -> Result<MessageId, Answer> {
        let (channel, limit) = {
            let interaction = &self.interactions[&interaction];
            (interaction.channel, interaction.upload_limit)
        };
        let body = &form.body;
        let attachments = self.take_files(form, limit)?;
        self.check_content(body, &attachments)?;
        let id = MessageId::new(self.snowflake());
        let message = Message {
            content: body["content"].as_str().unwrap_or_default().to_owned(),
            embeds: list(body, "embeds"),
            components: json!(list(body, "components")),
            flags: body["flags"].as_u64().unwrap_or_default() & (SUPPRESS_EMBEDS | EPHEMERAL),
            attachments,
            kind: 20,
            interaction: Some(interaction),
            ..blank(id, channel, self.bot)
        };
        self.messages.insert(id, message);
        self.tell_message("MESSAGE_CREATE", id);
        Ok(id)
    }

    /// What is below `/webhooks/{application}/{token}`.
    pub(super) fn webhook_route(
        &mut self,
        method: &str,
        token: &str,
        below: &[&str],
        form: &Form,
    ) -> Outcome {
        let found = self.interactions.values().find(|interaction| interaction.token == token).cloned();
        let unknown = || Answer::refusal(404, 10015, "Unknown Webhook");
        let interaction = found.ok_or_else(unknown)?;
        if self.now > interaction.made + TOKEN {
            return Err(Answer::refusal(401, 50027, "Invalid Webhook Token"));
        }
        if interaction.response.is_none() {
            return Err(unknown());
        }
        let id = match below {
            [] if method == "POST" => return self.follow_up(interaction.id, form),
            ["messages", "@original"] => interaction.original,
            ["messages", id] => MessageId::read(id)
                .filter(|id| self.messages.get(id).is_some_and(|it| it.interaction == Some(interaction.id))),
            _ => return Err(Answer::refusal(404, 0, "404: Not Found")),
        };
        let id = id.filter(|id| self.messages[id].gone.is_none()).ok_or_else(Answer::unknown_message)?;
        match method {
            "GET" => Ok(Answer::ok(self.message_json(&self.messages[&id]))),
            "PATCH" => {
                check(&form.body, EDIT)?;
                if form.body.get("content").is_some() {
                    self.check_mentions("the edit of an answer", &form.body);
                }
                self.rewrite(id, form, interaction.upload_limit)?;
                Ok(Answer::ok(self.message_json(&self.messages[&id])))
            }
            "DELETE" => {
                self.delete(id);
                Ok(Answer::empty())
            }
            _ => Err(Answer::refusal(405, 0, "405: Method Not Allowed")),
        }
    }

    fn follow_up(&mut self, id: InteractionId, form: &Form) -> Outcome {
        check(&form.body, FOLLOW_UP)?;
        self.check_mentions("a message after the answer", &form.body);
        let interaction = self.interactions[&id].clone();
        if interaction.user_only && interaction.follow_ups.len() >= USER_FOLLOW_UPS {
            let message = "Maximum number of follow-up messages for this interaction reached";
            return Err(Answer::refusal(400, 40094, message));
        }
        // The first one takes the place of the answer that was announced.
        let announced = interaction.original.filter(|id| {
            let message = &self.messages[id];
            message.flags & LOADING != 0 && message.gone.is_none()
        });
        let message = match announced {
            Some(announced) => {
                let body = without_flags(&form.body);
                let form = Form { body, files: form.files.clone(), length: form.length };
                self.rewrite(announced, &form, interaction.upload_limit)?;
                announced
            }
            None => self.answer_message(id, form)?,
        };
        self.interactions.get_mut(&id).unwrap().follow_ups.push(message);
        Ok(Answer::ok(self.message_json(&self.messages[&message])))
    }
}

/// The body without flags: those of an announced answer stay.
fn without_flags(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("flags");
    }
    body
}
