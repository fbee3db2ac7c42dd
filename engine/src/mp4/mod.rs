//! The engine's own knowledge of the MP4 file format: writing files, judging files, and the parameter sets of
//! the two codecs that go into them.
//!
//! The engine writes its files itself, because then the exact size is known before a byte is written, the
//! index stands before the samples by construction, and nothing gets in that nobody put there.
//!
//! This room is pure: bytes in, bytes out. It knows no libav, no thread and no clock.
//!
//! Invariants:
//! - **[`size`] and [`pieces`] agree to the byte**, since both render the same index.
//! - **[`overhead_bound`] is never below the real overhead** of a movie that matches its plan.
//! - **No input panics**, loops for long or makes this room allocate more than a small multiple of its size.

mod bits;
mod boxes;
mod entries;
mod movie;
mod overhead;
mod scan;
mod tables;
mod writer;

pub(crate) mod aac;
pub(crate) mod h264;

#[cfg(test)]
mod tests;

pub(crate) use movie::{AudioFormat, ColorTags, Movie, Sample, Track, VideoFormat};
pub(crate) use overhead::{Pacing, Planned, PlannedAudio, PlannedVideo, overhead_bound};
pub(crate) use scan::{Layout, TrackKind, TrackLayout, scan};
#[cfg(test)]
pub(crate) use writer::write;
pub(crate) use writer::{pieces, size};
