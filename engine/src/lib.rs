//! Azalea's media engine: any video in, a file that fits and plays out.
//!
//! The engine decodes, scales, encodes and writes inside the process, over a linked libav, on its own fixed
//! pool of threads. It knows no network, no database and no async runtime, and shows no libav type.
//!
//! ```no_run
//! use azalea_engine::{ByteSize, Engine, Fit, Source};
//!
//! # fn main() -> Result<(), azalea_engine::Error> {
//! let engine = Engine::builder().build()?;
//! let job = engine.try_submit(Source::path("holiday.mov"), Fit::within(ByteSize::mebibytes(10)))?;
//! let fitted = job.wait()?;
//! println!("{} of {}", fitted.report().bytes, fitted.report().limit);
//! fitted.write_to("holiday.mp4".as_ref())?;
//! # Ok(())
//! # }
//! ```
//!
//! - An [`Engine`] is made once and shared. A job is a [`Source`] and a [`Fit`]; its [`JobHandle`] is a future
//!   that can also be waited for without one.
//! - The result is never above the limit, to the byte, and holds no metadata.
//! - A job that fails says whose matter it is by [`Error::kind`]; a panic or a fault of libav ends that job alone.
//! - Sources are hostile: [`Limits`] bound what a job may take, and libav opens nothing by itself.

#![deny(unsafe_code)]

mod confine;
mod engine;
mod error;
mod fit;
mod libav;
mod limits;
mod media;
mod mp4;
mod picture;
mod pipeline;
mod planner;
mod pool;
mod probe;
mod progress;
mod report;
mod sniff;
mod source;
mod units;

pub use bytes::Bytes;

pub use confine::{Confinement, confinement};
pub use engine::{Engine, EngineBuilder, JobControl, JobHandle, Submit};
pub use error::{Error, ErrorKind};
pub use fit::{Fit, ParsePresetError, Preset, Verify, Wanted};
pub use libav::{BuildFacts, build_facts};
pub use limits::{LimitKind, Limits};
pub use media::{
    AudioTrack, Container, DynamicRange, H264Profile, MediaInfo, MediaKind, Orientation, PixelLayout,
    VideoTrack,
};
pub use progress::{Progress, Stage};
pub use report::{Action, Fitted, OutputKind, Report, StageTimes, Warning};
pub use sniff::{head_bytes, sniff as recognise};
pub use source::{GrowingWriter, Source};
pub use units::{BitRate, ByteSize, Dimensions, FrameRate, ParseByteSizeError};
