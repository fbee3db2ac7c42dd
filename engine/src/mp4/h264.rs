//! H.264 as files carry it: units, decoder configurations, and samples turned from one form into another.

use bytes::{BufMut, Bytes, BytesMut};

use crate::error::Error;

mod sps;

pub(crate) use sps::Sps;
#[cfg(test)]
pub(crate) use sps::{ColorDescription, Timing};

/// A set of unit types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnitSet(u32);

impl UnitSet {
    /// No unit.
    pub(crate) const NONE: Self = Self(0);

    /// Units that have no place in an MP4 sample: delimiters, filler, ends, and parameter sets, which stand in
    /// the `avcC` (only where the stream's are the same throughout).
    pub(crate) const REDUNDANT: Self = Self::NONE
        .with(DELIMITER)
        .with(SEQUENCE_PARAMETERS)
        .with(PICTURE_PARAMETERS)
        .with(END_OF_SEQUENCE)
        .with(END_OF_STREAM)
        .with(FILLER);

    /// This set and `unit_type`, 0 to 31.
    pub(crate) const fn with(self, unit_type: u8) -> Self {
        Self(self.0 | 1 << (unit_type & 0x1f))
    }

    /// Whether `unit` is of a type in the set.
    pub(crate) fn holds(self, unit: &[u8]) -> bool {
        unit_type(unit).is_some_and(|unit_type| self.0 >> unit_type & 1 == 1)
    }
}

/// Supplemental enhancement information: captions, time codes, the encoder's name.
pub(crate) const SEI: u8 = 6;
/// Sequence parameter set.
pub(crate) const SEQUENCE_PARAMETERS: u8 = 7;
/// Picture parameter set.
pub(crate) const PICTURE_PARAMETERS: u8 = 8;
/// Access unit delimiter.
pub(crate) const DELIMITER: u8 = 9;
/// End of a coded sequence.
pub(crate) const END_OF_SEQUENCE: u8 = 10;
/// End of the stream.
pub(crate) const END_OF_STREAM: u8 = 11;
/// Filler for constant bit rates.
pub(crate) const FILLER: u8 = 12;

/// The type of a unit, 0 to 31; `None` for an empty one.
pub(crate) fn unit_type(unit: &[u8]) -> Option<u8> {
    unit.first().map(|header| header & 0x1f)
}

/// The units between the start codes of an Annex B stream. Bytes before the first start code are left out, as
/// are zeros behind a unit and empty units.
pub(crate) fn annex_b_units(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = start_code(stream).and_then(|at| stream.get(at.saturating_add(3)..));
    std::iter::from_fn(move || {
        let here = rest?;
        let (unit, next) = match start_code(here) {
            Some(at) => (here.get(..at)?, here.get(at.saturating_add(3)..)),
            None => (here, None),
        };
        rest = next;
        let zeros = unit.iter().rev().take_while(|byte| **byte == 0).count();
        unit.get(..unit.len().saturating_sub(zeros))
    })
    .filter(|unit| !unit.is_empty())
}

/// Where the next start code of three bytes begins.
fn start_code(bytes: &[u8]) -> Option<usize> {
    bytes.windows(3).position(|window| window == [0, 0, 1])
}

/// The units of a sample whose units stand behind lengths of `length_size` bytes, 1 to 4.
///
/// A unit that runs past the end is given as an error, and nothing after it.
pub(crate) fn prefixed_units(
    sample: &[u8],
    length_size: usize,
) -> impl Iterator<Item = Result<&[u8], Unsound>> {
    let mut rest = sample;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let here = std::mem::take(&mut rest);
        let Some((length, body)) =
            here.split_at_checked(length_size).filter(|_| (1..=4).contains(&length_size))
        else {
            return Some(Err(Unsound));
        };
        let length = length.iter().fold(0_usize, |value, byte| value << 8 | usize::from(*byte));
        let Some((unit, next)) = body.split_at_checked(length) else {
            return Some(Err(Unsound));
        };
        rest = next;
        Some(Ok(unit))
    })
}

/// A sample's unit lengths do not add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsound;

/// Whether a sample is a row of plausible units whose lengths add up exactly: none is empty or of an unspecified
/// type, and no header has its forbidden bit set. An empty sample is not sound.
pub(crate) fn nal_lengths_are_sound(sample: &[u8], length_size: usize) -> bool {
    !sample.is_empty()
        && prefixed_units(sample, length_size).all(|unit| {
            unit.is_ok_and(|unit| {
                unit.first().is_some_and(|header| header & 0x80 == 0 && (1..=23).contains(&(header & 0x1f)))
            })
        })
}

/// Turns an access unit of an Annex B stream into a sample with lengths of 4 bytes, without the units in
/// `dropped`. The sample is empty when nothing is left.
pub(crate) fn sample_from_annex_b(access_unit: &[u8], dropped: UnitSet) -> Bytes {
    // Start codes of three bytes become lengths of four.
    let mut sample = BytesMut::with_capacity(access_unit.len().saturating_add(16));
    for unit in annex_b_units(access_unit).filter(|unit| !dropped.holds(unit)) {
        append_unit(&mut sample, unit);
    }
    sample.freeze()
}

