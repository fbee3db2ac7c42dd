//! Calls Discord's REST interface: sends messages, with their files as a stream, and whatever else is to be done there.
//!
//! The library has calls of its own. They would hold the files of a message in memory, several times over, and its
//! limiter asks Discord itself where a proxy or another server is configured. So all calls are made here, and limits are
//! kept in one place. This room never knows what a message is about. Its invariants:
//!
//! - A message mentions nobody, whatever stands in it: there is one place that writes it.
//! - No file is in memory as a whole because it is sent.
//! - What may have been taken is sent again only under its nonce.
//! - Limits are kept as Discord tells them, and refusals of any call are counted in one budget that is asked before
//!   each send.
//! - The token goes to the configured base and nowhere else, and is never shown.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::sleep;
use url::Url;

use crate::clock::{self, Clock, Instant};
use crate::config::Secret;
use crate::domain::{ChannelId, MessageId};
use crate::frontend::discord::gateway::GatewayFailure;
use crate::guard::budget::{Admission, InvalidBudget};
use crate::http::{CallBody, Http, Verb};

mod attempt;
mod base;
mod calls;
mod cut;
mod lane;
mod outgoing;
mod refused;
mod signals;
#[cfg(test)]
mod tests;
mod window;

pub(crate) use base::{check_base, is_this_machine};
pub(crate) use outgoing::{Outgoing, OutgoingFile};
pub(crate) use refused::{Refused, Scope};

use attempt::{Call, Trouble};

pub(crate) use calls::Interaction;
use lane::Lanes;

/// How Discord is asked.
#[derive(Clone, Debug)]
pub(crate) struct RestSettings {
    /// Its origin, `https://discord.com` unless the operator says otherwise. Held against [`check_base`] at each send.
    pub(crate) base: Url,
    /// The bot's token, without the word before it.
    pub(crate) token: Secret,
    /// Tells the time of day at which a pause ends.
    pub(crate) clock: Clock,
    /// How long one try to send files may take, from the connection to the answer's last byte, with all files.
    pub(crate) timeout: Duration,
}

/// Sends messages to Discord. Clones share limits, budget and connections.
#[derive(Clone)]
pub(crate) struct Rest(Arc<Inner>);

struct Inner {
    http: Http,
    base: Url,
    token: Secret,
    timeout: Duration,
    lanes: Lanes,
    budget: InvalidBudget,
    /// Why nothing is sent any more: the token was refused, or this address is blocked.
    over: watch::Sender<Option<Refused>>,
}

/// A message that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Posted {
    /// Its id.
    pub(crate) id: MessageId,
    /// Where it stands.
    #[serde(rename = "channel_id")]
    pub(crate) channel: ChannelId,
    /// How many files it has.
    #[serde(rename = "attachments", default, deserialize_with = "count")]
    pub(crate) files: usize,
}

/// How long a list is, whatever stands in it.
fn count<'de, D: serde::Deserializer<'de>>(list: D) -> Result<usize, D::Error> {
    Vec::<serde::de::IgnoredAny>::deserialize(list).map(|list| list.len())
}

impl Rest {
    /// Asks nobody yet. Of `http` the connections are used, and none of its rules.
    #[allow(clippy::needless_pass_by_value, reason = "the caller has no other use for it")]
    pub(crate) fn new(http: Http, settings: RestSettings) -> Self {
        let RestSettings { base, token, clock, timeout } = settings;
        Self(Arc::new(Inner {
            http: http.with_urls(base::only(&base)),
            base,
            token,
            timeout,
            lanes: Lanes::default(),
            budget: InvalidBudget::new(clock),
            over: watch::Sender::new(None),
        }))
    }

    /// Sends a message to a channel: `POST /api/v10/channels/{channel}/messages`.
    ///
    /// Waits for its turn, after those that came earlier, and out any limit, up to [`LONGEST_WAIT`] in all. With a
    /// nonce, what fails on the way or at the service is tried up to three times, quickly, as long as the nonce can be
    /// relied on.
    ///
    /// Can be dropped at any point; the message may have been sent by then.
    ///
    /// # Errors
    /// [`Refused::Unanswered`] when any try may have made the message and none is known to have; else why the last
    /// try failed.
    pub(crate) async fn create(&self, channel: ChannelId, message: &Outgoing) -> Result<Posted, Refused> {
        let payload = outgoing::payload(message)
            .map_err(|error| Refused::Ours { what: format!("a message cannot be written: {error}") })?;
        let tries = if message.nonce.is_some() { MORE_TRIES } else { 0 };
        let path = format!("/channels/{channel}/messages");
        // Words take no longer than any other call.
        let timeout = if message.files.is_empty() { self.0.timeout.min(ANSWERING) } else { self.0.timeout };
        let call =
            Call { verb: Verb::Post, path: &path, query: None, route: &format!("POST {path}"), timeout };
        let body = || attempt::body(payload.clone(), &message.files);
        self.repeat(call, tries, body, |answer| serde_json::from_slice(answer).ok()).await
    }

