//! The connection that Discord's events come through.
//!
//! The library keeps it up: heartbeats, resumes, reconnects, shards. The budget of identifications is
//! looked at before it is started, and not when it identifies anew by itself. What may concern the
//! bot comes out as [`Happening`]s, in a queue that loses nothing. Most of what is said in a server concerns nobody here
//! and ends in this room.

use std::sync::Arc;
use std::time::Duration;

use serenity::async_trait;
use serenity::cache::Settings as CacheSettings;
use serenity::client::{Client, ClientBuilder, Context, EventHandler};
use serenity::gateway::{GatewayError, ShardManager};
use serenity::http::{HttpBuilder, HttpError};
use serenity::model::application::Interaction;
use serenity::model::channel::Message;
use serenity::model::event::MessageUpdateEvent;
use serenity::model::gateway::{GatewayIntents, Ready};
use serenity::model::id as theirs;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use url::Url;

use crate::config::Secret;
use crate::domain::{ChannelId, MessageId};
use crate::frontend::discord::ids::{from_channel, from_message};
use crate::frontend::discord::knowledge::Knowledge;
use crate::frontend::discord::rest::is_this_machine;

/// What the bot asks to be told. None of it needs Discord's leave.
const INTENTS: GatewayIntents =
    GatewayIntents::GUILDS.union(GatewayIntents::GUILD_MESSAGES).union(GatewayIntents::DIRECT_MESSAGES);
/// How long the first connection may take.
const CONNECTING: Duration = Duration::from_secs(60);
/// How long the REST interface may take to say where the gateway is.
const ANSWERING: Duration = Duration::from_secs(30);
/// How long a connection may take to be closed.
const CLOSING: Duration = Duration::from_secs(3);
/// How long servers may take to be told after it; those that are late are known when they come.
const ARRIVING: Duration = Duration::from_secs(10);
/// Events that wait to be looked at.
const EVENTS: usize = 1024;

/// Something that happened in Discord.
#[derive(Debug)]
pub(super) enum Happening {
    /// Somebody wrote a message.
    Written(Box<Message>),
    /// A message has a preview of a link now.
    Previewed(ChannelId, MessageId),
    /// Messages were deleted.
    Deleted(ChannelId, Vec<MessageId>),
    /// Somebody pressed a button or gave a command.
    Asked(Box<Interaction>),
}

/// Why there is no connection, or none any more.
#[derive(Debug, thiserror::Error)]
pub enum GatewayFailure {
    /// Discord does not know the token.
    #[error(
        "Discord does not accept the token; see discord.token, or make a new one in the developer portal"
    )]
    Token,
    /// Discord does not give this bot what it asks for.
    #[error(
        "Discord does not let this bot see what it asked for (an intent is not enabled in the developer portal)"
    )]
    Intents,
    /// The configuration cannot be used.
    #[error("{0}")]
    Setting(String),
    /// Nothing came for a minute.
    #[error("Discord did not answer within a minute")]
    Silent,
    /// Discord's gatekeeper lets nothing through that comes from here.
    #[error("Discord blocks what comes from this address")]
    Blocked,
    /// Something else.
    #[error("cannot connect to Discord: {0}")]
    Other(String),
}

impl GatewayFailure {
    /// Whether it may work later without anybody changing anything.
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Silent | Self::Other(_))
    }
}

/// Who the bot is.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) user: theirs::UserId,
    pub(super) name: String,
    pub(super) application: theirs::ApplicationId,
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Gateway {
    pub(super) knowledge: Knowledge,
    pub(super) identity: Identity,
    pub(super) events: mpsc::Receiver<Happening>,
    shards: Arc<ShardManager>,
    /// Ends when the connection is over for good.
    client: JoinHandle<Result<(), serenity::Error>>,
}

