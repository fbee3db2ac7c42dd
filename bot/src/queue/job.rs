//! What stands in a queue, and what is said about it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::WallTime;
use crate::domain::{ChannelId, Failure, FrontEnd, GuildId, MessageId, Request, RequestId, Stage, UserId};

/// A request that is to be queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// What is wanted. Its id is the job's key: the same id is never queued twice.
    pub request: Request,
    /// Who comes first.
    pub priority: Priority,
    /// It is not worked on before this moment.
    pub not_before: WallTime,
    /// From this moment on it is not tried any more.
    pub deadline: WallTime,
}

/// Who comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Somebody waits for it.
    #[default]
    Interactive,
    /// Nobody looks at a clock.
    Background,
}

/// A job's number in its queue, in the order in which jobs came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub u64);

/// Which lease of a job is meant: no two leases of a queue have the same, over restarts too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseToken(pub u64);

/// Names a lease. What is said with one that is over changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseRef {
    /// The job.
    pub job: JobId,
    /// The lease.
    pub token: LeaseToken,
}

/// The right to work on a job until a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Names it.
    pub lease: LeaseRef,
    /// What is wanted.
    pub request: Request,
    /// Which attempt this is, from 1. It is stored before the worker sees it.
    pub attempt: u32,
    /// How often a person had the job run again after it was dead; part of the nonce.
    pub generation: u32,
    /// When it was queued.
    pub enqueued_at: WallTime,
    /// Until when it is held, unless it is extended.
    pub until: WallTime,
    /// The job may have been what a process died of: nothing else is leased beside it.
    pub alone: bool,
    /// What an earlier attempt was about to post, and may have posted.
    pub intent: Option<Intent>,
}

/// What is about to be posted. Stored before the first byte is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// When the upload began.
    pub started_at: WallTime,
    /// In which channel.
    pub channel: ChannelId,
    /// How many messages it will be.
    pub parts: u8,
    /// Those of them that are known to stand there, in order.
    pub posted: Vec<MessageId>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum JobResult {
    /// The media stand there.
    Delivered {
        /// By which front end.
        front_end: FrontEnd,
        /// In which channel.
        channel: ChannelId,
        /// The messages that hold them, in order.
        messages: Vec<MessageId>,
        /// Since when.
        at: WallTime,
    },
    /// The person was told why there will be none.
    Answered {
        /// The failure's code.
        code: String,
        /// Since when.
        at: WallTime,
    },
}

/// What one attempt came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Which one, from 1.
    pub number: u32,
    /// When it ended.
    pub at: WallTime,
    /// Where it ended; `None` when nobody knows, as after a crash.
    pub stage: Option<Stage>,
    /// The failure's code, or `crashed`, `expired` (its lease ran out).
    pub code: String,
    /// The chain of errors, outermost first.
    pub chain: Vec<String>,
}

/// Why a job is given back or put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Where it ended.
    pub stage: Option<Stage>,
    /// The failure's code.
    pub code: String,
    /// The chain of errors, outermost first. Bounded by the queue: 8 lines of 500 bytes.
    pub chain: Vec<String>,
}

/// Why a job is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeadReason {
    /// It was tried as often as a job may be.
    Attempts,
    /// Its deadline passed.
    Deadline,
    /// Trying again would give the same.
    Permanent,
    /// The process died while it was alone, as often as that may be.
    Poison,
}

/// Where a job is in its life. `docs/queue.md` has the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum State {
    /// It waits; ready when `run_at` has come.
    Scheduled {
        /// Not before this moment.
        run_at: WallTime,
    },
    /// A worker holds it.
    Leased {
        /// Which lease.
        token: LeaseToken,
        /// Until when, unless it is extended.
        until: WallTime,
        /// Nothing else is leased beside it.
        alone: bool,
    },
    /// It was held when a process died: it is run alone next.
    Suspect {
        /// Not before this moment.
        run_at: WallTime,
    },
    /// It is over and was answered.
    Done,
    /// It is put aside until a person looks at it.
    Dead {
        /// Why.
        reason: DeadReason,
        /// Since when.
        at: WallTime,
    },
}

