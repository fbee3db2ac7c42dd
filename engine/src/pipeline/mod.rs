//! Runs a plan.
#![allow(dead_code, reason = "skeleton")]

use std::sync::Arc;

use crate::error::Error;
use crate::fit::Fit;
use crate::pool::ThreadBudget;
use crate::progress::Control;
use crate::report::Fitted;
use crate::source::Source;

/// What a job gets from the engine.
#[derive(Clone, Debug)]
pub(crate) struct JobContext {
    /// Stop wishes in, progress out.
    pub(crate) control: Arc<Control>,
    /// Codec threads shared by all jobs.
    pub(crate) threads: Arc<ThreadBudget>,
}

/// Makes `source` fit. Runs on the calling thread, for as long as it takes.
pub(crate) fn run(_source: Source, _fit: &Fit, _context: &JobContext) -> Result<Fitted, Error> {
    Err(Error::internal("the pipeline is not wired yet"))
}
