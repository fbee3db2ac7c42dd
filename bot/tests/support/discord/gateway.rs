//! The gateway: sessions, what they are told, and how they break.

use std::sync::Arc;

use axum::extract::ws::{CloseFrame, Message as Frame, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State as Shares};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use serenity::model::gateway::GatewayIntents;
use serenity::model::id::{ChannelId, GuildId};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::answer::Answer;
use super::state::State;
use super::{Discord, Shared};

/// The version of the gateway that we speak.
const VERSION: u64 = 10;

/// Something that the bot is told.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) name: &'static str,
    pub(super) guild: Option<GuildId>,
    /// Where it happens; the bot hears of it when it sees that channel.
    pub(super) channel: Option<ChannelId>,
    /// The intents of which a session must have one; none for what everybody hears.
    pub(super) needs: GatewayIntents,
    pub(super) data: Value,
}

/// A session, which outlives its connections.
#[derive(Debug)]
pub(super) struct Session {
    id: String,
    shard: (u64, u64),
    intents: GatewayIntents,
    /// All events so far, for those who resume. The n-th has the sequence number n.
    log: Vec<Value>,
    pub(super) link: Option<u64>,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    out: UnboundedSender<Out>,
    /// Takes everything and gives nothing.
    zombie: bool,
}

/// What goes out on a connection.
#[derive(Debug)]
enum Out {
    Say(String),
    Close(u16, &'static str),
    Cut,
}

#[derive(Debug, Deserialize)]
pub(super) struct Wishes {
    v: Option<u64>,
    encoding: Option<String>,
    compress: Option<String>,
}

/// Takes a connection to the gateway.
pub(super) async fn enter(
    Shares(shared): Shares<Arc<Shared>>,
    Query(wishes): Query<Wishes>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let plain =
        wishes.compress.is_none() && wishes.encoding.as_deref().is_none_or(|encoding| encoding == "json");
    if wishes.v != Some(VERSION) || !plain {
        shared.change(|state| {
            state.violate(format!("the gateway speaks plain JSON of version 10, not {wishes:?}"));
        });
        return Answer::page(400).into_response();
    }
    if shared.look(|state| state.gateway_is_shut) {
        return Answer::page(503).into_response();
    }
    if shared.look(|state| state.gateway_is_silent) {
        std::future::pending::<()>().await;
    }
    upgrade.on_upgrade(|socket| serve(socket, shared))
}

/// Serves a connection until one side ends it.
async fn serve(mut socket: WebSocket, shared: Arc<Shared>) {
    let (out, mut outgoing) = unbounded_channel();
    let link = shared.change(|state| state.connect(out));
    loop {
        tokio::select! {
            out = outgoing.recv() => match out {
                Some(Out::Say(text)) => {
                    if socket.send(Frame::text(text)).await.is_err() {
                        break;
                    }
                }
                Some(Out::Close(code, reason)) => {
                    let frame = CloseFrame { code, reason: reason.into() };
                    if socket.send(Frame::Close(Some(frame))).await.is_ok() {
                        // Until the other side has closed too.
                        while let Some(Ok(_)) = socket.recv().await {}
                    }
                    break;
                }
                Some(Out::Cut) | None => break,
            },
            frame = socket.recv() => match frame {
                Some(Ok(Frame::Text(text))) => shared.change(|state| state.hear(link, &text)),
                Some(Ok(Frame::Binary(_))) => shared.change(|state| state.close(link, 4002, "Decode error.")),
                Some(Ok(Frame::Ping(_) | Frame::Pong(_))) => {}
                Some(Ok(Frame::Close(frame))) => {
                    // Who says good-bye like this wants no session any more.
                    let code = frame.map_or(1005, |frame| frame.code);
                    shared.change(|state| state.leave(link, [1000, 1001].contains(&code)));
                    // The answer to it goes out while we wait for the end.
                    while let Some(Ok(_)) = socket.recv().await {}
                    break;
                }
                Some(Err(_)) | None => break,
            },
        }
    }
    shared.change(|state| state.leave(link, false));
}

impl Event {
    /// An event about a guild as a whole.
    pub(super) fn of_guild(name: &'static str, guild: GuildId, data: Value) -> Self {
        Self { name, guild: Some(guild), channel: None, needs: GatewayIntents::GUILDS, data }
    }
}

impl Discord {
    /// Cuts all connections to the gateway, without a word. Sessions can be resumed.
    pub(crate) fn drop_connections(&self) {
        self.shared.change(|state| state.all_links(|state, link| state.cut(link)));
    }

    /// Asks all connections to reconnect: operation 7.
    pub(crate) fn ask_to_reconnect(&self) {
        self.shared
            .change(|state| state.all_links(|state, link| state.say(link, &json!({"op": 7, "d": null}))));
    }

    /// Tells all connections that their session is invalid: operation 9. One that cannot be resumed is forgotten.
    pub(crate) fn invalidate(&self, can_resume: bool) {
        self.shared.change(|state| {
            if !can_resume {
                state.sessions.clear();
            }
            state.all_links(|state, link| state.say(link, &json!({"op": 9, "d": can_resume})));
        });
    }

