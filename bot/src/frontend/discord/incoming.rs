//! Messages that people write: which of them mean the bot, and what becomes of their links.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use serenity::model::channel::{Message, MessageType};

use crate::domain::{DeliveryKey, Destination, FrontEnd, Options, Request, RequestId, find_links};
use crate::frontend::discord::Discord;
use crate::frontend::discord::caption;
use crate::frontend::discord::ids::{from_channel, from_guild, from_message, from_user};
use crate::frontend::discord::said::{Asker, Word};
use crate::frontend::discord::session::{Desk, Words};
use crate::intake::{Incoming, Outcome, Taken, Waiting, insist};

/// Whose message it is, and what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wish {
    /// Not for the bot.
    None,
    /// The links in this text.
    Links(String),
    /// The bot, without a link.
    Help,
    /// Perhaps the bot, but its words were not shown.
    NotShown,
}

/// Whether somebody wrote it, and not a bot or Discord itself.
fn is_written(message: &Message) -> bool {
    !message.author.bot
        && message.webhook_id.is_none()
        && matches!(message.kind, MessageType::Regular | MessageType::InlineReply)
}

/// How often somebody who waits behind another one begins anew, before the queue alone looks after them.
pub(super) const TURNS: usize = 8;

impl Desk {
    /// Takes a message; and what is left to say about it.
    pub(super) async fn written(self: &Arc<Self>, message: Message) -> Option<Words> {
        let mut wish = self.wish(&message);
        let settings = self.discord.settings.of(message.guild_id.map(from_guild)).await;
        let unasked = wish == Wish::None && settings.auto && self.discord.sees_all && is_written(&message);
        if unasked && !find_links(&message.content).links.is_empty() {
            wish = Wish::Links(message.content.clone());
        }
        if wish == Wish::None {
            return None;
        }
        let id = from_message(message.id);
        // The gateway gives some messages twice when it resumes.
        if !self.discord.seen.insert(id) {
            return None;
        }
        let destination = Destination {
            front_end: FrontEnd::Discord,
            guild: message.guild_id.map(from_guild),
            channel: from_channel(message.channel_id),
            reply_to: Some(id),
        };
        let author = from_user(message.author.id);
        let asker = Asker { id: RequestId::new(FrontEnd::Discord, id, 0), requester: author, destination };
        let text = match &wish {
            Wish::Links(text) => text.as_str(),
            Wish::Help | Wish::NotShown | Wish::None => {
                let text = if wish == Wish::Help { caption::HOW } else { caption::NOT_SHOWN };
                return Some(self.words(async move |discord| {
                    insist(async || discord.say(asker, Word::Hint, text.to_owned()).await).await;
                }));
            }
        };
        let place = self.discord.knowledge.with_parent(destination.guild, destination.channel);
        let elsewhere = !settings.allows(&place);
        let missing = !self.discord.knowledge.missing(destination.guild, destination.channel).is_empty();
        if unasked && (elsewhere || missing) {
            return None;
        }
        if elsewhere {
            let text = caption::elsewhere(&settings.channels);
            return Some(self.words(async move |discord| {
                insist(async || discord.say(asker, Word::Elsewhere, text.clone()).await).await;
            }));
        }
        if missing {
            return Some(self.words(async move |discord| discord.say_missing(asker).await));
        }
        self.discord.limits.recall(&destination).await;
        let incoming = Incoming {
            front_end: FrontEnd::Discord,
            guild: destination.guild,
            channel: destination.channel,
            author,
            message: id,
            text,
            options: Options { quoted: settings.quoted, unasked, ..Options::default() },
        };
        let Taken { outcomes, dropped } = self.intake.take(&incoming).await;
        let desk = Arc::clone(self);
        let dropped = if unasked { 0 } else { dropped };
        Some(async move { desk.said(asker, outcomes, dropped).await }.boxed())
    }

    /// Words that leave nothing to wait for.
    fn words<F>(&self, say: impl FnOnce(Arc<Discord>) -> F) -> Words
    where
        F: Future<Output = ()> + Send + 'static,
    {
        say(Arc::clone(&self.discord)).map(|()| None).boxed()
    }