    /// Makes a call until it is done or cannot be, with so many tries after the first. An answer that cannot be `read` says
    /// that it is done, and not what came of it.
    async fn repeat<T, B>(
        &self,
        call: Call<'_>,
        tries: usize,
        body: impl Fn() -> B,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<T, Refused>
    where
        B: Future<Output = Result<CallBody, Refused>> + Send,
    {
        let mut pauses = pauses().with_max_times(tries).build();
        let mut patience = Patience::new();
        let mut limited: u32 = 0;
        let mut in_doubt = false;
        let mut doubted = None;
        let route = call.route;
        loop {
            let tried = self.attempt(call, body(), &mut patience).await;
            let read = tried.and_then(|answer| read(&answer).ok_or(Trouble::Passing(Refused::Unanswered)));
            let trouble = match read {
                Ok(read) => return Ok(read),
                Err(trouble) => trouble,
            };
            let refused = match trouble {
                // Waits out the limit in its next turn.
                Trouble::Limited { retry_after, .. }
                    if limited < MOST_LIMITED && retry_after <= patience.left =>
                {
                    limited = limited.saturating_add(1);
                    tracing::debug!(route, ?retry_after, "a call met a limit and waits");
                    continue;
                }
                Trouble::Limited { retry_after, scope } => Refused::Limited { retry_after, scope },
                Trouble::Passing(refused) => {
                    in_doubt |= refused == Refused::Unanswered;
                    let since = *doubted.get_or_insert(patience.sent);
                    if let Some(pause) = pauses.next()
                        && let Some(left) = nonce_left(since.elapsed(), pause)
                    {
                        patience.left = patience.left.min(left);
                        tracing::debug!(route, %refused, "a call is made again");
                        sleep(pause).await;
                        continue;
                    }
                    refused
                }
                Trouble::Refused(refused) => refused,
            };
            return Err(if in_doubt { doubtful(refused) } else { refused });
        }
    }

    /// Waits until Discord wants nothing more of this bot. Cancel-safe.
    pub(crate) async fn over(&self) -> GatewayFailure {
        let mut over = self.0.over.subscribe();
        let over = over.wait_for(Option::is_some).await.ok().and_then(|over| over.clone());
        match over {
            Some(Refused::Blocked) => GatewayFailure::Blocked,
            _ => GatewayFailure::Token,
        }
    }

    async fn admitted(&self, patience: &mut Patience) -> Result<(), Refused> {
        if let Some(over) = self.0.over.borrow().clone() {
            return Err(over);
        }
        match self.0.budget.admit(patience.left) {
            Admission::Now => Ok(()),
            Admission::After(wait) => {
                patience.spend(wait);
                sleep(wait).await;
                Ok(())
            }
            Admission::Paused { until } => Err(Refused::Paused { until }),
        }
    }

    /// Counts an answer that the service holds against us.
    fn count(&self, status: u16, scope: Option<Scope>) {
        if matches!(status, 401 | 403) || (status == 429 && scope != Some(Scope::Shared)) {
            self.0.budget.count();
        }
    }
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest").field("base", &self.0.base.as_str()).finish_non_exhaustive()
    }
}

/// How long a call still waits for turns and limits; the calls themselves are not counted.
#[derive(Debug)]
struct Patience {
    left: Duration,
    /// When the last try was sent.
    sent: Instant,
}

impl Patience {
    fn new() -> Self {
        Self { left: LONGEST_WAIT, sent: clock::instant() }
    }

    fn spend(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }

    /// When it ends, if all of it is spent from now on.
    fn end(&self) -> Instant {
        let now = clock::instant();
        now.checked_add(self.left).unwrap_or(now)
    }
}

/// How long, after a pause, the nonce of a message can still be relied on that may have been made `ago`; `None` when
/// it is over by then.
fn nonce_left(ago: Duration, pause: Duration) -> Option<Duration> {
    NONCE_HOLDS.checked_sub(ago.checked_add(pause)?)
}

/// What to say when an earlier try may have made the message. What the service itself says about the last try stands.
fn doubtful(last: Refused) -> Refused {
    match last {
        Refused::Later { .. } | Refused::Limited { .. } | Refused::Paused { .. } | Refused::Ours { .. } => {
            Refused::Unanswered
        }
        said => said,
    }
}

/// The pauses before further tries: about 100 and 400 ms. Longer ones are the queue's matter.
fn pauses() -> ExponentialBuilder {
    ExponentialBuilder::new().with_min_delay(Duration::from_millis(100)).with_factor(4.0).with_jitter()
}

/// How long a call waits for its turn and for limits, in all.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Discord keeps a nonce for "a few minutes" and does not say how many. What may have been made longer ago than this
/// is for the caller to look for, before it is sent again.
const NONCE_HOLDS: Duration = Duration::from_secs(60);

/// How long one try of a call without files may take.
const ANSWERING: Duration = Duration::from_secs(15);

/// Tries after the first.
const MORE_TRIES: usize = 2;

/// How often a call meets a limit before it is given up: who knows the limits meets one rarely.
const MOST_LIMITED: u32 = 5;
