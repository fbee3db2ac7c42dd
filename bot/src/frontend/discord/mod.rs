//! The bot in Discord: messages come in through the gateway, media and words go out through REST.
//!
//! This room decides who is meant, what is said, and what is allowed where; never how media are had. The Discord library
//! is named nowhere else. Its invariants:
//!
//! - Nothing that is sent mentions anybody: messages are built in one place, which leaves no choice.
//! - Every message of a request has a mark of its own, and is posted once under it.
//! - What the bot must know after a restart stands in the queue, in the store, or in the buttons themselves.

mod asked;
mod buttons;
mod caption;
mod commands;
mod earlier;
mod gateway;
mod ids;
mod incoming;
mod knowledge;
mod limits;
mod post;
mod removal;
mod rest;
mod said;
mod session;
mod settings;
mod shut;
mod status;

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use url::Url;

use crate::clock::Clock;
use crate::config::{Config, Secret, SensitivePolicy};
use crate::dedup::{Delivered, Recent};
use crate::domain::{
    ChannelId, Destination, Failure, LimitClass, MessageId, Request, Stage, Telling, UserId,
};
use crate::frontend::discord::gateway::{Gateway, Identity};
use crate::frontend::discord::knowledge::Knowledge;
use crate::frontend::discord::limits::Limits;
use crate::frontend::discord::rest::{Rest, RestSettings, check_base};
use crate::frontend::discord::said::Word;
use crate::frontend::discord::settings::AllSettings;
use crate::frontend::discord::shut::Shut;
use crate::frontend::discord::status::Statuses;
use crate::guard::audience::Place;
use crate::http::{EgressRule, Http, HttpSettings};
use crate::pipeline::activity::Sight;
use crate::pipeline::delivery::{Delivery, Notice, Parcel};
use crate::pipeline::posting::Posting;
use crate::pipeline::withdrawals::Withdrawals;
use crate::store::Store;

pub use self::gateway::GatewayFailure;
pub use self::session::{Ended, Session};

/// Messages that are known to have come, so that a replay is no second one.
const SEEN: usize = 100_000;
/// Messages whose previews are gone, and channels that somebody was told about.
const REMEMBERED: usize = 10_000;
/// Where Discord is.
const DISCORD: &str = "https://discord.com";

/// The bot in Discord, connected.
#[derive(Debug)]
pub struct Discord {
    rest: Rest,
    knowledge: Knowledge,
    identity: Identity,
    limits: Limits,
    statuses: Statuses,
    store: Store,
    clock: Clock,
    /// Messages that came.
    seen: Recent<MessageId>,
    withdrawals: Withdrawals,
    /// Messages of others whose previews are to be taken away.
    covered: Recent<MessageId>,
    whispered: Recent<(ChannelId, UserId)>,
    settings: AllSettings,
    /// Whether the bot sees messages that do not mention it.
    sees_all: bool,
    /// Channels that take nothing just now.
    shut: Shut,
    /// Messages whose words are being remembered, one after the other.
    remembering: tokio::sync::Mutex<()>,
    /// Small talk, with the minute in which it was said.
    talked: Recent<(ChannelId, UserId, Word, u64)>,
}

/// What was found when the bot connected.
#[derive(Clone, Debug)]
pub struct Found {
    /// The bot's name.
    pub name: String,
    /// How many servers it is in.
    pub guilds: usize,
    /// Where it is invited.
    pub invitation: String,
    /// What it lacks, and where; a line each, some at most.
    pub lacks: Vec<String>,
}