    /// Says what became of the links of a message; and what is left to wait for.
    async fn said(
        self: Arc<Self>,
        asker: Asker,
        outcomes: Vec<Outcome>,
        dropped: usize,
    ) -> Option<BoxFuture<'static, ()>> {
        let waits =
            outcomes.iter().any(|outcome| matches!(outcome, Outcome::Accepted(_) | Outcome::Joined { .. }));
        let typing = async {
            if waits {
                self.discord.typing(&asker.destination).await;
            }
        };
        let told = join_all(outcomes.into_iter().map(|outcome| Arc::clone(&self).outcome(outcome, TURNS)));
        let (told, ()) = tokio::join!(told, typing);
        let waits: Vec<BoxFuture<'static, ()>> = told.into_iter().flatten().collect();
        if dropped > 0 {
            let text = caption::too_many(dropped);
            insist(async || self.discord.say(asker, Word::TooMany, text.clone()).await).await;
        }
        (!waits.is_empty()).then(|| async move { drop(join_all(waits).await) }.boxed())
    }

    /// Whether a message means the bot, and what it wants.
    fn wish(&self, message: &Message) -> Wish {
        let identity = &self.discord.identity;
        if !is_written(message) {
            return Wish::None;
        }
        let (me, text) = (identity.user.get(), message.content.as_str());
        let named = text.contains(&format!("<@{me}>")) || text.contains(&format!("<@!{me}>"));
        let direct = message.guild_id.is_none();
        let mentioned = named || message.mentions.iter().any(|user| user.id == identity.user);
        let has_links = |text: &str| !find_links(text).links.is_empty();
        if (mentioned || direct) && has_links(text) {
            return Wish::Links(text.to_owned());
        }
        if named || direct {
            // The link may stand in the message that is answered, unless that is the bot's own.
            let answered =
                message.referenced_message.as_deref().filter(|answered| answered.author.id != identity.user);
            if let Some(answered) = answered.filter(|answered| has_links(&answered.content)) {
                return Wish::Links(answered.content.clone());
            }
            // An answer to the bot in a direct message is small talk.
            return if direct && message.referenced_message.is_some() { Wish::None } else { Wish::Help };
        }
        let own_role = message
            .guild_id
            .is_some_and(|guild| self.discord.knowledge.own_role(from_guild(guild), &message.mention_roles));
        match (own_role, text.is_empty()) {
            (true, true) => Wish::NotShown,
            (true, false) if has_links(text) => Wish::Links(text.to_owned()),
            (true, false) => Wish::Help,
            (false, _) => Wish::None,
        }
    }

    /// Says what became of a link; and what is left to wait for.
    pub(super) fn outcome(
        self: Arc<Self>,
        outcome: Outcome,
        turns: usize,
    ) -> BoxFuture<'static, Option<BoxFuture<'static, ()>>> {
        async move {
            match outcome {
                // Where nobody asked, nobody waits for a word.
                Outcome::AlreadyThere { request, .. }
                | Outcome::Limited { request, .. }
                | Outcome::Full(request)
                | Outcome::Closed(request)
                | Outcome::Accepted(request)
                    if request.options.unasked => {}
                Outcome::Accepted(request) => self.discord.statuses.note(&request, None),
                // Its answer came, or comes, to the first coming of the message.
                Outcome::Again(_) => {}
                Outcome::Joined { request, waiting } => {
                    return Some(async move { self.behind(request, waiting, turns).await }.boxed());
                }
                Outcome::AlreadyThere { request, delivered } => {
                    if self.discord.still_stands(&delivered).await {
                        insist(async || self.discord.point(&request, &delivered).await).await;
                    } else {
                        self.processed.forget_this(&DeliveryKey::of(&request), &delivered);
                        let outcome = self.intake.send(request).await;
                        if turns > 0 {
                            return self.outcome(outcome, turns.saturating_sub(1)).await;
                        }
                    }
                }
                Outcome::Limited { request, retry_after } => {
                    let text = caption::limited(retry_after.as_secs_f64());
                    insist(async || self.discord.say(&request, Word::Limited, text.clone()).await).await;
                }
                Outcome::Full(request) => {
                    self.turn_away(&request, caption::FULL).await;
                }
                Outcome::Closed(request) => {
                    self.turn_away(&request, caption::CLOSED).await;
                }
            }
            None
        }
        .boxed()
    }

    async fn turn_away(&self, request: &Request, text: &str) {
        insist(async || self.discord.say(request, Word::TurnedAway, text.to_owned()).await).await;
    }

    /// Waits for the end of somebody else's request.
    pub(super) async fn behind(self: Arc<Self>, request: Request, place: Waiting, turns: usize) {
        let end = place.end().await;
        if self.discord.is_withdrawn(&request) {
            place.settle().await;
            return;
        }
        match end {
            // Where nobody asked, nobody waits for a word.
            Some(_) if request.options.unasked => {
                place.settle().await;
            }
            // A command was answered when it was given, and has no message that an answer could refer to.
            Some(Ok(_)) if request.destination.reply_to.is_none() => {
                place.settle().await;
            }
            Some(Ok(delivered)) => {
                place.answer(async || self.discord.point(&request, &delivered).await).await;
            }
            Some(Err(failure)) => {
                place.answer(async || self.discord.say_failed(&request, &failure).await).await;
            }
            // It was given up, so this one is next.
            None => {
                let outcome = self.intake.go_on(request, place).await;
                if let Some(waiting) = Arc::clone(&self).outcome(outcome, turns.saturating_sub(1)).await
                    && turns > 0
                {
                    waiting.await;
                }
            }
        }
    }
}
