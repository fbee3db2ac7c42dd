//! WebP: a RIFF file of chunks, with one image, or with one animation whose frames are chunks of chunks.

mod frames;
mod structure;

use std::time::Duration;

use self::frames::{Animated, FRAME};
use self::structure::{
    ALPHA, ANIMATION, CHUNK, Chunk, Chunks, EXIF, Extended, Image, RIFF, Riff, XMP, riff_header,
};
use super::rebuilt::Rebuilt;
use super::scan::{array, le32, length, stored};
use super::{PictureFacts, Walk, exif};
use crate::error::Error;
use crate::media::Orientation;

pub(crate) use self::frames::{WebpAnimation, WebpFrame, webp_frames};

/// Walks a WebP.
pub(super) fn walk(bytes: &[u8]) -> Result<Walk<'_>, Error> {
    let riff = Riff::read(bytes)?;
    let mut webp = Webp {
        body: Rebuilt::new(bytes),
        header: None,
        image: None,
        alpha: false,
        orientation: None,
        has_profile: false,
        has_background: false,
        has_alpha_data: false,
        broken: false,
        delays: Vec::new(),
        whole: riff.whole,
    };
    for (index, chunk) in riff.chunks().enumerate() {
        if index == 0 {
            webp.header = Extended::read(&chunk);
        }
        webp.whole &= chunk.whole;
        webp.chunk(&chunk);
    }
    webp.finish(&riff)
}

/// What a walk has seen.
struct Webp<'a> {
    /// What remains after the RIFF header.
    body: Rebuilt<'a>,
    header: Option<Extended>,
    image: Option<Image>,
    alpha: bool,
    orientation: Option<Orientation>,
    has_profile: bool,
    has_background: bool,
    has_alpha_data: bool,
    /// A frame made no sense: it and all later ones are dropped.
    broken: bool,
    delays: Vec<Duration>,
    whole: bool,
}

impl<'a> Webp<'a> {
    fn is_animation(&self) -> bool {
        self.header.is_some_and(|header| header.flags & ANIMATION != 0)
    }

    fn chunk(&mut self, chunk: &Chunk<'a>) {
        let range = chunk.range.clone();
        match &chunk.kind {
            b"VP8X" if range.start == RIFF => {
                if let Some(Extended { flags, canvas }) = self.header {
                    self.alpha = flags & ALPHA != 0;
                    self.body.replace(range, &Extended::chunk(canvas, flags & !(EXIF | XMP)));
                }
            }
            b"ICCP" if self.header.is_some() && !self.has_profile && chunk.whole => {
                self.has_profile = true;
                self.body.keep(range);
            }
            b"ANIM" if self.is_animation() && !self.has_background => {
                if let Some(fixed) = array::<6>(chunk.data, 0) {
                    self.has_background = true;
                    self.body.replace(range, &[b"ANIM\x06\0\0\0".as_slice(), &fixed].concat());
                }
            }
            b"ANMF" if self.is_animation() => self.frame(chunk),
            b"ALPH"
                if self.header.is_some()
                    && self.image.is_none()
                    && !self.is_animation()
                    && !self.has_alpha_data =>
            {
                self.alpha = true;
                self.has_alpha_data = true;
                self.body.keep(range);
            }
            b"VP8 " | b"VP8L" if self.image.is_none() && !self.is_animation() => {
                if let Some(image) = Image::read(chunk) {
                    self.alpha |= image.alpha;
                    self.image = Some(image);
                    self.body.keep(range);
                }
            }
            b"EXIF" => self.orientation = self.orientation.or_else(|| exif::orientation(chunk.data)),
            _ => {}
        }
    }

    /// Takes a frame, without what it holds beside its image.
    fn frame(&mut self, chunk: &Chunk<'a>) {
        let canvas = self.header.map(|header| header.canvas);
        let frame = canvas.filter(|_| !self.broken).and_then(|canvas| Animated::read(chunk.data, canvas));
        let Some(frame) = frame else {
            self.broken = true;
            self.whole = false;
            return;
        };
        self.whole &= frame.whole;
        self.alpha |= frame.image.alpha;
        self.delays.push(frame.duration);
        let start = chunk.range.start;
        let data = start.saturating_add(CHUNK);
        let inside = data.saturating_add(FRAME);
        let mut parts = Rebuilt::new(self.body.source());
        let data_end = data.saturating_add(chunk.data.len());
        let (mut alpha_wanted, mut image_wanted) = (frame.alpha_data.is_some(), true);
        for part in (Chunks { bytes: self.body.source(), at: inside, end: data_end }) {
            let wanted = match &part.kind {
                b"ALPH" => std::mem::take(&mut alpha_wanted),
                b"VP8 " | b"VP8L" => std::mem::take(&mut image_wanted),
                _ => false,
            };
            if wanted {
                parts.keep(part.range);
            }
        }
        let kept = FRAME.saturating_add(parts.len());
        // What the file lacks at its end stays lacking, so that a cut file does not pass for a whole one.
        let missing = length(le32(self.body.source(), start.saturating_add(4)).unwrap_or(0))
            .saturating_sub(chunk.data.len());
        let size = stored(kept.saturating_add(missing)).to_le_bytes();
        self.body.replace(start..data, &[b"ANMF".as_slice(), &size].concat());
        self.body.keep(data..inside);
        self.body.append(parts);
        if kept % 2 == 1 && missing == 0 && chunk.range.end > data_end {
            self.body.keep(data_end..chunk.range.end);
        }
    }

    fn finish(self, riff: &Riff<'a>) -> Result<Walk<'a>, Error> {
        let animation = self.header.filter(|_| self.is_animation());
        let frames = animation.map(|_| stored(self.delays.len()));
        let dimensions = match (animation, self.image) {
            (Some(header), _) if !self.delays.is_empty() => header.canvas,
            (None, Some(image)) => image.dimensions,
            _ => return Err(Error::corrupt("a WebP without a picture")),
        };
        let missing = riff.declared_end.saturating_sub(riff.bytes.len());
        let size = self.body.len().saturating_add(4).saturating_add(missing);
        let mut rebuilt = Rebuilt::new(riff.bytes);
        rebuilt.replace(0..RIFF, &riff_header(size));
        rebuilt.append(self.body);
        let facts = PictureFacts {
            dimensions,
            animated: frames.is_some_and(|frames| frames > 1),
            frames,
            alpha: self.alpha,
            bit_depth: 8,
            orientation: self.orientation.unwrap_or_default(),
            has_metadata: false,
            whole: self.whole,
        };
        Ok(Walk { facts, rebuilt, delays: self.delays })
    }
}