impl Discord {
    /// Connects with this token; and the session that events come through.
    ///
    /// # Errors
    /// When Discord does not let the bot in, or does not answer.
    pub async fn connect(
        config: &Config,
        token: &Secret,
        store: Store,
        withdrawals: Withdrawals,
        clock: Clock,
    ) -> Result<(Arc<Self>, Session), GatewayFailure> {
        let base = origin(config.discord.api_base.as_deref())?;
        let rest = rest(&base, token, clock.clone(), config.upload.timeout)?;
        let default = NonZeroU64::new(config.upload.default_limit).unwrap_or(NonZeroU64::MIN);
        let limits = Limits::new(LimitClass::new(default), store.clone(), clock.clone());
        let content = config.discord.message_content;
        let gateway =
            Gateway::connect(token, config.discord.api_base.is_some().then_some(base.as_str()), content)
                .await?;
        let settings = AllSettings::new(store.clone(), clock.clone());
        let discord = Arc::new(Self {
            rest,
            knowledge: gateway.knowledge.clone(),
            identity: gateway.identity.clone(),
            limits,
            statuses: Statuses::new(REMEMBERED),
            store,
            clock,
            seen: Recent::new(SEEN),
            withdrawals,
            covered: Recent::new(REMEMBERED),
            whispered: Recent::new(REMEMBERED),
            settings,
            sees_all: config.discord.message_content,
            shut: Shut::default(),
            remembering: tokio::sync::Mutex::default(),
            talked: Recent::new(REMEMBERED),
        });
        let session = Session::new(Arc::clone(&discord), gateway);
        Ok((discord, session))
    }

    /// What was found.
    pub fn found(&self) -> Found {
        Found {
            name: self.identity.name.clone(),
            guilds: self.knowledge.guilds(),
            invitation: invitation(self.identity.application.get()),
            lacks: self.knowledge.lacks(),
        }
    }

    /// Whether somebody took a request back.
    fn is_withdrawn(&self, request: &Request) -> bool {
        self.withdrawals.contains(request.id)
    }

    fn boosted(&self, destination: &Destination) -> Option<LimitClass> {
        destination.guild.and_then(|guild| self.knowledge.boosted(guild))
    }

    async fn tell_end(&self, request: &Request, notice: Notice) -> Telling {
        self.end_status(request).await;
        // Where nobody asked, nobody waits for a word.
        if request.options.unasked || self.was_withdrawn(request).await {
            return Telling::Settled;
        }
        match notice {
            Notice::Pointer(delivered) => self.point(request, &delivered).await,
            Notice::Failed(failure) => self.say_failed(request, &failure).await,
        }
    }

    /// Says where the media stand already.
    async fn point(&self, request: &Request, delivered: &Delivered) -> Telling {
        let text = caption::pointer(request.destination.guild, delivered);
        self.say(request, Word::Pointer, text).await
    }
}

impl Delivery for Discord {
    fn limit(&self, destination: &Destination) -> LimitClass {
        self.limits.of(destination, self.boosted(destination))
    }

    fn learn<'a>(&'a self, destination: &'a Destination) -> BoxFuture<'a, ()> {
        async move {
            self.limits.recall(destination).await;
            self.settings.of(destination.guild).await;
        }
        .boxed()
    }

    fn policy(&self, destination: &Destination) -> SensitivePolicy {
        let strict = self.settings.known(destination.guild).strict;
        if strict { SensitivePolicy::Refuse } else { SensitivePolicy::Spoiler }
    }

    fn place(&self, destination: &Destination) -> Place {
        self.knowledge.place(destination)
    }

    fn progress(&self, request: &Request, _: Stage, sight: Sight) {
        if !request.options.unasked {
            self.statuses.note(request, Some(sight));
        }
    }

    fn deliver<'a>(
        &'a self,
        request: &'a Request,
        parcel: Parcel,
        posting: &'a Posting,
    ) -> BoxFuture<'a, Result<Delivered, Failure>> {
        async move {
            let posted = self.post(request, parcel, posting).await;
            // A failure may be followed by another attempt, whose word it is.
            if posted.is_ok() {
                self.end_status(request).await;
            }
            posted
        }
        .boxed()
    }

    fn retract<'a>(&'a self, _: &'a Request, delivered: &'a Delivered) -> BoxFuture<'a, ()> {
        self.remove(delivered.channel, delivered.messages.iter().copied()).boxed()
    }

    fn retract_begun<'a>(&'a self, request: &'a Request, posting: &'a Posting) -> BoxFuture<'a, ()> {
        self.remove_begun(request, posting).boxed()
    }

    fn stands<'a>(&'a self, delivered: &'a Delivered) -> BoxFuture<'a, bool> {
        self.still_stands(delivered).boxed()
    }

    fn tell<'a>(&'a self, request: &'a Request, notice: Notice) -> BoxFuture<'a, Telling> {
        self.tell_end(request, notice).boxed()
    }
}

