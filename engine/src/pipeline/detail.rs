//! How much detail of a source a smaller picture would lose.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::error::Error;
use crate::libav::{Frame, Graph, PicturePath, PixelTarget};
use crate::media::Orientation;
use crate::pipeline::material::{Material, Span};
use crate::pipeline::still::one_through;
use crate::units::{Dimensions, Timestamp};

/// A few pictures of a source, to be scaled down and up again.
#[derive(Debug)]
pub(crate) struct Detail {
    display: Dimensions,
    state: Mutex<State>,
}

/// Where in the span pictures are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moments {
    Everywhere,
    /// Near its beginning.
    Early,
}

#[derive(Debug)]
struct State {
    pictures: Vec<Frame>,
    /// What was measured, by height.
    known: BTreeMap<u32, f64>,
}

impl Detail {
    /// Takes pictures at a few moments of `span`.
    ///
    /// # Errors
    /// What decoding gives, except damage: then there are fewer pictures, or none.
    pub(crate) fn of(
        material: &mut dyn Material,
        span: Span,
        display: Dimensions,
        orientation: Orientation,
        moments: Moments,
    ) -> Result<Self, Error> {
        let mut pictures = Vec::new();
        if !material.can_seek() {
            let mut frames = material.start()?;
            for number in 0..=EARLY_PICTURES.iter().copied().max().unwrap_or(0) {
                let Some(frame) = frames.next()? else { break };
                if EARLY_PICTURES.contains(&number) {
                    let mut graph = Graph::pictures(&frame.picture_shape(), &path(display, orientation))?;
                    pictures.push(one_through(&mut graph, frame)?);
                }
            }
            return Ok(Self { display, state: Mutex::new(State { pictures, known: BTreeMap::new() }) });
        }
        let parts = match moments {
            Moments::Everywhere => MOMENTS,
            Moments::Early => EARLY_MOMENTS,
        };
        for part in parts {
            let time = span.start.plus(Timestamp::from_seconds(span.duration().seconds() * part));
            let mut frames = material.start_near(time)?;
            let mut found = frames.next()?;
            // The key frame before an early moment may be the track's first picture, which is often black.
            while moments == Moments::Early
                && found.as_ref().and_then(Frame::pts).is_some_and(|shown| shown < time)
            {
                found = frames.next()?;
            }
            let Some(frame) = found else { continue };
            let path = path(display, orientation);
            let mut graph = Graph::pictures(&frame.picture_shape(), &path)?;
            pictures.push(one_through(&mut graph, frame)?);
        }
        Ok(Self { display, state: Mutex::new(State { pictures, known: BTreeMap::new() }) })
    }

    /// The peak signal-to-noise ratio, in decibels, of the source's brightness after it was made as small as
    /// `size` and large again: from about 30 for fine detail to more than 50 for none. `None` when it cannot be
    /// told.
    pub(crate) fn kept_at(&self, size: Dimensions) -> Option<f64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = state.known.get(&size.height) {
            return Some(*known);
        }
        let (mut squares, mut count) = (0.0, 0.0);
        for picture in &state.pictures {
            let there = self.scaled(picture.share().ok()?, size)?;
            let back = self.scaled(there, self.display)?;
            let (sum, pixels) = picture.difference(&back)?;
            squares += sum;
            count += pixels;
        }
        if count == 0.0 {
            return None;
        }
        // 255 is the peak; a hundredth keeps the logarithm of what is the same finite.
        let decibels = 10.0 * (255.0 * 255.0 / (squares / count).max(0.01)).log10();
        state.known.insert(size.height, decibels);
        Some(decibels)
    }

    fn scaled(&self, picture: Frame, size: Dimensions) -> Option<Frame> {
        let mut graph = Graph::pictures(&picture.picture_shape(), &path(size, Orientation::Upright)).ok()?;
        one_through(&mut graph, picture).ok()
    }
}

const fn path(target: Dimensions, orientation: Orientation) -> PicturePath {
    PicturePath { target, inside: target, orientation, deinterlace: false, pixels: PixelTarget::Video }
}

/// Pictures that are taken where nothing further can be had soon: not the first, which may be black.
const EARLY_PICTURES: [u32; 2] = [15, 40];
/// Parts of the span at which they are taken while the source arrives: its beginning is waited for anyway.
const EARLY_MOMENTS: [f64; 2] = [0.05, 0.2];
/// Parts of the span at which pictures are taken: two, since each costs a few milliseconds.
const MOMENTS: [f64; 2] = [0.3, 0.7];
