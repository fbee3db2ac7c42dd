//! What is taken away: previews of links that stand there as media now, answers to messages that were deleted, and
//! answers whose button was pressed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use serde_json::json;
use serenity::model::Permissions;
use serenity::model::application::ComponentInteraction;
use tokio::time::sleep;

use crate::domain::{
    ChannelId, Destination, FrontEnd, Link, MAX_LINKS_PER_MESSAGE, MessageId, Options, Request, RequestId,
    UserId,
};
use crate::frontend::discord::Discord;
use crate::frontend::discord::buttons::{self, Button, Deed};
use crate::frontend::discord::ids::{from_channel, from_guild, from_message, from_user};
use crate::frontend::discord::incoming::TURNS;
use crate::frontend::discord::rest::{Interaction, Refused};
use crate::frontend::discord::session::{Desk, Words};
use crate::intake::Outcome;
use crate::queue::JobResult;
use crate::store::Shelf;

/// How long it is remembered that a request was taken back: longer than it lives.
const REMEMBERED: Duration = Duration::from_secs(2 * 86_400);
/// Discord's flag for a message without previews.
const SUPPRESS_EMBEDS: u64 = 1 << 2;
/// Discord's flag for an answer that one person sees.
pub(super) const EPHEMERAL: u64 = 1 << 6;

impl Discord {
    /// Somebody waits there: the bot is seen to be at work.
    pub(super) async fn typing(&self, destination: &Destination) {
        if let Err(refused) = self.rest.typing(destination.channel).await {
            tracing::debug!(error = %refused, "the bot is not seen typing");
        }
    }

    /// Takes the preview of the message away whose media stand there now, if whoever asked wrote it: what others wrote
    /// stays as they want it.
    pub(super) async fn suppress(&self, request: &Request) {
        let destination = &request.destination;
        let Some(message) = destination.reply_to else { return };
        let rights = self.knowledge.rights(destination.guild, destination.channel);
        if destination.guild.is_some() && rights.is_some_and(|rights| rights.may_suppress()) {
            self.cover(destination.channel, message, Some(request.requester)).await;
        }
    }

    /// A message has a preview: it is taken away when the media stand there.
    pub(super) async fn cover_again(&self, channel: ChannelId, message: MessageId) {
        if self.covered.contains(&message) {
            self.cover(channel, message, None).await;
        }
    }

    /// Whether a request was taken back, in this process or an earlier one.
    pub(super) async fn was_withdrawn(&self, request: &Request) -> bool {
        self.is_withdrawn(request) || self.store.get(Shelf::Discord, &key(request.id)).await.is_some()
    }

    /// Takes a request back, also for the next process.
    pub(super) fn withdraw(&self, request: RequestId) {
        self.withdrawals.withdraw(request);
        self.store.put(Shelf::Discord, key(request), Vec::new(), self.clock.now().plus(REMEMBERED));
    }

    /// Whether these messages were posted for this very request: their button says so.
    async fn is_answer_to(&self, channel: ChannelId, messages: &[MessageId], request: RequestId) -> bool {
        let mut pause = PAUSE;
        let mut left = messages.iter().rev();
        let mut next = left.next();
        for _ in 0..TRIES {
            let Some(message) = next else { return false };
            match self.rest.message(channel, *message).await {
                Ok(message) => return buttons::below(&message).any(|button| button.request == request),
                // Somebody removed that one: another part says it too.
                Err(Refused::UnknownMessage) => next = left.next(),
                Err(refused) if may_pass(&refused) => {
                    sleep(pause).await;
                    pause = pause.saturating_mul(2);
                }
                Err(_) => return false,
            }
        }
        false
    }

    async fn cover(&self, channel: ChannelId, message: MessageId, writer: Option<UserId>) {
        // The edit replaces all flags, so those that are there are sent along.
        let Ok(shown) = self.rest.message(channel, message).await else { return };
        if writer.is_some_and(|writer| writer != from_user(shown.author.id)) {
            return;
        }
        // A preview can come after the answer.
        self.covered.insert(message);
        let flags = shown.flags.map_or(0, |flags| flags.bits());
        if flags & SUPPRESS_EMBEDS != 0 {
            return;
        }
        let edit = json!({"flags": flags | SUPPRESS_EMBEDS});
        if let Err(refused) = self.rest.edit(channel, message, &edit).await {
            tracing::debug!(error = %refused, "a preview stays");
        }
    }
}

