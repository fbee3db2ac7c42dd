//! Requests between those who take them and those who do the work.
//!
//! This room never knows what a request is for. What a queue promises stands in `docs/queue.md`; `bot/tests/queue/`
//! holds it to that, whichever queue it is.

mod book;
mod embedded;
mod fail_open;
mod job;
mod memory;
mod record;
mod state;

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::clock::WallTime;
use crate::domain::{DeliveryKey, RequestId};

pub use self::book::BookSettings;
pub use self::embedded::{EmbeddedQueue, EmbeddedSettings, OpenError, QueueHealth, QueueState};
pub use self::fail_open::FailOpen;
pub use self::job::{
    Attempt, DeadReason, Durability, Filter, Intent, JobId, JobResult, JobView, Lease, LeaseRef, LeaseToken,
    NewJob, Priority, Reason, State, StateKind, Stats,
};
pub use self::memory::MemoryQueue;

/// What a call of a queue comes to.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, QueueError>>;

/// Jobs, and who holds them.
///
/// Every call ends within some seconds, whatever the disk does. A call that is dropped may still take effect: its
/// caller does not know, as after [`QueueError::Unknown`].
pub trait Queue: fmt::Debug + Send + Sync + 'static {
    /// Adds a job. `Ok` means that it is as durable as [`durability`](Queue::durability) says.
    fn enqueue(&self, job: NewJob) -> Answer<'_, Enqueued>;

    /// Adds a job whose requester somebody in this process answers, when another request of the same delivery ends. It
    /// is not worked on before it is [let go](Queue::let_go) or the process has ended; but it can be past its deadline.
    fn enqueue_behind(&self, job: NewJob) -> Answer<'_, Enqueued>;

    /// Nobody in this process answers this job any more: it is worked on like others. Waits for nothing.
    fn let_go(&self, job: JobId);

    /// Leases at most `most` jobs that are ready, each for `visibility`; none when none is ready. Of the jobs of one
    /// delivery one is leased at a time. The attempt is counted and stored first. Leases whose caller is gone when they are made are handed back uncharged.
    fn claim(&self, most: usize, visibility: Duration) -> Answer<'_, Vec<Lease>>;

    /// Waits until there may be something to claim. Cancel-safe; may wake for nothing.
    fn ready(&self) -> BoxFuture<'_, ()>;

    /// Holds a job for `visibility` from now.
    fn extend(&self, lease: LeaseRef, visibility: Duration) -> Answer<'_, Held>;

    /// Stores that the job's media are given to the engine, until [`intend`](Queue::intend): if the process dies
    /// meanwhile, it may be this job that it died of.
    fn engage(&self, lease: LeaseRef) -> Answer<'_, Held>;

    /// Stores what is about to be posted, or what of it stands there by now.
    fn intend(&self, lease: LeaseRef, intent: Intent) -> Answer<'_, Held>;

    /// Ends a job: its result and its end are stored together.
    fn complete(&self, lease: LeaseRef, result: JobResult) -> Answer<'_, Completed>;

    /// Gives a job back that is to be tried again, not before `after`. Dead when it was tried as often as it may be,
    /// or would come after its deadline.
    fn retry(&self, lease: LeaseRef, after: Duration, reason: Reason) -> Answer<'_, Retried>;

    /// Puts a job aside until a person looks at it. The one who asked is not told by this: see [`unanswered`](Queue::unanswered).
    fn bury(&self, lease: LeaseRef, reason: Reason, why: DeadReason) -> Answer<'_, Held>;

    /// Gives a job back as if it had not been leased, to be claimed again `after` this time: no attempt is counted.
    fn release(&self, lease: LeaseRef, after: Duration) -> Answer<'_, Held>;

    /// At most `most` dead jobs whose requesters were not told yet, the oldest first.
    fn unanswered(&self, most: usize) -> Answer<'_, Vec<JobView>>;

    /// Notes that the one who asked for a dead job was told; `false` when it is not dead.
    fn answered(&self, id: JobId) -> Answer<'_, bool>;

    /// How the job of this request ended; `None` when it did not, or too long ago.
    fn result(&self, key: RequestId) -> Answer<'_, Option<JobResult>>;

    /// Where the media of a delivery stand; `None` when no result of it is kept. The newest, when there are several.
    fn delivered(&self, key: &DeliveryKey) -> Answer<'_, Option<JobResult>>;

    /// The jobs that are meant, the oldest first.
    fn list(&self, filter: Filter) -> Answer<'_, Vec<JobView>>;

    /// One job with everything that is known about it.
    fn show(&self, id: JobId) -> Answer<'_, Option<JobView>>;

    /// Has a dead job run again as a new generation, with all its attempts; `false` when it is not dead.
    fn revive(&self, id: JobId, deadline: WallTime) -> Answer<'_, bool>;

    /// Forgets a job that is not leased; `false` when there is none.
    fn forget(&self, id: JobId) -> Answer<'_, bool>;

    /// Takes those jobs out that wait and would be lost with the process, whatever they wait for. None, in a queue that
    /// is kept.
    fn drain(&self) -> Answer<'_, Vec<JobView>>;

    /// How many jobs there are of each kind.
    fn stats(&self) -> Answer<'_, Stats>;

    /// What survives what.
    fn durability(&self) -> Durability;

    /// Whether this job is still there when the process was ended and begins anew.
    fn keeps(&self, job: JobId) -> bool {
        let _ = job;
        self.durability() != Durability::None
    }

    /// Takes no more calls, stores what is under way and closes. Leases that are still held come back at the next
    /// start. Idempotent.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// What became of a job that was to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// It has this number.
    New(JobId),
    /// A job of this key is there already, or ended a short while ago.
    Duplicate(JobId, StateKind),
}

/// Whether a lease is still held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Until this moment. What was asked for is done.
    Until(WallTime),
    /// It is over, and nothing was changed.
    Lost,
}

/// What became of a job that was to be ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completed {
    /// It is done.
    Done,
    /// It was done before, with this result.
    Already(JobResult),
    /// The lease is over, and nothing was changed.
    Lost,
}

/// What became of a job that was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retried {
    /// It is tried again at this moment.
    At(WallTime),
    /// It was tried as often as it may be, or its time is over.
    Dead(DeadReason),
    /// The lease is over, and nothing was changed.
    Lost,
}

/// Why a queue did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// It holds as many jobs as it may.
    #[error("{capacity} requests are waiting already")]
    Full {
        /// How many.
        capacity: usize,
    },
    /// It cannot store anything now. Nothing was changed.
    #[error("the queue cannot store anything: {0}")]
    Unavailable(String),
    /// Whether it was done is not known: ask again with the same key or lease.
    #[error("the queue did not answer in time")]
    Unknown,
    /// It is closed.
    #[error("the queue is closed")]
    Closed,
}
