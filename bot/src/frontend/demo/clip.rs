//! A clip that is drawn when it is needed, so that the demo carries no file and asks nobody for one.
//!
//! An azalea turns over a dusk of rose and violet, petals drift by, a counter tells seconds and frames, two notes
//! sound in turn. Film grain lies over all of it: without it the encoder would have nothing to do. Pictures and sound
//! are not compressed (I420 and 16-bit PCM in an AVI file), so that nothing but arithmetic is needed here.

mod avi;
mod paint;
mod plane;
mod tune;
mod wave;

use bytes::Bytes;

use crate::domain::PixelSize;

/// The size of the clip's pictures.
pub const SIZE: PixelSize = PixelSize { width: 640, height: 360 };

/// Pictures a second.
pub const FRAME_RATE: u32 = 25;

/// The longest clip that is drawn, in seconds. It is held in memory: 8.8 MB a second, so 142 MB at most.
pub const MAX_SECONDS: u32 = 16;

/// Draws a clip of this many seconds, from 1 to [`MAX_SECONDS`]; what is outside counts as the nearest of these.
///
/// Gives a whole AVI file of about 8.8 MB a second, always the same bytes for the same length. Blocks for as
/// long as it takes to paint 25 pictures a second of clip, so an async caller wants a thread for it.
///
/// ```
/// let clip = azalea_bot::frontend::demo::clip::draw(1);
/// assert!(clip.starts_with(b"RIFF"));
/// ```
pub fn draw(seconds: u32) -> Bytes {
    let frames = seconds.clamp(1, MAX_SECONDS).saturating_mul(FRAME_RATE);
    let mut painter = paint::Painter::new();
    let mut player = tune::Player::new();
    let mut file = avi::Writer::new(frames);
    for frame in 0..frames {
        file.push(&painter.frame(frame), &player.frame());
    }
    Bytes::from(file.finish())
}

#[cfg(test)]
mod tests;
