//! From a message to requests on their way: what every front end calls.
//!
//! Links, rate limit, delivery claim, already delivered?, queue. Every outcome is an [`Outcome`], so that no front end
//! has a case of its own, and none is silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::{Clock, instant};
use crate::dedup::{Delivered, Desk, Ended, Place, Processed, WaitOutcome, Waiter};
use crate::domain::{
    ChannelId, DeliveryKey, Destination, FrontEnd, GuildId, MessageId, Options, PostId, Request, RequestId,
    Telling, UserId, find_links,
};
use crate::guard::rate::{RateAnswer, RateLimiter, Requester};
use crate::metrics::{Counter, Note, Tracker};
use crate::queue::{Durability, Enqueued, JobId, JobResult, NewJob, Priority, Queue, QueueError, StateKind};
use tokio::time::sleep;

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
    /// The same message has come before: it is on its way, or was answered.
    Again(Request),
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
///
/// It is a job of its own too, which is not worked on as long as somebody in this process waits: when the process ends
/// before anybody was told, or this is dropped, the queue remembers.
#[derive(Debug)]
#[must_use = "dropping it has the request worked on by itself"]
pub struct Waiting {
    waiter: Waiter<Ended>,
    backing: Option<Backing>,
}

/// The job behind a place. Dropping it lets the job go.
#[derive(Debug)]
struct Backing {
    queue: Arc<dyn Queue>,
    job: JobId,
    closed: Arc<AtomicBool>,
    settled: bool,
}

impl Waiting {
    /// How the other request ended; `None` when it was given up, and [going on](Intake::go_on) makes sense.
    /// Cancel-safe.
    pub async fn end(&self) -> Option<Ended> {
        match self.waiter.wait().await {
            WaitOutcome::Done(ended) => Some(ended),
            WaitOutcome::ClaimAgain => None,
        }
    }

    /// Ends the wait, since the one who asked knows the end now, or the request is sent again. Whether this ended it:
    /// else the queue still has it and will answer it, or somebody else has answered it.
    pub async fn settle(mut self) -> bool {
        let Some(mut backing) = self.backing.take() else { return true };
        backing.forget().await
    }

    /// Has `telling` tell the end to the one who asked, and ends the wait. They are told once: not at all when the
    /// queue goes on with the request in its next process, or when somebody else has told them. Where they cannot be told
    /// now, the queue goes on with the request, and tells them when it can.
    pub async fn answer<T: Future<Output = Telling>>(mut self, telling: impl Fn() -> T) {
        let Some(mut backing) = self.backing.take() else { return insist(telling).await };
        // The queue closes soon, and what it still has then is answered later.
        if backing.closed.load(Ordering::SeqCst) {
            if backing.forget().await {
                insist(telling).await;
            }
            return;
        }
        if matches!(backing.queue.show(backing.job).await, Ok(None)) {
            backing.settled = true;
            return;
        }
        // In this order: a process that dies between the two has rather told it twice than never.
        if telling().await != Telling::Settled {
            return;
        }
        if !backing.forget().await {
            tracing::warn!(job = %backing.job, "somebody may be told again where a post is");
        }
    }
}

/// Tells somebody for whom there is no other memory.
pub(crate) async fn insist<T: Future<Output = Telling>>(telling: impl Fn() -> T) {
    let mut pause = FIRST_PAUSE;
    for _ in 0..TRIES {
        let Telling::Later(asked) = telling().await else { return };
        sleep(asked.unwrap_or_default().clamp(pause, LONGEST_PAUSE)).await;
        pause = pause.saturating_mul(2);
    }
    tracing::warn!("somebody could not be told how their request ended");
}

impl Backing {
    /// Whether the job was there and is not any more.
    async fn forget(&mut self) -> bool {
        match self.queue.forget(self.job).await {
            Ok(was_there) => {
                self.settled = true;
                was_there
            }
            Err(error) => {
                tracing::debug!(%error, job = %self.job, "a request that waited stays in the queue");
                false
            }
        }
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        if !self.settled {
            self.queue.let_go(self.job);
        }
    }
}

/// Takes messages. Clones share everything.
#[derive(Clone, Debug)]
pub struct Intake {
    limiter: RateLimiter,
    desk: Desk,
    processed: Processed,
    queue: Arc<dyn Queue>,
    tracker: Tracker,
    clock: Clock,
    closed: Arc<AtomicBool>,
}

impl Intake {
    /// An intake in front of these rooms.
    pub fn new(
        limiter: RateLimiter,
        desk: Desk,
        processed: Processed,
        queue: Arc<dyn Queue>,
        tracker: Tracker,
        clock: Clock,
    ) -> Self {
        Self { limiter, desk, processed, queue, tracker, clock, closed: Arc::new(AtomicBool::new(false)) }
    }

