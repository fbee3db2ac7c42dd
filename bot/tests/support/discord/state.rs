//! Everything that the double knows, and what tests may read of it.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde_json::Value;
use serenity::model::gateway::GatewayIntents;
use serenity::model::id::{
    ApplicationId, AttachmentId, ChannelId, GuildId, InteractionId, MessageId, RoleId, UserId,
};

use super::calls::Done;
use super::faults::Armed;
use super::gateway::{Link, Session};
use super::limits::Limits;
use super::world::{Channel, Guild, User};

/// Where the time of snowflakes begins: 2015-01-01, in milliseconds.
const EPOCH_MS: u64 = 1_420_070_400_000;
/// Takes files up to this size where nothing else was said.
pub(super) const DEFAULT_UPLOAD: u64 = 10 * 1024 * 1024;
/// How long a nonce is remembered. Discord says "the past few minutes".
const NONCE_WINDOW: Duration = Duration::from_secs(3 * 60);

/// Everything that the double knows.
#[derive(Debug)]
pub(crate) struct State {
    pub(super) token: String,
    pub(super) bot: UserId,
    pub(super) application: ApplicationId,
    pub(super) guilds: BTreeMap<GuildId, Guild>,
    pub(super) channels: BTreeMap<ChannelId, Channel>,
    pub(super) users: BTreeMap<UserId, User>,
    pub(super) messages: BTreeMap<MessageId, Message>,
    pub(super) interactions: BTreeMap<InteractionId, Interaction>,
    pub(super) commands: Vec<Value>,
    pub(super) guild_commands: BTreeMap<GuildId, Vec<Value>>,
    pub(super) registrations: usize,
    pub(super) typing: HashMap<ChannelId, usize>,
    /// By the nonce as text: the message, and when it was made by the double's own time.
    pub(super) nonces: HashMap<String, (MessageId, Duration)>,
    pub(super) nonce_window: Duration,
    /// The largest body with files, in bytes; none before a test sets one.
    pub(super) request_limit: Option<u64>,
    pub(super) keep_bytes: bool,
    /// Whether the application was given the privileged intent for content.
    pub(super) content_granted: bool,
    /// Whether the message that a reply is to has its content for those without the intent.
    pub(super) referenced_has_content: bool,

    pub(super) gateway_url: String,
    pub(super) shards: u64,
    pub(super) starts_left: u64,
    pub(super) gateway_is_shut: bool,
    pub(super) gateway_is_silent: bool,
    pub(super) heartbeat: Duration,
    pub(super) sessions: Vec<Session>,
    pub(super) links: BTreeMap<u64, Link>,
    pub(super) last_link: u64,
    pub(super) identified: Vec<GatewayIntents>,
    pub(super) resumed: usize,

    pub(super) faults: Vec<Armed>,
    pub(super) limits: Limits,
    pub(super) done: Vec<Done>,
    pub(super) violations: Vec<String>,
    /// The double's own time, which tests move.
    pub(super) now: Duration,
    last_snowflake: u64,
}

/// A message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) id: MessageId,
    pub(crate) channel: ChannelId,
    pub(crate) author: UserId,
    pub(crate) content: String,
    pub(crate) attachments: Vec<File>,
    pub(crate) embeds: Vec<Value>,
    /// The message that this one is a reply to.
    pub(crate) reference: Option<MessageId>,
    pub(crate) flags: u64,
    /// The rows of buttons as they came.
    pub(crate) components: Value,
    /// Each emoji with those who used it.
    pub(crate) reactions: Vec<(String, Vec<UserId>)>,
    pub(crate) nonce: Option<Value>,
    /// The interaction that this one answers.
    pub(crate) interaction: Option<InteractionId>,
    pub(crate) kind: u8,
    /// When it was made.
    pub(crate) at: Instant,
    /// When it was changed, and its content then.
    pub(crate) edits: Vec<(Instant, String)>,
    /// When it was deleted.
    pub(crate) gone: Option<Instant>,
}

