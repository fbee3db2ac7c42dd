//! Threads, the bounded queue, the panic boundary, and the budget of codec threads.
//!
//! The room runs closures. It does not know what a job does, and must never: media, plans and codecs are
//! named elsewhere, which is also what lets its tests run jobs that block, wait and panic without a file.
//!
//! Invariants:
//! - **A job is settled once.** The first of its own result, a cancel and its deadline wins; what comes later
//!   is dropped.
//! - **Whoever waits for a job does not wait for its thread.** A cancel settles the job where it is called, a
//!   deadline where the clock thread sees it, even while the job's thread sits in one long foreign call.
//! - **A panic ends one job.** Its thread takes the next.
//! - **No lock is held while foreign code runs**: wakers are called, and wakers, results and work are dropped,
//!   after the lock is gone, since any of them may come back into this room.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError};

use crate::confine;
use crate::error::Error;

mod budget;
mod clock;
mod job;
mod porter;
#[cfg(test)]
mod tests;

pub(crate) use budget::ThreadBudget;
pub(crate) use job::{Ticket, Watcher, Work, catch};
pub(crate) use porter::Porter;

use clock::Clock;
use job::Job;

/// A fixed number of named threads behind a bounded queue.
///
/// Dropping it cancels queued and running jobs and waits for the threads, so for as long as the running jobs
/// take to notice.
pub(crate) struct Pool<T: Send + 'static> {
    intake: Arc<Intake<T>>,
    /// The workers' end of the queue, kept to empty it when the pool is dropped.
    queue: Receiver<Arc<Job<T>>>,
    workers: Vec<JoinHandle<()>>,
    /// Dropped after the workers have been joined, since they set deadlines.
    clock: Clock<T>,
}

