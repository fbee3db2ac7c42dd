//! From a track's samples to the tables of its index: everything that can be wrong with samples is found here.

use crate::error::Error;

use super::movie::Sample;

/// Ticks per second of the movie as a whole: edits and total durations count in it.
///
/// A common fixed scale, not the picture's own: sound and picture both have to be placed in it. A time of a
/// track with at most 90,000 ticks per second survives the way there and back, since the rounding is half a
/// tick at most; beyond that it is off by 6 µs. 1000, which many writers use, moves sound by half a millisecond.
/// The common multiple of both tracks' scales would be exact, but runs out of 32 bits within a few minutes.
pub(super) const MOVIE_TIMESCALE: u32 = 90_000;

/// Samples of one track at most, so that no index comes near the 4 GiB that a box may have: that is 20 days
/// at 40 frames per second.
const MAX_SAMPLES: usize = 1 << 26;

/// The farthest time from the presentation's begin in ticks. Sums of a few such times stay far from overflow.
const MAX_TIME: u64 = 1 << 50;

/// What the index says about one track.
#[derive(Debug)]
pub(super) struct Tables {
    /// Bytes of each sample.
    pub(super) sizes: Vec<u32>,
    /// Decoding times as differences to the next sample.
    pub(super) deltas: Vec<Run>,
    /// Presentation minus decoding time; empty when they agree everywhere.
    pub(super) offsets: Vec<Run>,
    /// Numbers, from 1, of the samples where decoding can begin; `None` when it can everywhere.
    pub(super) sync: Option<Vec<u32>>,
    /// Samples that stand side by side in the file.
    pub(super) chunks: Vec<Chunk>,
    /// How the track's own time line becomes the presentation's.
    pub(super) edits: Edits,
    /// Length of the track's own time line in its timescale.
    pub(super) media_duration: u64,
}

/// The same value for `count` samples in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) count: u32,
    pub(super) value: u32,
}

/// Samples that stand side by side in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Index of the first sample.
    pub(super) first: usize,
    /// Number of samples.
    pub(super) samples: u32,
    /// Their bytes together.
    pub(super) bytes: u64,
    /// Decoding time of the first one.
    pub(super) start: i64,
    /// Where it begins, counted from the first byte of all samples.
    pub(super) offset: u64,
}

/// How a track's own time line, which begins at 0 with the first decoding time, becomes the presentation's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edits {
    /// How long nothing is presented at first, in movie ticks; zero when the track begins at once.
    pub(super) delay: u64,
    /// Where the track's own time line is entered, in its timescale.
    pub(super) media_time: u64,
    /// How long it is presented from there, in movie ticks.
    pub(super) duration: u64,
}

impl Edits {
    /// The end of the track on the presentation clock, in movie ticks.
    pub(super) const fn end(self) -> u64 {
        self.delay.saturating_add(self.duration)
    }
}

impl Tables {
    /// Builds the tables.
    ///
    /// # Errors
    /// `Internal` when the samples break a rule of [`Sample`] or do not fit the format's fields.
    pub(super) fn new(samples: &[Sample], timescale: u32) -> Result<Self, Error> {
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
            return Err(Error::internal("a track without samples was to be written"));
        };
        if timescale == 0 {
            return Err(Error::internal("a track without a timescale was to be written"));
        }
        if samples.len() > MAX_SAMPLES {
            return Err(Error::internal("a track has too many samples to be written"));
        }
        for sample in samples {
            if sample.pts.unsigned_abs().max(sample.dts.unsigned_abs()) > MAX_TIME {
                return Err(Error::internal(format!("a sample's time is out of range: {}", sample.pts)));
            }
        }
        let end = samples.iter().map(end_of).max().unwrap_or(0);
        let deltas = deltas(samples, first, last, end)?;
        let media_duration =
            deltas.iter().map(|run| u64::from(run.count).saturating_mul(u64::from(run.value))).sum();
        Ok(Self {
            sizes: samples.iter().map(byte_count).collect::<Result<_, _>>()?,
            deltas,
            offsets: offsets(samples)?,
            sync: sync(samples),
            chunks: chunks(samples, timescale)?,
            edits: edits(samples, timescale, end)?,
            media_duration,
        })
    }
}

/// When a sample's presentation ends. Times within [`MAX_TIME`] do not saturate.
fn end_of(sample: &Sample) -> i64 {
    sample.pts.saturating_add(i64::from(sample.duration))
}

fn byte_count(sample: &Sample) -> Result<u32, Error> {
    u32::try_from(sample.data.len())
        .map_err(|_| Error::internal("a sample of more than 4 GiB was to be written"))
}

/// A difference between two times. Readers take the fields as signed, whatever the standard says.
fn difference(from: i64, to: i64, what: &str) -> Result<u32, Error> {
    let difference = to.saturating_sub(from);
    i32::try_from(difference)
        .ok()
        .and_then(|difference| u32::try_from(difference).ok())
        .ok_or_else(|| Error::internal(format!("{what} by {difference} ticks at {from}")))
}

