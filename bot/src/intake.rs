//! From a message to requests on their way: what every front end calls.
//!
//! Links, rate limit, delivery claim, already delivered?, queue. Every outcome is an [`Outcome`], so that no front end
//! has a case of its own, and none is silent.

use std::time::Duration;

use crate::clock::instant;
use crate::dedup::{Delivered, Desk, Ended, Place, Processed, WaitOutcome, Waiter};
use crate::domain::{
    ChannelId, DeliveryKey, Destination, FrontEnd, GuildId, MessageId, Options, Request, RequestId, UserId,
    find_links,
};
use crate::guard::rate::{RateAnswer, RateLimiter, Requester};
use crate::metrics::{Counter, Tracker};
use crate::queue::{MemoryQueue, QueueError};

/// A message that somebody wrote to the bot.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// Where it was written.
    pub front_end: FrontEnd,
    /// In which server; `None` for a direct message.
    pub guild: Option<GuildId>,
    /// In which channel.
    pub channel: ChannelId,
    /// By whom.
    pub author: UserId,
    /// Which message it is.
    pub message: MessageId,
    /// What it says.
    pub text: &'a str,
    /// How results are wanted.
    pub options: Options,
}

/// What became of a message.
#[derive(Debug)]
pub struct Taken {
    /// One for each link, in order; empty when there was none.
    pub outcomes: Vec<Outcome>,
    /// Links beyond those that one message may have.
    pub dropped: usize,
}

/// What became of one link.
#[derive(Debug)]
pub enum Outcome {
    /// It is on its way, and its end will be told.
    Accepted(Request),
    /// It is on its way for somebody else in the same channel.
    Joined {
        /// What was wanted.
        request: Request,
        /// How to learn where it stands.
        waiting: Waiting,
    },
    /// It stands in the channel already.
    AlreadyThere {
        /// What was wanted.
        request: Request,
        /// Where it stands.
        delivered: Delivered,
    },
    /// Too many requests in too short a time.
    Limited {
        /// What was wanted.
        request: Request,
        /// When the next one is taken.
        retry_after: Duration,
    },
    /// So many requests wait that no more are taken.
    Full(Request),
    /// The service is being stopped.
    Closed(Request),
}

/// A place behind somebody else's request.
#[derive(Debug)]
pub struct Waiting(Waiter<Ended>);

impl Waiting {
    /// How the other request ended; `None` when it was given up, and asking again makes sense. Cancel-safe.
    pub async fn end(self) -> Option<Ended> {
        match self.0.wait().await {
            WaitOutcome::Done(ended) => Some(ended),
            WaitOutcome::ClaimAgain => None,
        }
    }
}

/// Takes messages. Clones share everything.
#[derive(Clone, Debug)]
pub struct Intake {
    limiter: RateLimiter,
    desk: Desk,
    processed: Processed,
    queue: MemoryQueue,
    tracker: Tracker,
}

impl Intake {
    /// An intake in front of these rooms.
    pub const fn new(
        limiter: RateLimiter,
        desk: Desk,
        processed: Processed,
        queue: MemoryQueue,
        tracker: Tracker,
    ) -> Self {
        Self { limiter, desk, processed, queue, tracker }
    }

    /// Takes a message: each link in it becomes a request with an outcome.
    ///
    /// Cancel-safe: a link that was not come to is as if it had not been written.
    pub async fn take(&self, incoming: &Incoming<'_>) -> Taken {
        let found = find_links(incoming.text);
        let count = u64::try_from(found.links.len()).unwrap_or(u64::MAX);
        self.tracker.count(Counter::Links, count);
        let mut outcomes = Vec::with_capacity(found.links.len());
        for (ordinal, link) in (0_u8..).zip(found.links) {
            outcomes.push(
                self.ask(Request {
                    id: RequestId::new(incoming.front_end, incoming.message, ordinal),
                    requester: incoming.author,
                    link,
                    destination: Destination {
                        front_end: incoming.front_end,
                        guild: incoming.guild,
                        channel: incoming.channel,
                        reply_to: Some(incoming.message),
                    },
                    options: incoming.options,
                })
                .await,
            );
        }
        Taken { outcomes, dropped: found.dropped }
    }

    /// Sends one request on its way.
    pub async fn ask(&self, request: Request) -> Outcome {
        self.tracker.count(Counter::Requests, 1);
        let Destination { guild, channel, .. } = request.destination;
        let requester = Requester { user: request.requester, channel, guild };
        if let RateAnswer::Limited { retry_after, .. } = self.limiter.check(&requester) {
            self.tracker.count(Counter::RateLimited, 1);
            return Outcome::Limited { request, retry_after };
        }
        self.send(request).await
    }

    /// Sends a request on its way that no limit holds for: one that was let through before.
    pub async fn send(&self, request: Request) -> Outcome {
        let key = DeliveryKey::of(&request);
        match self.desk.claim(&key, request.id, instant()) {
            Place::Behind(waiter) => {
                self.tracker.count(Counter::Deduplicated, 1);
                return Outcome::Joined { request, waiting: Waiting(waiter) };
            }
            Place::First => {}
        }
        // From here on the claim is given up again on every way out but the queue, also when this call is dropped.
        let held = Held { desk: &self.desk, request: request.id, kept: false };
        if let Some(delivered) = self.processed.get(&key).await {
            self.tracker.count(Counter::Pointers, 1);
            let delivered = Delivered::clone(&delivered);
            // Those who joined meanwhile are told the same, and not that it was given up.
            if let Some(ownership) = self.desk.take(request.id) {
                ownership.complete(Ok(delivered.clone()));
            }
            return Outcome::AlreadyThere { request, delivered };
        }
        match self.queue.enqueue(request.clone()) {
            Ok(()) => {
                held.keep();
                Outcome::Accepted(request)
            }
            Err(error) => {
                tracing::warn!(%error, "a request is turned away");
                match error {
                    QueueError::Full { .. } => Outcome::Full(request),
                    QueueError::Closed => Outcome::Closed(request),
                }
            }
        }
    }
}

/// A claim that is given up unless it is kept.
struct Held<'a> {
    desk: &'a Desk,
    request: RequestId,
    kept: bool,
}

impl Held<'_> {
    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.desk.release(self.request);
        }
    }
}
