//! `azalea fit`: makes files fit, several at once, and tells the results in the order of the inputs.

mod report;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use azalea_engine::{Engine, Error, ErrorKind, JobControl, JobHandle, Limits, Report};

use crate::cli::Format;
use crate::command::Ready;
use crate::exit::{self, Exit, OutputError};
use crate::interrupt::{Interrupt, Working};
use crate::output::{self, Places};
use crate::settings::{Destination, FitSettings};
use crate::terminal::{self, Bar, Screen};

pub(crate) fn run(settings: &FitSettings, screen: &Screen, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let places = Places::new(&settings.inputs, &settings.destination)?;
    // Pipes are read before anything runs: a signal may still end the process at once while one of them waits.
    let limits = Limits::default();
    let inputs = settings.inputs.iter().map(|input| Ready::new(input, &limits));
    let inputs: Vec<_> = inputs.map(Some).collect();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let engine = Engine::builder().threads(threads).queue_depth(threads).build()?;
    let mut run = Run {
        settings,
        engine: &engine,
        most: threads,
        screen,
        interrupt,
        working: Some(interrupt.work()),
        places,
        outcomes: inputs.iter().map(|_| None).collect(),
        inputs,
        jobs: Vec::new(),
        told: 0,
        interrupted: false,
        first_failure: None,
    };
    run.all()?;
    if run.interrupted {
        drop(run);
        // Its jobs are settled and leave nothing behind. A codec that is deep in a large picture would keep the
        // process for a while, though, if its threads were waited for.
        std::mem::forget(engine);
        screen.complain("error", &Error::Cancelled.to_string());
        return Ok(Exit::Stopped);
    }
    Ok(run.first_failure.unwrap_or(Exit::Done))
}

/// The jobs of one command, from the first submission to the last line.
struct Run<'a> {
    settings: &'a FitSettings,
    engine: &'a Engine,
    /// Jobs under way at once: one for each of the engine's threads.
    most: usize,
    screen: &'a Screen,
    interrupt: &'a Interrupt,
    /// While this is held, a signal asks the jobs to stop.
    working: Option<Working<'a>>,
    places: Places,
    /// One per input; each is taken when its job is submitted.
    inputs: Vec<Option<anyhow::Result<Ready>>>,
    jobs: Vec<Job>,
    /// One per input; each is taken when it is told.
    outcomes: Vec<Option<anyhow::Result<Made>>>,
    /// How many outcomes have been told.
    told: usize,
    /// At least one input was given up because of a signal.
    interrupted: bool,
    first_failure: Option<Exit>,
}

/// A job under way.
struct Job {
    index: usize,
    handle: Pin<Box<JobHandle>>,
    control: JobControl,
    bar: Bar,
}

/// A result that is in its place.
struct Made {
    /// `None` is standard output.
    path: Option<PathBuf>,
    report: Report,
}

