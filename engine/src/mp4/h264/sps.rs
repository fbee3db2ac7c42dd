//! The sequence parameter set: what a decoder and a player must know before the first picture.

use crate::mp4::bits::BitReader;
use crate::units::Dimensions;

/// What a sequence parameter set says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sps {
    /// `profile_idc`: 66 baseline, 77 main, 100 high.
    pub(crate) profile: u8,
    /// The constraint flags, first flag in the highest bit.
    pub(crate) constraints: u8,
    /// `level_idc`: ten times the level.
    pub(crate) level: u8,
    /// `chroma_format_idc`: 0 grey, 1 4:2:0, 2 4:2:2, 3 4:4:4.
    pub(crate) chroma_format: u8,
    /// Bits of a luma sample, 8 to 14.
    pub(crate) luma_depth: u8,
    /// Bits of a chroma sample, 8 to 14.
    pub(crate) chroma_depth: u8,
    /// Pictures that a decoder keeps for reference at most.
    pub(crate) reference_frames: u32,
    /// Size in whole macroblocks, before cropping.
    pub(crate) coded: Dimensions,
    /// Size after cropping.
    pub(crate) cropped: Dimensions,
    /// Whether every picture is a whole frame, so that nothing can be interlaced.
    pub(crate) frames_only: bool,
    /// Width and height of a stored pixel in relation; `None` when unspecified.
    pub(crate) sample_aspect: Option<(u16, u16)>,
    /// Whether values use the full range; `None` when unspecified, which means they do not.
    pub(crate) full_range: Option<bool>,
    /// How numbers become colours; `None` when unspecified.
    pub(crate) color: Option<ColorDescription>,
    /// The clock of pictures; `None` when unspecified.
    pub(crate) timing: Option<Timing>,
    /// Pictures that may precede a picture in decoding and follow it in presentation; `None` when unspecified.
    pub(crate) reorder_frames: Option<u32>,
}

/// Colour code points of ITU-T H.273; 2 is unspecified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColorDescription {
    /// Colour primaries.
    pub(crate) primaries: u8,
    /// Transfer characteristics.
    pub(crate) transfer: u8,
    /// Matrix coefficients.
    pub(crate) matrix: u8,
}

/// The clock of pictures: a frame lasts two ticks of `tick / scale` seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// Units of `scale` in a tick; not zero.
    pub(crate) tick: u32,
    /// Units in a second; not zero.
    pub(crate) scale: u32,
    /// Whether all frames last equally long.
    pub(crate) fixed: bool,
}

impl Sps {
    /// Reads a unit, header byte included; `None` when it is none or is damaged. A damaged part about display
    /// is taken as far as it can be read, since decoders do not need it.
    pub(crate) fn parse(unit: &[u8]) -> Option<Self> {
        if unit.first()? & 0x9f != super::SEQUENCE_PARAMETERS {
            return None;
        }
        let payload = without_emulation_prevention(unit.get(1..)?);
        let mut bits = BitReader::new(&payload);
        let [profile, constraints, level] = [bits.byte()?, bits.byte()?, bits.byte()?];
        at_most(bits.unsigned()?, 31)?;
        let format = if WITH_SAMPLE_FORMAT.contains(&profile) {
            SampleFormat::parse(&mut bits)?
        } else {
            SampleFormat { chroma: 1, separate_planes: false, luma_depth: 8, chroma_depth: 8 }
        };
        skip_picture_order(&mut bits)?;
        let reference_frames = at_most(bits.unsigned()?, 16)?;
        bits.skip(1)?;
        let size = PictureSize::parse(&mut bits, format)?;
        let mut sps = Self {
            profile,
            constraints,
            level,
            chroma_format: format.chroma,
            luma_depth: format.luma_depth,
            chroma_depth: format.chroma_depth,
            reference_frames,
            coded: size.coded,
            cropped: size.cropped,
            frames_only: size.frames_only,
            sample_aspect: None,
            full_range: None,
            color: None,
            timing: None,
            reorder_frames: None,
        };
        if bits.flag()? {
            // Ends early on damage and keeps what it has.
            sps.read_usability(&mut bits);
        }
        Some(sps)
    }

    fn read_usability(&mut self, bits: &mut BitReader<'_>) -> Option<()> {
        if bits.flag()? {
            self.sample_aspect = match bits.byte()? {
                255 => {
                    let [width, height] = [bits.bits(16)?, bits.bits(16)?];
                    let aspect = (u16::try_from(width).ok()?, u16::try_from(height).ok()?);
                    Some(aspect).filter(|(width, height)| *width > 0 && *height > 0)
                }
                index => {
                    usize::from(index).checked_sub(1).and_then(|index| SAMPLE_ASPECTS.get(index).copied())
                }
            };
        }
        if bits.flag()? {
            bits.skip(1)?;
        }
        if bits.flag()? {
            bits.skip(3)?;
            self.full_range = Some(bits.flag()?);
            if bits.flag()? {
                let [primaries, transfer, matrix] = [bits.byte()?, bits.byte()?, bits.byte()?];
                self.color = Some(ColorDescription { primaries, transfer, matrix });
            }
        }
        if bits.flag()? {
            bits.unsigned()?;
            bits.unsigned()?;
        }
        if bits.flag()? {
            let timing = Timing { tick: bits.bits(32)?, scale: bits.bits(32)?, fixed: bits.flag()? };
            self.timing = Some(timing).filter(|timing| timing.tick > 0 && timing.scale > 0);
        }
        let unit_buffer = skip_buffer_model(bits)?;
        let slice_buffer = skip_buffer_model(bits)?;
        if unit_buffer || slice_buffer {
            bits.skip(1)?;
        }
        bits.skip(1)?;
        if bits.flag()? {
            bits.skip(1)?;
            for _ in 0..4 {
                bits.unsigned()?;
            }
            self.reorder_frames = Some(at_most(bits.unsigned()?, 16)?);
        }
        Some(())
    }
}

