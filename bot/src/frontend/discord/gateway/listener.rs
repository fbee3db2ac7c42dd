//! Turns the library's events into ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serenity::async_trait;
use serenity::client::{Context, EventHandler};
use serenity::gateway::{ConnectionStage, ShardStageUpdateEvent};
use serenity::model::application::Interaction;
use serenity::model::channel::Message;
use serenity::model::event::MessageUpdateEvent;
use serenity::model::gateway::Ready;
use serenity::model::id as theirs;
use tokio::sync::{mpsc, watch};

use super::{Happening, Identity};
use crate::frontend::discord::ids::{from_channel, from_message};

/// Hears what the library has to say.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) events: mpsc::Sender<Happening>,
    pub(super) ready: watch::Sender<Option<Identity>>,
    pub(super) arrived: watch::Sender<bool>,
    pub(super) identified: Arc<AtomicU64>,
    /// Messages that do not mention the bot may concern it, when they have a link.
    pub(super) content: bool,
}

impl Listener {
    /// The library waits for this in a task of its own: what cannot be taken yet waits there.
    async fn tell(&self, happening: Happening) {
        // Nobody listens any more: the service ends.
        drop(self.events.send(happening).await);
    }
}

#[async_trait]
impl EventHandler for Listener {
    async fn ready(&self, _: Context, ready: Ready) {
        let identity = Identity {
            user: ready.user.id,
            name: ready.user.name.clone(),
            application: ready.application.id,
        };
        if ready.guilds.is_empty() {
            self.arrived.send_replace(true);
        }
        self.ready.send_replace(Some(identity));
    }

    async fn shard_stage_update(&self, _: Context, event: ShardStageUpdateEvent) {
        // Whatever came of it.
        if event.old == ConnectionStage::Identifying {
            self.identified.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn cache_ready(&self, _: Context, _: Vec<theirs::GuildId>) {
        self.arrived.send_replace(true);
    }

    async fn message(&self, context: Context, message: Message) {
        if message.author.bot {
            return;
        }
        let me = context.cache.current_user().id;
        let named = || message.content.contains(&me.get().to_string());
        let mentioned =
            || message.mentions.iter().any(|user| user.id == me) || !message.mention_roles.is_empty();
        let linked = || self.content && message.content.contains("/status/");
        if message.guild_id.is_some() && !mentioned() && !named() && !linked() {
            return;
        }
        self.tell(Happening::Written(Box::new(message))).await;
    }

    async fn message_update(
        &self,
        _: Context,
        _: Option<Message>,
        _: Option<Message>,
        event: MessageUpdateEvent,
    ) {
        if event.embeds.is_some_and(|embeds| !embeds.is_empty()) {
            let (channel, message) = (from_channel(event.channel_id), from_message(event.id));
            self.tell(Happening::Previewed(channel, message)).await;
        }
    }

    async fn message_delete(
        &self,
        _: Context,
        channel: theirs::ChannelId,
        message: theirs::MessageId,
        _: Option<theirs::GuildId>,
    ) {
        self.tell(Happening::Deleted(from_channel(channel), vec![from_message(message)])).await;
    }

    async fn message_delete_bulk(
        &self,
        _: Context,
        channel: theirs::ChannelId,
        messages: Vec<theirs::MessageId>,
        _: Option<theirs::GuildId>,
    ) {
        let messages = messages.into_iter().map(from_message).collect();
        self.tell(Happening::Deleted(from_channel(channel), messages)).await;
    }

    async fn interaction_create(&self, _: Context, interaction: Interaction) {
        self.tell(Happening::Asked(Box::new(interaction))).await;
    }
}