fn append(runs: &mut Vec<Run>, value: u32) {
    match runs.last_mut() {
        Some(run) if run.value == value => run.count = run.count.saturating_add(1),
        _ => runs.push(Run { count: 1, value }),
    }
}

fn deltas(samples: &[Sample], first: &Sample, last: &Sample, end: i64) -> Result<Vec<Run>, Error> {
    let mut runs = Vec::new();
    for pair in samples.windows(2) {
        let [here, next] = pair else { continue };
        let delta = difference(here.dts, next.dts, "decoding time moves")?;
        if delta == 0 {
            return Err(Error::internal(format!("decoding time stands still at {}", here.dts)));
        }
        append(&mut runs, delta);
    }
    // Readers take the sum of all differences for the track's length. With pictures out of order the last to be
    // decoded need not be the last to be shown, whose length would be missing from the sum.
    let start = samples.iter().map(|sample| sample.pts).min().unwrap_or(0);
    let decoded = last.dts.saturating_sub(first.dts);
    let rest = difference(decoded, end.saturating_sub(start), "the presentation outlasts decoding");
    append(&mut runs, rest.unwrap_or(0).max(last.duration));
    Ok(runs)
}

fn offsets(samples: &[Sample]) -> Result<Vec<Run>, Error> {
    let mut runs = Vec::new();
    for sample in samples {
        append(&mut runs, difference(sample.dts, sample.pts, "presentation is off decoding")?);
    }
    if matches!(runs.as_slice(), [Run { value: 0, .. }]) {
        runs.clear();
    }
    Ok(runs)
}

fn sync(samples: &[Sample]) -> Option<Vec<u32>> {
    if samples.iter().all(|sample| sample.sync) {
        return None;
    }
    Some((1_u32..).zip(samples).filter(|(_, sample)| sample.sync).map(|(number, _)| number).collect())
}

/// Cuts a track into chunks of about a second.
///
/// All chunks but the last have the same number of samples, because each change of that number costs 12 bytes
/// in the index. Where samples are far apart a chunk ends early, so that a player never has to read far ahead
/// in one track to get the other's present.
fn chunks(samples: &[Sample], timescale: u32) -> Result<Vec<Chunk>, Error> {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Ok(Vec::new()) };
    let span =
        last.dts.saturating_sub(first.dts).saturating_add(i64::from(last.duration)).unsigned_abs().max(1);
    let per_second = u128::from(timescale)
        .saturating_mul(samples.len().try_into().unwrap_or(u128::MAX))
        .div_ceil(u128::from(span));
    let most = u32::try_from(per_second).unwrap_or(u32::MAX).max(1);
    let longest = i64::from(timescale).saturating_mul(3) / 2;
    let mut chunks: Vec<Chunk> = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        let bytes = u64::from(byte_count(sample)?);
        match chunks.last_mut() {
            Some(chunk) if chunk.samples < most && sample.dts.saturating_sub(chunk.start) < longest => {
                chunk.samples = chunk.samples.saturating_add(1);
                chunk.bytes = chunk.bytes.saturating_add(bytes);
            }
            _ => chunks.push(Chunk { first: index, samples: 1, bytes, start: sample.dts, offset: 0 }),
        }
    }
    Ok(chunks)
}

fn edits(samples: &[Sample], timescale: u32, end: i64) -> Result<Edits, Error> {
    let origin = samples.first().map_or(0, |sample| sample.dts);
    let start = samples.iter().map(|sample| sample.pts).min().unwrap_or(0).max(0);
    if end <= 0 {
        return Err(Error::internal("a track that ends before the presentation begins was to be written"));
    }
    // The first sample's decoding time is the earliest of all times, so it is not after `start`.
    let media_time = start.saturating_sub(origin).unsigned_abs();
    let delay = to_movie(start.unsigned_abs(), timescale, Rounding::Nearest)?;
    // Rounded up, so that the last sample is never cut off.
    let duration = to_movie(end.saturating_sub(start).unsigned_abs(), timescale, Rounding::Up)?.max(1);
    Ok(Edits { delay, media_time, duration })
}

#[derive(Clone, Copy)]
enum Rounding {
    Nearest,
    Up,
}

fn to_movie(ticks: u64, timescale: u32, rounding: Rounding) -> Result<u64, Error> {
    let scaled = u128::from(ticks).saturating_mul(u128::from(MOVIE_TIMESCALE));
    let divisor = u128::from(timescale.max(1));
    let ticks = match rounding {
        Rounding::Nearest => scaled.saturating_add(divisor / 2) / divisor,
        Rounding::Up => scaled.div_ceil(divisor),
    };
    u64::try_from(ticks).map_err(|_| Error::internal("a track is too long to be written"))
}
