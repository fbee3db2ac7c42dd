//! The request: what the result must be.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::limits::Limits;
use crate::units::ByteSize;

/// How much effort the video encoder spends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Preset {
    /// Least time: about two thirds of what [`Preset::Balanced`] takes.
    Fast,
    /// The default: what x264 `medium` takes, looking better at these rates.
    #[default]
    Balanced,
    /// Best picture for the bytes: about 1.4 times as long.
    Best,
}

impl Preset {
    /// All presets, fastest first.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Balanced, Self::Best];

    /// The preset's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Balanced => "balanced",
            Self::Best => "best",
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no preset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a preset; choose fast, balanced or best")]
pub struct ParsePresetError(String);

impl FromStr for Preset {
    type Err = ParsePresetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|preset| preset.name() == text)
            .ok_or_else(|| ParsePresetError(text.to_owned()))
    }
}

/// What the result shall be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// Whatever the input is: video and animation become mp4, a picture stays a picture, sound becomes m4a.
    #[default]
    Natural,
    /// The sound alone, as m4a.
    AudioOnly,
    /// A looping GIF without sound.
    Gif,
}

/// Whether an input that could be kept as it is gets decoded first to see that it is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verify {
    /// Decode everything once before a stream is copied; what is damaged is transcoded instead. The default,
    /// for files of unknown origin.
    #[default]
    Decode,
    /// Trust the sample data and check the container alone. For bytes whose origin vouches for them.
    Container,
}

/// A request to make a file fit.
///
/// ```
/// use azalea_engine::{ByteSize, Fit, Preset};
///
/// let fit = Fit::within(ByteSize::mebibytes(10)).preset(Preset::Best).max_height(720);
/// assert_eq!(fit.limit(), ByteSize::mebibytes(10));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    pub(crate) limit: ByteSize,
    pub(crate) wanted: Wanted,
    pub(crate) preset: Preset,
    pub(crate) verify: Verify,
    pub(crate) start: Option<Duration>,
    pub(crate) end: Option<Duration>,
    pub(crate) max_height: Option<u32>,
    pub(crate) limits: Limits,
}

impl Fit {
    /// A result of at most `limit` bytes. The limit is a ceiling, not a quota.
    pub fn within(limit: ByteSize) -> Self {
        Self {
            limit,
            wanted: Wanted::default(),
            preset: Preset::default(),
            verify: Verify::default(),
            start: None,
            end: None,
            max_height: None,
            limits: Limits::default(),
        }
    }

    /// The most bytes that the result may have.
    pub const fn limit(&self) -> ByteSize {
        self.limit
    }

    /// The encoder effort.
    pub const fn chosen_preset(&self) -> Preset {
        self.preset
    }

    /// Chooses what the result shall be; [`Wanted::Natural`] unless set.
    #[must_use]
    pub const fn wanted(mut self, wanted: Wanted) -> Self {
        self.wanted = wanted;
        self
    }

    /// Chooses the encoder effort; [`Preset::Balanced`] unless set.
    #[must_use]
    pub const fn preset(mut self, preset: Preset) -> Self {
        self.preset = preset;
        self
    }

    /// Chooses whether copied streams are decoded first; [`Verify::Decode`] unless set.
    #[must_use]
    pub const fn verify(mut self, verify: Verify) -> Self {
        self.verify = verify;
        self
    }

    /// Leaves out everything before `start`, counted from the beginning of the presentation.
    #[must_use]
    pub const fn start(mut self, start: Duration) -> Self {
        self.start = Some(start);
        self
    }

    /// Leaves out everything from `end` on, counted from the beginning of the presentation.
    #[must_use]
    pub const fn end(mut self, end: Duration) -> Self {
        self.end = Some(end);
        self
    }

    /// Makes the picture at most `pixels` high; it is never enlarged. Values below 16 count as 16.
    #[must_use]
    pub const fn max_height(mut self, pixels: u32) -> Self {
        self.max_height = Some(if pixels < 16 { 16 } else { pixels });
        self
    }

    /// Chooses what the job may take; [`Limits::default`] unless set.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}
