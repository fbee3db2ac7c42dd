//! Size and frame rate of a GIF.

use crate::planner::ladder::PictureSource;
use crate::units::{ByteSize, Dimensions};

/// One way to make a GIF.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GifSize {
    pub(crate) dimensions: Dimensions,
    pub(crate) frames_a_second: f64,
}

/// Larger GIFs are shown no larger, and take many times a video's bytes.
const FIRST_LONG_SIDE: f64 = 640.0;
const FIRST_RATE: f64 = 25.0;
const LEAST_RATE: f64 = 6.0;
const LEAST_LONG_SIDE: f64 = 64.0;

/// What is tried first.
pub(crate) fn first(source: &PictureSource) -> GifSize {
    let long = f64::from(source.display.long_side().max(1));
    let height =
        source.max_height.map_or(1.0, |height| f64::from(height) / f64::from(source.display.height.max(1)));
    GifSize {
        dimensions: scaled(source.display, (FIRST_LONG_SIDE / long).min(height).min(1.0)),
        frames_a_second: source.frame_rate.as_f64().clamp(1.0, FIRST_RATE),
    }
}

/// What is tried after `size` gave `got` bytes; `None` when nothing smaller is worth looking at.
pub(crate) fn next(
    source: &PictureSource,
    size: &GifSize,
    got: ByteSize,
    limit: ByteSize,
) -> Option<GifSize> {
    // Bytes go about with pixels times frames; half of what is too much is taken from each.
    let too_much = (got.as_f64() / limit.as_f64().max(1.0)).max(1.05);
    let rate = (size.frames_a_second / too_much.powf(0.35)).max(LEAST_RATE.min(size.frames_a_second));
    let by_rate = size.frames_a_second / rate;
    let by_size = (too_much / by_rate).max(1.05).sqrt() * 1.03;
    let last = last(source);
    if *size == last {
        return None;
    }
    let wanted = f64::from(size.dimensions.long_side()) / by_size;
    if wanted <= f64::from(last.dimensions.long_side()) {
        return Some(last);
    }
    let factor = wanted / f64::from(source.display.long_side().max(1));
    Some(GifSize { dimensions: scaled(source.display, factor.min(1.0)), frames_a_second: rate })
}

/// What is tried last, whatever the limit: the smallest GIF worth looking at.
pub(crate) fn last(source: &PictureSource) -> GifSize {
    let first = first(source);
    let factor = LEAST_LONG_SIDE / f64::from(first.dimensions.long_side().max(1));
    GifSize {
        dimensions: scaled(first.dimensions, factor.min(1.0)),
        frames_a_second: first.frames_a_second.min(LEAST_RATE),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two and 640")]
fn scaled(display: Dimensions, factor: f64) -> Dimensions {
    let side = |length: u32| (f64::from(length) * factor).round().max(1.0) as u32;
    Dimensions::new(side(display.width), side(display.height))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::FrameRate;

    fn source(width: u32, height: u32) -> PictureSource {
        PictureSource {
            display: Dimensions::new(width, height),
            frame_rate: FrameRate::new(30, 1).unwrap(),
            bits_per_pixel: None,
            max_height: None,
        }
    }

    #[test]
    fn a_large_video_becomes_a_gif_of_usual_size() {
        let size = first(&source(1920, 1080));
        assert_eq!((size.dimensions, size.frames_a_second), (Dimensions::new(640, 360), 25.0));
    }

    proptest! {
        #[test]
        fn the_search_ends(width in 1_u32..5000, height in 1_u32..5000, factor in 1.0_f64..1000.0) {
            let source = source(width, height);
            let limit = ByteSize::new(100_000);
            let mut size = Some(first(&source));
            let mut rounds = 0;
            while let Some(now) = size {
                rounds += 1;
                prop_assert!(rounds < 200);
                size = next(&source, &now, ByteSize::from_f64(100_000.0 * factor), limit);
            }
        }
    }
}
