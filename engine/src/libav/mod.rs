//! The one door to libav.
#![allow(unsafe_code, reason = "the one room that calls C; every block argues its safety")]

/// What the engine is linked to, for `--version` and `doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildFacts {
    /// FFmpeg release as the library names itself.
    pub ffmpeg: String,
    /// libavcodec, libavformat, libavfilter, libswscale, libswresample: name and version.
    pub libraries: Vec<(&'static str, String)>,
    /// The library's licence.
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
}

/// What the engine is linked to.
pub fn build_facts() -> BuildFacts {
    BuildFacts { ffmpeg: String::new(), libraries: vec![], license: String::new(), demuxers: vec![], decoders: vec![], encoders: vec![], missing_filters: vec![], missing_encoders: vec![] }
}
