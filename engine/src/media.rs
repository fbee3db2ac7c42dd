//! What a media file is: plain facts, no libav.

use std::fmt;
use std::time::Duration;

use crate::units::{BitRate, ByteSize, Dimensions, FrameRate};

/// The container of an input, recognised by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Container {
    /// ISO base media: mp4, mov, m4a, 3gp.
    Mp4,
    /// Matroska and WebM.
    Matroska,
    /// AVI.
    Avi,
    /// Flash video.
    Flv,
    /// MPEG transport stream.
    MpegTs,
    /// MPEG program stream.
    MpegPs,
    /// Ogg.
    Ogg,
    /// MP3, with or without ID3 tag.
    Mp3,
    /// AAC in ADTS frames.
    Adts,
    /// WAV.
    Wav,
    /// FLAC.
    Flac,
    /// GIF, still or animated.
    Gif,
    /// PNG, still or animated.
    Png,
    /// JPEG.
    Jpeg,
    /// WebP, still or animated.
    Webp,
}

impl Container {
    /// The name that people know the container by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mp4 => "mp4",
            Self::Matroska => "matroska",
            Self::Avi => "avi",
            Self::Flv => "flv",
            Self::MpegTs => "mpegts",
            Self::MpegPs => "mpegps",
            Self::Ogg => "ogg",
            Self::Mp3 => "mp3",
            Self::Adts => "aac",
            Self::Wav => "wav",
            Self::Flac => "flac",
            Self::Gif => "gif",
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Webp => "webp",
        }
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What kind of thing a file is to the person who posts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// Moving pictures, with or without sound.
    Video,
    /// Moving pictures from a picture format (GIF, APNG, WebP): silent, looping.
    Animation,
    /// One picture.
    Still,
    /// Sound without moving pictures.
    Audio,
}

impl MediaKind {
    /// The kind as a lower-case word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Animation => "animation",
            Self::Still => "still",
            Self::Audio => "audio",
        }
    }
}

impl fmt::Display for MediaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How decoded pixels must be turned to stand upright: the eight members of the square's symmetry group.
///
/// "Turned" is clockwise. The names follow what has to be done to the stored picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Orientation {
    /// Nothing to do.
    #[default]
    Upright,
    /// Mirror left and right.
    Mirrored,
    /// Turn by 180°.
    Turned180,
    /// Mirror top and bottom.
    Flipped,
    /// Mirror at the diagonal from top left to bottom right.
    Transposed,
    /// Turn by 90° clockwise.
    Turned90,
    /// Mirror at the diagonal from top right to bottom left.
    Transversed,
    /// Turn by 270° clockwise.
    Turned270,
}

impl Orientation {
    /// Whether width and height change places.
    pub const fn swaps_sides(self) -> bool {
        matches!(self, Self::Transposed | Self::Turned90 | Self::Transversed | Self::Turned270)
    }

    /// The orientation of an EXIF tag value, 1 to 8; anything else is upright.
    pub const fn from_exif(value: u32) -> Self {
        match value {
            2 => Self::Mirrored,
            3 => Self::Turned180,
            4 => Self::Flipped,
            5 => Self::Transposed,
            6 => Self::Turned90,
            7 => Self::Transversed,
            8 => Self::Turned270,
            _ => Self::Upright,
        }
    }
}

/// The transfer function, as far as it decides whether a picture must be tone-mapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DynamicRange {
    /// Standard dynamic range.
    #[default]
    Standard,
    /// SMPTE ST 2084, as in HDR10 and Dolby Vision.
    Pq,
    /// ARIB STD-B67 hybrid log-gamma.
    Hlg,
}

/// How pixels are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PixelLayout {
    /// Bits of one component.
    pub bit_depth: u8,
    /// Chroma planes are halved in both directions (4:2:0).
    pub chroma_420: bool,
    /// Has transparency.
    pub alpha: bool,
    /// Uses the full range of values, as JPEG does, instead of the limited range of video.
    pub full_range: bool,
}

/// The profile of an H.264 stream, from its sequence parameter set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct H264Profile {
    /// `profile_idc`: 66 baseline, 77 main, 100 high, 110 high 10, 122 high 4:2:2, 244 high 4:4:4.
    pub profile: u8,
    /// `level_idc`: ten times the level, 51 for 5.1.
    pub level: u8,
}

/// The picture track that a viewer would watch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct VideoTrack {
    /// The codec's usual short name, `h264`, `hevc`, `vp9`.
    pub codec: String,
    /// Profile and level, for H.264 only.
    pub h264: Option<H264Profile>,
    /// Stored size, before orientation and pixel aspect.
    pub coded: Dimensions,
    /// Size as shown: square pixels, upright.
    pub display: Dimensions,
    /// How the stored picture must be turned.
    pub orientation: Orientation,
    /// Whether stored pixels are square.
    pub square_pixels: bool,
    /// Average rate; `None` when it cannot be told without decoding.
    pub frame_rate: Option<FrameRate>,
    /// Number of frames where the container says so.
    pub frames: Option<u64>,
    /// How pixels are stored; `None` when it cannot be told without decoding.
    pub pixels: Option<PixelLayout>,
    /// Standard or high dynamic range.
    pub dynamic_range: DynamicRange,
    /// Stored as two fields per frame.
    pub interlaced: bool,
    /// Average rate of the stored track, where it is known.
    pub bit_rate: Option<BitRate>,
    /// Time of the first picture on the presentation's clock.
    pub start: Duration,
    /// Length of the track, where it is known.
    pub duration: Option<Duration>,
}

/// The sound track that a listener would choose.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AudioTrack {
    /// The codec's usual short name, `aac`, `opus`, `mp3`.
    pub codec: String,
    /// Whether it is AAC in its low-complexity profile, which every player knows.
    pub aac_lc: bool,
    /// Number of channels.
    pub channels: u32,
    /// Samples per second of one channel.
    pub sample_rate: u32,
    /// Language code as the file gives it, if any.
    pub language: Option<String>,
    /// Average rate of the stored track, where it is known.
    pub bit_rate: Option<BitRate>,
    /// Time of the first sample on the presentation's clock.
    pub start: Duration,
    /// Length of the track, where it is known.
    pub duration: Option<Duration>,
}

/// What a media file holds, learned without decoding it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MediaInfo {
    /// Container.
    pub container: Container,
    /// What it is to people.
    pub kind: MediaKind,
    /// Size of the input, where it is known.
    pub bytes: Option<ByteSize>,
    /// Length of the presentation, where it can be told without reading everything.
    pub duration: Option<Duration>,
    /// The track a viewer would watch.
    pub video: Option<VideoTrack>,
    /// The track a listener would choose.
    pub audio: Option<AudioTrack>,
    /// Number of streams of every kind.
    pub streams: u32,
    /// Number of sound tracks.
    pub audio_tracks: u32,
    /// Whether the file plays inline in Discord as it is: H.264 up to High 5.1 in 8 bits 4:2:0, AAC-LC or no
    /// sound, plain mp4 with the index first, upright, square pixels, no private metadata.
    pub plays_inline: bool,
    /// Why it does not play inline, in words for people; empty when it does.
    pub hindrances: Vec<String>,
}
