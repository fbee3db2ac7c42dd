//! One attempt at one job: from its lease to a word to the queue, and to the one who asked.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::clock::instant;
use crate::dedup::{Delivered, DeliveryOwnership, Ended, Place, Recall, Waiter};
use crate::domain::{DeliveryKey, Disposition, Failure, Request, Stage, Telling};
use crate::metrics::Counter;
use crate::pipeline::activity::Activity;
use crate::pipeline::delivery::Notice;
use crate::pipeline::posting::Posting;
use crate::pipeline::worker::Worker;
use crate::queue::{Completed, DeadReason, Held, JobResult, Lease, LeaseRef, QueueError, Reason, Retried};

/// How an attempt came out of the work.
enum Outcome {
    Delivered(Delivered),
    /// Where, when it came so far.
    Failed(Failure, Option<Stage>),
    /// Whoever asked has taken it back.
    Withdrawn,
    /// The service ends.
    Stopped,
    /// Somebody else has the job by now.
    Lost,
}

impl Worker {
    /// Works on a job once.
    pub(super) async fn handle(&self, lease: Lease, stop: &CancellationToken) {
        let request = &lease.request;
        let key = DeliveryKey::of(request);
        let ownership = match self.own(request, &key) {
            Ok(ownership) => ownership,
            // Somebody works on the same delivery for a job that this queue does not have, as when it could not be stored:
            // when it is there, this one is a pointer.
            Err(waiter) => {
                tokio::select! {
                    _ = waiter.wait() => {}
                    () = stop.cancelled() => {}
                    () = sleep(BEHIND) => {}
                }
                self.queue_said("release", self.queue.release(lease.lease, Duration::ZERO).await);
                return;
            }
        };
        ownership.begin_work(instant());
        // Delivered for somebody else while the request waited; or for this one, by an attempt that was not heard of.
        if let Some(delivered) = self.standing(&key).await {
            // What this very request has posted needs no pointer to itself. Nobody else has posted it since it was begun.
            let own = lease.intent.as_ref().is_some_and(|intent| {
                delivered.at >= intent.started_at && delivered.messages.starts_with(&intent.posted)
            });
            if !own {
                if let Telling::Later(asked) = self.tell(request, Notice::Pointer(delivered.clone())).await {
                    return self.point_later(&lease, ownership, delivered, asked).await;
                }
                self.tracker.count(Counter::Pointers, 1);
            }
            self.complete(lease.lease, result_of(&delivered)).await;
            ownership.complete(Ok(delivered));
            return;
        }
        match self.work(&lease, stop).await {
            Outcome::Delivered(delivered) => {
                // First, and with the end of the job: what is stored is not done again.
                self.complete(lease.lease, result_of(&delivered)).await;
                // Whoever takes it back from here on finds the result.
                if self.withdrawals.contains(request.id) {
                    self.delivery.retract(request, &delivered).await;
                    self.processed.forget_this(&key, &delivered);
                    return drop(ownership);
                }
                self.tracker.count(Counter::Delivered, 1);
                self.processed.record(&key, delivered.clone());
                ownership.complete(Ok(delivered));
            }
            Outcome::Failed(failure, stage) => self.failed(&lease, ownership, failure, stage).await,
            Outcome::Withdrawn => {
                tracing::info!(request = %request.id, "taken back by who asked");
                if lease.intent.is_some() {
                    let posting = Posting::new(Arc::clone(&self.queue), &lease, self.clock.clone());
                    self.delivery.retract_begun(request, &posting).await;
                }
                // Whoever takes something back expects no word of it.
                let _ = self.tell(request, Notice::Failed(Failure::Cancelled)).await;
                let code = Failure::Cancelled.code().to_owned();
                self.complete(lease.lease, JobResult::Answered { code, at: self.clock.now() }).await;
                // Others who want the same have not taken it back: one of them is next.
                drop(ownership);
            }
            Outcome::Stopped if !self.queue.keeps(lease.lease.job) => {
                self.answer(&lease, ownership, Failure::Cancelled, None).await;
            }
            Outcome::Stopped => {
                self.queue_said("release", self.queue.release(lease.lease, Duration::ZERO).await);
            }
            Outcome::Lost => {
                tracing::warn!(request = %request.id, attempt = lease.attempt, "the lease on a job ran out");
            }
        }
    }

    /// The claim on the request's delivery: made when it was taken, or when another request of the same delivery was, or
    /// now, as after a restart. Of the jobs of one delivery the queue gives out one at a time.
    fn own(&self, request: &Request, key: &DeliveryKey) -> Result<DeliveryOwnership, Waiter<Ended>> {
        loop {
            if let Some(ownership) = self.desk.take(key) {
                return Ok(ownership);
            }
            if let Place::Behind(waiter) = self.desk.claim(key, request.id, instant()) {
                return Err(waiter);
            }
        }
    }

