//! Ctrl-C and SIGTERM: the first asks jobs to stop, the second ends the process.

use std::io::{self, Write};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::{self, Thread};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::exit::Exit;

/// Whether somebody asked the program to stop.
///
/// While nothing is under way that must be cleaned up, a signal ends the process at once: a read of standard
/// input that waits for a person would otherwise hold it.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicU8>);

/// Signals ask instead of ending the process, as long as this lives.
#[derive(Debug)]
#[must_use]
pub(crate) struct Working<'a>(&'a Interrupt);

impl Interrupt {
    /// Takes over SIGINT and SIGTERM for the rest of the process. The calling thread is woken from
    /// [`thread::park_timeout`] when one arrives.
    ///
    /// # Errors
    /// The system's answer when it gives no handler or no thread.
    pub(crate) fn watch() -> anyhow::Result<Self> {
        let interrupt = Self(Arc::new(AtomicU8::new(IDLE)));
        // A file that grows beyond the system's limit is an error to report and clean up after, not an end.
        signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))
            .context("cannot take over signals")?;
        let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot take over signals")?;
        let (watcher, sleeper) = (interrupt.clone(), thread::current());
        thread::Builder::new()
            .name("azalea-signals".to_owned())
            .spawn(move || signals.forever().for_each(|_| watcher.receive(&sleeper)))
            .context("cannot start a thread")?;
        Ok(interrupt)
    }

    /// Whether a signal arrived while there was work.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::SeqCst) == ASKED
    }

    /// From now on a signal asks; see [`is_asked`](Self::is_asked).
    pub(crate) fn work(&self) -> Working<'_> {
        self.0.store(WORKING, Ordering::SeqCst);
        Working(self)
    }

    fn receive(&self, sleeper: &Thread) {
        if self.0.compare_exchange(WORKING, ASKED, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            sleeper.unpark();
            return;
        }
        // Nobody is left to tell when standard error is gone.
        let _ = io::stderr().write_all(b"error: cancelled\n");
        process::exit(i32::from(Exit::Stopped.code()));
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        // A wish that was heard stays heard.
        let _ = self.0.0.compare_exchange(WORKING, IDLE, Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// Nothing is under way that must be cleaned up.
const IDLE: u8 = 0;
/// Jobs run; a signal asks them to stop.
const WORKING: u8 = 1;
/// A signal has asked.
const ASKED: u8 = 2;
