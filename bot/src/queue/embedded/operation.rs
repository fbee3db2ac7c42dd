//! What callers send to the writer's thread, and how they hear of it.

use std::mem;
use std::sync::mpsc::Sender;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::clock::WallTime;
use crate::queue::book::Book;
use crate::queue::{Enqueued, JobId, Lease, LeaseRef, QueueError};

/// What is sent to the writer.
pub(super) enum Message {
    /// Do this.
    Do(Box<dyn Operation>),
    /// Store what came before this, and end.
    Close,
}

/// What an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Room on the disk and somebody who waits for it.
    Enqueue,
    /// A disk that takes changes, and somebody who waits for it.
    Claim,
    /// A disk that takes changes.
    Change,
    /// Nothing: the memory knows.
    Look,
}

/// Something to be done with the book. It may be applied more than once: only the last time counts.
pub(super) trait Operation: Send {
    /// What it needs.
    fn kind(&self) -> Kind;

    /// Whether somebody waits for the answer.
    fn is_wanted(&self) -> bool;

    /// Does it, and keeps the answer.
    fn apply(&mut self, book: &mut Book, now: WallTime);

    /// Keeps this for the answer.
    fn refuse(&mut self, error: QueueError);

    /// Gives the answer, after what was done is stored.
    fn answer(self: Box<Self>);
}

/// An operation made of a function. `wrap` makes of its outcome what the caller gets.
pub(super) struct Call<T, U, F, W> {
    kind: Kind,
    deed: F,
    wrap: W,
    outcome: Option<Result<T, QueueError>>,
    reply: oneshot::Sender<Result<U, QueueError>>,
    /// Given back when it is over, whether or not its caller still waits: so many are under way and no more.
    _turn: OwnedSemaphorePermit,
}

/// An operation, and where its answer comes.
pub(super) type Pending<U> = (Box<dyn Operation>, oneshot::Receiver<Result<U, QueueError>>);

impl<T, U, F, W> Call<T, U, F, W>
where
    T: Send + 'static,
    U: Send + 'static,
    F: FnMut(&mut Book, WallTime) -> Result<T, QueueError> + Send + 'static,
    W: FnOnce(T) -> U + Send + 'static,
{
    pub(super) fn boxed(kind: Kind, deed: F, wrap: W, turn: OwnedSemaphorePermit) -> Pending<U> {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { kind, deed, wrap, outcome: None, reply, _turn: turn }), answer)
    }
}

impl<T, U, F, W> Operation for Call<T, U, F, W>
where
    T: Send,
    U: Send,
    F: FnMut(&mut Book, WallTime) -> Result<T, QueueError> + Send,
    W: FnOnce(T) -> U + Send,
{
    fn kind(&self) -> Kind {
        self.kind
    }

    fn is_wanted(&self) -> bool {
        !self.reply.is_closed()
    }

    fn apply(&mut self, book: &mut Book, now: WallTime) {
        self.outcome = Some((self.deed)(book, now));
    }

    fn refuse(&mut self, error: QueueError) {
        self.outcome = Some(Err(error));
    }

    fn answer(self: Box<Self>) {
        let Self { wrap, outcome, reply, .. } = *self;
        let outcome = outcome.unwrap_or(Err(QueueError::Unknown)).map(wrap);
        // Nobody waits: what has to be undone then is undone where the answer is dropped.
        let _ = reply.send(outcome);
    }
}

/// Leases on their way to who asked for them. When they do not arrive, they are handed back uncharged.
#[must_use = "dropping leases hands them back"]
pub(super) struct Leases {
    leases: Vec<Lease>,
    back: Sender<Message>,
}

impl Leases {
    pub(super) fn new(leases: Vec<Lease>, back: Sender<Message>) -> Self {
        Self { leases, back }
    }

    /// They have arrived.
    pub(super) fn take(mut self) -> Vec<Lease> {
        mem::take(&mut self.leases)
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        if !self.leases.is_empty() {
            let leases = self.leases.iter().map(|lease| lease.lease).collect();
            // When the writer has ended there is nobody to tell, and the next start takes them back.
            let _ = self.back.send(Message::Do(Box::new(HandBack(leases))));
        }
    }
}

/// A job on its way to who answers it. When that one is gone, it is let go.
#[must_use = "dropping it lets the job go"]
pub(super) struct Watch {
    enqueued: Enqueued,
    back: Sender<Message>,
    arrived: bool,
}

impl Watch {
    pub(super) const fn new(enqueued: Enqueued, back: Sender<Message>) -> Self {
        Self { enqueued, back, arrived: false }
    }

    /// It has arrived.
    pub(super) fn take(mut self) -> Enqueued {
        self.arrived = true;
        self.enqueued.clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Enqueued::New(job) = self.enqueued
            && !self.arrived
        {
            let _ = self.back.send(Message::Do(Box::new(LetGo(job))));
        }
    }
}

/// A job that nobody answers any more.
pub(super) struct LetGo(pub(super) JobId);

impl Operation for LetGo {
    fn kind(&self) -> Kind {
        Kind::Look
    }

    fn is_wanted(&self) -> bool {
        true
    }

    fn apply(&mut self, book: &mut Book, now: WallTime) {
        book.let_go(self.0, now);
    }

    fn refuse(&mut self, _: QueueError) {}

    fn answer(self: Box<Self>) {}
}

/// Leases that nobody got.
struct HandBack(Vec<LeaseRef>);

impl Operation for HandBack {
    fn kind(&self) -> Kind {
        Kind::Change
    }

    fn is_wanted(&self) -> bool {
        true
    }

    fn apply(&mut self, book: &mut Book, now: WallTime) {
        for lease in &self.0 {
            let _ = book.release(*lease, Duration::ZERO, now);
        }
    }

    // Then their time runs out, and the attempt is charged.
    fn refuse(&mut self, _: QueueError) {}

    fn answer(self: Box<Self>) {}
}