    /// Where the delivery stands, and still does.
    async fn standing(&self, key: &DeliveryKey) -> Option<Delivered> {
        let delivered = self.delivered(key).await?;
        if self.delivery.stands(&delivered).await {
            return Some(delivered);
        }
        self.processed.forget_this(key, &delivered);
        None
    }

    /// Where the delivery stands. The queue knows it when the process ended before it was remembered elsewhere.
    pub(super) async fn delivered(&self, key: &DeliveryKey) -> Option<Delivered> {
        match self.processed.recall(key).await {
            Recall::Delivered(delivered) => return Some(Delivered::clone(&delivered)),
            Recall::Forgotten => return None,
            Recall::Nothing => {}
        }
        match self.queue.delivered(key).await {
            Ok(Some(JobResult::Delivered { front_end, channel, messages, at })) => {
                self.processed.restore(key, Delivered { front_end, channel, messages, at })
            }
            Ok(_) => None,
            Err(error) => {
                self.queue_said::<()>("delivered", Err(error));
                None
            }
        }
    }

    /// Does the work, and holds the lease as long as it gets somewhere.
    async fn work(&self, lease: &Lease, stop: &CancellationToken) -> Outcome {
        let cancel = stop.child_token();
        let activity = Activity::of(Arc::clone(&self.queue), lease.lease);
        let posting = Posting::new(Arc::clone(&self.queue), lease, self.clock.clone());
        let _running = self.withdrawals.begin(lease.request.id, &cancel);
        let fulfilled = tokio::select! {
            biased;
            fulfilled = self.fulfil(&lease.request, &posting, &activity, &cancel, stop) => fulfilled,
            () = self.hold(lease.lease, &activity) => return Outcome::Lost,
        };
        match fulfilled {
            Ok(delivered) => Outcome::Delivered(delivered),
            Err(Failure::Cancelled) if stop.is_cancelled() => Outcome::Stopped,
            Err(Failure::Cancelled) => Outcome::Withdrawn,
            Err(failure) => Outcome::Failed(failure, activity.stage()),
        }
    }

    /// Extends a lease while there are signs of progress. Ends when it is over.
    async fn hold(&self, lease: LeaseRef, activity: &Activity) {
        let visibility = self.settings.lease;
        let mut until = after(visibility);
        let mut seen = activity.seen();
        loop {
            sleep(visibility / BEATS).await;
            let now = activity.seen();
            if now == seen {
                if until.is_some_and(|until| instant() >= until) {
                    return;
                }
                continue;
            }
            seen = now;
            match self.queue.extend(lease, visibility).await {
                Ok(Held::Until(_)) => until = after(visibility),
                Ok(Held::Lost) => return,
                // It is held as long as the queue cannot say otherwise.
                Err(error) => tracing::debug!(%error, job = %lease.job, "a lease was not extended"),
            }
        }
    }

    /// Puts a job back that may work later; the others are answered at once.
    async fn failed(
        &self,
        lease: &Lease,
        ownership: DeliveryOwnership,
        failure: Failure,
        stage: Option<Stage>,
    ) {
        let Disposition::Retry(asked) = failure.disposition() else {
            return self.answer(lease, ownership, failure, stage).await;
        };
        // Whoever asked is told now rather than after hours of silence.
        if asked.is_some_and(|asked| asked > MOST_ASKED) {
            return self.answer(lease, ownership, failure, stage).await;
        }
        let pause = self.pause(lease.attempt, asked, &failure);
        self.again(lease, ownership, pause, reason_of(&failure, stage), Err(failure)).await;
    }

    /// Has a job tried again to say where its media stand, since that could not be said.
    async fn point_later(
        &self,
        lease: &Lease,
        ownership: DeliveryOwnership,
        delivered: Delivered,
        asked: Option<Duration>,
    ) {
        let failure = Failure::transient("nobody could be told where the media stand");
        let pause = self.pause(lease.attempt, asked, &failure);
        let reason = reason_of(&failure, Some(Stage::Upload));
        self.again(lease, ownership, pause, reason, Ok(delivered)).await;
    }

    /// Puts a job back. `end` is for those who wait behind it, if this was its last attempt.
    async fn again(
        &self,
        lease: &Lease,
        ownership: DeliveryOwnership,
        pause: Duration,
        reason: Reason,
        end: Ended,
    ) {
        let request = &lease.request;
        let failure = reason.chain.first().cloned().unwrap_or_default();
        match self.queue.retry(lease.lease, pause, reason).await {
            Ok(Retried::At(_)) => {
                tracing::info!(request = %request.id, attempt = lease.attempt, failure, ?pause, "tried again later");
                self.tracker.count(Counter::Retries, 1);
                self.desk.put_back(request.id, ownership);
            }
            // It is told with the other dead letters.
            Ok(Retried::Dead(_)) => drop(ownership.complete(end)),
            Ok(Retried::Lost) => drop(ownership),
            Err(error) => {
                // Its lease runs out, and then it comes back by itself.
                self.queue_said::<()>("retry", Err(error));
                self.desk.put_back(request.id, ownership);
            }
        }
    }

