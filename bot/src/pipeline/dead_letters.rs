//! Tells those whose jobs are dead: tried too often, too late, refused while nobody could be told, or what the process
//! died of.
//!
//! Apart from the work on jobs: a channel that takes no words holds nothing else up. Whoever cannot be told now is told
//! later, in the next process too, as long as the queue keeps the dead letter.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::clock::instant;
use crate::domain::{ChannelId, DeliveryKey, Failure, Telling};
use crate::metrics::Counter;
use crate::pipeline::delivery::Notice;
use crate::pipeline::worker::Worker;
use crate::queue::{DeadReason, JobId, JobView, State};

/// How a dead letter stands that the queue has as not told.
#[derive(Clone, Copy, Debug)]
enum Standing {
    /// Somebody is at it.
    Telling { tries: u32, channel: ChannelId },
    /// Told, and the queue could not note that: it is not told again in this process.
    Noting { from: Instant },
    /// To be told again, not before this moment.
    Later { from: Instant, tries: u32 },
}

/// What came of one try.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Noted,
    Unnoted,
    Later(Option<Duration>),
}

/// The dead letters of a worker's queue.
#[derive(Debug)]
pub(super) struct DeadLetters {
    worker: Worker,
    standing: HashMap<JobId, Standing>,
    telling: JoinSet<(JobId, End)>,
}

impl DeadLetters {
    pub(super) fn of(worker: Worker) -> Self {
        Self { worker, standing: HashMap::new(), telling: JoinSet::new() }
    }

    /// Tells them until `cancel` is called; those who are being told then have a moment to hear the end of it.
    pub(super) async fn run(mut self, cancel: CancellationToken) {
        loop {
            self.begin().await;
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                Some(ended) = self.telling.join_next() => self.ended(ended.ok()),
                () = sleep(LOOK) => {}
            }
        }
        // What is not noted by then is told again in the next process.
        let rest = async { while self.telling.join_next().await.is_some() {} };
        let _ = timeout(GRACE, rest).await;
    }

    /// Has those told whose time has come.
    async fn begin(&mut self) {
        let most = MOST.saturating_add(self.standing.len());
        let Ok(dead) = self.worker.queue.unanswered(most).await else { return };
        let untold: HashSet<JobId> = dead.iter().map(|job| job.id).collect();
        self.standing
            .retain(|id, standing| matches!(standing, Standing::Telling { .. }) || untold.contains(id));
        let now = instant();
        for job in dead {
            if self.telling.len() >= AT_ONCE {
                return;
            }
            let (told, tries) = match self.standing.get(&job.id) {
                None => (false, 0),
                Some(Standing::Later { from, tries }) if *from <= now => (false, *tries),
                Some(Standing::Noting { from }) if *from <= now => (true, 0),
                Some(_) => continue,
            };
            let channel = job.request.destination.channel;
            if self.told_at_once(channel) >= AT_ONCE_THERE {
                continue;
            }
            if !self.standing.contains_key(&job.id) {
                self.worker.announce(&job);
            }
            self.standing.insert(job.id, Standing::Telling { tries, channel });
            let worker = self.worker.clone();
            self.telling.spawn(async move {
                let id = job.id;
                let end = AssertUnwindSafe(worker.tell_end(job, told)).catch_unwind().await;
                (id, end.unwrap_or(End::Later(None)))
            });
        }
    }

    /// Those who are being told something in a channel.
    fn told_at_once(&self, there: ChannelId) -> usize {
        let telling =
            |standing: &&Standing| matches!(standing, Standing::Telling { channel, .. } if *channel == there);
        self.standing.values().filter(telling).count()
    }

    fn ended(&mut self, ended: Option<(JobId, End)>) {
        let Some((id, end)) = ended else { return };
        let tries = match self.standing.get(&id) {
            Some(Standing::Telling { tries, .. }) => tries.saturating_add(1),
            _ => 1,
        };
        let now = instant();
        let at = |pause: Duration| now.checked_add(pause).unwrap_or(now);
        match end {
            End::Noted => drop(self.standing.remove(&id)),
            End::Unnoted => drop(self.standing.insert(id, Standing::Noting { from: at(LOOK) })),
            End::Later(asked) => {
                if tries == 1 {
                    tracing::warn!(job = %id, "who asked for it cannot be told that it is dead; that is tried again");
                }
                let pause = FIRST_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(16));
                let pause = pause.min(LONGEST_PAUSE).max(asked.unwrap_or_default());
                self.standing.insert(id, Standing::Later { from: at(pause), tries });
            }
        }
    }
}

impl Worker {
    /// Notes for those who look after the service that a job is dead.
    fn announce(&self, job: &JobView) {
        tracing::warn!(
            request = %job.request.id,
            failure = %last_failure(job),
            attempts = job.attempts,
            "a dead letter: `azalea queue show {}` tells its history",
            job.id
        );
        self.tracker.count(Counter::DeadLetters, 1);
        self.tracker.count(Counter::Failed, 1);
    }

    /// Tells how a dead job ended, unless they were `told`, and has the queue note it.
    pub(super) async fn tell_end(&self, job: JobView, told: bool) -> End {
        if !told {
            // Somebody else may have had it delivered meanwhile.
            let notice = match self.delivered(&DeliveryKey::of(&job.request)).await {
                Some(delivered) => Notice::Pointer(delivered),
                None => Notice::Failed(last_failure(&job)),
            };
            if let Telling::Later(asked) = self.tell(&job.request, notice).await {
                return End::Later(asked);
            }
        }
        match self.queue.answered(job.id).await {
            Ok(_) => End::Noted,
            Err(error) => {
                tracing::warn!(%error, job = %job.id, "after a restart it may be told again");
                End::Unnoted
            }
        }
    }
}

/// What a dead job's requester is told.
fn last_failure(job: &JobView) -> Failure {
    let last = job.history.last();
    match job.state {
        State::Dead { reason: DeadReason::Poison, .. } => {
            Failure::ours("the program ended while it worked on it, again and again")
        }
        State::Dead { reason: DeadReason::Deadline, .. } => {
            Failure::transient("it could not be done in the time that there is for it")
        }
        _ => {
            let what = last.and_then(|attempt| attempt.chain.first()).map_or("", String::as_str);
            let known = last.and_then(|attempt| Failure::recall(&attempt.code, what, attempt.stage));
            known.unwrap_or_else(|| match what {
                "" => Failure::ours("the work on it ended without a word"),
                what => Failure::ours(what),
            })
        }
    }
}

/// Those who are told at once.
const AT_ONCE: usize = 16;
/// Of these, in one channel: one that takes no words holds up no other.
const AT_ONCE_THERE: usize = 4;
/// Dead letters that are looked at beside those that stand.
const MOST: usize = 1024;
/// How often the queue is asked.
const LOOK: Duration = Duration::from_secs(1);
/// The pause before somebody is told again; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// How long the end waits for those who are being told.
const GRACE: Duration = Duration::from_secs(5);
