//! The CRF that is tried before any picture was seen.

use crate::units::ByteSize;

/// Bits per pixel and frame of x264 at CRF 23, 1280x720, 30 frames a second, on usual content.
const USUAL_BITS_AT_23: f64 = 0.085;
/// How log2(bytes) falls with each step of CRF on usual content: measured 0.20 at CRF 20, 0.155 at 38, with a
/// deviation of 0.03.
pub(crate) const USUAL_SLOPE: f64 = 0.18;

/// What the first guess is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FirstGuess {
    /// Pixels of one frame of the result.
    pub(crate) pixels: f64,
    pub(crate) frames: f64,
    pub(crate) frame_rate: f64,
    /// How easy the source is, as in [`PictureSource`](super::ladder::PictureSource); `None` when unknown.
    pub(crate) bits_per_pixel: Option<f64>,
    pub(crate) bytes: ByteSize,
}

impl FirstGuess {
    /// The CRF at which pictures like these usually take that many bytes.
    pub(crate) fn crf(&self) -> f64 {
        let ease = self.bits_per_pixel.map_or(1.0, |bits| (bits / 0.1).powf(0.7).clamp(0.15, 4.0));
        let per_pixel = USUAL_BITS_AT_23 * (921_600.0 / self.pixels.max(1.0)).powf(0.25) * ease;
        let fewer = (30.0 / self.frame_rate.max(0.1)).powf(0.4);
        let at_23 = per_pixel * fewer * self.pixels * self.frames / 8.0;
        23.0 + (at_23 / self.bytes.as_f64().max(1.0)).log2() / USUAL_SLOPE
    }
}