    /// Closes all connections with a code.
    pub(crate) fn close_connections(&self, code: u16) {
        self.shared.change(|state| state.all_links(|state, link| state.close(link, code, "as asked")));
    }

    /// From now on the present connections take everything and give nothing: no events, no answers to heartbeats. What
    /// happens meanwhile is kept for those who resume.
    pub(crate) fn go_zombie(&self) {
        self.shared.change(|state| state.links.values_mut().for_each(|link| link.zombie = true));
    }

    /// Tells every connected session its last `count` events again, with the numbers that they had.
    pub(crate) fn replay(&self, count: usize) {
        self.shared.change(|state| {
            for at in 0..state.sessions.len() {
                let session = &state.sessions[at];
                let from = session.log.len().saturating_sub(count);
                if let Some(link) = session.link {
                    let again: Vec<Value> = session.log[from..].to_vec();
                    again.iter().for_each(|event| state.say(link, event));
                }
            }
        });
    }

    /// Sets how often connections that begin from now on have to send a heartbeat.
    pub(crate) fn set_heartbeat(&self, interval: std::time::Duration) {
        self.shared.change(|state| state.heartbeat = interval);
    }
}

impl State {
    /// Tells all sessions that may hear it.
    pub(super) fn dispatch(&mut self, event: &Event) {
        if event.channel.is_some_and(|channel| !self.sees(channel)) {
            return;
        }
        if event.guild.is_some_and(|guild| !self.guilds[&guild].spec.bot_is_member)
            && event.name != "INTERACTION_CREATE"
        {
            return;
        }
        let place = event.guild.map_or(0, |guild| guild.get() >> 22);
        for at in 0..self.sessions.len() {
            let session = &self.sessions[at];
            let (shard, shards) = session.shard;
            let hears = event.needs.is_empty() || session.intents.intersects(event.needs);
            if !hears || place % shards != shard {
                continue;
            }
            let mut data = event.data.clone();
            if event.name.starts_with("MESSAGE_")
                && !session.intents.contains(GatewayIntents::MESSAGE_CONTENT)
                && data["author"].is_object()
            {
                self.conceal(&mut data);
            }
            self.tell(at, event.name, &data);
        }
    }

    /// Gives a session an event, and its connection, if it has one.
    fn tell(&mut self, session: usize, name: &str, data: &Value) {
        let session = &mut self.sessions[session];
        let event = json!({"op": 0, "t": name, "s": session.log.len() + 1, "d": data});
        session.log.push(event.clone());
        if let Some(link) = session.link {
            self.say(link, &event);
        }
    }

    fn say(&mut self, link: u64, what: &Value) {
        if let Some(link) = self.links.get(&link).filter(|link| !link.zombie) {
            // A connection that is just ending gets it by a resume.
            drop(link.out.send(Out::Say(what.to_string())));
        }
    }

    fn all_links(&mut self, act: impl Fn(&mut Self, u64)) {
        let links: Vec<u64> = self.links.keys().copied().collect();
        links.into_iter().for_each(|link| act(self, link));
    }

    fn connect(&mut self, out: UnboundedSender<Out>) -> u64 {
        self.last_link += 1;
        let link = self.last_link;
        self.links.insert(link, Link { out, zombie: false });
        let interval = u64::try_from(self.heartbeat.as_millis()).unwrap();
        self.say(link, &json!({"op": 10, "d": {"heartbeat_interval": interval}}));
        link
    }

    fn end(&mut self, link: u64, with: Out) {
        if let Some(ended) = self.links.get(&link) {
            drop(ended.out.send(with));
        }
        self.leave(link, false);
    }

    fn cut(&mut self, link: u64) {
        self.end(link, Out::Cut);
    }

    fn close(&mut self, link: u64, code: u16, reason: &'static str) {
        self.end(link, Out::Close(code, reason));
    }

    /// A connection is gone; its session stays, unless it said good-bye.
    fn leave(&mut self, link: u64, for_good: bool) {
        self.links.remove(&link);
        if for_good {
            self.sessions.retain(|session| session.link != Some(link));
        }
        for session in &mut self.sessions {
            session.link = session.link.filter(|linked| *linked != link);
        }
    }

    /// Takes what a client says.
    fn hear(&mut self, link: u64, text: &str) {
        // A zombie hears nothing; and who is being closed has nothing to say.
        if self.links.get(&link).is_none_or(|link| link.zombie) {
            return;
        }
        let Ok(said) = serde_json::from_str::<Value>(text) else {
            self.violate("what came to the gateway is no JSON");
            return self.close(link, 4002, "Decode error.");
        };
        let session = self.sessions.iter().position(|session| session.link == Some(link));
        let data = &said["d"];
        match (said["op"].as_u64(), session) {
            (Some(1), _) => self.hear_heartbeat(link, session, data),
            (Some(2), None) => self.identify(link, data),
            (Some(6), None) => self.resume(link, data),
            (Some(2 | 6), Some(_)) => {
                self.violate("identified twice");
                self.close(link, 4005, "Already authenticated.");
            }
            (Some(3), Some(_)) => {}
            (Some(3 | 4 | 8), None) => {
                self.violate(format!("said {said} before it identified"));
                self.close(link, 4003, "Not authenticated.");
            }
            _ => {
                self.violate(format!("said {said} to the gateway, which a bot like this does not need"));
                self.close(link, 4001, "Unknown opcode.");
            }
        }
    }

