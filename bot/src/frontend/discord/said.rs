//! What the bot says in words, and the memory of it: when the message that was answered is deleted, the answer goes too.

use std::num::NonZeroU64;
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::dedup::Recent;
use crate::domain::{
    ChannelId, Destination, Disposition, Failure, MessageId, Request, RequestId, Telling, UserId, nonce,
};
use crate::frontend::discord::Discord;
use crate::frontend::discord::post::failure_of;
use crate::frontend::discord::rest::{Outgoing, Refused, Rest};
use crate::frontend::discord::{buttons, caption, knowledge};
use crate::intake::insist;
use crate::store::Shelf;

/// Answers in words that are remembered for one message.
const MOST: usize = 32;
/// Who deletes a message later than this leaves our words behind.
const REMEMBERED: Duration = Duration::from_secs(7 * 86_400);
/// Between two attempts at removing a message.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Attempts at removing a message, which nobody would try again otherwise: over more than a minute.
const TRIES: u32 = 8;

/// What is said, as a part of the messages of a request: each has its own mark, so that none is said twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Word {
    Pointer,
    Failed,
    Limited,
    TurnedAway,
    TooMany,
    Hint,
    /// What the bot lacks there.
    Missing,
    /// That it posts in other channels.
    Elsewhere,
}

impl Word {
    const fn part(self) -> u8 {
        match self {
            Self::Pointer => 240,
            Self::Failed => 241,
            Self::Limited => 242,
            Self::TurnedAway => 243,
            Self::TooMany => 244,
            Self::Hint => 245,
            Self::Missing => 246,
            Self::Elsewhere => 247,
        }
    }
}

impl Word {
    /// Whether it says nothing about a request that was taken: who hears it once a minute knows it.
    const fn is_small_talk(self) -> bool {
        match self {
            Self::Pointer | Self::Failed => false,
            Self::Limited
            | Self::TurnedAway
            | Self::TooMany
            | Self::Hint
            | Self::Missing
            | Self::Elsewhere => true,
        }
    }
}

/// Whom something is said to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    /// What was asked, or the message that asked for nothing.
    pub(super) id: RequestId,
    pub(super) requester: UserId,
    pub(super) destination: Destination,
}

impl From<&Request> for Asker {
    fn from(request: &Request) -> Self {
        Self { id: request.id, requester: request.requester, destination: request.destination }
    }
}

impl Discord {
    /// Says something to the one who asked, where it was asked; in a direct message where the bot may not speak.
    pub(super) async fn say(&self, asker: impl Into<Asker> + Send, word: Word, text: String) -> Telling {
        self.say_with(asker.into(), word, text, Vec::new()).await
    }

    /// Says why there are no media, with a button to try again where that may help.
    pub(super) async fn say_failed(&self, request: &Request, failure: &Failure) -> Telling {
        let (text, buttons) = (caption::failed(request, failure), buttons::again(request, failure));
        self.say_with(request.into(), Word::Failed, text, buttons).await
    }

    async fn say_with(&self, asker: Asker, word: Word, text: String, components: Vec<Value>) -> Telling {
        let destination = &asker.destination;
        if self.withdrawals.contains(asker.id) {
            return Telling::Settled;
        }
        let minute = self.clock.now().as_millis() / 60_000;
        let talk = (destination.channel, asker.requester, word, minute);
        if word.is_small_talk() && !self.talked.insert(talk) {
            return Telling::Settled;
        }
        let rights = self.knowledge.rights(destination.guild, destination.channel);
        if rights.is_some_and(|rights| !rights.may_speak()) {
            return self.whisper(&asker).await;
        }
        let message = Outgoing {
            content: text,
            reply_to: self.answers(destination),
            nonce: Some(nonce(asker.id, destination.channel, destination.reply_to, word.part(), 0)),
            files: Vec::new(),
            components,
            suppress_embeds: true,
        };
        match self.create(destination, message).await {
            Ok(posted) => {
                self.remember(destination, posted.id).await;
                // Taken back in the meantime: whoever did that did not find it.
                if self.withdrawals.contains(asker.id) {
                    self.remove(destination.channel, [posted.id]).await;
                }
                Telling::Settled
            }
            Err(Refused::NoAccess { .. }) => self.whisper(&asker).await,
            Err(refused) => {
                tracing::warn!(request = %asker.id, error = %refused, "somebody could not be told something");
                let told = self.untold(&refused);
                if told != Telling::Settled {
                    self.talked.remove(&talk);
                }
                told
            }
        }
    }

    /// Whether somebody who was not told for this reason can be told later.
    fn untold(&self, refused: &Refused) -> Telling {
        // What is wrong with the words is wrong with them later too.
        if matches!(refused, Refused::Form { .. } | Refused::Other { .. }) {
            return Telling::Settled;
        }
        match failure_of(refused, self.clock.now()).disposition() {
            Disposition::Retry(asked) => Telling::Later(asked),
            Disposition::GiveUp => Telling::Settled,
        }
    }