/// A file of a message.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) id: AttachmentId,
    pub(crate) name: String,
    /// The alternative text.
    pub(crate) description: Option<String>,
    pub(crate) spoiler: bool,
    /// In bytes.
    pub(crate) length: u64,
    pub(crate) hash: blake3::Hash,
    /// The file itself, unless the double was told not to keep files.
    pub(crate) bytes: Option<Bytes>,
}

/// What somebody did with a command or a button.
#[derive(Clone, Debug)]
pub(crate) struct Interaction {
    pub(crate) id: InteractionId,
    pub(crate) token: String,
    pub(crate) channel: ChannelId,
    pub(crate) user: UserId,
    /// The largest file that answers take, in bytes; the one that was told may be another.
    pub(crate) upload_limit: u64,
    /// The message whose button was pressed.
    pub(crate) pressed: Option<MessageId>,
    /// The type of the first answer and its data.
    pub(crate) response: Option<(u64, Value)>,
    /// How long the first answer took.
    pub(crate) answered_after: Option<Duration>,
    /// The message that `@original` is.
    pub(crate) original: Option<MessageId>,
    /// The messages after the first answer.
    pub(crate) follow_ups: Vec<MessageId>,
    /// Whether only the user has the app, and not the guild.
    pub(crate) user_only: bool,
    pub(super) made: Duration,
    pub(super) at: Instant,
}

/// Suppresses embeds.
pub(super) const SUPPRESS_EMBEDS: u64 = 1 << 2;
/// Only seen by the one who asked.
pub(super) const EPHEMERAL: u64 = 1 << 6;
/// An answer that is announced.
pub(super) const LOADING: u64 = 1 << 7;

impl Message {
    /// Whether only the one who asked sees it.
    pub(crate) fn is_ephemeral(&self) -> bool {
        self.flags & EPHEMERAL != 0
    }

    /// Whether its embeds are suppressed.
    pub(crate) fn is_suppressed(&self) -> bool {
        self.flags & SUPPRESS_EMBEDS != 0
    }

    /// Whether it is an answer that was announced, and has not come yet.
    pub(crate) fn is_loading(&self) -> bool {
        self.flags & LOADING != 0
    }

    /// Its buttons: label and id.
    pub(crate) fn buttons(&self) -> Vec<(String, String)> {
        let rows = self.components.as_array().into_iter().flatten();
        let widgets = rows.filter_map(|row| row["components"].as_array()).flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        widgets.map(|widget| (text(&widget["label"]), text(&widget["custom_id"]))).collect()
    }
}

impl State {
    pub(super) fn new(gateway_url: String) -> Self {
        let mut state = Self {
            // Three parts like a real one, the first of which is the bot's id in base64.
            token: "MTA5OTUxMTYyNzc3NjAwMDAw.GloopB.not-a-token-of-anybody-0123456789abcd".to_owned(),
            bot: UserId::new(1_099_511_627_776_000_000),
            application: ApplicationId::new(1_099_511_627_776_000_000),
            guilds: BTreeMap::new(),
            channels: BTreeMap::new(),
            users: BTreeMap::new(),
            messages: BTreeMap::new(),
            interactions: BTreeMap::new(),
            commands: Vec::new(),
            guild_commands: BTreeMap::new(),
            registrations: 0,
            typing: HashMap::new(),
            nonces: HashMap::new(),
            nonce_window: NONCE_WINDOW,
            request_limit: None,
            keep_bytes: true,
            content_granted: false,
            referenced_has_content: false,
            gateway_url,
            shards: 1,
            starts_left: 1000,
            gateway_is_shut: false,
            gateway_is_silent: false,
            heartbeat: Duration::from_millis(41_250),
            sessions: Vec::new(),
            links: BTreeMap::new(),
            last_link: 0,
            identified: Vec::new(),
            resumed: 0,
            faults: Vec::new(),
            limits: Limits::default(),
            done: Vec::new(),
            violations: Vec::new(),
            now: Duration::ZERO,
            last_snowflake: 0,
        };
        let bot = User { name: "azalea".to_owned(), bot: true, takes_dms: true };
        state.users.insert(state.bot, bot);
        state
    }

