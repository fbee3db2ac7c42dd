//! The connection that Discord's events come through.
//!
//! The library keeps it up: heartbeats, resumes, reconnects, shards. It runs in a runtime of its own, since some of its tasks
//! have no other end; and when it does not come back, or has used up its identifications, the connection is given up
//! for a new one. What may concern the bot comes out as [`Happening`]s, in a queue that loses nothing. Most of what is
//! said in a server concerns nobody here and ends in this room.

mod health;
mod listener;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use serenity::cache::{Cache, Settings as CacheSettings};
use serenity::client::{Client, ClientBuilder};
use serenity::gateway::{GatewayError, ShardManager};
use serenity::http::{HttpBuilder, HttpError};
use serenity::model::application::Interaction;
use serenity::model::channel::Message;
use serenity::model::gateway::GatewayIntents;
use serenity::model::id as theirs;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use url::Url;

use self::health::Health;
pub(super) use self::health::Patience;
use self::listener::Listener;
use crate::config::Secret;
use crate::domain::{ChannelId, MessageId};
use crate::frontend::discord::knowledge::Knowledge;
use crate::frontend::discord::rest::is_this_machine;

/// What the bot asks to be told. None of it needs Discord's leave.
const INTENTS: GatewayIntents =
    GatewayIntents::GUILDS.union(GatewayIntents::GUILD_MESSAGES).union(GatewayIntents::DIRECT_MESSAGES);
/// What it asks for besides where the operator wants links to be answered without a mention.
const CONTENT: GatewayIntents = GatewayIntents::MESSAGE_CONTENT;
/// How long the first connection may take.
const CONNECTING: Duration = Duration::from_secs(60);
/// How long the REST interface may take to say where the gateway is.
const ANSWERING: Duration = Duration::from_secs(30);
/// How long a connection may take to be closed.
const CLOSING: Duration = Duration::from_secs(3);
/// How long servers may take to be told after it; those that are late are known when they come.
const ARRIVING: Duration = Duration::from_secs(10);
/// Identifications of a day that are left over: Discord takes a bot's token away when it has used up all of them.
const RESERVED: u64 = 50;
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
    /// There was a connection, and it did not come back for some minutes.
    #[error("the connection to Discord does not come back")]
    Away,
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
        matches!(self, Self::Silent | Self::Away | Self::Other(_))
    }
}

/// Who the bot is.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) user: theirs::UserId,
    pub(super) name: String,
    pub(super) application: theirs::ApplicationId,
}

/// The connection, which can be made anew.
#[derive(Debug)]
pub(super) struct Gateway {
    pub(super) knowledge: Knowledge,
    pub(super) identity: Identity,
    way: Way,
    /// How long it may be in trouble before it is made anew.
    pub(super) patience: Patience,
    open: Open,
    background: Background,
}

/// Where to connect, and as whom.
#[derive(Clone, Debug)]
struct Way {
    token: Secret,
    base: Option<String>,
    /// The words of all messages are wanted.
    content: bool,
}

/// An open connection.
#[derive(Debug)]
struct Open {
    cache: Arc<Cache>,
    identity: Identity,
    events: mpsc::Receiver<Happening>,
    shards: Arc<ShardManager>,
    /// Ends when the connection is over for good.
    client: JoinHandle<Result<(), serenity::Error>>,
    health: Health,
}

/// The runtime of a connection. All tasks of the library end with it.
#[derive(Debug)]
struct Background(Option<Runtime>);

