//! PNG: a signature, then chunks up to `IEND`.

use std::time::Duration;

use super::rebuilt::Rebuilt;
use super::scan::{array, be16, be32, length, stored};
use super::{PictureFacts, Walk, browser_delay, exif};
use crate::error::Error;
use crate::media::Orientation;
use crate::units::Dimensions;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1A\n";
/// The end chunk as every file has it.
const IEND: &[u8; 12] = b"\0\0\0\0IEND\xAE\x42\x60\x82";
/// Bytes of a chunk beside its data: length, kind, checksum.
const FRAMING: usize = 12;

/// Walks a PNG. Checksums are not looked at: decoders do that.
pub(super) fn walk(bytes: &[u8]) -> Result<Walk<'_>, Error> {
    if !bytes.starts_with(SIGNATURE) {
        return Err(Error::corrupt("not a PNG"));
    }
    let header = Header::read(bytes)?;
    let mut png = Png {
        rebuilt: Rebuilt::new(bytes),
        orientation: None,
        transparent: false,
        animation: None,
        has_pixels: false,
        delays: Vec::new(),
        whole: false,
    };
    let mut at = SIGNATURE.len() + FRAMING + Header::LENGTH;
    png.rebuilt.keep(0..at);
    while let (Some(size), Some(kind)) = (be32(bytes, at), array::<4>(bytes, at.saturating_add(4))) {
        let data = at.saturating_add(8);
        let data_end = data.saturating_add(length(size));
        let end = data_end.saturating_add(4);
        png.chunk(Chunk { kind, range: at..end, data: bytes.get(data..data_end) });
        if png.whole {
            break;
        }
        at = end;
    }
    png.finish(&header)
}

/// The fields of `IHDR` that matter.
struct Header {
    dimensions: Dimensions,
    bit_depth: u8,
    alpha: bool,
}

impl Header {
    const LENGTH: usize = 13;

    fn read(bytes: &[u8]) -> Result<Self, Error> {
        let bad = || Error::corrupt("a PNG without a valid header");
        if !bytes.get(8..).is_some_and(|rest| rest.starts_with(b"\0\0\0\x0DIHDR")) {
            return Err(bad());
        }
        let side = |at| be32(bytes, at).filter(|side| (1..1 << 31).contains(side)).ok_or_else(bad);
        let dimensions = Dimensions::new(side(16)?, side(20)?);
        let [bit_depth, colour] = array(bytes, 24).ok_or_else(bad)?;
        match (colour, bit_depth) {
            (0, 1 | 2 | 4 | 8 | 16) | (2 | 4 | 6, 8 | 16) | (3, 1 | 2 | 4 | 8) => {}
            _ => return Err(bad()),
        }
        // Colours of a palette have eight bits, whatever the size of the index.
        Ok(Self {
            dimensions,
            bit_depth: if colour == 3 { 8 } else { bit_depth },
            alpha: matches!(colour, 4 | 6),
        })
    }
}

struct Chunk<'a> {
    kind: [u8; 4],
    range: std::ops::Range<usize>,
    /// `None` when the file ends before the data does.
    data: Option<&'a [u8]>,
}

struct Png<'a> {
    rebuilt: Rebuilt<'a>,
    orientation: Option<Orientation>,
    transparent: bool,
    /// Frames that `acTL` announces, if it comes before the pixels.
    animation: Option<u32>,
    has_pixels: bool,
    delays: Vec<Duration>,
    whole: bool,
}

impl<'a> Png<'a> {
    fn chunk(&mut self, chunk: Chunk<'_>) {
        let wanted = match (&chunk.kind, chunk.data) {
            (b"IEND", _) => {
                self.rebuilt.replace(chunk.range, IEND);
                self.whole = true;
                return;
            }
            (b"eXIf", Some(data)) => {
                self.orientation = self.orientation.or_else(|| exif::orientation(data));
                false
            }
            // Without a valid announcement before the pixels there is no animation, and no use for its chunks.
            (b"acTL", Some(data)) if self.animation.is_none() && !self.has_pixels && data.len() == 8 => {
                self.animation = be32(data, 0).filter(|frames| *frames > 0);
                self.animation.is_some()
            }
            (b"fcTL", Some(data)) if self.animation.is_some() && data.len() == 26 => {
                self.delays.extend(delay(data));
                true
            }
            (b"fdAT", _) => self.animation.is_some(),
            (b"IDAT", _) => {
                self.has_pixels = true;
                true
            }
            (b"tRNS", Some(data)) if data.len() <= 256 => {
                self.transparent = true;
                true
            }
            (kind, Some(data)) => is_colour(kind, data.len()),
            (_, None) => false,
        };
        if wanted {
            self.rebuilt.keep(chunk.range);
        }
    }

    fn finish(mut self, header: &Header) -> Result<Walk<'a>, Error> {
        if !self.has_pixels {
            return Err(Error::corrupt("a PNG without pixel data"));
        }
        self.delays.truncate(length(self.animation.unwrap_or(0)));
        let frames = Some(stored(self.delays.len())).filter(|frames| *frames > 0);
        let facts = PictureFacts {
            dimensions: header.dimensions,
            animated: frames.is_some_and(|frames| frames > 1),
            frames,
            alpha: header.alpha || self.transparent,
            bit_depth: header.bit_depth,
            orientation: self.orientation.unwrap_or_default(),
            has_metadata: false,
            whole: self.whole,
        };
        Ok(Walk { facts, rebuilt: self.rebuilt, delays: self.delays })
    }
}

/// Whether a chunk says how pixels become colours on a screen. Chunks of a fixed form count only in that form,
/// so that nothing else hides in them.
const fn is_colour(kind: &[u8; 4], size: usize) -> bool {
    match kind {
        b"PLTE" => size <= 768,
        b"iCCP" => true,
        b"sBIT" => size <= 4,
        b"bKGD" => size <= 6,
        b"sRGB" => size == 1,
        b"gAMA" | b"cICP" => size == 4,
        b"cLLI" | b"cLLi" => size == 8,
        b"pHYs" => size == 9,
        b"mDCV" | b"mDCv" => size == 24,
        b"cHRM" => size == 32,
        _ => false,
    }
}

/// How long the frame of an `fcTL` chunk is shown.
fn delay(data: &[u8]) -> Option<Duration> {
    let numerator = be16(data, 20)?;
    // Zero means hundredths, by the specification.
    let denominator = match be16(data, 22)? {
        0 => 100,
        other => other,
    };
    Some(browser_delay(Duration::from_secs(numerator.into()) / u32::from(denominator)))
}