/// An interaction, as the message that it stands for.
fn number(id: u64) -> MessageId {
    MessageId::new(NonZeroU64::new(id).unwrap_or(NonZeroU64::MIN))
}

/// The address that invites the bot of this token; `None` when the token is not of the form that Discord gives them.
///
/// The first of a token's three parts is the bot's number in base64, which is its application's too.
pub fn invitation_of(token: &Secret) -> Option<String> {
    let (first, _) = token.expose().split_once('.')?;
    let decoded =
        base64::engine::general_purpose::STANDARD_NO_PAD.decode(first.trim_end_matches('=')).ok()?;
    let number: UserId = std::str::from_utf8(&decoded).ok()?.parse().ok()?;
    Some(invitation(number.get()))
}

/// The address that invites a bot with all that it can make use of.
fn invitation(application: u64) -> String {
    format!(
        "{DISCORD}/oauth2/authorize?client_id={application}&scope=bot+applications.commands&permissions={}",
        knowledge::WANTED.bits()
    )
}

/// Scheme, host and port of where Discord's REST interface is. The path below it is the library's.
fn origin(api_base: Option<&str>) -> Result<String, GatewayFailure> {
    let Some(base) = api_base else { return Ok(DISCORD.to_owned()) };
    let wrong = |why: &dyn std::fmt::Display| GatewayFailure::Setting(format!("discord.api_base: {why}"));
    let url = Url::parse(base).map_err(|error| wrong(&error))?;
    check_base(&url).map_err(|error| wrong(&error))?;
    let path = url.path().trim_end_matches('/');
    if !path.is_empty() && path != "/api" && !path.starts_with("/api/v") {
        return Err(wrong(&"it can only be a host, with or without /api/v10"));
    }
    Ok(url.origin().ascii_serialization())
}

/// The sender of messages, which may ask that one server and nobody else.
fn rest(base: &str, token: &Secret, clock: Clock, timeout: Duration) -> Result<Rest, GatewayFailure> {
    let other = |error: &dyn std::fmt::Display| GatewayFailure::Other(error.to_string());
    let base = Url::parse(base).map_err(|error| other(&error))?;
    // The sender has a rule of its own for what it asks; of these settings it uses the connections.
    let rule = EgressRule {
        urls: Arc::new(|_| Err("only Discord is asked here".to_owned())),
        addresses: Arc::new(|_| Ok(())),
    };
    let http = Http::new(HttpSettings { clock: clock.clone(), ..HttpSettings::new(rule) })
        .map_err(|error| other(&error))?;
    Ok(Rest::new(http, RestSettings { base, token: token.clone(), clock, timeout }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_to_no_stranger_in_the_open() {
        assert_eq!(origin(None).unwrap(), "https://discord.com");
        for (base, expected) in [
            ("http://127.0.0.1:3001", "http://127.0.0.1:3001"),
            ("http://[::1]:3001/", "http://[::1]:3001"),
            ("http://localhost:3001/api/v10", "http://localhost:3001"),
            ("https://proxy.example/api", "https://proxy.example"),
        ] {
            assert_eq!(origin(Some(base)).unwrap(), expected, "{base}");
        }
        for base in ["http://proxy.example", "https://proxy.example/discord", "http://10.0.0.1:80"] {
            assert!(origin(Some(base)).is_err(), "{base}");
        }
    }

    #[test]
    fn a_token_tells_whose_it_is() {
        let token = |text: &str| Secret::new(text.to_owned());
        // "123456789012345678" in base64, and something behind it.
        let invitation = invitation_of(&token("MTIzNDU2Nzg5MDEyMzQ1Njc4.x.y")).unwrap();
        assert!(invitation.contains("client_id=123456789012345678&"), "{invitation}");
        for text in ["", "x", "MTIz", "####.x.y", "YWJj.x.y"] {
            assert_eq!(invitation_of(&token(text)), None, "{text}");
        }
    }

    #[test]
    fn an_invitation_asks_for_what_is_used_and_no_more() {
        // View channels, send messages, in threads too, attach files, read history, manage messages.
        let bits: u64 = 1 << 10 | 1 << 11 | 1 << 38 | 1 << 15 | 1 << 16 | 1 << 13;
        assert!(
            invitation(7)
                .ends_with(&format!("client_id=7&scope=bot+applications.commands&permissions={bits}"))
        );
    }
}
