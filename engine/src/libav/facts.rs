//! What this build is linked to.

use std::collections::BTreeSet;
use std::ffi::CStr;

use ffmpeg_next::ffi as sys;

use super::{allow, c_string, decoder, encoder, graph};

/// What the engine is linked to, for `--version` and `doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildFacts {
    /// FFmpeg release as the library names itself.
    pub ffmpeg: String,
    /// libavutil, libavcodec, libavformat, libavfilter, libswscale, libswresample: name and version.
    pub libraries: Vec<(&'static str, String)>,
    /// The library's licence in its own words.
    pub license: String,
    /// Allowed demuxers that this build has.
    pub demuxers: Vec<&'static str>,
    /// Allowed decoders that this build has.
    pub decoders: Vec<&'static str>,
    /// Encoders that the engine uses and this build has.
    pub encoders: Vec<&'static str>,
    /// Filters that the engine uses and this build lacks.
    pub missing_filters: Vec<&'static str>,
    /// Encoders that the engine uses and this build lacks.
    pub missing_encoders: Vec<&'static str>,
    /// Demuxers that the engine uses and this build lacks.
    pub missing_demuxers: Vec<&'static str>,
}

/// What the engine is linked to.
pub fn build_facts() -> BuildFacts {
    super::init();
    // SAFETY: each of these answers a number or a static NUL-terminated string.
    let (ffmpeg, license, libraries) = unsafe {
        let text = |pointer| CStr::from_ptr(pointer).to_string_lossy().into_owned();
        (
            text(sys::av_version_info()),
            text(sys::avcodec_license()),
            vec![
                ("libavutil", version(sys::avutil_version())),
                ("libavcodec", version(sys::avcodec_version())),
                ("libavformat", version(sys::avformat_version())),
                ("libavfilter", version(sys::avfilter_version())),
                ("libswscale", version(sys::swscale_version())),
                ("libswresample", version(sys::swresample_version())),
            ],
        )
    };
    let split = |names: &[&'static str], exists: fn(&str) -> bool| -> (Vec<_>, Vec<_>) {
        names.iter().copied().partition(|name| exists(name))
    };
    let (encoders, missing_encoders) = split(&ENCODERS, encoder::exists);
    let (_, missing_filters) = split(&FILTERS, graph::filter_exists);
    let (demuxers, missing_demuxers) = split(&allow::DEMUXERS, demuxer_exists);
    let decoders: BTreeSet<_> = allow::all_decoders().filter(|name| decoder::exists(name)).collect();
    BuildFacts {
        ffmpeg,
        libraries,
        license,
        demuxers,
        decoders: decoders.into_iter().collect(),
        encoders,
        missing_filters,
        missing_encoders,
        missing_demuxers,
    }
}

fn demuxer_exists(name: &str) -> bool {
    let name = c_string(name);
    // SAFETY: the name lives through the call.
    !unsafe { sys::av_find_input_format(name.as_ptr()) }.is_null()
}

fn version(number: u32) -> String {
    format!("{}.{}.{}", number >> 16, number >> 8 & 0xff, number & 0xff)
}

const ENCODERS: [&str; 4] = ["libx264", "aac", "mjpeg", "png"];

const FILTERS: [&str; 16] = [
    "buffer",
    "buffersink",
    "abuffer",
    "abuffersink",
    "scale",
    "format",
    "setsar",
    "transpose",
    "hflip",
    "vflip",
    "bwdif",
    "premultiply",
    "aresample",
    "aformat",
    "zscale",
    "tonemap",
];
