//! What a file is to be made of.

use bytes::Bytes;

use crate::units::{BitRate, Dimensions};

/// A movie: at most one picture track and one sound track on one presentation clock.
#[derive(Clone, Debug)]
pub(crate) struct Movie {
    /// The picture.
    pub(crate) video: Option<Track<VideoFormat>>,
    /// The sound.
    pub(crate) audio: Option<Track<AudioFormat>>,
}

/// Samples of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Track<F> {
    /// What a decoder must know before the first sample.
    pub(crate) format: F,
    /// Ticks per second of all times in `samples`; not zero.
    pub(crate) timescale: u32,
    /// The samples in decoding order; at least one.
    pub(crate) samples: Vec<Sample>,
}

/// One encoded frame of picture or sound.
///
/// Times count ticks of the track's timescale on the presentation clock: 0 is where the presentation begins.
/// What is presented before 0 is decoded and not shown, as priming samples of AAC are.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// The bytes as they stand in the file; for H.264, units behind lengths of 4 bytes.
    pub(crate) data: Bytes,
    /// When it is decoded; strictly increasing within a track.
    pub(crate) dts: i64,
    /// When it is presented; not before `dts`.
    pub(crate) pts: i64,
    /// How long it is presented. Only the samples that end last need an exact value.
    pub(crate) duration: u32,
    /// Whether decoding can begin here.
    pub(crate) sync: bool,
}

/// An H.264 track's format. Pixels are square.
#[derive(Clone, Debug)]
pub(crate) struct VideoFormat {
    /// The body of the `avcC` box, an AVCDecoderConfigurationRecord with a length size of 4.
    pub(crate) avcc: Bytes,
    /// The size of the picture after cropping; at most 65,535 on each side.
    pub(crate) dimensions: Dimensions,
    /// How numbers become colours; `None` writes nothing about it.
    pub(crate) color: Option<ColorTags>,
}

/// Colour code points of ITU-T H.273.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColorTags {
    /// Colour primaries; 1 is BT.709.
    pub(crate) primaries: u16,
    /// Transfer characteristics; 1 is BT.709.
    pub(crate) transfer: u16,
    /// Matrix coefficients; 1 is BT.709.
    pub(crate) matrix: u16,
    /// Whether values use the full range.
    pub(crate) full_range: bool,
}

/// An AAC track's format.
#[derive(Clone, Debug)]
pub(crate) struct AudioFormat {
    /// The AudioSpecificConfig.
    pub(crate) specific_config: Bytes,
    /// Number of channels.
    pub(crate) channels: u16,
    /// Samples per second of one channel.
    pub(crate) sample_rate: u32,
    /// Average rate of the track.
    pub(crate) bit_rate: BitRate,
}