impl<T: Send + 'static> Pool<T> {
    /// Starts `threads` workers behind a queue of `depth` jobs; zero counts as one in both. Those that are confined
    /// can open no file by name, and no connection.
    ///
    /// # Errors
    /// `Internal` when the system refuses a thread; those already started are stopped.
    pub(crate) fn start(threads: usize, depth: usize, confined: bool) -> Result<Self, Error> {
        // A queue without a place would be a rendezvous, which takes a job only while a worker is idle.
        let depth = depth.max(1);
        let (sender, queue) = crossbeam_channel::bounded(depth);
        let door = Door { sender: Some(sender), waiting: BTreeMap::new(), next_turn: 0, running: Vec::new() };
        let intake = Arc::new(Intake { depth, door: Mutex::new(door) });
        let mut pool = Self { intake, queue, workers: Vec::new(), clock: Clock::start()? };
        for index in 0..threads.max(1) {
            let (intake, queue, deadlines) =
                (Arc::clone(&pool.intake), pool.queue.clone(), pool.clock.deadlines());
            let worker = spawn(format!("azalea-{index}"), move || {
                if confined {
                    confine::this_thread();
                }
                for job in &queue {
                    intake.begin(&job);
                    job.run(&deadlines);
                    intake.end(&job);
                }
            })?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// Enqueues a job that may take `wall_time` from the moment a worker begins it.
    ///
    /// # Errors
    /// `Busy` when the queue is full.
    pub(crate) fn try_submit(&self, wall_time: Duration, work: Work<T>) -> Result<Ticket<T>, Error> {
        let ticket = Ticket::new(wall_time, work);
        let offer = self.intake.lock().offer(&ticket);
        match offer {
            Offer::Taken => Ok(ticket),
            Offer::Full => Err(Error::Busy { depth: self.intake.depth }),
            Offer::Closed => Err(Error::Cancelled),
        }
    }

    /// Enqueues a job as soon as there is room.
    pub(crate) fn submit(&self, wall_time: Duration, work: Work<T>) -> Submission<T> {
        let ticket = Ticket::new(wall_time, work);
        Submission { intake: Arc::clone(&self.intake), ticket: Some(ticket), turn: None }
    }
}

impl<T: Send + 'static> Drop for Pool<T> {
    fn drop(&mut self) {
        let (running, waiting) = {
            let mut door = self.intake.lock();
            door.sender = None;
            (door.running.clone(), std::mem::take(&mut door.waiting))
        };
        for job in running {
            job.cancel();
        }
        // A worker that takes one of these first finds the door closed and cancels it itself.
        for job in self.queue.try_iter() {
            job.cancel();
        }
        for waker in waiting.into_values() {
            waker.wake();
        }
        for worker in self.workers.drain(..) {
            join(worker);
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("threads", &self.workers.len())
            .field("depth", &self.intake.depth)
            .field("queued", &self.queue.len())
            .finish_non_exhaustive()
    }
}

/// A submission that waits for a place in the queue.
///
/// Cancel-safe: dropping it before it is ready means that the job never was.
#[must_use]
pub(crate) struct Submission<T> {
    intake: Arc<Intake<T>>,
    ticket: Option<Ticket<T>>,
    /// Its place among those that wait, kept over polls so that nobody who comes later goes first for ever.
    turn: Option<u64>,
}

impl<T> Future for Submission<T> {
    type Output = Result<Ticket<T>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(ticket) = this.ticket.take() else {
            return Poll::Ready(Err(Error::internal("a submission was polled after it was ready")));
        };
        let waker = context.waker().clone();
        let mut door = this.intake.lock();
        let offer = door.offer(&ticket);
        // Held until after the lock is gone.
        let _outdated = match offer {
            Offer::Full => {
                let turn = *this.turn.get_or_insert_with(|| door.take_turn());
                door.waiting.insert(turn, waker)
            }
            Offer::Taken | Offer::Closed => this.turn.take().and_then(|turn| door.waiting.remove(&turn)),
        };
        drop(door);
        match offer {
            Offer::Taken => Poll::Ready(Ok(ticket)),
            Offer::Closed => Poll::Ready(Err(Error::Cancelled)),
            Offer::Full => {
                this.ticket = Some(ticket);
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Submission<T> {
    fn drop(&mut self) {
        let Some(turn) = self.turn else { return };
        let mut door = self.intake.lock();
        let own = door.waiting.remove(&turn);
        // Without an entry it has been woken: there is a place that it will not take, so the next one may.
        let next = if own.is_none() { door.next_waiting() } else { None };
        drop(door);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

impl<T> fmt::Debug for Submission<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submission").field("turn", &self.turn).finish_non_exhaustive()
    }
}

/// The way into the queue, shared by the pool, its workers and the submissions that wait.
struct Intake<T> {
    depth: usize,
    door: Mutex<Door<T>>,
}

/// Jobs are sent only under this lock, and a worker takes it after each job it receives: whoever found the
/// queue full has put down a waker before the worker looks for one, so no wake-up is lost.
struct Door<T> {
    /// `None` once the pool is being dropped.
    sender: Option<Sender<Arc<Job<T>>>>,
    /// Those that found the queue full, by turn. One that is woken is taken out.
    waiting: BTreeMap<u64, Waker>,
    next_turn: u64,
    running: Vec<Arc<Job<T>>>,
}

#[derive(Clone, Copy)]
enum Offer {
    Taken,
    Full,
    Closed,
}

impl<T> Intake<T> {
    fn lock(&self) -> MutexGuard<'_, Door<T>> {
        lock(&self.door)
    }

    /// Notes that a worker has taken `job` out of the queue, and passes its place on.
    fn begin(&self, job: &Arc<Job<T>>) {
        let mut door = self.lock();
        let closed = door.sender.is_none();
        door.running.push(Arc::clone(job));
        let next = door.next_waiting();
        drop(door);
        if closed {
            job.cancel();
        }
        if let Some(waker) = next {
            waker.wake();
        }
    }

    fn end(&self, job: &Arc<Job<T>>) {
        self.lock().running.retain(|other| !Arc::ptr_eq(other, job));
    }
}

impl<T> Door<T> {
    fn offer(&self, ticket: &Ticket<T>) -> Offer {
        match &self.sender {
            None => Offer::Closed,
            Some(sender) => match sender.try_send(ticket.job()) {
                Ok(()) => Offer::Taken,
                Err(TrySendError::Full(_)) => Offer::Full,
                Err(TrySendError::Disconnected(_)) => Offer::Closed,
            },
        }
    }

    fn take_turn(&mut self) -> u64 {
        let turn = self.next_turn;
        self.next_turn = turn.wrapping_add(1);
        turn
    }

    fn next_waiting(&mut self) -> Option<Waker> {
        self.waiting.pop_first().map(|(_, waker)| waker)
    }
}

fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let failed = format!("cannot start thread {name}");
    thread::Builder::new()
        .name(name)
        .spawn(body)
        .map_err(|cause| Error::internal(format!("{failed}: {cause}")))
}

/// Does the work on a confined thread of its own, `azalea-probe`, and waits for it.
///
/// # Errors
/// The work's own, and `Internal` when it panics or the system refuses a thread.
pub(crate) fn apart<R: Send>(work: impl FnOnce() -> Result<R, Error> + Send) -> Result<R, Error> {
    thread::scope(|scope| {
        let confined = || {
            confine::this_thread();
            catch(work)
        };
        let thread = thread::Builder::new().name("azalea-probe".to_owned()).spawn_scoped(scope, confined);
        let thread = thread.map_err(|cause| Error::internal(format!("cannot start a thread: {cause}")))?;
        thread.join().unwrap_or_else(|_| Err(Error::internal("a thread died")))
    })
}

/// Waits for a thread to end, unless it is the one that asks: the last owner of an engine may be a task that
/// a waker drops on one of the engine's own threads.
fn join(handle: JoinHandle<()>) {
    if handle.thread().id() != thread::current().id() {
        // A worker that died of a panic outside its job has nothing more to tell.
        let _ = handle.join();
    }
}

/// Takes a lock whose owner may have panicked: each state in this room is whole between any two statements.
fn lock<S>(mutex: &Mutex<S>) -> MutexGuard<'_, S> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait<'a, S>(condition: &Condvar, guard: MutexGuard<'a, S>) -> MutexGuard<'a, S> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

fn wait_at_most<'a, S>(condition: &Condvar, guard: MutexGuard<'a, S>, most: Duration) -> MutexGuard<'a, S> {
    condition.wait_timeout(guard, most).unwrap_or_else(PoisonError::into_inner).0
}
