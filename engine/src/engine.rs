//! The engine: a fixed pool of threads that makes files fit.

use std::fmt;
use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use crate::error::Error;
use crate::fit::Fit;
use crate::limits::Limits;
use crate::media::MediaInfo;
use crate::pipeline::{self, JobContext};
use crate::pool::{self, Pool, Porter, Submission, ThreadBudget, Ticket, Watcher, Work};
use crate::probe;
use crate::progress::{Control, Progress};
use crate::report::Fitted;
use crate::source::Source;

/// Makes files fit, on a fixed number of threads of its own.
///
/// Make one per process and share it by reference or `Arc`. Jobs wait in a bounded queue and run side by side,
/// one per thread; the codecs' own threads are shared out among the running jobs and never add up to more than
/// the engine's number of threads.
///
/// A panic inside a job ends that job alone, as [`Error::Internal`] with the panic's message. The process's
/// panic hook runs as for any panic, so with the default hook a line appears on stderr.
///
/// Dropping the engine refuses new jobs, settles queued and running ones as [`Error::Cancelled`], and blocks
/// until its threads have ended: as a rule within 100 ms, longer when a job's reader or a codec sits in one
/// long call.
///
/// ```no_run
/// use azalea_engine::{ByteSize, Engine, Error, Fit, Source};
///
/// fn main() -> Result<(), Error> {
///     let engine = Engine::builder().build()?;
///     let job = engine.try_submit(Source::path("holiday.mov"), Fit::within(ByteSize::mebibytes(10)))?;
///     let fitted = job.wait()?; // or `job.await`, on any runtime
///     fitted.write_to("holiday.mp4".as_ref())
/// }
/// ```
#[derive(Debug)]
pub struct Engine {
    pool: Pool<Fitted>,
    threads: Arc<ThreadBudget>,
    /// Opens files for the workers, which cannot; `None` where they can.
    porter: Option<Arc<Porter>>,
}

impl Engine {
    /// Starts to build an engine.
    pub const fn builder() -> EngineBuilder {
        EngineBuilder { threads: None, queue_depth: DEFAULT_QUEUE_DEPTH, confined: true }
    }

    /// Enqueues a job, or says at once that the queue is full. Never blocks.
    ///
    /// The source is not opened before a thread begins the job; neither does the time of
    /// [`Limits::wall_time`] run before.
    ///
    /// # Errors
    /// `Busy` when the queue is full; the source is dropped. What is wrong with the job itself is told by the
    /// handle.
    pub fn try_submit(&self, source: Source, fit: Fit) -> Result<JobHandle, Error> {
        self.pool.try_submit(fit.limits.wall_time, self.work(source, fit)).map(JobHandle)
    }

    /// Enqueues a job as soon as there is room: a future for any runtime, which never blocks its thread.
    pub fn submit(&self, source: Source, fit: Fit) -> Submit {
        Submit(self.pool.submit(fit.limits.wall_time, self.work(source, fit)))
    }

    /// Tells what a file is without decoding it.
    ///
    /// Blocks the calling thread, for a growing source until enough of it has arrived; it needs no place in the
    /// queue. Works there, or on a thread of its own when the engine is [confined](EngineBuilder::confined). It ends after [`Limits::wall_time`] at the latest, or when a call to a
    /// reader of your own returns.
    ///
    /// # Errors
    /// `Unsupported` or `Corrupt` when the input is no readable media, `TooLarge` when it goes beyond
    /// `limits`, `Io` when it cannot be read, `Deadline` when time is up, `Internal` when the engine is at
    /// fault, a panic included.
    pub fn probe(&self, source: Source, limits: &Limits) -> Result<MediaInfo, Error> {
        let control = Arc::new(Control::new());
        control.start_clock(limits.wall_time);
        let looked = if self.porter.is_some() {
            source.opened().and_then(|source| pool::apart(|| probe::probe(source, limits, &control)))
        } else {
            pool::catch(|| probe::probe(source, limits, &control))
        };
        looked.map_err(|error| control.stop().err().map_or(error, Error::from))
    }