    /// Says what the bot lacks where it was asked.
    pub(super) async fn say_missing(&self, asker: Asker) {
        let missing = self.knowledge.missing(asker.destination.guild, asker.destination.channel);
        let text = format!("I cannot post here: I lack the permissions {}.", knowledge::names(missing));
        insist(async || self.say(asker, Word::Missing, text.clone()).await).await;
    }

    /// Tells somebody directly what the bot lacks in a channel, once for each channel and person in this process.
    async fn whisper(&self, asker: &Asker) -> Telling {
        let Destination { guild, channel, .. } = asker.destination;
        let whispered = (channel, asker.requester);
        if !self.whispered.insert(whispered) {
            return Telling::Settled;
        }
        let unsaid = Unsaid { whispered: &self.whispered, to: Some(whispered) };
        let missing = self.knowledge.missing(guild, channel);
        let what = if missing.is_empty() {
            "Discord does not let me write".to_owned()
        } else {
            format!("I lack the permissions {}", knowledge::names(missing))
        };
        let text =
            format!("I cannot answer you in <#{channel}>: {what} there. Its moderators can change that.");
        let sent = async {
            let direct = self.rest.direct(asker.requester).await?;
            let message = Outgoing {
                content: text,
                reply_to: None,
                nonce: Some(nonce(asker.id, direct, None, Word::Missing.part(), 0)),
                files: Vec::new(),
                components: Vec::new(),
                suppress_embeds: true,
            };
            self.rest.create(direct, &message).await
        };
        let Err(refused) = sent.await else {
            unsaid.said();
            return Telling::Settled;
        };
        let told = self.untold(&refused);
        if told == Telling::Settled {
            tracing::info!(request = %asker.id, error = %refused, "somebody cannot be answered anywhere");
            unsaid.said();
        }
        told
    }

    /// Removes messages of the bot. One that is gone already is as good.
    pub(super) async fn remove(
        &self,
        channel: ChannelId,
        messages: impl IntoIterator<Item = MessageId> + Send,
    ) {
        for message in messages {
            remove(&self.rest, channel, message).await;
        }
    }

    async fn remember(&self, destination: &Destination, said: MessageId) {
        let Some(answered) = destination.reply_to else { return };
        // Two words to one message at once would otherwise forget each other.
        let _one = self.remembering.lock().await;
        let mut all = self.said(answered).await;
        if all.contains(&said) || all.len() >= MOST {
            return;
        }
        all.push(said);
        let bytes = all.iter().flat_map(|id| id.get().to_le_bytes()).collect();
        self.store.put(Shelf::Discord, key(answered), bytes, self.clock.now().plus(REMEMBERED));
    }

    /// What was said to a message.
    async fn said(&self, answered: MessageId) -> Vec<MessageId> {
        let Some(record) = self.store.get(Shelf::Discord, &key(answered)).await else { return Vec::new() };
        let (numbers, _) = record.value.as_chunks::<8>();
        let numbers = numbers.iter().map(|number| u64::from_le_bytes(*number));
        numbers.filter_map(NonZeroU64::new).map(MessageId::new).take(MOST).collect()
    }

    /// What was said to a message, which is forgotten by this.
    pub(super) async fn take_said(&self, answered: MessageId) -> Vec<MessageId> {
        let said = self.said(answered).await;
        if !said.is_empty() {
            self.store.remove(Shelf::Discord, key(answered));
        }
        said
    }
}

/// Removes a message of the bot, for somebody who does not stay for it; whether it is gone, or will never go.
pub(super) async fn remove(rest: &Rest, channel: ChannelId, message: MessageId) -> bool {
    for attempt in 0..TRIES {
        let pause = PAUSE.saturating_mul(1 << attempt).min(LONGEST_PAUSE * 3);
        match rest.delete(channel, message).await {
            Ok(()) | Err(Refused::UnknownMessage) => return true,
            Err(Refused::Limited { retry_after, .. }) => sleep(retry_after.min(LONGEST_PAUSE)).await,
            Err(Refused::Later { .. } | Refused::Unanswered) => sleep(pause).await,
            Err(refused) => {
                tracing::warn!(%channel, %message, error = %refused, "a message cannot be removed");
                return !matches!(refused, Refused::Paused { .. } | Refused::Unauthorized | Refused::Blocked);
            }
        }
    }
    tracing::warn!(%channel, %message, "a message could not be removed");
    false
}

/// Somebody who is about to be told something directly, and was not yet: dropping it has them told the next time.
struct Unsaid<'a> {
    whispered: &'a Recent<(ChannelId, UserId)>,
    to: Option<(ChannelId, UserId)>,
}

impl Unsaid<'_> {
    fn said(mut self) {
        self.to = None;
    }
}

impl Drop for Unsaid<'_> {
    fn drop(&mut self) {
        if let Some(to) = self.to {
            self.whispered.remove(&to);
        }
    }
}

fn key(answered: MessageId) -> String {
    format!("said/{answered}")
}
