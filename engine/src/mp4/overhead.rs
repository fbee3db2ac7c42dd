//! How many bytes a file has besides its samples, before there are samples.

use std::time::Duration;

use crate::units::ByteSize;

use super::movie::Sample;
use super::tables::MOVIE_TIMESCALE;

/// A file that is going to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    /// Length of the presentation. What is decoded before it may last up to a second more.
    pub(crate) duration: Duration,
    /// The picture track.
    pub(crate) video: Option<PlannedVideo>,
    /// The sound track.
    pub(crate) audio: Option<PlannedAudio>,
}

/// A picture track that is going to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedVideo {
    /// Frames at most.
    pub(crate) frames: u64,
    /// Frames where decoding can begin, at most.
    pub(crate) key_frames: u64,
    /// How frames follow each other.
    pub(crate) pacing: Pacing,
    /// Whether frames may be decoded in another order than they are shown in (B-frames).
    pub(crate) reordered: bool,
    /// Bytes of the `avcC` body at most. x264 makes about 50; [`PlannedVideo::AVCC_ALLOWANCE`] when unknown.
    pub(crate) avcc: ByteSize,
}

/// A sound track that is going to be made. Its packets are presented as they are decoded, and all are sync samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedAudio {
    /// Packets at most, those of the encoder's delay included.
    pub(crate) packets: u64,
    /// How packets follow each other; an encoder's are even.
    pub(crate) pacing: Pacing,
}

/// How samples follow each other in decoding time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pacing {
    /// Always after the same number of ticks, except for the first and the last ones.
    Even,
    /// Any way.
    Uneven,
}

impl Pacing {
    /// How finished samples follow each other. Those of a sound track that is kept often wander by some ticks.
    pub(crate) fn of(samples: &[Sample]) -> Self {
        let steps = samples.windows(2).filter_map(|pair| match pair {
            [before, after] => Some(after.dts.saturating_sub(before.dts)),
            _ => None,
        });
        let mut last = None;
        let changes = steps.filter(|step| last.replace(*step) != Some(*step)).count();
        // The last sample's length may be one more run.
        if u64::try_from(changes).is_ok_and(|changes| changes < EVEN_RUNS) {
            Self::Even
        } else {
            Self::Uneven
        }
    }
}

impl PlannedVideo {
    /// More bytes than the `avcC` of an H.264 encoder's single sequence and picture parameter sets has.
    pub(crate) const AVCC_ALLOWANCE: ByteSize = ByteSize::new(128);
}

/// The most bytes that a file made after `planned` has besides its samples, for files below 4 GiB.
///
/// Never below the real number. For even pictures with B-frames it is about 3 % and 400 bytes above it at most.
pub(crate) fn overhead_bound(planned: &Planned) -> ByteSize {
    let mut bytes = MOVIE;
    // From here on, some durations in the index need 8 bytes.
    let narrow_seconds = u64::from(u32::MAX / MOVIE_TIMESCALE).saturating_sub(1);
    if planned.duration.as_secs() >= narrow_seconds {
        bytes = bytes.saturating_add(LONG_MOVIE);
    }
    // A second of decoding ahead, a begun second, and a chunk that is not full.
    let seconds = planned.duration.as_secs().saturating_add(3);
    if let Some(video) = planned.video {
        let samples = Samples { count: video.frames, pacing: video.pacing, seconds };
        bytes = bytes.saturating_add(TRACK).saturating_add(VIDEO_ENTRY).saturating_add(video.avcc.get());
        bytes = bytes.saturating_add(samples.tables());
        if video.reordered {
            bytes = bytes.saturating_add(TABLE).saturating_add(video.frames.saturating_mul(8));
        }
        bytes =
            bytes.saturating_add(TABLE).saturating_add(video.key_frames.min(video.frames).saturating_mul(4));
    }
    if let Some(audio) = planned.audio {
        let samples = Samples { count: audio.packets, pacing: audio.pacing, seconds };
        bytes = bytes.saturating_add(TRACK).saturating_add(AUDIO_ENTRY).saturating_add(samples.tables());
    }
    ByteSize::new(bytes)
}

struct Samples {
    count: u64,
    pacing: Pacing,
    seconds: u64,
}

impl Samples {
    /// Bytes of the tables of sizes, times, chunks and chunk offsets.
    fn tables(&self) -> u64 {
        let (time_runs, chunks, chunk_runs) = match self.pacing {
            Pacing::Even => {
                let chunks = self.count.min(self.seconds);
                (self.count.min(EVEN_RUNS), chunks, chunks.min(2))
            }
            Pacing::Uneven => {
                // As many as full chunks of a second, and those that end early after a second and a half.
                let chunks = self.count.min(self.seconds.saturating_mul(5).div_ceil(3));
                (self.count, chunks, chunks)
            }
        };
        let sizes = self.count.saturating_mul(4).saturating_add(4);
        [sizes, time_runs.saturating_mul(8), chunks.saturating_mul(4), chunk_runs.saturating_mul(12)]
            .into_iter()
            .fold(0, |sum, bytes| sum.saturating_add(TABLE).saturating_add(bytes))
    }
}

/// Differences between decoding times in an even track: the first, the others, the last but one, the last.
const EVEN_RUNS: u64 = 4;

/// A table's box without entries.
const TABLE: u64 = 16;

/// `ftyp` with five compatible brands, `moov`, `mvhd`, and the header of `mdat`.
const MOVIE: u64 = 36 + 8 + 108 + 8;

/// What `mvhd` and, in two tracks, `tkhd` and two entries of `elst` have more when times need 8 bytes.
const LONG_MOVIE: u64 = 12 + 2 * (12 + 2 * 8);

/// `trak`, `tkhd`, `edts` with two edits, `mdia`, `mdhd` (long: its scale is not known here), `hdlr`, `minf`,
/// `vmhd`, `dinf`, `stbl`, and `stsd` without its entry.
const TRACK: u64 = 8 + 92 + (8 + 16 + 2 * 12) + 8 + 44 + 33 + 8 + 20 + 36 + 8 + 16;

/// `avc1` with `colr` and the header of `avcC`.
const VIDEO_ENTRY: u64 = 86 + 19 + 8;

/// `mp4a` with `esds` and room for an AudioSpecificConfig of 64 bytes; the usual ones have 2 to 5.
const AUDIO_ENTRY: u64 = 36 + 12 + 25 + 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn pacing(steps: impl IntoIterator<Item = i64>) -> Pacing {
        let mut dts = 0;
        let mut samples = Vec::new();
        for step in steps {
            let (data, sync) = (bytes::Bytes::from_static(b"x"), true);
            samples.push(Sample { data, dts, pts: dts, duration: 1024, sync });
            dts += step;
        }
        Pacing::of(&samples)
    }

    #[test]
    fn sound_that_wanders_is_not_planned_as_even() {
        // A kept track of a cut file whose packets were planned as even made a file 29 bytes above its limit.
        let wandering = [1014, 1024, 1052, 1013].into_iter().cycle().take(237);
        assert_eq!(pacing(wandering), Pacing::Uneven);
        assert_eq!(pacing([1024; 237]), Pacing::Even);
        assert_eq!(pacing([2048].into_iter().chain([1024; 200]).chain([408, 1024])), Pacing::Even);
        assert_eq!(pacing([]), Pacing::Even);
    }
}