impl Gateway {
    /// Connects and waits until Discord has said who the bot is, and which servers it is in.
    pub(super) async fn connect(token: &Secret, base: Option<&str>) -> Result<Self, GatewayFailure> {
        let mut http = HttpBuilder::new(token.expose());
        if let Some(base) = base {
            // The library's own limiter asks Discord itself whatever is said here. One call is made with it.
            http = http.proxy(base).ratelimiter_disabled(true);
        }
        let http = http.build();
        // The library waits for ever for an answer.
        let begin = timeout(ANSWERING, http.get_bot_gateway()).await.map_err(|_| GatewayFailure::Silent)?;
        let begin = begin.map_err(failure)?;
        let left = begin.session_start_limit;
        if left.remaining == 0 {
            let seconds = left.reset_after / 1000;
            let what = format!("Discord takes no further identification of this bot for {seconds} s");
            return Err(GatewayFailure::Other(what));
        }
        check(&begin.url)?;
        let (events, receiver) = mpsc::channel(EVENTS);
        let (ready, is_ready) = watch::channel(None);
        let (arrived, mut have_arrived) = watch::channel(false);
        let mut settings = CacheSettings::default();
        // Messages are not needed again, and people are not counted.
        settings.max_messages = 0;
        settings.cache_users = false;
        let building = ClientBuilder::new_with_http(http, INTENTS)
            .cache_settings(settings)
            .event_handler(Listener { events, ready, arrived });
        let mut client: Client =
            timeout(ANSWERING, building).await.map_err(|_| GatewayFailure::Silent)?.map_err(failure)?;
        // What the library found for itself is Discord's own, when it was not answered.
        *client.ws_url.lock().await = begin.url;
        let cache = Arc::clone(&client.cache);
        let shards = Arc::clone(&client.shard_manager);
        let mut client = tokio::spawn(async move { client.start_autosharded().await });
        let identity = match identify(is_ready, &mut client).await {
            Ok(identity) => identity,
            Err(failure) => {
                // Or it would identify once more, some time.
                drop(timeout(CLOSING, shards.shutdown_all()).await);
                client.abort();
                return Err(failure);
            }
        };
        if timeout(ARRIVING, have_arrived.wait_for(|arrived| *arrived)).await.is_err() {
            tracing::warn!("some servers were not told in time; they are known as they come");
        }
        Ok(Self { knowledge: Knowledge::new(cache), identity, events: receiver, shards, client })
    }

    /// The next thing that happens; why it is over, when the connection is over for good. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Happening, GatewayFailure> {
        tokio::select! {
            biased;
            happening = self.events.recv() => {
                happening.ok_or_else(|| GatewayFailure::Other("the connection was closed".to_owned()))
            }
            ended = &mut self.client => Err(why(ended)),
        }
    }

    /// Closes it; and what had happened by then.
    pub(super) async fn close(mut self) -> mpsc::Receiver<Happening> {
        let closed = timeout(CLOSING, self.shards.shutdown_all()).await.is_ok();
        if !closed || !self.client.is_finished() {
            tracing::debug!("the connection to Discord was left rather than closed");
        }
        self.client.abort();
        self.events.close();
        self.events
    }
}

/// Waits until Discord has said who the bot is.
async fn identify(
    mut ready: watch::Receiver<Option<Identity>>,
    client: &mut JoinHandle<Result<(), serenity::Error>>,
) -> Result<Identity, GatewayFailure> {
    tokio::select! {
        ready = timeout(CONNECTING, ready.wait_for(Option::is_some)) => {
            let ready = ready.map_err(|_| GatewayFailure::Silent)?;
            ready.ok().and_then(|ready| ready.clone()).ok_or(GatewayFailure::Silent)
        }
        ended = client => Err(why(ended)),
    }
}

/// Whether the token can be sent to this gateway: encrypted, or on this machine.
fn check(gateway: &str) -> Result<(), GatewayFailure> {
    let wrong =
        || GatewayFailure::Setting("the gateway that Discord's REST interface names is not one".to_owned());
    let url = Url::parse(gateway).map_err(|_| wrong())?;
    match (url.scheme(), url.host()) {
        ("wss", Some(_)) => Ok(()),
        ("ws", Some(host)) if is_this_machine(&host) => Ok(()),
        _ => Err(wrong()),
    }
}

fn why(ended: Result<Result<(), serenity::Error>, tokio::task::JoinError>) -> GatewayFailure {
    match ended {
        Ok(Ok(())) => GatewayFailure::Other("the connection was closed".to_owned()),
        Ok(Err(error)) => failure(error),
        Err(error) => GatewayFailure::Other(error.to_string()),
    }
}

fn failure(error: serenity::Error) -> GatewayFailure {
    match error {
        serenity::Error::Gateway(GatewayError::InvalidAuthentication) => GatewayFailure::Token,
        serenity::Error::Gateway(
            GatewayError::DisallowedGatewayIntents | GatewayError::InvalidGatewayIntents,
        ) => GatewayFailure::Intents,
        serenity::Error::Http(HttpError::UnsuccessfulRequest(answer))
            if answer.status_code.as_u16() == 401 =>
        {
            GatewayFailure::Token
        }
        error => GatewayFailure::Other(chain(&error)),
    }
}

/// An error with its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// Turns the library's events into ours.
#[derive(Debug)]
struct Listener {
    events: mpsc::Sender<Happening>,
    ready: watch::Sender<Option<Identity>>,
    arrived: watch::Sender<bool>,
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
        if message.guild_id.is_some() && !mentioned() && !named() {
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
