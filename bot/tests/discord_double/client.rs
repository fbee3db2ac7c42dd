//! The real client, set up against the double.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use serenity::async_trait;
use serenity::client::{Context, RawEventHandler};
use serenity::http::{Http, HttpBuilder, HttpError};
use serenity::model::event::Event;
use serenity::model::gateway::GatewayIntents;
use serenity::model::id::{ChannelId, GuildId, MessageId, UserId};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::discord::{Discord, GuildSpec};

/// How long a test waits for an event.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a bot without privileged intents asks for.
pub(crate) fn plain_intents() -> GatewayIntents {
    GatewayIntents::GUILDS | GatewayIntents::GUILD_MESSAGES | GatewayIntents::DIRECT_MESSAGES
}

/// A guild with one channel and one person in it.
pub(crate) struct House {
    pub(crate) discord: Discord,
    pub(crate) guild: GuildId,
    pub(crate) channel: ChannelId,
    pub(crate) ann: UserId,
    pub(crate) http: Http,
}

impl House {
    pub(crate) async fn new() -> Self {
        Self::with(GuildSpec::default()).await
    }

    pub(crate) async fn with(spec: GuildSpec) -> Self {
        let discord = Discord::start().await;
        let guild = discord.add_guild(spec);
        let (channel, ann) = (discord.text_channel(guild), discord.user("ann"));
        let http = http(&discord);
        Self { discord, guild, channel, ann, http }
    }

    /// Sends a message as it stands here.
    pub(crate) async fn send(&self, channel: ChannelId, body: &Value) -> Result<MessageId, (u16, isize)> {
        let sent = self.http.send_message(channel, Vec::new(), body).await;
        sent.map(|message| message.id).map_err(|error| refusal(&error))
    }

    /// Asserts that the client did nothing that a good one would not do.
    #[track_caller]
    pub(crate) fn all_good(&self) {
        assert_eq!(self.discord.violations(), Vec::<String>::new());
    }
}

/// A client for REST alone.
pub(crate) fn http(discord: &Discord) -> Http {
    let http = HttpBuilder::new(discord.token()).proxy(discord.base()).ratelimiter_disabled(true);
    http.application_id(discord.application()).build()
}

/// A good message with this text.
pub(crate) fn body(text: &str, nonce: &str) -> Value {
    json!({"content": text, "nonce": nonce, "enforce_nonce": true, "allowed_mentions": {"parse": []}})
}

/// Status and code of a refusal.
#[track_caller]
pub(crate) fn refusal(error: &serenity::Error) -> (u16, isize) {
    match error {
        serenity::Error::Http(HttpError::UnsuccessfulRequest(refused)) => {
            (refused.status_code.as_u16(), refused.error.code)
        }
        other => panic!("not refused, but {other:?}"),
    }
}

/// A client with a gateway, and what it hears.
pub(crate) struct Bot {
    pub(crate) task: JoinHandle<serenity::Result<()>>,
    heard: UnboundedReceiver<Event>,
    manager: Arc<serenity::gateway::ShardManager>,
}

struct Ears(UnboundedSender<Event>);

#[async_trait]
impl RawEventHandler for Ears {
    async fn raw_event(&self, _: Context, event: Event) {
        // A test that has ended listens no more.
        drop(self.0.send(event));
    }
}

impl Bot {
    pub(crate) async fn start(discord: &Discord, intents: GatewayIntents) -> Self {
        Self::start_with(http(discord), intents).await
    }

    pub(crate) async fn start_with(http: Http, intents: GatewayIntents) -> Self {
        let (ears, heard) = unbounded_channel();
        let client =
            serenity::client::ClientBuilder::new_with_http(http, intents).raw_event_handler(Ears(ears));
        let mut client = client.await.unwrap();
        let manager = Arc::clone(&client.shard_manager);
        let task = tokio::spawn(async move { client.start_autosharded().await });
        Self { task, heard, manager }
    }

    /// The next event of a kind; others before it are passed over.
    pub(crate) async fn hear<T>(&mut self, pick: impl Fn(Event) -> Option<T>) -> T {
        let find = async {
            loop {
                let event = self.heard.recv().await.expect("the client has ended");
                if let Some(picked) = pick(event) {
                    return picked;
                }
            }
        };
        tokio::time::timeout(PATIENCE, find).await.expect("the event does not come")
    }

    /// The next message that somebody wrote.
    pub(crate) async fn hear_message(&mut self) -> serenity::model::channel::Message {
        let pick = |event| match event {
            Event::MessageCreate(created) => Some(created.message),
            _ => None,
        };
        self.hear(pick).await
    }

    /// Waits until it is connected and knows the guild.
    pub(crate) async fn hear_guild(&mut self) -> serenity::model::guild::Guild {
        let pick = |event| match event {
            Event::GuildCreate(created) => Some(created.guild),
            _ => None,
        };
        self.hear(pick).await
    }

    pub(crate) async fn stop(self) {
        self.manager.shutdown_all().await;
        self.task.await.unwrap().unwrap();
    }
}
