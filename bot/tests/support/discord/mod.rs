//! A Discord on loopback: its gateway and its REST interface, as far as a bot like ours touches them.
//!
//! It is strict where Discord is (unknown channels, rights, forms, sizes, one answer per interaction) and stricter where
//! Discord only shrugs: an unknown field is an error, and what a good client never does is noted as a violation, which
//! every test asks for at its end. It keeps no time of its own but one that tests move by hand, so that a slow machine
//! changes no answer.
//!
//! A test program takes it with `#[path = "support/discord/mod.rs"] mod discord;`, so that the others need not build it.
#![allow(dead_code, unused_imports, reason = "each test program uses a part of it")]

mod answer;
mod calls;
mod commands;
mod doors;
mod faults;
mod form;
mod gateway;
mod interactions;
mod limits;
mod messages;
mod outgoing;
mod people;
mod rest;
mod rights;
mod schema;
mod shape;
mod state;
mod world;

use std::fmt::Write as _;
use std::panic::Location;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::get;
use serenity::model::id::{ApplicationId, ChannelId, MessageId, UserId};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

use self::doors::Doors;
pub(crate) use self::faults::{Fault, Scope};
pub(crate) use self::people::Use;
pub(crate) use self::state::{File, Interaction, Message, State};
pub(crate) use self::world::{ChannelSpec, GuildSpec, Kind, Overwrite, Whose};

/// How long a test waits for something before it fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// A Discord on loopback. Dropping it closes all connections.
#[derive(Debug)]
pub(crate) struct Discord {
    base: Url,
    shared: Arc<Shared>,
    task: AbortHandle,
}

/// What the parts of the double share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Counts changes, for those who wait for one.
    changes: watch::Sender<u64>,
    /// Closes all connections.
    cut: CancellationToken,
}

impl Shared {
    /// Looks at the state.
    fn look<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&self.state.lock().unwrap())
    }

    /// Changes the state, and wakes those who wait for a change.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let changed = change(&mut self.state.lock().unwrap());
        self.changes.send_modify(|changes| *changes += 1);
        changed
    }
}

impl Discord {
    /// Starts to listen on a free port.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cut = CancellationToken::new();
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(format!("ws://{address}/"))),
            changes: watch::Sender::new(0),
            cut: cut.clone(),
        });
        let routes = Router::new()
            .route("/", get(gateway::enter))
            .fallback(rest::handle)
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let service = routes.into_make_service_with_connect_info::<doors::Door>();
        let doors = Doors::new(listener, cut);
        let task = tokio::spawn(async move { drop(axum::serve(doors, service).await) }).abort_handle();
        Self { base: Url::parse(&format!("http://{address}")).unwrap(), shared, task }
    }

    /// The origin, to be used in place of `https://discord.com`.
    pub(crate) fn base(&self) -> Url {
        self.base.clone()
    }

    /// The bot's token. It looks like one, and opens nothing anywhere.
    pub(crate) fn token(&self) -> String {
        self.shared.look(|state| state.token.clone())
    }

    /// The token is not valid any more: requests get 401, and the gateway closes with 4004.
    pub(crate) fn revoke_token(&self) {
        self.shared.change(|state| state.token = "revoked".to_owned());
    }

    /// The bot's account.
    pub(crate) fn bot(&self) -> UserId {
        self.shared.look(|state| state.bot)
    }

    /// The bot's application.
    pub(crate) fn application(&self) -> ApplicationId {
        self.shared.look(|state| state.application)
    }

    // ---- what tests read -----------------------------------------------------------------------------------

    /// Looks at everything at once.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        self.shared.look(look)
    }

    /// The messages of a channel that are there, oldest first.
    pub(crate) fn messages(&self, channel: ChannelId) -> Vec<Message> {
        self.look(|state| state.messages(channel))
    }

    /// A message, also when it was deleted.
    pub(crate) fn message(&self, message: MessageId) -> Message {
        self.look(|state| state.message(message).unwrap().clone())
    }

    /// The messages that were deleted, oldest first.
    pub(crate) fn deleted(&self) -> Vec<Message> {
        self.look(State::deleted)
    }

    /// All requests so far: method, path below `/api/v10`, status. A request that got no answer has the status 0.
    pub(crate) fn requests(&self) -> Vec<(String, String, u16)> {
        self.look(State::requests)
    }

    /// What a good client would never have done.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.look(|state| state.violations.clone())
    }

    /// Waits until something is so. What is asked must not call the double itself, which is locked meanwhile.
    ///
    /// # Panics
    ///
    /// After 20 seconds, with the requests so far.
    #[track_caller]
    pub(crate) fn wait_until(&self, holds: impl Fn(&State) -> bool) -> impl Future<Output = ()> {
        let asked = Location::caller();
        async move {
            let mut changes = self.shared.changes.subscribe();
            let wait = async {
                while !self.shared.look(&holds) {
                    changes.changed().await.unwrap();
                }
            };
            if tokio::time::timeout(PATIENCE, wait).await.is_err() {
                panic!("waited in vain at {asked}\n{}", self.report());
            }
        }
    }

    /// What happened so far, for a test that fails.
    pub(crate) fn report(&self) -> String {
        self.look(|state| {
            let mut report = String::from("requests:\n");
            for (method, path, status) in state.requests() {
                writeln!(report, "  {method} {path} {status}").unwrap();
            }
            writeln!(report, "gateway: {}", state.gateway_in_words()).unwrap();
            for violation in &state.violations {
                writeln!(report, "violation: {violation}").unwrap();
            }
            report
        })
    }
}

impl Drop for Discord {
    fn drop(&mut self) {
        self.shared.cut.cancel();
        self.task.abort();
    }
}
