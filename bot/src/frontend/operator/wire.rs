//! What an operator and the service say to each other: one JSON object a line.
//!
//! Its words are promises to scripts, which see the same with `--json`: none is taken away or changes its meaning.

use serde::{Deserialize, Serialize};

use crate::clock::WallTime;
use crate::domain::{
    ChannelId, FrontEnd, GuildId, MediaChoice, MessageId, PostId, Request, RequestId, UserId,
};
use crate::queue::{
    Attempt, DeadReason, Filter, JobId, JobResult, JobView, Priority, State, StateKind, Stats,
};

/// What an operator wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ask {
    /// The jobs that are meant, the oldest first.
    List(Filter),
    /// One job with everything that is known about it.
    Show(JobId),
    /// How the job of a request ended.
    Result(RequestId),
    /// These dead jobs are to run again.
    Retry(Vec<JobId>),
    /// These jobs are to be forgotten.
    Drop(Vec<JobId>),
    /// How many jobs there are of each kind.
    Stats(NoWords),
}

/// An object without anything in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoWords {}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Told<T> {
    /// What was wanted.
    Ok(T),
    /// Why it was not done, in one line.
    Error(String),
}

/// What is in an answer; which of them, follows from what was asked.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Reply {
    Jobs(Vec<Job>),
    Job(Option<Box<Job>>),
    Result(Option<JobResult>),
    Fates(Vec<Fate>),
    Stats(Stats),
}

/// A job as an operator sees it. Moments are milliseconds since 1970, UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// Where it was in its life when the answer was given.
    pub state: StateKind,
    /// Who comes first.
    pub priority: Priority,
    /// What is wanted.
    pub request: Wanted,
    /// When it was queued.
    pub enqueued_at: WallTime,
    /// When it is not tried any more.
    pub deadline: WallTime,
    /// For one that waits: not before this moment.
    pub run_at: Option<WallTime>,
    /// It waits for another request of the same delivery, whatever the moment.
    #[serde(default)]
    pub waits: bool,
    /// That request's job, if it has one.
    #[serde(default)]
    pub behind: Option<JobId>,
    /// For one that is leased: until when, unless the worker makes progress.
    pub leased_until: Option<WallTime>,
    /// Leased with nothing else beside it.
    pub alone: bool,
    /// For one that is dead: why.
    pub dead_reason: Option<DeadReason>,
    /// For one that is dead: since when.
    pub dead_since: Option<WallTime>,
    /// Attempts that were begun.
    pub attempts: u32,
    /// How often the process died while it was at the engine.
    pub suspicion: u32,
    /// How often a person had it run again.
    pub generation: u32,
    /// What its last attempts came to, at most 20; in a list the last one only.
    pub history: Vec<Attempt>,
    /// How it ended, for one that did.
    pub result: Option<JobResult>,
}

/// A request in words that need no knowledge of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The request's own id.
    pub id: RequestId,
    /// Where it was asked for.
    pub front_end: FrontEnd,
    /// The post's address, with the medium if one is meant.
    pub link: String,
    /// The post.
    pub post: PostId,
    /// The server; `None` for a direct message and in a terminal.
    pub guild: Option<GuildId>,
    /// The channel that the answer goes to.
    pub channel: ChannelId,
    /// Who asked.
    pub requester: UserId,
    /// In which message.
    pub message: MessageId,
    /// What is made of it: `as-is`, `audio` or `gif`.
    pub form: String,
    /// Where the wanted part begins; 0 is the beginning.
    pub start_ms: u64,
    /// Where the wanted part ends; `None` is the end.
    pub end_ms: Option<u64>,
    /// Hidden behind a spoiler.
    pub spoiler: bool,
}

/// What became of a job that was to run again or to be forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fate {
    /// The job.
    pub id: JobId,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Whether it was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// It was.
    Done,
    /// There is no such job.
    Absent,
    /// Not in this state.
    Refused {
        /// In which state it is.
        state: StateKind,
    },
    /// The queue did not do it.
    Failed {
        /// Why.
        error: String,
    },
}

impl Job {
    /// The whole job, as it was at the moment `now`.
    pub(super) fn new(view: JobView, now: WallTime) -> Self {
        let kind = view.kind(now);
        let JobView {
            id,
            request,
            priority,
            state,
            waits,
            behind,
            attempts,
            suspicion,
            generation,
            enqueued_at,
            deadline,
            history,
            result,
        } = view;
        let mut job = Self {
            id,
            state: kind,
            priority,
            request: Wanted::new(&request),
            enqueued_at,
            deadline,
            run_at: None,
            waits,
            behind,
            leased_until: None,
            alone: false,
            dead_reason: None,
            dead_since: None,
            attempts,
            suspicion,
            generation,
            history,
            result,
        };
        match state {
            State::Scheduled { run_at } | State::Suspect { run_at } => job.run_at = Some(run_at),
            State::Leased { token: _, until, alone } => {
                (job.leased_until, job.alone) = (Some(until), alone);
            }
            State::Done => {}
            State::Dead { reason, at } => (job.dead_reason, job.dead_since) = (Some(reason), Some(at)),
        }
        job
    }

    /// The job as it stands in a list: a thousand whole histories would be a hundred megabytes.
    pub(super) fn short(mut view: JobView, now: WallTime) -> Self {
        let last = view.history.pop();
        view.history = last.into_iter().collect();
        Self::new(view, now)
    }
}

impl Wanted {
    fn new(request: &Request) -> Self {
        let medium = match request.choice() {
            None => String::new(),
            Some(MediaChoice::Photo(place)) => format!("/photo/{place}"),
            Some(MediaChoice::Video(place)) => format!("/video/{place}"),
        };
        let edits = request.options.edits;
        let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            id: request.id,
            front_end: request.destination.front_end,
            link: request.post().url() + &medium,
            post: request.post(),
            guild: request.destination.guild,
            channel: request.destination.channel,
            requester: request.requester,
            message: request.id.origin(),
            form: edits.form.code().to_owned(),
            start_ms: millis(edits.trim.start()),
            end_ms: edits.trim.end().map(millis),
            spoiler: request.spoiler(),
        }
    }
}
