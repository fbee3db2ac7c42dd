//! Animations: each frame as a still picture of its own.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

use super::super::scan::{array, le24, stored};
use super::super::{browser_delay, check_frames};
use super::structure::{ALPHA, ANIMATION, Chunks, Extended, Image, RIFF, Riff, riff_header};
use crate::error::Error;
use crate::units::Dimensions;

/// Bytes before the first chunk within an `ANMF` chunk's data.
pub(super) const FRAME: usize = 16;

/// An animation taken apart, so that each frame can be decoded as a still picture and drawn on the canvas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebpAnimation {
    /// Size of the picture that the frames are drawn on.
    pub(crate) canvas: Dimensions,
    /// Background colour: blue, green, red, alpha. Browsers ignore it and begin transparent.
    pub(crate) background: [u8; 4],
    /// The frames in order, at least one, each within the canvas.
    pub(crate) frames: Vec<WebpFrame>,
    /// Whether no frame was left out or is cut short, and the file goes on to its end.
    pub(crate) complete: bool,
}

/// One frame of an animation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebpFrame {
    /// Pixels from the canvas's left edge.
    pub(crate) offset_x: u32,
    /// Pixels from the canvas's top edge.
    pub(crate) offset_y: u32,
    /// Size of the frame's own picture.
    pub(crate) dimensions: Dimensions,
    /// How long it is shown, as browsers do it.
    pub(crate) duration: Duration,
    /// Drawn over what is there; otherwise in its place, transparent pixels too.
    pub(crate) blend: bool,
    /// Its rectangle becomes transparent before the next frame is drawn; otherwise it stays.
    pub(crate) dispose: bool,
    /// The frame as a WebP file of its own.
    pub(crate) image: Bytes,
}

/// Takes an animation apart. The list ends at the first frame that makes no sense.
///
/// # Errors
/// `Corrupt` when it is no animated WebP or has no frame, `TooLarge` for more than 20,000 frames.
pub(crate) fn webp_frames(bytes: &[u8]) -> Result<WebpAnimation, Error> {
    let riff = Riff::read(bytes)?;
    let header = riff.chunks().next().and_then(|chunk| Extended::read(&chunk));
    let header = header.filter(|header| header.flags & ANIMATION != 0);
    let header = header.ok_or_else(|| Error::corrupt("a WebP that is no animation"))?;
    let mut animation =
        WebpAnimation { canvas: header.canvas, background: [0; 4], frames: Vec::new(), complete: riff.whole };
    for chunk in riff.chunks() {
        match &chunk.kind {
            b"ANIM" => animation.background = array(chunk.data, 0).unwrap_or_default(),
            b"ANMF" => {
                let Some(frame) = Animated::read(chunk.data, header.canvas) else {
                    animation.complete = false;
                    break;
                };
                animation.complete &= chunk.whole && frame.whole;
                animation.frames.push(frame.wrap());
                check_frames(animation.frames.len())?;
            }
            _ => {}
        }
    }
    if animation.frames.is_empty() {
        return Err(Error::corrupt("a WebP animation without a frame"));
    }
    Ok(animation)
}

/// An `ANMF` chunk's data.
pub(super) struct Animated<'a> {
    pub(super) offset_x: u32,
    pub(super) offset_y: u32,
    pub(super) image: Image,
    pub(super) duration: Duration,
    pub(super) flags: u8,
    /// The chunks to keep: transparency for a lossy image, and the image.
    pub(super) alpha_data: Option<&'a [u8]>,
    pub(super) image_kind: [u8; 4],
    pub(super) image_data: &'a [u8],
    pub(super) whole: bool,
}

impl<'a> Animated<'a> {
    pub(super) fn read(data: &'a [u8], canvas: Dimensions) -> Option<Self> {
        let field = |at| le24(data, at);
        let (x, y, width, height) = (field(0)?, field(3)?, field(6)?, field(9)?);
        let (duration, flags) = (field(12)?, *data.get(15)?);
        let size = Dimensions::new(width + 1, height + 1);
        // Sides and halved offsets have 24 bits.
        let (offset_x, offset_y) = (x * 2, y * 2);
        if offset_x + size.width > canvas.width || offset_y + size.height > canvas.height {
            return None;
        }
        let mut alpha_data = None;
        for chunk in (Chunks { bytes: data, at: FRAME, end: data.len() }) {
            match &chunk.kind {
                b"ALPH" => alpha_data = alpha_data.or(Some(chunk.data)),
                b"VP8 " | b"VP8L" => {
                    let image = Image::read(&chunk).filter(|image| image.dimensions == size)?;
                    let alpha_data = alpha_data.filter(|_| chunk.kind == *b"VP8 ");
                    return Some(Self {
                        offset_x,
                        offset_y,
                        image: Image { alpha: image.alpha || alpha_data.is_some(), ..image },
                        duration: browser_delay(Duration::from_millis(duration.into())),
                        flags,
                        alpha_data,
                        image_kind: chunk.kind,
                        image_data: chunk.data,
                        whole: chunk.whole,
                    });
                }
                _ => {}
            }
        }
        None
    }

    fn wrap(&self) -> WebpFrame {
        let mut body = BytesMut::with_capacity(self.image_data.len());
        if let Some(alpha_data) = self.alpha_data {
            body.put_slice(&Extended::chunk(self.image.dimensions, ALPHA));
            put_chunk(&mut body, *b"ALPH", alpha_data);
        }
        put_chunk(&mut body, self.image_kind, self.image_data);
        let mut image = BytesMut::with_capacity(RIFF.saturating_add(body.len()));
        image.put_slice(&riff_header(body.len().saturating_add(4)));
        image.put_slice(&body);
        WebpFrame {
            offset_x: self.offset_x,
            offset_y: self.offset_y,
            dimensions: self.image.dimensions,
            duration: self.duration,
            blend: self.flags & 2 == 0,
            dispose: self.flags & 1 == 1,
            image: image.freeze(),
        }
    }
}

fn put_chunk(into: &mut BytesMut, kind: [u8; 4], data: &[u8]) {
    into.put_slice(&kind);
    into.put_u32_le(stored(data.len()));
    into.put_slice(data);
    if data.len() % 2 == 1 {
        into.put_u8(0);
    }
}