/// Turns a sample with lengths of `length_size` bytes into one with lengths of 4 bytes, without the units in
/// `dropped` and without empty ones. Shares the memory of `sample` when nothing changes.
///
/// # Errors
/// `Corrupt` when the lengths do not add up.
pub(crate) fn sample_from_prefixed(
    sample: &Bytes,
    length_size: usize,
    dropped: UnitSet,
) -> Result<Bytes, Error> {
    let mut kept = Vec::new();
    let mut changed = length_size != 4;
    for unit in prefixed_units(sample, length_size) {
        let unit =
            unit.map_err(|Unsound| Error::corrupt("an H.264 sample is damaged: its units do not add up"))?;
        if unit.is_empty() || dropped.holds(unit) {
            changed = true;
        } else {
            kept.push(unit);
        }
    }
    if !changed {
        return Ok(sample.clone());
    }
    let bytes = kept.iter().fold(0_usize, |sum, unit| sum.saturating_add(unit.len()).saturating_add(4));
    let mut out = BytesMut::with_capacity(bytes);
    kept.into_iter().for_each(|unit| append_unit(&mut out, unit));
    Ok(out.freeze())
}

fn append_unit(sample: &mut BytesMut, unit: &[u8]) {
    // A unit of 4 GiB does not fit into a sample anyway; the writer refuses those.
    sample.put_u32(u32::try_from(unit.len()).unwrap_or(u32::MAX));
    sample.put_slice(unit);
}

/// An AVCDecoderConfigurationRecord, the body of `avcC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DecoderConfig<'a> {
    /// Bytes of the length before each unit: 1, 2 or 4.
    pub(crate) length_size: usize,
    /// Sequence parameter sets as units, header byte included.
    pub(crate) sequence: Vec<&'a [u8]>,
    /// Picture parameter sets as units.
    pub(crate) picture: Vec<&'a [u8]>,
}

impl<'a> DecoderConfig<'a> {
    /// Reads the body of `avcC`; `None` when it is cut short or of an unknown version. What follows the
    /// parameter sets repeats facts of theirs and is not read.
    pub(crate) fn parse(avcc: &'a [u8]) -> Option<Self> {
        let (head, mut rest) = avcc.split_first_chunk::<6>()?;
        let [1, _, _, _, length, count] = *head else { return None };
        let length_size = match length & 3 {
            0 => 1,
            1 => 2,
            3 => 4,
            _ => return None,
        };
        let sequence = take_units(&mut rest, count & 0x1f)?;
        let (count, behind) = rest.split_first()?;
        rest = behind;
        let picture = take_units(&mut rest, *count)?;
        Some(Self { length_size, sequence, picture })
    }
}

/// Takes `count` units behind lengths of two bytes.
fn take_units<'a>(rest: &mut &'a [u8], count: u8) -> Option<Vec<&'a [u8]>> {
    (0..count)
        .map(|_| {
            let (length, behind) = rest.split_first_chunk::<2>()?;
            let (unit, behind) = behind.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            *rest = behind;
            Some(unit)
        })
        .collect()
}

/// Builds the body of `avcC`, with lengths of 4 bytes, from parameter sets in Annex B form, as encoders give
/// them in their global header.
///
/// # Errors
/// `Corrupt` when a parameter set is missing, unreadable or too large, or when there are too many.
pub(crate) fn avcc_from_annex_b(header: &[u8]) -> Result<Bytes, Error> {
    let bad = |what: &str| Error::corrupt(format!("the H.264 header {what}"));
    let mut sequence: Vec<&[u8]> = Vec::new();
    let mut picture: Vec<&[u8]> = Vec::new();
    for unit in annex_b_units(header) {
        let list = match unit_type(unit) {
            Some(SEQUENCE_PARAMETERS) => &mut sequence,
            Some(PICTURE_PARAMETERS) => &mut picture,
            _ => continue,
        };
        if !list.contains(&unit) {
            list.push(unit);
        }
    }
    let first = sequence.first().ok_or_else(|| bad("has no sequence parameter set"))?;
    let facts = Sps::parse(first).ok_or_else(|| bad("has an unreadable sequence parameter set"))?;
    let sequence_count = u8::try_from(sequence.len()).ok().filter(|count| *count < 32);
    let sequence_count = sequence_count.ok_or_else(|| bad("has too many sequence parameter sets"))?;
    let picture_count = u8::try_from(picture.len()).ok().filter(|count| *count > 0);
    let picture_count = picture_count.ok_or_else(|| bad("has no picture parameter set or too many"))?;

    let mut out = BytesMut::with_capacity(header.len().saturating_add(16));
    out.put_slice(&[1, facts.profile, facts.constraints, facts.level, 0xfc | 3, 0xe0 | sequence_count]);
    put_units(&mut out, &sequence).ok_or_else(|| bad("has a parameter set that is too large"))?;
    out.put_u8(picture_count);
    put_units(&mut out, &picture).ok_or_else(|| bad("has a parameter set that is too large"))?;
    if facts.profile >= 100 {
        let depth = |bits: u8| 0xf8 | bits.saturating_sub(8) & 7;
        let chroma = 0xfc | facts.chroma_format & 3;
        // Without extensions of the sequence parameter set.
        out.put_slice(&[chroma, depth(facts.luma_depth), depth(facts.chroma_depth), 0]);
    }
    Ok(out.freeze())
}

fn put_units(out: &mut BytesMut, units: &[&[u8]]) -> Option<()> {
    for unit in units {
        out.put_u16(u16::try_from(unit.len()).ok()?);
        out.put_slice(unit);
    }
    Some(())
}
