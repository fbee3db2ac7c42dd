//! The structure of a WebP file: a RIFF header, chunks, and the headers of images.

use std::ops::Range;

use super::super::scan::{array, le16, le24, le32, length, stored};
use crate::error::Error;
use crate::units::Dimensions;

/// Bytes before the first chunk: `RIFF`, a size, `WEBP`.
pub(super) const RIFF: usize = 12;
/// Bytes before a chunk's data: its kind and size.
pub(super) const CHUNK: usize = 8;

/// Flags of the extended header.
pub(super) const ANIMATION: u8 = 0x02;
pub(super) const XMP: u8 = 0x04;
pub(super) const EXIF: u8 = 0x08;
pub(super) const ALPHA: u8 = 0x10;

/// The file's outermost structure.
pub(super) struct Riff<'a> {
    pub(super) bytes: &'a [u8],
    /// Where the file ends by its own word, which may lie beyond its real end.
    pub(super) declared_end: usize,
    pub(super) whole: bool,
}

impl<'a> Riff<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let (Some(b"RIFF"), Some(size), Some(b"WEBP")) = (bytes.get(..4), le32(bytes, 4), bytes.get(8..RIFF))
        else {
            return Err(Error::corrupt("not a WebP"));
        };
        let declared_end = length(size).saturating_add(8);
        Ok(Self { bytes, declared_end, whole: declared_end <= bytes.len() })
    }

    pub(super) fn chunks(&self) -> Chunks<'a> {
        Chunks { bytes: self.bytes, at: RIFF, end: self.declared_end.min(self.bytes.len()) }
    }
}

/// Chunks one after the other, between two positions in the file.
pub(super) struct Chunks<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) end: usize,
}

pub(super) struct Chunk<'a> {
    pub(super) kind: [u8; 4],
    /// With its header and padding.
    pub(super) range: Range<usize>,
    /// As much of it as is there.
    pub(super) data: &'a [u8],
    /// Whether all of it is there.
    pub(super) whole: bool,
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Chunk<'a>;

    fn next(&mut self) -> Option<Chunk<'a>> {
        let start = self.at;
        let inside = self.bytes.get(..self.end)?;
        let (kind, size) = (array(inside, start)?, le32(inside, start.checked_add(4)?)?);
        let data = start.checked_add(CHUNK)?;
        let declared_end = data.saturating_add(length(size));
        let data_end = declared_end.min(self.end);
        // Data of odd length is followed by one byte of padding, which some writers leave out at the end.
        self.at = data_end.saturating_add(data_end.saturating_sub(data) % 2).min(self.end);
        Some(Chunk {
            kind,
            range: start..self.at,
            data: inside.get(data..data_end)?,
            whole: declared_end <= self.end,
        })
    }
}

/// The header of an extended file, `VP8X`.
#[derive(Clone, Copy)]
pub(super) struct Extended {
    pub(super) flags: u8,
    pub(super) canvas: Dimensions,
}

impl Extended {
    pub(super) fn read(chunk: &Chunk<'_>) -> Option<Self> {
        let (flags, width, height) = (*chunk.data.first()?, le24(chunk.data, 4)?, le24(chunk.data, 7)?);
        (chunk.kind == *b"VP8X").then(|| Self { flags, canvas: Dimensions::new(width + 1, height + 1) })
    }

    /// The chunk, with `flags` in place of its own.
    pub(super) fn chunk(canvas: Dimensions, flags: u8) -> Vec<u8> {
        let mut chunk = b"VP8X\x0A\0\0\0".to_vec();
        chunk.extend([flags, 0, 0, 0]);
        for side in [canvas.width, canvas.height] {
            chunk.extend(side.saturating_sub(1).to_le_bytes().into_iter().take(3));
        }
        chunk
    }
}

/// What the header of a `VP8 ` or `VP8L` chunk says.
#[derive(Clone, Copy)]
pub(super) struct Image {
    pub(super) dimensions: Dimensions,
    pub(super) alpha: bool,
}

impl Image {
    pub(super) fn read(chunk: &Chunk<'_>) -> Option<Self> {
        let (width, height, alpha) = match &chunk.kind {
            b"VP8 " => {
                let [tag, _, _, 0x9D, 0x01, 0x2A] = array(chunk.data, 0)? else { return None };
                // The lowest bit is clear in key frames, the upper two bits of a side are a scaling hint.
                let side = |at| le16(chunk.data, at).map(|side| u32::from(side & 0x3FFF));
                (tag & 1 == 0).then_some((side(6)?, side(8)?, false))?
            }
            b"VP8L" => {
                let [0x2F, packed @ ..] = array::<5>(chunk.data, 0)? else { return None };
                let bits = u32::from_le_bytes(packed);
                ((bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1, (bits >> 28) & 1 == 1)
            }
            _ => return None,
        };
        (width > 0 && height > 0).then_some(Self { dimensions: Dimensions::new(width, height), alpha })
    }
}

pub(super) fn riff_header(size: usize) -> Vec<u8> {
    [b"RIFF".as_slice(), &stored(size).to_le_bytes(), b"WEBP"].concat()
}
