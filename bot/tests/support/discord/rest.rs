//! The way of every request: its faults, its sender, its limits, its route, its place in the log.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, Request, State as Shares};
use axum::response::Response;
use serde_json::{Value, json};

use super::Shared;
use super::answer::{Answer, Outcome};
use super::calls::{Call, Done};
use super::doors::Door;
use super::faults::{Armed, Fault, Scope, refused};
use super::form::{Form, Unread};
use super::state::State;

/// Answers a request, or does not.
pub(super) async fn handle(
    Shares(shared): Shares<Arc<Shared>>,
    ConnectInfo(door): ConnectInfo<Door>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let call = Call::new(&parts);
    let keep = shared.look(|state| state.keep_bytes);
    // Read before anything is decided, so that a fault meets a client that has sent all.
    let form = Form::read(parts, body, keep).await;
    let fault = shared.change(|state| Armed::take(&mut state.faults, &call));
    let unanswered = |state: &mut State| state.log(&call, 0, None);
    match fault {
        Some(Fault::Hang) => {
            shared.change(unanswered);
            pending::<()>().await;
        }
        Some(Fault::Drop) => {
            shared.change(unanswered);
            return cut(&door).await;
        }
        _ => {}
    }
    let answer = match form {
        Err(Unread::Broken) => {
            shared.change(unanswered);
            return cut(&door).await;
        }
        Err(Unread::Bad(answer)) => shared.change(|state| state.answer(&call, fault, |_| Err(answer))),
        Ok(form) => shared.change(|state| state.answer(&call, fault, |state| state.route(&call, &form))),
    };
    if fault == Some(Fault::DropAfterDone) {
        return cut(&door).await;
    }
    if let Some(Fault::Late(ms)) = fault {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    answer.into_response()
}

/// Closes the connection, so that nobody gets an answer.
async fn cut(door: &Door) -> Response {
    door.cut();
    tokio::task::yield_now().await;
    // Goes nowhere: the connection takes no more bytes.
    Answer::empty().into_response()
}

impl State {
    /// Answers a call that was read, and logs it.
    fn answer(
        &mut self,
        call: &Call,
        fault: Option<Fault>,
        route: impl FnOnce(&mut Self) -> Outcome,
    ) -> Answer {
        let answer = match self.admit(call, fault) {
            Err(answer) => answer,
            Ok(headers) => {
                let mut answer = route(self).unwrap_or_else(|refused| refused);
                answer.headers.extend(headers);
                answer
            }
        };
        let scope = answer.headers.iter().find(|(name, _)| *name == "X-RateLimit-Scope");
        let status = if fault == Some(Fault::DropAfterDone) { 0 } else { answer.status };
        let scope = scope.map(|(_, scope)| scope.clone());
        self.log(call, status, scope.as_deref());
        answer
    }

    /// Lets a call in, with the headers of its answer, or refuses it.
    fn admit(&mut self, call: &Call, fault: Option<Fault>) -> Result<Vec<(&'static str, String)>, Answer> {
        if !call.known_version {
            self.violate(format!("{} {} is not below /api/v10", call.method, call.path));
            return Err(Answer::refusal(404, 0, "404: Not Found"));
        }
        if !call.agent.as_ref().is_some_and(|agent| agent.starts_with("DiscordBot (") && agent.contains(", "))
        {
            self.violate(format!(
                "{} {} has no User-Agent of a bot: {:?}",
                call.method, call.path, call.agent
            ));
        }
        // What has a token in its path needs no other.
        let is_open =
            call.part(0) == "interactions" || (call.part(0) == "webhooks" && !call.part(2).is_empty());
        if !is_open && call.authorization.as_deref() != Some(&format!("Bot {}", self.token)) {
            return Err(Answer::refusal(401, 0, "401: Unauthorized"));
        }
        match fault {
            Some(Fault::Status(status)) => return Err(Answer::page(status)),
            Some(Fault::Code(status, code)) => return Err(refused(status, code)),
            Some(Fault::Limited { scope, retry_after_ms }) => {
                return Err(self.limits.limited(call, scope, Duration::from_millis(retry_after_ms)));
            }
            Some(Fault::Drop | Fault::DropAfterDone | Fault::Hang | Fault::Late(_) | Fault::Spared)
            | None => {}
        }
        self.limits.count(call)
    }

    fn log(&mut self, call: &Call, status: u16, scope: Option<&str>) {
        self.done.push(Done {
            method: call.method.clone(),
            path: call.path.clone(),
            status,
            shared: scope == Some(Scope::Shared.word()),
            at: Instant::now(),
        });
    }

    /// Finds what a call asks for.
    fn route(&mut self, call: &Call, form: &Form) -> Outcome {
        let (method, parts) = call.route();
        match (method, &*parts) {
            ("GET", ["gateway"]) => Ok(Answer::ok(json!({"url": self.gateway_url}))),
            ("GET", ["gateway", "bot"]) => Ok(Answer::ok(self.gateway_facts())),
            ("GET", ["users", "@me"]) => Ok(Answer::ok(self.user_json(self.bot))),
            ("GET", ["users", "@me", "guilds"]) => Ok(Answer::ok(self.guilds_in_short())),
            ("POST", ["users", "@me", "channels"]) => self.open_dm(form),
            ("GET", ["users", user]) => self.get_user(user),
            ("GET", ["applications" | "oauth2", ..]) if is_own_application(&parts) => {
                Ok(Answer::ok(self.application_json()))
            }
            ("GET", ["guilds", guild, below @ ..]) => self.get_guild(guild, below),
            (_, ["applications", application, below @ ..])
                if *application == self.application.to_string() =>
            {
                self.commands_route(method, below, form)
            }
            (_, ["channels", channel, below @ ..]) => self.channel_route(call, channel, below, form),
            ("POST", ["interactions", interaction, token, "callback"]) => {
                self.callback(call, interaction, token, form)
            }
            (_, ["webhooks", application, token, below @ ..])
                if *application == self.application.to_string() =>
            {
                self.webhook_route(method, token, below, form)
            }
            ("POST" | "GET" | "PATCH" | "DELETE", ["webhooks", ..]) => {
                Err(Answer::refusal(404, 10015, "Unknown Webhook"))
            }
            _ => {
                self.violate(format!("{method} {} leads nowhere", call.path));
                Err(Answer::refusal(404, 0, "404: Not Found"))
            }
        }
    }

    /// What `GET /gateway/bot` says.
    fn gateway_facts(&self) -> Value {
        json!({
            "url": self.gateway_url,
            "shards": self.shards,
            "session_start_limit": {
                "total": 1000,
                "remaining": self.starts_left,
                "reset_after": 14_400_000,
                "max_concurrency": 1,
            },
        })
    }
}

fn is_own_application(parts: &[&str]) -> bool {
    matches!(parts, ["applications", "@me"] | ["oauth2", "applications", "@me"])
}
