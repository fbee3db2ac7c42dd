//! The one door to libav.
//!
//! Everything here is a thin, owning shell over the C library: one Rust value owns one C context, on one
//! thread at a time, and frees it. The room never chooses sizes, rates or codecs; it never opens a file or a
//! socket (bytes come through [`io`], the protocol list is empty, `io_open` refuses); nothing it returns names
//! a libav type or number.
//!
//! The bindings are those of `ffmpeg-next`; its safe layer is not used, because it translates C enums without
//! an unknown case, ignores allocation failures and drops unknown options silently.

#![allow(unsafe_code, reason = "the one room that calls C; every block argues its safety")]

mod allow;
mod decoder;
mod encoder;
mod facts;
mod fault;
mod frame;
mod graph;
mod input;
mod io;
mod log;
mod options;
mod packet;
mod stream;

use std::ffi::CString;
use std::sync::Once;

use ffmpeg_next::ffi as sys;

pub(crate) use allow::Pictures;
pub(crate) use decoder::{Care, Decoder};
pub(crate) use encoder::{Encoded, Encoder, PictureCodec, SoundSpec, VideoSpec};
pub use facts::{BuildFacts, build_facts};
pub(crate) use fault::{Answer, Fault};
pub(crate) use frame::{Frame, PictureShape, SoundShape};
pub(crate) use graph::{Graph, PicturePath, PixelTarget, SoundPath, tone_mapping_exists as can_tone_map};
pub(crate) use input::Input;
pub(crate) use io::Medium;
pub(crate) use log::errors_logged_here;
pub(crate) use packet::Packet;
pub(crate) use stream::{IndexEntry, StreamFacts, StreamKind, TimeBase};

/// Sets libav up for this process; cheap after the first call.
fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::install();
        // SAFETY: a plain setter of a process-wide number; no other thread uses libav before `init` returned.
        unsafe { sys::av_max_alloc(MAX_ALLOCATION) };
    });
}

/// A C string of a text that is known to hold no NUL; a NUL would end it early.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// The largest single allocation libav may make, for the whole process. One decoded frame at the default
/// pixel limit in 16-bit RGBA needs 2 GiB; 1 GiB holds every frame that is allowed in 8 bits.
const MAX_ALLOCATION: usize = 1 << 30;