    /// A new id. Later ones are larger, and hold the time.
    pub(super) fn snowflake(&mut self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + self.now;
        let ms = u64::try_from(now.as_millis()).unwrap() - EPOCH_MS;
        self.last_snowflake = (self.last_snowflake + 1).max(ms << 22);
        self.last_snowflake
    }

    /// Notes what a good client would not have done.
    pub(super) fn violate(&mut self, what: impl Into<String>) {
        self.violations.push(what.into());
    }

    pub(super) fn role_id(&mut self) -> RoleId {
        RoleId::new(self.snowflake())
    }

    // ---- what tests read -----------------------------------------------------------------------------------

    /// The messages of a channel that are there, oldest first.
    pub(crate) fn messages(&self, channel: ChannelId) -> Vec<Message> {
        let there = |message: &&Message| message.channel == channel && message.gone.is_none();
        self.messages.values().filter(there).cloned().collect()
    }

    /// The bot's messages in a channel that are there, oldest first.
    pub(crate) fn replies(&self, channel: ChannelId) -> Vec<Message> {
        let bot = self.bot;
        self.messages(channel).into_iter().filter(|message| message.author == bot).collect()
    }

    /// A message, also when it was deleted.
    pub(crate) fn message(&self, message: MessageId) -> Option<&Message> {
        self.messages.get(&message)
    }

    /// The messages that were deleted, oldest first.
    pub(crate) fn deleted(&self) -> Vec<Message> {
        self.messages.values().filter(|message| message.gone.is_some()).cloned().collect()
    }

    /// An interaction.
    pub(crate) fn interaction(&self, interaction: InteractionId) -> &Interaction {
        &self.interactions[&interaction]
    }

    /// The message that an interaction was answered with first, if it is there.
    pub(crate) fn original(&self, interaction: InteractionId) -> Option<&Message> {
        let original = self.interactions.get(&interaction)?.original?;
        self.messages.get(&original).filter(|message| message.gone.is_none())
    }

    /// The commands that are registered everywhere.
    pub(crate) fn commands(&self) -> &[Value] {
        &self.commands
    }

    /// How often commands were registered.
    pub(crate) fn registrations(&self) -> usize {
        self.registrations
    }

    /// How often the bot said that it is typing.
    pub(crate) fn typing(&self, channel: ChannelId) -> usize {
        self.typing.get(&channel).copied().unwrap_or_default()
    }

    /// All requests: method, path below `/api/v10`, status, or 0 when there was no answer.
    pub(crate) fn requests(&self) -> Vec<(String, String, u16)> {
        self.done.iter().map(|done| (done.method.clone(), done.path.clone(), done.status)).collect()
    }

    /// When a request of this kind came, for those that measure how often.
    pub(crate) fn times(&self, method: &str, path: &str) -> Vec<Instant> {
        let alike =
            self.done.iter().filter(|done| done.method == method && super::faults::fits(path, &done.path));
        alike.map(|done| done.at).collect()
    }

    /// The answers that count towards the ban for invalid requests: 401, 403, and 429 that is not shared.
    pub(crate) fn invalid_requests(&self) -> usize {
        let invalid = |done: &&Done| [401, 403, 429].contains(&done.status) && !done.shared;
        self.done.iter().filter(invalid).count()
    }

    /// The intents of each IDENTIFY that was accepted.
    pub(crate) fn identified(&self) -> &[GatewayIntents] {
        &self.identified
    }

    /// How often a session was resumed.
    pub(crate) fn resumed(&self) -> usize {
        self.resumed
    }

    /// How many connections have a session.
    pub(crate) fn connected(&self) -> usize {
        self.sessions.iter().filter(|session| session.link.is_some()).count()
    }
}