    fn work(&self, source: Source, fit: Fit) -> Work<Fitted> {
        let (threads, porter) = (Arc::clone(&self.threads), self.porter.clone());
        Box::new(move |control| {
            let source = match porter {
                Some(porter) if source.is_named() => porter.fetch(control, move || source.opened())??,
                _ => source,
            };
            let _seat = threads.seat();
            let context = JobContext { control: Arc::clone(control), threads: Arc::clone(&threads) };
            pipeline::run(source, &fit, &context)
        })
    }
}

/// Builds an [`Engine`].
#[derive(Clone, Debug)]
#[must_use]
pub struct EngineBuilder {
    threads: Option<usize>,
    queue_depth: usize,
    confined: bool,
}

impl EngineBuilder {
    /// Chooses how many jobs run at once, which is also how many codec threads there are for all of them.
    ///
    /// From 1 to 1024; values outside count as the nearest. Unless set, as many as the machine can run at
    /// once ([`thread::available_parallelism`]): encoding is bound by the processor, so more would only take
    /// turns, and hold more memory meanwhile.
    pub const fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Chooses how many jobs may wait while all threads are busy; beyond that the engine says
    /// [`Error::Busy`].
    ///
    /// From 1 to 65,536; values outside count as the nearest. Unless set, 16. A job that is cancelled while
    /// it waits lets go of its source at once, and of its place when a thread comes to it.
    pub const fn queue_depth(mut self, jobs: usize) -> Self {
        self.queue_depth = jobs;
        self
    }

    /// Chooses whether the threads that read the input's bytes are denied files and connections; they are unless set.
    ///
    /// What the system can deny is told by [`confinement`](crate::confinement). Named files are opened for them by
    /// another thread, so only a [`Source::reader`] that opens something itself needs an engine that is not confined.
    pub const fn confined(mut self, confined: bool) -> Self {
        self.confined = confined;
        self
    }

    /// Starts the threads, named `azalea-0` and so on, `azalea-clock`, which keeps the deadlines, and
    /// `azalea-porter`, which opens files.
    ///
    /// # Errors
    /// `Internal` when the system refuses a thread.
    pub fn build(self) -> Result<Engine, Error> {
        let threads = self
            .threads
            .unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZeroUsize::get))
            .clamp(1, MOST_THREADS);
        let depth = self.queue_depth.clamp(1, MOST_QUEUE_DEPTH);
        let porter = if self.confined { Some(Arc::new(Porter::start()?)) } else { None };
        let pool = Pool::start(threads, depth, self.confined)?;
        Ok(Engine { pool, threads: ThreadBudget::new(threads), porter })
    }
}

/// A submitted job: a future of its result, for any runtime. Dropping it cancels the job.
///
/// When the job is cancelled or its time is over, the handle is ready within 100 ms, whatever the job's thread
/// is doing; what the thread finishes later is thrown away. Asked again after its result was handed out, the
/// future gives [`Error::Internal`].
#[derive(Debug)]
#[must_use = "dropping the handle cancels the job"]
pub struct JobHandle(Ticket<Fitted>);

impl JobHandle {
    /// Blocks until the job is done, without any runtime.
    ///
    /// # Errors
    /// Why there is no result, by kind: see [`Error`].
    pub fn wait(self) -> Result<Fitted, Error> {
        self.0.wait()
    }

    /// How far the job is.
    pub fn progress(&self) -> Progress {
        self.0.watcher().progress()
    }

    /// Stops the job; the handle is ready with [`Error::Cancelled`] at once, unless there was a result before.
    pub fn cancel(&self) {
        self.0.watcher().cancel();
    }

    /// Watches and stops the job from elsewhere: a signal handler's thread, a progress bar.
    pub fn control(&self) -> JobControl {
        JobControl(self.0.watcher())
    }
}