impl Desk {
    /// A message was deleted: what was asked in it is taken back, and what was answered goes too.
    pub(super) async fn deleted(&self, channel: ChannelId, message: MessageId) {
        let seen = self.discord.seen.contains(&message);
        for ordinal in (0_u8..).take(MAX_LINKS_PER_MESSAGE * buttons::TURNS) {
            let request = RequestId::new(FrontEnd::Discord, message, ordinal);
            let open = self.discord.statuses.request(request);
            // What is asked for again is known while it is under way.
            if open.is_some() || (seen && usize::from(ordinal) < MAX_LINKS_PER_MESSAGE) {
                self.discord.withdraw(request);
            }
            if let Some(request) = open {
                self.discord.end_status(&request).await;
            }
            self.take_back(channel, request, None).await;
        }
        let said = self.discord.take_said(message).await;
        self.discord.remove(channel, said).await;
    }

    /// Removes what was posted for a request. One of its messages has the button that was `pressed`.
    async fn take_back(&self, channel: ChannelId, request: RequestId, pressed: Option<MessageId>) {
        let messages = match self.queue.result(request).await {
            Ok(Some(JobResult::Delivered { channel: there, messages, .. })) if there == channel => messages,
            Ok(_) => return,
            Err(error) => {
                return tracing::warn!(%error, %request, "nobody knows what was posted for a request");
            }
        };
        // Who was shown where it stood already has the same result, and what stands there is somebody else's.
        if pressed.is_some_and(|pressed| messages.contains(&pressed))
            || self.discord.is_answer_to(channel, &messages, request).await
        {
            self.discord.remove(channel, messages).await;
        }
    }

    /// Somebody pressed a button; and what is left to say.
    pub(super) async fn pressed(self: &Arc<Self>, pressed: ComponentInteraction) -> Option<Words> {
        let button = Button::parse(&pressed.data.custom_id)?;
        let moderates = pressed
            .member
            .as_ref()
            .and_then(|member| member.permissions)
            .is_some_and(|permissions| permissions.contains(Permissions::MANAGE_MESSAGES));
        if from_user(pressed.user.id) != button.requester && !moderates {
            let words = "Only the one who asked, or a moderator, can do that.";
            let answer = json!({"type": 4, "data": {"content": words, "flags": EPHEMERAL, "allowed_mentions": {"parse": []}}});
            self.respond(&pressed, &answer).await;
            return None;
        }
        // First of all, since what is being posted looks for it: an acknowledgement can take its time.
        if button.deed != Deed::Again {
            self.discord.withdraw(button.request);
        }
        // Type 6: nothing is changed yet.
        self.respond(&pressed, &json!({"type": 6})).await;
        let channel = from_channel(pressed.channel_id);
        match button.deed {
            Deed::Delete => {
                let message = from_message(pressed.message.id);
                self.take_back(channel, button.request, Some(message)).await;
                // Also when nobody remembers the request any more.
                self.discord.remove(channel, [message]).await;
            }
            Deed::Cancel => {
                // What was posted by then goes too.
                self.take_back(channel, button.request, None).await;
                if let Some(request) = self.discord.statuses.request(button.request) {
                    self.discord.end_status(&request).await;
                }
                self.discord.remove(channel, [from_message(pressed.message.id)]).await;
            }
            Deed::Again => {
                if let (Some(link), Some(id)) = (button.link, buttons::next(button.request)) {
                    return Some(self.once_more(&pressed, id, link).await);
                }
            }
        }
        None
    }

    /// Asks once more for what could not be had; and what is left to say.
    async fn once_more(self: &Arc<Self>, pressed: &ComponentInteraction, id: RequestId, link: Link) -> Words {
        let answered = pressed.message.message_reference.as_ref().and_then(|reference| reference.message_id);
        let destination = Destination {
            front_end: FrontEnd::Discord,
            guild: pressed.guild_id.map(from_guild),
            channel: from_channel(pressed.channel_id),
            reply_to: answered.map(from_message),
        };
        let requester = from_user(pressed.user.id);
        let outcome =
            self.intake.ask(Request { id, requester, link, destination, options: Options::default() }).await;
        let taken = !matches!(outcome, Outcome::Limited { .. } | Outcome::Full(_) | Outcome::Closed(_));
        let (desk, channel, message) =
            (Arc::clone(self), destination.channel, from_message(pressed.message.id));
        let words = async move {
            // What is not taken can be asked for once more with the same button.
            if taken {
                desk.discord.remove(channel, [message]).await;
            }
            desk.outcome(outcome, TURNS).await
        };
        words.boxed()
    }

    async fn respond(&self, pressed: &ComponentInteraction, answer: &serde_json::Value) {
        let to = Interaction { id: pressed.id.get(), token: &pressed.token };
        if let Err(refused) = self.discord.rest.respond(to, answer).await {
            tracing::debug!(error = %refused, "a button is not answered");
        }
    }
}

/// Between two looks at an answer, the first; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);
const TRIES: usize = 8;

const fn may_pass(refused: &Refused) -> bool {
    matches!(refused, Refused::Later { .. } | Refused::Unanswered | Refused::Limited { .. })
}

fn key(request: RequestId) -> String {
    format!("withdrawn/{request}")
}