/// How samples of a picture are stored.
#[derive(Clone, Copy)]
struct SampleFormat {
    chroma: u8,
    separate_planes: bool,
    luma_depth: u8,
    chroma_depth: u8,
}

impl SampleFormat {
    fn parse(bits: &mut BitReader<'_>) -> Option<Self> {
        let chroma = at_most(bits.unsigned()?, 3)?;
        let separate_planes = chroma == 3 && bits.flag()?;
        let luma_depth = at_most(bits.unsigned()?, 6)?.saturating_add(8);
        let chroma_depth = at_most(bits.unsigned()?, 6)?.saturating_add(8);
        bits.skip(1)?;
        if bits.flag()? {
            for list in 0..if chroma == 3 { 12 } else { 8 } {
                if bits.flag()? {
                    skip_scaling_list(bits, if list < 6 { 16 } else { 64 })?;
                }
            }
        }
        Some(Self {
            chroma: u8::try_from(chroma).ok()?,
            separate_planes,
            luma_depth: u8::try_from(luma_depth).ok()?,
            chroma_depth: u8::try_from(chroma_depth).ok()?,
        })
    }
}

struct PictureSize {
    coded: Dimensions,
    cropped: Dimensions,
    frames_only: bool,
}

impl PictureSize {
    fn parse(bits: &mut BitReader<'_>, format: SampleFormat) -> Option<Self> {
        let columns = bits.unsigned()?.checked_add(1)?;
        let rows = bits.unsigned()?.checked_add(1)?;
        let frames_only = bits.flag()?;
        if !frames_only {
            bits.skip(1)?;
        }
        bits.skip(1)?;
        // Without frames-only, rows are counted in fields.
        let fields = if frames_only { 1 } else { 2 };
        let coded = Dimensions::new(columns.checked_mul(16)?, rows.checked_mul(16)?.checked_mul(fields)?);
        let mut cropped = coded;
        if bits.flag()? {
            let (across, down) = match format.chroma {
                1 => (2, 2),
                2 => (2, 1),
                _ => (1, 1),
            };
            let (across, down) = if format.separate_planes { (1, 1) } else { (across, down) };
            let [left, right, top, bottom] =
                [bits.unsigned()?, bits.unsigned()?, bits.unsigned()?, bits.unsigned()?];
            let horizontal = left.checked_add(right)?.checked_mul(across)?;
            let vertical = top.checked_add(bottom)?.checked_mul(down)?.checked_mul(fields)?;
            cropped =
                Dimensions::new(coded.width.checked_sub(horizontal)?, coded.height.checked_sub(vertical)?);
        }
        (cropped.pixels() > 0).then_some(Self { coded, cropped, frames_only })
    }
}

fn skip_picture_order(bits: &mut BitReader<'_>) -> Option<()> {
    at_most(bits.unsigned()?, 12)?;
    match bits.unsigned()? {
        0 => {
            at_most(bits.unsigned()?, 12)?;
        }
        1 => {
            bits.skip(1)?;
            bits.signed()?;
            bits.signed()?;
            for _ in 0..at_most(bits.unsigned()?, 255)? {
                bits.signed()?;
            }
        }
        2 => {}
        _ => return None,
    }
    Some(())
}

fn skip_scaling_list(bits: &mut BitReader<'_>, entries: u32) -> Option<()> {
    let mut next = 8_i64;
    for _ in 0..entries {
        next = next.saturating_add(bits.signed()?).rem_euclid(256);
        // The rest of the list repeats the entry before and takes no bits.
        if next == 0 {
            break;
        }
    }
    Some(())
}

/// Skips parameters of the hypothetical decoder's buffer, and tells whether there were any.
fn skip_buffer_model(bits: &mut BitReader<'_>) -> Option<bool> {
    let present = bits.flag()?;
    if present {
        let entries = at_most(bits.unsigned()?, 31)?;
        bits.skip(8)?;
        for _ in 0..=entries {
            bits.unsigned()?;
            bits.unsigned()?;
            bits.skip(1)?;
        }
        bits.skip(20)?;
    }
    Some(present)
}

/// Takes out the bytes of 3 that keep start codes out of a unit. Stops at [`LONGEST`].
fn without_emulation_prevention(unit: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(unit.len().min(LONGEST));
    let mut zeros = 0_u32;
    for byte in unit.iter().take(LONGEST) {
        if zeros >= 2 && *byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if *byte == 0 { zeros.saturating_add(1) } else { 0 };
        out.push(*byte);
    }
    out
}

const fn at_most(value: u32, most: u32) -> Option<u32> {
    if value <= most { Some(value) } else { None }
}

/// No parameter set is longer, even with all lists and buffers there can be.
const LONGEST: usize = 4096;

/// Profiles whose parameter sets tell how samples are stored; the others have 8 bits, 4:2:0.
const WITH_SAMPLE_FORMAT: [u8; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

/// `aspect_ratio_idc` from 1.
const SAMPLE_ASPECTS: [(u16, u16); 16] = [
    (1, 1),
    (12, 11),
    (10, 11),
    (16, 11),
    (40, 33),
    (24, 11),
    (20, 11),
    (32, 11),
    (80, 33),
    (18, 11),
    (15, 11),
    (64, 33),
    (160, 99),
    (4, 3),
    (3, 2),
    (2, 1),
];