    /// Tells why there is no media, and ends the job with that. Where it cannot be told now, it is with the dead
    /// letters, which are told until it works.
    async fn answer(
        &self,
        lease: &Lease,
        ownership: DeliveryOwnership,
        failure: Failure,
        stage: Option<Stage>,
    ) {
        let request = &lease.request;
        tracing::info!(request = %request.id, code = failure.code(), %failure, "ended without media");
        match self.tell(request, Notice::Failed(failure.clone())).await {
            Telling::Settled => {
                self.tracker.count(Counter::Failed, 1);
                let code = failure.code().to_owned();
                self.complete(lease.lease, JobResult::Answered { code, at: self.clock.now() }).await;
            }
            Telling::Later(_) => {
                let reason = reason_of(&failure, stage);
                // Where it cannot be stored, its lease runs out, and then it comes back by itself.
                self.queue_said("bury", self.queue.bury(lease.lease, reason, DeadReason::Permanent).await);
            }
        }
        ownership.complete(Err(failure));
    }

    /// Says something to the one who asked. A front end that does not take it holds nothing up.
    pub(super) async fn tell(&self, request: &Request, notice: Notice) -> Telling {
        timeout(self.settings.upload_timeout, self.delivery.tell(request, notice))
            .await
            .unwrap_or(Telling::Later(None))
    }

    /// Ends a job. A queue in trouble is asked again some times, since what is not stored is done again.
    async fn complete(&self, lease: LeaseRef, result: JobResult) {
        let mut pause = FIRST_PAUSE;
        for _ in 0..TRIES {
            match self.queue.complete(lease, result.clone()).await {
                Ok(Completed::Done | Completed::Already(_)) => return,
                Ok(Completed::Lost) => {
                    tracing::warn!(job = %lease.job, "a job was ended whose lease had run out");
                    return;
                }
                Err(QueueError::Closed) => break,
                Err(error) => tracing::debug!(%error, job = %lease.job, "the end of a job is not stored yet"),
            }
            sleep(pause).await;
            pause = pause.saturating_mul(2);
        }
        tracing::error!(job = %lease.job, "the end of a job could not be stored; it may be done again");
    }

    fn queue_said<T>(&self, call: &str, answer: Result<T, QueueError>) {
        if let Err(error) = answer {
            tracing::warn!(%error, call, "the queue did not do what it was asked");
        }
    }

    /// The pause before the attempt after `attempt`: at least what the upstream asked for, with full jitter. When
    /// nobody knows whether an upload arrived, it is short: a front end knows a repetition for some minutes only.
    fn pause(&self, attempt: u32, asked: Option<Duration>, failure: &Failure) -> Duration {
        let grown = self.settings.backoff.saturating_mul(GROWTH.saturating_pow(attempt.saturating_sub(1)));
        let unknown = matches!(failure, Failure::TimedOut { stage: Stage::Upload });
        let most = if unknown { grown.min(FIRST_PAUSE) } else { grown.min(LONGEST_PAUSE) };
        most.mul_f64(fastrand::f64()).max(asked.unwrap_or_default())
    }
}

fn after(time: Duration) -> Option<Instant> {
    instant().checked_add(time)
}

fn result_of(delivered: &Delivered) -> JobResult {
    let Delivered { front_end, channel, messages, at } = delivered.clone();
    JobResult::Delivered { front_end, channel, messages, at }
}

fn reason_of(failure: &Failure, stage: Option<Stage>) -> Reason {
    let mut chain = vec![failure.to_string()];
    let mut next = failure.source();
    while let Some(cause) = next {
        chain.push(cause.to_string());
        next = cause.source();
    }
    Reason { stage, code: failure.code().to_owned(), chain }
}

/// How often a lease is looked after before it would run out.
const BEATS: u32 = 3;
/// How long a job waits for somebody else who works on its delivery, before it is given back and comes anew.
const BEHIND: Duration = Duration::from_secs(30);
/// How often the end of a job is tried to be stored.
const TRIES: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// How much longer each pause is than the one before. Five attempts at 2 s and so on span minutes: an outage of
/// one is survived.
const GROWTH: u32 = 4;
/// An upstream that asks for a longer pause than this is not waited for.
const MOST_ASKED: Duration = Duration::from_secs(900);
/// Pauses between attempts are never longer than this, unless an upstream asks for more.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
