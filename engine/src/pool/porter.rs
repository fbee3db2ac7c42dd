//! A thread that is not confined, which opens files for those that are.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, SendTimeoutError, Sender};

use super::spawn;
use crate::error::Error;
use crate::progress::Control;

type Errand = Box<dyn FnOnce() + Send>;

/// Runs errands for the workers, one at a time. Ends with its last owner, after the errand that it is on.
#[derive(Debug)]
pub(crate) struct Porter {
    errands: Sender<Errand>,
}

impl Porter {
    /// Starts the thread, `azalea-porter`.
    ///
    /// # Errors
    /// `Internal` when the system refuses a thread.
    pub(crate) fn start() -> Result<Self, Error> {
        let (errands, queue) = crossbeam_channel::bounded::<Errand>(0);
        // Not joined: a file system that hangs holds nobody but this thread.
        drop(spawn("azalea-porter".to_owned(), move || {
            for errand in &queue {
                // The hook has told of the panic, and whoever sent the errand sees that nothing comes.
                drop(catch_unwind(AssertUnwindSafe(errand)));
            }
        })?);
        Ok(Self { errands })
    }

    /// What the errand brings. Whoever stops waiting gets nothing, and what was brought is dropped.
    ///
    /// # Errors
    /// `Cancelled` or `Deadline`, within 50 ms of the stop; `Internal` when the errand panics.
    pub(crate) fn fetch<R: Send + 'static>(
        &self,
        control: &Control,
        errand: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Error> {
        let (sender, brought) = crossbeam_channel::bounded(1);
        // Nobody listens any more when the job was stopped meanwhile.
        let mut errand: Errand = Box::new(move || drop(sender.send(errand())));
        loop {
            control.stop()?;
            match self.errands.send_timeout(errand, PATIENCE) {
                Ok(()) => break,
                Err(SendTimeoutError::Timeout(back)) => errand = back,
                Err(SendTimeoutError::Disconnected(_)) => return Err(Error::internal("the porter is gone")),
            }
        }
        loop {
            control.stop()?;
            match brought.recv_timeout(PATIENCE) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::internal("an errand brought nothing"));
                }
            }
        }
    }
}

/// How long it is waited before it is looked whether the job is to stop.
const PATIENCE: Duration = Duration::from_millis(50);