impl Run<'_> {
    /// Runs every job. One thread drives them all: it sleeps until a job or a signal wakes it, or until it is
    /// time to redraw the bars.
    fn all(&mut self) -> anyhow::Result<()> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut next = 0;
        let mut stopping = false;
        loop {
            if self.interrupt.is_asked() && !stopping {
                stopping = true;
                self.jobs.iter().for_each(|job| job.control.cancel());
            }
            while next < self.outcomes.len() && (stopping || self.jobs.len() < self.most) {
                if stopping {
                    self.settle(next, Err(Error::Cancelled.into()));
                } else if !self.start(next) {
                    break;
                }
                next += 1;
            }
            let any_ended = self.collect(&mut Context::from_waker(&waker));
            self.tell()?;
            if self.told == self.outcomes.len() {
                return Ok(());
            }
            if !any_ended {
                self.jobs.iter().for_each(|job| job.bar.show(job.control.progress()));
                thread::park_timeout(REDRAW);
            }
        }
    }

    /// Submits the job of one input, or settles it at once. `false` when the engine has no room yet.
    fn start(&mut self, index: usize) -> bool {
        let Some(input) = self.inputs.get_mut(index).and_then(Option::take) else { return true };
        let ready = match input.and_then(|ready| Ok(self.places.check(index).map(|()| ready)?)) {
            Ok(ready) => ready,
            Err(error) => {
                self.settle(index, Err(error));
                return true;
            }
        };
        match self.engine.try_submit(ready.source(), self.settings.fit) {
            Ok(handle) => {
                tracing::info!(input = ?self.name(index), "submitted");
                let bar = self.screen.bar(self.name(index));
                self.jobs.push(Job { index, control: handle.control(), handle: Box::pin(handle), bar });
                true
            }
            // One of our own jobs will end and make room; without any there is nothing to wait for.
            Err(Error::Busy { .. }) if !self.jobs.is_empty() => {
                if let Some(place) = self.inputs.get_mut(index) {
                    *place = Some(Ok(ready));
                }
                false
            }
            Err(error) => {
                self.settle(index, Err(error.into()));
                true
            }
        }
    }

    /// Puts the results of jobs that have ended in their places; says whether there were any.
    fn collect(&mut self, context: &mut Context<'_>) -> bool {
        let mut ended = Vec::new();
        self.jobs.retain_mut(|job| match job.handle.as_mut().poll(context) {
            Poll::Ready(result) => {
                ended.push((job.index, result));
                false
            }
            Poll::Pending => true,
        });
        let any_ended = !ended.is_empty();
        if any_ended && self.settings.destination == Destination::Stdout {
            // A reader who does not read must not keep a signal from ending the process.
            self.working = None;
        }
        for (index, result) in ended {
            // Written now and not when it is told, so that the bytes of finished results do not pile up.
            let outcome = result.map_err(anyhow::Error::from).and_then(|fitted| {
                let path = self.places.put(index, &fitted, self.screen)?;
                Ok(Made { path, report: fitted.report().clone() })
            });
            self.settle(index, outcome);
        }
        any_ended
    }

    fn settle(&mut self, index: usize, outcome: anyhow::Result<Made>) {
        if let Some(place) = self.outcomes.get_mut(index) {
            *place = Some(outcome);
        }
    }

    /// Tells every outcome whose turn it is.
    fn tell(&mut self) -> anyhow::Result<()> {
        while let Some(outcome) = self.outcomes.get_mut(self.told).and_then(Option::take) {
            let index = self.told;
            self.told += 1;
            match outcome {
                Ok(made) => self.tell_success(index, &made)?,
                Err(error) => self.tell_failure(index, &error)?,
            }
        }
        Ok(())
    }

    fn tell_success(&self, index: usize, made: &Made) -> anyhow::Result<()> {
        let input = self.name(index);
        let Some(path) = &made.path else {
            self.warn(input, &made.report);
            return Ok(());
        };
        if self.settings.format == Format::Json {
            let mut object = report::object(input, path, &made.report);
            if let Some(note) = output::misnomer(path, made.report.kind)
                && let Some(warnings) = object["warnings"].as_array_mut()
            {
                warnings.push(note.into());
            }
            return self.print(&object.to_string());
        }
        self.print(&report::line(input, path, &made.report))?;
        self.warn(input, &made.report);
        let note = output::misnomer(path, made.report.kind).filter(|_| self.screen.is_watched());
        if let Some(note) = note {
            self.screen.complain("note", &terminal::escape(&note));
        }
        Ok(())
    }

    fn warn(&self, input: &Path, report: &Report) {
        for warning in &report.warnings {
            self.screen.complain("warning", &self.about(input, &terminal::escape(&warning.to_string())));
        }
    }

    fn tell_failure(&mut self, index: usize, error: &anyhow::Error) -> anyhow::Result<()> {
        let input = self.name(index);
        let is_cancelled = error.downcast_ref().map(Error::kind) == Some(ErrorKind::Cancelled);
        if is_cancelled && self.interrupt.is_asked() {
            // Told once at the end for all of them.
            self.interrupted = true;
        } else if !exit::is_silent(error) {
            self.screen.complain("error", &self.about(input, &exit::line(error)));
        }
        self.first_failure.get_or_insert(Exit::of(error));
        if self.settings.format == Format::Json {
            self.print(&report::failure(self.name(index), error).to_string())?;
        }
        Ok(())
    }

    /// `text`, with the input's name where there are several that it could be about.
    fn about(&self, input: &Path, text: &str) -> String {
        if self.settings.inputs.len() > 1 {
            format!("{}: {text}", terminal::path(input))
        } else {
            text.to_owned()
        }
    }

    fn name(&self, index: usize) -> &Path {
        self.settings.inputs.get(index).map_or(Path::new(""), |input| input.name())
    }

    fn print(&self, line: &str) -> anyhow::Result<()> {
        Ok(self.screen.print(line).map_err(|cause| OutputError::stdout(&cause))?)
    }
}

/// Wakes a thread from [`thread::park_timeout`].
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The bars are redrawn ten times a second: smooth to the eye, and nothing next to the work.
const REDRAW: Duration = Duration::from_millis(100);
