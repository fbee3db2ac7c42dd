//! The calls that are made, beside that which sends a message.
//!
//! Each can be repeated without harm, and is, when it fails on the way: what was deleted is deleted, an edit gives the
//! same text, and a second answer to an interaction is refused as one.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use serenity::model::channel::Message;

use super::attempt::Call;
use super::refused::Refused;
use super::{ANSWERING, MORE_TRIES, Rest};
use crate::domain::{ChannelId, MessageId, UserId};
use crate::http::{CallBody, Verb};

/// Discord's number for an interaction that was answered before.
const ANSWERED: u32 = 40_060;

/// How long one try to answer an interaction may take: Discord waits three seconds for the first answer.
const ACKNOWLEDGING: Duration = Duration::from_secs(2);

/// An interaction: its number, and the token that lets one answer it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interaction<'a> {
    pub(crate) id: u64,
    pub(crate) token: &'a str,
}

impl Rest {
    /// A message as it stands there.
    pub(crate) async fn message(&self, channel: ChannelId, message: MessageId) -> Result<Message, Refused> {
        let path = format!("/channels/{channel}/messages/{message}");
        let route = format!("GET /channels/{channel}/messages/*");
        self.ask(Verb::Get, &path, None, &route, None, parse).await
    }

    /// At most `most` messages that came after another, in no order that matters.
    pub(crate) async fn messages_after(
        &self,
        channel: ChannelId,
        after: MessageId,
        most: u8,
    ) -> Result<Vec<Message>, Refused> {
        let path = format!("/channels/{channel}/messages");
        let query = format!("after={after}&limit={most}");
        self.ask(Verb::Get, &path, Some(&query), &format!("GET {path}"), None, parse).await
    }

    /// Changes a message. `edit` must hold whom it may mention, if it has words.
    pub(crate) async fn edit(
        &self,
        channel: ChannelId,
        message: MessageId,
        edit: &Value,
    ) -> Result<(), Refused> {
        let path = format!("/channels/{channel}/messages/{message}");
        let route = format!("PATCH /channels/{channel}/messages/*");
        self.ask(Verb::Patch, &path, None, &route, Some(edit), done).await
    }

    /// Deletes a message of the bot.
    pub(crate) async fn delete(&self, channel: ChannelId, message: MessageId) -> Result<(), Refused> {
        let path = format!("/channels/{channel}/messages/{message}");
        let route = format!("DELETE /channels/{channel}/messages/*");
        self.ask(Verb::Delete, &path, None, &route, None, done).await
    }

    /// Shows the bot typing for some seconds.
    pub(crate) async fn typing(&self, channel: ChannelId) -> Result<(), Refused> {
        let path = format!("/channels/{channel}/typing");
        self.ask(Verb::Post, &path, None, &format!("POST {path}"), None, done).await
    }

    /// The channel for direct messages with somebody.
    pub(crate) async fn direct(&self, user: UserId) -> Result<ChannelId, Refused> {
        #[derive(Deserialize)]
        struct Channel {
            id: ChannelId,
        }
        let path = "/users/@me/channels";
        let wish = json!({"recipient_id": user.to_string()});
        let channel: Channel = self.ask(Verb::Post, path, None, path, Some(&wish), parse).await?;
        Ok(channel.id)
    }

    /// Registers all commands of an application, instead of those that are there.
    pub(crate) async fn register(&self, application: u64, commands: &Value) -> Result<(), Refused> {
        let path = format!("/applications/{application}/commands");
        self.ask(Verb::Put, &path, None, &path, Some(commands), done).await
    }

    /// Answers an interaction for the first time.
    pub(crate) async fn respond(&self, to: Interaction<'_>, answer: &Value) -> Result<(), Refused> {
        let path = format!("/interactions/{}/{}/callback", to.id, to.token);
        // Tokens are kept nowhere, not even in the names of limits.
        let route = format!("POST /interactions/{}", to.id);
        let call = Call { verb: Verb::Post, path: &path, query: None, route: &route, timeout: ACKNOWLEDGING };
        match self.ask_so(call, Some(answer), done).await {
            // The answer to an earlier try was lost.
            Err(Refused::Other { code: Some(ANSWERED), .. }) => Ok(()),
            other => other,
        }
    }

    /// Changes the first answer to an interaction.
    pub(crate) async fn edit_response(
        &self,
        application: u64,
        to: Interaction<'_>,
        edit: &Value,
    ) -> Result<(), Refused> {
        let path = format!("/webhooks/{application}/{}/messages/@original", to.token);
        let route = format!("PATCH /webhooks/{}", to.id);
        self.ask(Verb::Patch, &path, None, &route, Some(edit), done).await
    }

    async fn ask<T>(
        &self,
        verb: Verb,
        path: &str,
        query: Option<&str>,
        route: &str,
        json: Option<&Value>,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<T, Refused> {
        self.ask_so(Call { verb, path, query, route, timeout: self.0.timeout.min(ANSWERING) }, json, read)
            .await
    }

    async fn ask_so<T>(
        &self,
        call: Call<'_>,
        json: Option<&Value>,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<T, Refused> {
        let json = json.map(|json| Bytes::from(json.to_string()));
        let body = || {
            let body = json.clone().map_or(CallBody::Nothing, CallBody::Json);
            async move { Ok(body) }
        };
        self.repeat(call, MORE_TRIES, body, read).await
    }
}

fn parse<T: DeserializeOwned>(answer: &[u8]) -> Option<T> {
    serde_json::from_slice(answer)
        .inspect_err(|error| tracing::warn!(%error, "an answer of Discord cannot be read"))
        .ok()
}

/// What is done is done, whatever the answer says.
const fn done(_: &[u8]) -> Option<()> {
    Some(())
}
