//! Azalea's media engine: any video in, a file that fits and plays out.
//!
//! The engine decodes, scales, encodes and writes inside the process, over a linked libav, on its own fixed
//! pool of threads. It knows no network, no database and no async runtime, and shows no libav type.

#![deny(unsafe_code)]

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
pub use source::{GrowingWriter, Source};
pub use units::{BitRate, ByteSize, Dimensions, FrameRate, ParseByteSizeError};
