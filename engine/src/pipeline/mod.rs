//! Carries plans out: opens, measures, decodes, filters, encodes, keeps, writes.
//!
//! The pipeline makes no choice about quality; it asks the planner. Each job runs on one thread of the pool,
//! from its first byte to its report, beside which a job alone has workers for its segments; codec threads come
//! from the shared budget and go back after each segment.
//! Nothing is written to disk.

mod awaited;
mod copy;
mod decode;
mod describe;
mod detail;
mod early;
mod encode;
mod feed;
mod finish;
mod gif;
pub(crate) mod inspect;
mod listen;
mod material;
mod measure;
mod pacing;
mod pictures;
mod reel;
mod reorder;
mod segments;
mod sound;
mod still;
mod survey;
mod timeline;
mod tracks;
mod transcode;
mod verify;
mod video;
mod webp;
mod workers;

use std::sync::Arc;
use std::time::Instant;

use crate::error::Error;
use crate::fit::{Fit, Wanted};
use crate::libav::Pictures;
use crate::media::Container;
use crate::pipeline::finish::Job;
use crate::pipeline::inspect::Opened;
use crate::pool::ThreadBudget;
use crate::progress::{Control, Stage};
use crate::report::{Fitted, StageTimes};
use crate::source::Source;
use crate::units::ByteSize;

/// What a job gets from the engine.
#[derive(Clone, Debug)]
pub(crate) struct JobContext {
    /// Stop wishes in, progress out.
    pub(crate) control: Arc<Control>,
    /// Codec threads shared by all jobs.
    pub(crate) threads: Arc<ThreadBudget>,
}

/// Makes `source` fit. Runs on the calling thread, for as long as it takes.
pub(crate) fn run(source: Source, fit: &Fit, context: &JobContext) -> Result<Fitted, Error> {
    let (began, cpu_before) = (Instant::now(), finish::cpu_time());
    context.control.enter(Stage::Probe);
    let opened = inspect::open(source, &fit.limits, &context.control)?;
    let stages = StageTimes { probe: began.elapsed(), ..StageTimes::default() };
    let job = |input_bytes: ByteSize| Job {
        fit,
        context,
        input_bytes,
        warnings: Vec::new(),
        stages,
        began,
        cpu_before,
    };
    match opened {
        Opened::Tracks(tracks) => {
            let job = job(tracks.bytes);
            tracks::run(*tracks, job)
        }
        Opened::Picture(file) => {
            let job = job(ByteSize::of(&file.bytes));
            if fit.wanted == Wanted::AudioOnly {
                return Err(Error::unsupported(format!("a {} picture has no sound", file.container)));
            }
            if !file.facts.animated {
                if fit.wanted == Wanted::Gif && file.container != Container::Gif {
                    let what = format!(
                        "a {} picture does not move: there is nothing to make a GIF of",
                        file.container
                    );
                    return Err(Error::unsupported(what));
                }
                return still::run(&file, job);
            }
            if fit.wanted == Wanted::Gif
                && file.container == Container::Gif
                && let Some(bytes) = gif::keep(&file, fit, context)?
            {
                return gif::finish_kept(&file, bytes, job);
            }
            if file.container == Container::Webp {
                return webp::run(&file, job);
            }
            let tracks = inspect::open_pictures(&file, Pictures::All, &fit.limits, &context.control)?;
            tracks::run(tracks, job)
        }
    }
}