    fn hear_heartbeat(&mut self, link: u64, session: Option<usize>, number: &Value) {
        let last = session.map_or(0, |at| self.sessions[at].log.len());
        let is_known =
            number.is_null() || number.as_u64().is_some_and(|number| number <= u64::try_from(last).unwrap());
        if !is_known {
            self.violate(format!("a heartbeat names {number}, though {last} is the last event"));
        }
        self.say(link, &json!({"op": 11, "d": null}));
    }

    fn identify(&mut self, link: u64, data: &Value) {
        let token = data["token"].as_str().unwrap_or_default();
        if token.trim_start_matches("Bot ") != self.token {
            return self.close(link, 4004, "Authentication failed.");
        }
        let properties = &data["properties"];
        if ["os", "browser", "device"].iter().any(|name| !properties[name].is_string()) {
            self.violate("identified without os, browser and device");
            return self.close(link, 4002, "Decode error.");
        }
        let bits = data["intents"].as_u64();
        let Some(intents) = bits.and_then(GatewayIntents::from_bits) else {
            return self.close(link, 4013, "Invalid intent(s).");
        };
        let mut granted = GatewayIntents::all() - GatewayIntents::privileged();
        granted.set(GatewayIntents::MESSAGE_CONTENT, self.content_granted);
        if !granted.contains(intents) {
            return self.close(link, 4014, "Disallowed intent(s).");
        }
        let shard = match &data["shard"] {
            Value::Null => Some((0, 1)),
            shard => shard[0].as_u64().zip(shard[1].as_u64()).filter(|(shard, shards)| shard < shards),
        };
        let Some(shard) = shard else { return self.close(link, 4010, "Invalid shard.") };
        if self.starts_left == 0 {
            self.violate("identified though no session could be started any more");
            return self.close(link, 4004, "Authentication failed.");
        }
        self.starts_left -= 1;
        self.identified.push(intents);
        let id = format!("session-{:x}", self.snowflake());
        self.sessions.push(Session { id: id.clone(), shard, intents, log: Vec::new(), link: Some(link) });
        let session = self.sessions.len() - 1;
        let member = self
            .guilds
            .iter()
            .filter(|(id, guild)| guild.spec.bot_is_member && (id.get() >> 22) % shard.1 == shard.0);
        let guilds: Vec<GuildId> = member.map(|(id, _)| *id).collect();
        let unavailable = |guild: &GuildId| json!({"id": guild, "unavailable": true});
        let ready = json!({
            "v": VERSION,
            "user": self.user_json(self.bot),
            "guilds": guilds.iter().map(unavailable).collect::<Vec<_>>(),
            "session_id": id,
            "resume_gateway_url": self.gateway_url,
            "shard": [shard.0, shard.1],
            "application": {"id": self.application, "flags": 0},
        });
        self.tell(session, "READY", &ready);
        if intents.contains(GatewayIntents::GUILDS) {
            for guild in guilds {
                let data = self.guild_create_json(guild);
                self.tell(session, "GUILD_CREATE", &data);
            }
        }
    }

    fn resume(&mut self, link: u64, data: &Value) {
        if data["token"].as_str().unwrap_or_default().trim_start_matches("Bot ") != self.token {
            return self.close(link, 4004, "Authentication failed.");
        }
        let found = self.sessions.iter().position(|session| json!(session.id) == data["session_id"]);
        let Some(at) = found else {
            return self.say(link, &json!({"op": 9, "d": false}));
        };
        let seen = data["seq"].as_u64().and_then(|seen| usize::try_from(seen).ok());
        let Some(missed) = seen.and_then(|seen| self.sessions[at].log.get(seen..)).map(<[Value]>::to_vec)
        else {
            self.violate(format!("resumed with {}, which is no number of an event", data["seq"]));
            return self.close(link, 4007, "Invalid seq.");
        };
        if let Some(old) = self.sessions[at].link {
            self.cut(old);
        }
        self.sessions[at].link = Some(link);
        self.resumed += 1;
        missed.iter().for_each(|event| self.say(link, event));
        self.tell(at, "RESUMED", &json!({}));
    }

    /// The connections, for a test that fails.
    pub(super) fn gateway_in_words(&self) -> String {
        let told = |session: &Session| {
            format!("{} has {} events, link {:?}", session.id, session.log.len(), session.link)
        };
        let sessions: Vec<String> = self.sessions.iter().map(told).collect();
        format!("{} connections, {} resumed; {}", self.links.len(), self.resumed, sessions.join("; "))
    }
}
