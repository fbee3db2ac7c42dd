//! One job between its submission and its result.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::clock::Deadlines;
use super::{lock, wait};
use crate::error::Error;
use crate::progress::{Control, Progress, Stage};

/// What a job does. It must ask the control between steps whether it has to stop.
pub(crate) type Work<T> = Box<dyn FnOnce(&Arc<Control>) -> Result<T, Error> + Send>;

/// The right to a job's result. Dropping it cancels the job.
#[must_use]
pub(crate) struct Ticket<T> {
    job: Arc<Job<T>>,
}

impl<T> Ticket<T> {
    pub(super) fn new(wall_time: Duration, work: Work<T>) -> Self {
        let state = State::Open { work: Some(work), waker: None };
        let control = Arc::new(Control::new());
        Self { job: Arc::new(Job { control, wall_time, state: Mutex::new(state), settled: Condvar::new() }) }
    }

    pub(super) fn job(&self) -> Arc<Job<T>> {
        Arc::clone(&self.job)
    }

    pub(crate) fn watcher(&self) -> Watcher<T> {
        Watcher { job: self.job() }
    }

    /// Blocks until the job is settled.
    pub(crate) fn wait(self) -> Result<T, Error> {
        self.job.wait()
    }
}

impl<T> Future for Ticket<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.job.poll(context)
    }
}

impl<T> Drop for Ticket<T> {
    fn drop(&mut self) {
        self.job.abandon();
    }
}

impl<T> fmt::Debug for Ticket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ticket").field(&self.job.control.progress()).finish()
    }
}

/// Watches and cancels a job without a right to its result; keeps neither the job nor its result alive.
pub(crate) struct Watcher<T> {
    job: Arc<Job<T>>,
}

impl<T> Watcher<T> {
    pub(crate) fn progress(&self) -> Progress {
        self.job.control.progress()
    }

    pub(crate) fn cancel(&self) {
        self.job.cancel();
    }
}

impl<T> Clone for Watcher<T> {
    fn clone(&self) -> Self {
        Self { job: Arc::clone(&self.job) }
    }
}

impl<T> fmt::Debug for Watcher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watcher").field(&self.progress()).finish()
    }
}

/// What ticket, watchers, queue, worker and clock share of a job.
pub(super) struct Job<T> {
    control: Arc<Control>,
    wall_time: Duration,
    state: Mutex<State<T>>,
    settled: Condvar,
}

enum State<T> {
    Open {
        /// Taken by the worker that begins the job.
        work: Option<Work<T>>,
        waker: Option<Waker>,
    },
    Settled(Result<T, Error>),
    /// The result was handed out, or nobody wants it any more.
    Taken,
}

impl<T> Job<T> {
    pub(super) fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// Does the work on the calling thread, unless the job was settled while it stood in the queue.
    pub(super) fn run(self: &Arc<Self>, deadlines: &Arc<Deadlines<T>>)
    where
        T: Send + 'static,
    {
        let Some(work) = self.begin() else { return };
        self.control.start_clock(self.wall_time);
        let watch = deadlines.watch(self);
        let result = catch(|| work(&self.control));
        drop(watch);
        // A stop shows inside the job as whatever it interrupted; the reason to stop is the cause.
        self.settle(result.map_err(|error| self.control.stop().err().map_or(error, Error::from)));
    }

    pub(super) fn cancel(&self) {
        self.control.cancel();
        self.settle(Err(Error::Cancelled));
    }

    /// Settles the job if its time is over.
    pub(super) fn expire(&self) {
        if let Err(reason) = self.control.stop() {
            self.settle(Err(reason.into()));
        }
    }

    fn begin(&self) -> Option<Work<T>> {
        match &mut *lock(&self.state) {
            State::Open { work, .. } => work.take(),
            State::Settled(_) | State::Taken => None,
        }
    }

    /// Sets the result if there is none yet, and wakes whoever waits for it.
    fn settle(&self, result: Result<T, Error>) {
        let mut state = lock(&self.state);
        // Under the lock, so that whoever has the result sees the last stage.
        self.control.enter(Stage::Done);
        if !matches!(*state, State::Open { .. }) {
            return;
        }
        if result.is_ok() {
            self.control.advance(1.0);
        }
        let before = mem::replace(&mut *state, State::Settled(result));
        drop(state);
        self.settled.notify_all();
        if let State::Open { waker: Some(waker), .. } = before {
            waker.wake();
        }
    }

    fn abandon(&self) {
        self.control.cancel();
        let mut state = lock(&self.state);
        self.control.enter(Stage::Done);
        let before = mem::replace(&mut *state, State::Taken);
        drop(state);
        drop(before);
    }

    fn wait(&self) -> Result<T, Error> {
        let mut state = lock(&self.state);
        while matches!(*state, State::Open { .. }) {
            state = wait(&self.settled, state);
        }
        take_result(&mut state)
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Result<T, Error>> {
        let new = context.waker().clone();
        let mut state = lock(&self.state);
        match &mut *state {
            State::Open { waker, .. } => {
                let outdated = waker.replace(new);
                drop(state);
                drop(outdated);
                Poll::Pending
            }
            State::Settled(_) | State::Taken => Poll::Ready(take_result(&mut state)),
        }
    }
}

fn take_result<T>(state: &mut State<T>) -> Result<T, Error> {
    match mem::replace(state, State::Taken) {
        State::Settled(result) => result,
        State::Open { .. } | State::Taken => Err(Error::internal("a job's result was asked for twice")),
    }
}

/// Runs `work` and turns a panic into `Internal` with the panic's message.
///
/// The process's panic hook still runs before and may print: a library does not replace it.
pub(crate) fn catch<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // Unwind safety: what the closure shares is a control of atomics, budgets and buffers whose states are
    // whole between any two statements, and the job's own values, which nobody sees again.
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let message = panic_message(&*payload);
        tracing::error!(panic = message, "a job panicked");
        Err(Error::internal(format!("a job panicked: {message}")))
    })
}

/// The panic's message on one line.
fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message");
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