    /// Takes nothing more, in any of its clones.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
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
        if self.closed.load(Ordering::SeqCst) {
            return Outcome::Closed(request);
        }
        let key = DeliveryKey::of(&request);
        match self.desk.claim(&key, request.id, instant()) {
            Place::Behind(waiter) => {
                self.tracker.count(Counter::Deduplicated, 1);
                return self.join(request, waiter).await;
            }
            Place::First => {}
        }
        // From here on the claim is given up again on every way out but the queue, also when this call is dropped.
        let held = Held { desk: &self.desk, key, request: request.id, kept: false };
        if let Some(delivered) = self.processed.get(&key).await {
            self.tracker.count(Counter::Pointers, 1);
            let delivered = Delivered::clone(&delivered);
            // Those who joined meanwhile are told the same, and not that it was given up.
            if let Some(ownership) = self.desk.take_own(&key, request.id) {
                ownership.complete(Ok(delivered.clone()));
            }
            return Outcome::AlreadyThere { request, delivered };
        }
        match self.queue.enqueue(self.job(request.clone())).await {
            Ok(Enqueued::New(job)) => {
                // Closed meanwhile: whoever ended the jobs that wait has ended this one too, or did not see it.
                if self.closed.load(Ordering::SeqCst)
                    && !self.queue.keeps(job)
                    && self.queue.forget(job).await == Ok(true)
                {
                    return Outcome::Closed(request);
                }
                tracing::debug!(request = %request.id, post = %request.post(), %job, "accepted");
                held.keep();
                Outcome::Accepted(request)
            }
            // It waits, and whoever leases it takes the claim.
            Ok(Enqueued::Duplicate(_, StateKind::Ready | StateKind::Delayed | StateKind::Suspect)) => {
                held.keep();
                Outcome::Again(request)
            }
            Ok(Enqueued::Duplicate(_, StateKind::Done)) => self.done_before(request).await,
            Ok(Enqueued::Duplicate(..)) => Outcome::Again(request),
            Err(error) => {
                tracing::warn!(%error, "a request is turned away");
                if error == QueueError::Closed { Outcome::Closed(request) } else { Outcome::Full(request) }
            }
        }
    }

    /// Waits behind another request, as a job that is only worked on if nobody in this process answers it.
    async fn join(&self, request: Request, waiter: Waiter<Ended>) -> Outcome {
        if self.queue.durability() == Durability::None {
            return Outcome::Joined { request, waiting: Waiting { waiter, backing: None } };
        }
        let backing = match self.queue.enqueue_behind(self.job(request.clone())).await {
            Ok(Enqueued::New(job)) if self.queue.keeps(job) => {
                let closed = Arc::clone(&self.closed);
                Some(Backing { queue: Arc::clone(&self.queue), job, closed, settled: false })
            }
            Ok(Enqueued::New(job)) => {
                // In memory it would end with the waiter.
                drop(self.queue.forget(job).await);
                None
            }
            // Its own first coming is what it would wait for.
            Ok(Enqueued::Duplicate(..)) => return Outcome::Again(request),
            Err(error) => {
                tracing::debug!(%error, "a request that waits behind another one ends with the process");
                None
            }
        };
        Outcome::Joined { request, waiting: Waiting { waiter, backing } }
    }

    /// Lets a request go on whose [wait](Waiting::end) was given up: it is next, or behind whoever is by now. Where it is
    /// kept it goes on by itself, in the next process if this one is being stopped.
    pub async fn go_on(&self, request: Request, mut waiting: Waiting) -> Outcome {
        let Some(mut backing) = waiting.backing.take() else { return self.send(request).await };
        if self.closed.load(Ordering::SeqCst) {
            return Outcome::Again(request);
        }
        match backing.queue.show(backing.job).await {
            // Somebody else ended it, and told so.
            Ok(None) => {
                backing.settled = true;
                Outcome::Again(request)
            }
            Err(QueueError::Closed) => Outcome::Again(request),
            Ok(Some(_)) | Err(_) => Outcome::Accepted(request),
        }
    }

    /// What was done for a post lately, the oldest first; `None` when that is not noted.
    pub fn notes(&self, post: PostId) -> Option<Vec<Note>> {
        self.tracker.notes(post)
    }

    /// Forgets a job that is not held, without a word; who waits behind it goes on. Whether it was there.
    pub async fn forget(&self, job: JobId, request: &Request) -> bool {
        let forgotten = self.queue.forget(job).await == Ok(true);
        if forgotten {
            self.desk.release(&DeliveryKey::of(request), request.id);
        }
        forgotten
    }

    /// What became of a request that was done before.
    async fn done_before(&self, request: Request) -> Outcome {
        match self.queue.result(request.id).await {
            Ok(Some(JobResult::Delivered { front_end, channel, messages, at })) => {
                self.tracker.count(Counter::Pointers, 1);
                let delivered = Delivered { front_end, channel, messages, at };
                Outcome::AlreadyThere { request, delivered }
            }
            _ => Outcome::Again(request),
        }
    }

    fn job(&self, request: Request) -> NewJob {
        let now = self.clock.now();
        NewJob { request, priority: Priority::Interactive, not_before: now, deadline: now.plus(LIFE) }
    }
}

/// Who asked so long ago does not look for the answer any more.
pub(crate) const LIFE: Duration = Duration::from_secs(86_400);

/// How often somebody is told whom nothing else remembers, and the pause before the second time.
const TRIES: usize = 6;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A claim that is given up unless it is kept.
struct Held<'a> {
    desk: &'a Desk,
    key: DeliveryKey,
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
            self.desk.release(&self.key, self.request);
        }
    }
}