impl Future for JobHandle {
    type Output = Result<Fitted, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

/// Watches and stops a job from elsewhere. Dropping it does nothing, and it does not keep the job alive.
#[derive(Clone, Debug)]
pub struct JobControl(Watcher<Fitted>);

impl JobControl {
    /// How far the job is.
    pub fn progress(&self) -> Progress {
        self.0.progress()
    }

    /// Stops the job; its handle is ready with [`Error::Cancelled`] at once, unless there was a result before.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// A submission that waits for a place in the queue: a future of the [`JobHandle`], or of
/// [`Error::Cancelled`] when the engine is dropped meanwhile.
///
/// Those that wait are let in in the order in which they were first polled, except that one that comes just
/// as a place becomes free may take it first. Cancel-safe: dropping it before it is ready means that the job
/// never was.
#[must_use = "nothing is submitted before the future is polled"]
pub struct Submit(Submission<Fitted>);

impl Future for Submit {
    type Output = Result<JobHandle, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_ok(JobHandle)
    }
}

impl fmt::Debug for Submit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Submit").field(&self.0).finish()
    }
}

/// A burst of requests waits instead of being refused. A waiting job holds little more than its source, and
/// at some seconds per job and thread sixteen are already more than a minute on a small machine, beyond which
/// "busy" is the more honest answer.
const DEFAULT_QUEUE_DEPTH: usize = 16;
/// More than the processors of any machine this is meant for; a slip of the pen must not start a million.
const MOST_THREADS: usize = 1024;
/// The queue's places are allocated at once: 1 MiB at this depth.
const MOST_QUEUE_DEPTH: usize = 65_536;

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Seek, SeekFrom};

    use super::*;
    use crate::error::ErrorKind;
    use crate::progress::Stage;
    use crate::units::ByteSize;

    const fn is_send<T: Send>() {}
    const fn is_sync<T: Sync>() {}
    const fn is_unpin<T: Unpin>() {}

    const _: () = {
        is_send::<Engine>();
        is_sync::<Engine>();
        is_send::<JobHandle>();
        is_sync::<JobHandle>();
        is_unpin::<JobHandle>();
        is_send::<Submit>();
        is_unpin::<Submit>();
        is_send::<JobControl>();
        is_sync::<JobControl>();
        is_send::<Source>();
    };

    fn fit() -> Fit {
        Fit::within(ByteSize::mebibytes(10))
    }

    #[test]
    fn zero_threads_and_places_count_as_one() {
        let engine = Engine::builder().threads(0).queue_depth(0).build().unwrap();
        let handle = engine.try_submit(Source::bytes(&b"<html></html>"[..]), fit()).unwrap();
        let control = handle.control();
        assert!(handle.wait().is_err(), "a web page is no media");
        assert_eq!(control.progress().stage, Stage::Done);
    }

    #[test]
    fn absurd_sizes_are_cut_down() {
        let engine = Engine::builder().threads(1).queue_depth(usize::MAX).build().unwrap();
        assert!(format!("{engine:?}").contains("depth: 65536"));
    }

    #[test]
    fn probe_gives_the_deadline_as_the_cause_of_what_it_interrupted() {
        let engine = Engine::builder().threads(1).build().unwrap();
        let limits = Limits { wall_time: std::time::Duration::ZERO, ..Limits::default() };
        let error = engine.probe(Source::bytes(&b"ID3"[..]), &limits).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Deadline);
    }

    #[test]
    fn job_that_was_not_begun_does_not_touch_its_source() {
        struct Untouchable;
        impl Read for Untouchable {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                panic!("read before its time");
            }
        }
        impl Seek for Untouchable {
            fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
                panic!("moved before its time");
            }
        }
        let engine = Engine::builder().threads(1).build().unwrap();
        drop(engine.submit(Source::reader(Untouchable), fit()));
    }
}
