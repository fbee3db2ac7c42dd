//! GIF: a screen, then extensions and images up to a trailer.

use std::time::Duration;

use super::rebuilt::Rebuilt;
use super::scan::{array, le16, stored};
use super::{PictureFacts, Walk, browser_delay};
use crate::error::Error;
use crate::media::Orientation;
use crate::units::Dimensions;

const EXTENSION: u8 = 0x21;
const IMAGE: u8 = 0x2C;
const TRAILER: u8 = 0x3B;
const GRAPHIC_CONTROL: u8 = 0xF9;
const APPLICATION: u8 = 0xFF;

/// Walks a GIF. A byte that begins no block ends the picture, as it does in browsers.
pub(super) fn walk(bytes: &[u8]) -> Result<Walk<'_>, Error> {
    if !matches!(bytes, [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..]) {
        return Err(Error::corrupt("not a GIF"));
    }
    let (Some(width), Some(height), Some(packed)) = (le16(bytes, 6), le16(bytes, 8), bytes.get(10)) else {
        return Err(no_picture());
    };
    let mut gif = Gif {
        bytes,
        at: 13_usize.saturating_add(colour_table(*packed)),
        rebuilt: Rebuilt::new(bytes),
        screen: Dimensions::new(width.into(), height.into()),
        control: Control::default(),
        alpha: false,
        delays: Vec::new(),
        whole: false,
    };
    gif.rebuilt.keep(0..gif.at);
    while gif.block().is_some() {}
    gif.finish()
}

struct Gif<'a> {
    bytes: &'a [u8],
    at: usize,
    rebuilt: Rebuilt<'a>,
    screen: Dimensions,
    control: Control,
    alpha: bool,
    delays: Vec<Duration>,
    whole: bool,
}

/// What the last graphic control extension said about the image that follows it.
#[derive(Default)]
struct Control {
    hundredths: u16,
    transparent: bool,
}

impl<'a> Gif<'a> {
    /// Takes the next block; `None` at the end of what can be read.
    fn block(&mut self) -> Option<()> {
        match *self.bytes.get(self.at)? {
            EXTENSION => self.extension(),
            IMAGE => self.image(),
            TRAILER => {
                self.rebuilt.keep(self.at..self.at.saturating_add(1));
                self.whole = true;
                None
            }
            // A terminator too many, which some encoders write.
            0 => {
                self.at += 1;
                Some(())
            }
            _ => {
                self.rebuilt.replace(self.at..self.at, &[TRAILER]);
                None
            }
        }
    }

    fn extension(&mut self) -> Option<()> {
        let start = self.at;
        let label = *self.bytes.get(start.saturating_add(1))?;
        let end = sub_blocks_end(self.bytes, start.saturating_add(2))?;
        let extension = self.bytes.get(start..end)?;
        match label {
            GRAPHIC_CONTROL => {
                // Later sub-blocks say nothing to anybody, so the usual eight bytes are all that stays.
                if let Some([4..=255, flags, low, high, transparent]) = array(extension, 2) {
                    self.control =
                        Control { hundredths: u16::from_le_bytes([low, high]), transparent: flags & 1 == 1 };
                    let usual = [EXTENSION, GRAPHIC_CONTROL, 4, flags, low, high, transparent, 0];
                    self.rebuilt.replace(start..end, &usual);
                }
            }
            APPLICATION => {
                if let Some(usual) = loop_extension(extension) {
                    self.rebuilt.replace(start..end, &usual);
                }
            }
            _ => {}
        }
        self.at = end;
        Some(())
    }

    fn image(&mut self) -> Option<()> {
        let start = self.at;
        let [left, top, width, height] =
            [1, 3, 5, 7].map(|field| le16(self.bytes, start.saturating_add(field)).map(u32::from));
        let (left, top, width, height) = (left?, top?, width?, height?);
        let packed = *self.bytes.get(start.saturating_add(9))?;
        // The table, then one byte with the size of the first code.
        let data = start.saturating_add(11).saturating_add(colour_table(packed));
        self.bytes.get(data)?;
        let end = sub_blocks_end(self.bytes, data);
        if self.delays.is_empty() {
            if self.screen.width == 0 || self.screen.height == 0 {
                self.screen = Dimensions::new(left + width, top + height);
            }
            let covers = left == 0 && top == 0 && width >= self.screen.width && height >= self.screen.height;
            self.alpha |= !covers;
        }
        let control = std::mem::take(&mut self.control);
        self.alpha |= control.transparent;
        self.delays.push(browser_delay(Duration::from_millis(u64::from(control.hundredths) * 10)));
        self.rebuilt.keep(start..end.unwrap_or(self.bytes.len()));
        self.at = end?;
        Some(())
    }

    fn finish(self) -> Result<Walk<'a>, Error> {
        let frames = stored(self.delays.len());
        if frames == 0 {
            return Err(no_picture());
        }
        if self.screen.pixels() == 0 {
            return Err(Error::corrupt("a GIF whose picture has no size"));
        }
        let facts = PictureFacts {
            dimensions: self.screen,
            animated: frames > 1,
            frames: Some(frames),
            alpha: self.alpha,
            bit_depth: 8,
            orientation: Orientation::Upright,
            has_metadata: false,
            whole: self.whole,
        };
        Ok(Walk { facts, rebuilt: self.rebuilt, delays: self.delays })
    }
}

/// Bytes of the colour table that a packed field announces.
fn colour_table(packed: u8) -> usize {
    if packed & 0x80 == 0 { 0 } else { 3 << ((packed & 7) + 1) }
}

/// The position after the sub-blocks that begin at `at`; `None` when the file ends before them.
fn sub_blocks_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let size = usize::from(*bytes.get(at)?);
        at = at.checked_add(size + 1)?;
        if size == 0 {
            return Some(at);
        }
    }
}

/// The application extension that says how often to play, in its usual form; `None` for any other.
fn loop_extension(extension: &[u8]) -> Option<[u8; 19]> {
    let name = extension.get(..14)?;
    if !matches!(name, [_, _, 11, name @ ..] if name == b"NETSCAPE2.0" || name == b"ANIMEXTS1.0") {
        return None;
    }
    let mut at = 14;
    loop {
        let size = usize::from(*extension.get(at)?);
        if size == 0 {
            return None;
        }
        if let (3.., Some([kind, low, high])) = (size, array(extension, at + 1))
            && kind & 7 == 1
        {
            let mut usual = [0; 19];
            usual.get_mut(..14)?.copy_from_slice(name);
            usual.get_mut(14..18)?.copy_from_slice(&[3, 1, low, high]);
            return Some(usual);
        }
        at += size + 1;
    }
}

fn no_picture() -> Error {
    Error::corrupt("a GIF without a picture")
}
