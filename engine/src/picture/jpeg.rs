//! JPEG: segments, each behind a marker, and entropy-coded data after each start of a scan.

use std::ops::Range;

use super::rebuilt::Rebuilt;
use super::scan::{array, be16};
use super::{PictureFacts, Walk, exif};
use crate::error::Error;
use crate::media::Orientation;
use crate::units::Dimensions;

const ICC: &[u8] = b"ICC_PROFILE\0";
const JFIF: &[u8] = b"JFIF\0";
const ADOBE: &[u8] = b"Adobe";
const EXIF: &[u8] = b"Exif\0\0";

/// Walks a JPEG up to its end marker. What is not where a marker should be is skipped, as decoders do.
pub(super) fn walk(bytes: &[u8]) -> Result<Walk<'_>, Error> {
    if !bytes.starts_with(&[0xFF, 0xD8]) {
        return Err(Error::corrupt("not a JPEG"));
    }
    let mut jpeg = Jpeg {
        bytes,
        at: 2,
        rebuilt: Rebuilt::new(bytes),
        frame: None,
        orientation: None,
        has_scan: false,
        whole: false,
    };
    jpeg.rebuilt.keep(0..2);
    while jpeg.segment().is_some() {}
    jpeg.finish()
}

struct Jpeg<'a> {
    bytes: &'a [u8],
    at: usize,
    rebuilt: Rebuilt<'a>,
    frame: Option<Frame>,
    orientation: Option<Orientation>,
    has_scan: bool,
    whole: bool,
}

/// The fields of a start-of-frame segment that matter.
#[derive(Clone, Copy)]
struct Frame {
    dimensions: Dimensions,
    bit_depth: u8,
}

impl<'a> Jpeg<'a> {
    /// Takes the next segment; `None` at the end of what can be read.
    fn segment(&mut self) -> Option<()> {
        self.at = next_marker(self.bytes, self.at)?;
        let start = self.at;
        let kind = *self.bytes.get(start.saturating_add(1))?;
        let body = start.saturating_add(2);
        self.at = body;
        match kind {
            0xD9 => {
                self.rebuilt.keep(start..body);
                self.whole = true;
                return None;
            }
            // Restart markers outside a scan, a second beginning, and the reserved `TEM` have no body.
            0x01 | 0xD0..=0xD8 => return Some(()),
            _ => {}
        }
        let size = usize::from(be16(self.bytes, body)?);
        if size < 2 {
            return Some(());
        }
        let end = body.saturating_add(size);
        let payload = self.bytes.get(body.saturating_add(2)..end);
        self.at = end.min(self.bytes.len());
        self.sort(kind, start..end, payload);
        if kind == 0xDA && payload.is_some() {
            self.has_scan = true;
            self.at = entropy_end(self.bytes, self.at);
            self.rebuilt.keep(end..self.at);
        }
        Some(())
    }

    /// Keeps or drops one segment; `payload` is `None` when the file ends within it, and then it goes.
    fn sort(&mut self, kind: u8, range: Range<usize>, payload: Option<&[u8]>) {
        match (kind, payload) {
            // Start of frame, in all its codings.
            (0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF, Some(payload)) => {
                self.frame = self.frame.or_else(|| frame(payload));
                self.rebuilt.keep(range);
            }
            // Tables for entropy coding and quantisation, number of lines, restart interval, hierarchy, scan.
            (0xC4 | 0xCC | 0xDA..=0xDF, Some(_)) => self.rebuilt.keep(range),
            (0xE0, Some(payload)) if payload.starts_with(JFIF) => {
                // Version, units and densities stay, a thumbnail does not.
                if let Some(fixed) = array::<12>(payload, 0) {
                    self.rebuilt.replace(range, &[[0xFF, 0xE0, 0, 16].as_slice(), &fixed, &[0, 0]].concat());
                }
            }
            (0xE1, Some(payload)) => {
                if let Some(data) = payload.strip_prefix(EXIF) {
                    self.orientation = self.orientation.or_else(|| exif::orientation(data));
                }
            }
            (0xE2, Some(payload)) if payload.starts_with(ICC) => self.rebuilt.keep(range),
            (0xEE, Some(payload)) if payload.starts_with(ADOBE) => {
                // It says which colour space the components are in; nothing follows its twelve bytes.
                if let Some(fixed) = array::<12>(payload, 0) {
                    self.rebuilt.replace(range, &[[0xFF, 0xEE, 0, 14].as_slice(), &fixed].concat());
                }
            }
            _ => {}
        }
    }

    fn finish(self) -> Result<Walk<'a>, Error> {
        let frame =
            self.frame.filter(|_| self.has_scan).ok_or_else(|| Error::corrupt("a JPEG without a picture"))?;
        if frame.dimensions.pixels() == 0 {
            return Err(Error::corrupt("a JPEG whose picture has no size"));
        }
        let facts = PictureFacts {
            dimensions: frame.dimensions,
            animated: false,
            frames: None,
            alpha: false,
            bit_depth: frame.bit_depth,
            orientation: self.orientation.unwrap_or_default(),
            has_metadata: false,
            whole: self.whole,
        };
        Ok(Walk { facts, rebuilt: self.rebuilt, delays: Vec::new() })
    }
}

fn frame(payload: &[u8]) -> Option<Frame> {
    let [bit_depth, high, low] = array(payload, 0)?;
    let height = u16::from_be_bytes([high, low]);
    let width = be16(payload, 3)?;
    Some(Frame { dimensions: Dimensions::new(width.into(), height.into()), bit_depth })
}

/// The position of the first marker at or after `at`: of the last `FF` before a byte that is no filling.
fn next_marker(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let found = rest.array_windows().position(|pair| matches!(pair, [0xFF, 0x01..=0xFE]))?;
    at.checked_add(found)
}

/// The position of the first `FF` at or after `at` that begins no stuffed byte and no restart marker.
fn entropy_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let end = rest.array_windows().position(|pair| matches!(pair, [0xFF, 0x01..=0xCF | 0xD8..=0xFF]));
    end.map_or(bytes.len(), |end| at.saturating_add(end))
}