impl Background {
    fn new() -> Result<Self, GatewayFailure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("gateway")
            .enable_all()
            .build()
            .map_err(|error| GatewayFailure::Other(error.to_string()))?;
        Ok(Self(Some(runtime)))
    }

    /// Does something there, and waits for it.
    async fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, GatewayFailure> {
        let Some(runtime) = &self.0 else { return Err(GatewayFailure::Silent) };
        runtime.spawn(task).await.map_err(|error| GatewayFailure::Other(error.to_string()))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Gateway {
    /// Connects and waits until Discord has said who the bot is, and which servers it is in.
    pub(super) async fn connect(
        token: &Secret,
        base: Option<&str>,
        content: bool,
    ) -> Result<Self, GatewayFailure> {
        let way = Way { token: token.clone(), base: base.map(str::to_owned), content };
        let (open, background) = open(&way).await?;
        let knowledge = Knowledge::new(Arc::clone(&open.cache));
        Ok(Self {
            knowledge,
            identity: open.identity.clone(),
            way,
            patience: Patience::default(),
            open,
            background,
        })
    }

    /// Connects anew, after the connection was over; and what had happened by then.
    ///
    /// # Errors
    /// When that does not come about now; the old connection is over all the same.
    pub(super) async fn reconnect(&mut self) -> Result<mpsc::Receiver<Happening>, GatewayFailure> {
        let (open, background) = open(&self.way).await?;
        self.knowledge.adopt(Arc::clone(&open.cache));
        self.background = background;
        let before = std::mem::replace(&mut self.open, open);
        Ok(before.events)
    }

    /// The next thing that happens; why it is over, when the connection is over for good. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Happening, GatewayFailure> {
        let Open { events, client, health, .. } = &mut self.open;
        tokio::select! {
            biased;
            happening = events.recv() => {
                happening.ok_or_else(|| GatewayFailure::Other("the connection was closed".to_owned()))
            }
            ended = client => Err(why(ended)),
            failure = health.fails(self.patience) => Err(failure),
        }
    }

    /// Ends the connection, which is over for us, with all that belongs to it; what had happened by then can still
    /// be had from [`reconnect`](Self::reconnect).
    pub(super) async fn give_up(&mut self) {
        self.open.end().await;
        self.background = Background(None);
    }

    /// Closes it; and what had happened by then.
    pub(super) async fn close(mut self) -> mpsc::Receiver<Happening> {
        if self.background.0.is_some() {
            self.open.end().await;
        }
        self.open.events
    }
}

impl Open {
    async fn end(&mut self) {
        let closed = timeout(CLOSING, self.shards.shutdown_all()).await.is_ok();
        if !closed || !self.client.is_finished() {
            tracing::debug!("the connection to Discord was left rather than closed");
        }
        self.client.abort();
        self.events.close();
    }
}

/// Opens a connection in a runtime of its own, which ends with all that it does when this is dropped or fails.
async fn open(way: &Way) -> Result<(Open, Background), GatewayFailure> {
    let background = Background::new()?;
    let way = way.clone();
    let open = background.run(async move { begin(&way).await }).await??;
    Ok((open, background))
}

/// Opens a connection in this runtime.
async fn begin(way: &Way) -> Result<Open, GatewayFailure> {
    let mut http = HttpBuilder::new(way.token.expose());
    if let Some(base) = &way.base {
        // The library's own limiter asks Discord itself whatever is said here. One call is made with it.
        http = http.proxy(base).ratelimiter_disabled(true);
    }
    let http = http.build();
    // The library waits for ever for an answer.
    let begin = timeout(ANSWERING, http.get_bot_gateway()).await.map_err(|_| GatewayFailure::Silent)?;
    let begin = begin.map_err(failure)?;
    let left = begin.session_start_limit;
    let shard_count = u64::from(begin.shards.max(1));
    let Some(most) =
        left.remaining.checked_sub(RESERVED.min(left.total / 2)).filter(|most| *most >= shard_count)
    else {
        let seconds = left.reset_after / 1000;
        let what = format!(
            "this bot has identified itself too often; it waits {seconds} s until Discord counts anew"
        );
        return Err(GatewayFailure::Other(what));
    };
    check(&begin.url)?;
    let (events, receiver) = mpsc::channel(EVENTS);
    let (ready, is_ready) = watch::channel(None);
    let (arrived, mut have_arrived) = watch::channel(false);
    let identified = Arc::new(AtomicU64::new(0));
    let mut settings = CacheSettings::default();
    // Messages are not needed again, and people are not counted.
    settings.max_messages = 0;
    settings.cache_users = false;
    let listener =
        Listener { events, ready, arrived, identified: Arc::clone(&identified), content: way.content };
    let intents = if way.content { INTENTS.union(CONTENT) } else { INTENTS };
    let building =
        ClientBuilder::new_with_http(http, intents).cache_settings(settings).event_handler(listener);
    let mut client: Client =
        timeout(ANSWERING, building).await.map_err(|_| GatewayFailure::Silent)?.map_err(failure)?;
    // What the library found for itself is Discord's own, when it was not answered.
    *client.ws_url.lock().await = begin.url;
    let cache = Arc::clone(&client.cache);
    let shards = Arc::clone(&client.shard_manager);
    let mut client = tokio::spawn(async move { client.start_autosharded().await });
    let identity = identify(is_ready, &mut client).await?;
    if timeout(ARRIVING, have_arrived.wait_for(|arrived| *arrived)).await.is_err() {
        tracing::warn!("some servers were not told in time; they are known as they come");
    }
    // Whoever asks for it runs elsewhere, and its clock with it.
    let health = Health::of(Arc::clone(&shards), begin.shards.max(1), identified, most);
    Ok(Open { cache, identity, events: receiver, shards, client, health })
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