/// A job as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView {
    /// Its number.
    pub id: JobId,
    /// What is wanted.
    pub request: Request,
    /// Who comes first.
    pub priority: Priority,
    /// Where it is in its life.
    pub state: State,
    /// It is not worked on before another request of the same delivery is over, whatever its moment.
    pub waits: bool,
    /// That request's job, if it has one in this queue.
    pub behind: Option<JobId>,
    /// Attempts that were begun.
    pub attempts: u32,
    /// How often the process died while it was at the engine.
    pub suspicion: u32,
    /// How often a person had it run again.
    pub generation: u32,
    /// When it was queued.
    pub enqueued_at: WallTime,
    /// When it is not tried any more.
    pub deadline: WallTime,
    /// What its attempts came to, the last ones first to be kept: at most 20.
    pub history: Vec<Attempt>,
    /// How it ended. Queues that forget the job when it is done, and keep its result by its key, never have it here.
    pub result: Option<JobResult>,
}

/// Which jobs an operator means. The default is all that are not done.
///
/// As JSON, a key that is not known is refused: a wish that is not understood must not mean more jobs than it did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// In this state.
    pub state: Option<StateKind>,
    /// Of this server.
    pub guild: Option<GuildId>,
    /// Asked for by this person.
    pub user: Option<UserId>,
    /// Of this request.
    pub request: Option<RequestId>,
    /// Queued at least this long ago; in JSON milliseconds.
    #[serde(with = "millis")]
    pub older_than: Option<Duration>,
    /// Whose last failure had this code, or who are dead for this reason.
    pub reason: Option<String>,
    /// At most so many, the oldest first; 0 means 100.
    pub most: usize,
}

/// A state without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateKind {
    /// It waits and may be worked on now.
    Ready,
    /// It waits for a moment to come.
    Delayed,
    /// A worker holds it.
    Leased,
    /// It is to be run alone.
    Suspect,
    /// It is over.
    Done,
    /// It is put aside.
    Dead,
}

/// How many jobs there are of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// That may be worked on now, suspects among them.
    pub ready: u64,
    /// That wait for a moment to come.
    pub delayed: u64,
    /// That a worker holds.
    pub leased: u64,
    /// That are put aside.
    pub dead: u64,
    /// Since when the oldest one waits that may be worked on now.
    pub oldest_ready: Option<WallTime>,
    /// Why the queue cannot store what is accepted now; `None` when it can, or never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// What survives what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing survives the process.
    None,
    /// What was said to be stored is on the disk.
    Fsync,
}

impl State {
    /// The state without its data, at the moment `now`.
    pub fn kind(self, now: WallTime) -> StateKind {
        match self {
            Self::Scheduled { run_at } if run_at <= now => StateKind::Ready,
            Self::Scheduled { .. } => StateKind::Delayed,
            Self::Leased { .. } => StateKind::Leased,
            Self::Suspect { .. } => StateKind::Suspect,
            Self::Done => StateKind::Done,
            Self::Dead { .. } => StateKind::Dead,
        }
    }
}

impl State {
    /// The same of a job that waits for another one, or does not.
    pub(crate) fn kind_of(self, waits: bool, now: WallTime) -> StateKind {
        match self.kind(now) {
            StateKind::Ready if waits => StateKind::Delayed,
            kind => kind,
        }
    }
}

impl JobView {
    /// Its state without the data, at the moment `now`: one that waits for another job is delayed.
    pub fn kind(&self, now: WallTime) -> StateKind {
        self.state.kind_of(self.waits, now)
    }
}

impl StateKind {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Delayed => "delayed",
            Self::Leased => "leased",
            Self::Suspect => "suspect",
            Self::Done => "done",
            Self::Dead => "dead",
        }
    }

    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Ready, Self::Delayed, Self::Leased, Self::Suspect, Self::Done, Self::Dead];
}

impl Filter {
    /// Every reason that a job's last attempt can have come to, or that it can be dead for.
    pub fn reasons() -> impl Iterator<Item = &'static str> {
        Failure::CODES.into_iter().chain([CRASHED, EXPIRED]).chain(DeadReason::ALL.map(DeadReason::name))
    }
}

/// What the history says of an attempt during which the process died.
pub(super) const CRASHED: &str = "crashed";

/// What the history says of an attempt whose lease ran out.
pub(super) const EXPIRED: &str = "expired";

impl DeadReason {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Attempts, Self::Deadline, Self::Permanent, Self::Poison];

    /// The word for it, as it is stored.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Attempts => "attempts",
            Self::Deadline => "deadline",
            Self::Permanent => "permanent",
            Self::Poison => "poison",
        }
    }
}

impl NewJob {
    /// The job's key.
    pub const fn key(&self) -> RequestId {
        self.request.id
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Times as whole milliseconds.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let millis = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        millis.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}
