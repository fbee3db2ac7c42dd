//! What is tried, in which order, to make one picture smaller.

use crate::units::Dimensions;

/// One way to encode a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) dimensions: Dimensions,
    /// libav's JPEG quantiser, 2 (best) to 31; `None` for PNG, which keeps transparency.
    pub(crate) jpeg: Option<u8>,
}

/// JPEG quantisers from what cannot be told from the original to what still passes on a phone.
const QUANTISERS: [u8; 5] = [2, 4, 6, 9, 13];
/// Each size has four fifths of the last one's sides.
const SHRINK: f64 = 0.8;
/// JPEG's own limit, and more than any screen shows.
const LONGEST_SIDE: f64 = 16_384.0;
/// A JPEG of this size is still opened everywhere; libav's encoder refuses somewhat larger ones.
const MOST_PIXELS: f64 = 100e6;
/// Below this a picture is a thumbnail.
const SHORTEST_LONG_SIDE: f64 = 96.0;

/// The attempts for a picture of `upright` size, best first.
///
/// Transparency is worth a smaller picture down to half its sides; after that it goes over black.
pub(crate) fn attempts(upright: Dimensions, alpha: bool, max_height: Option<u32>) -> Vec<Attempt> {
    let long = f64::from(upright.long_side().max(1));
    let allowed = max_height.map_or(1.0, |height| f64::from(height) / f64::from(upright.height.max(1)));
    let pixels = f64::from(upright.width.max(1)) * f64::from(upright.height.max(1));
    let mut factor = (LONGEST_SIDE / long).min((MOST_PIXELS / pixels).sqrt()).min(allowed).min(1.0);
    let whole = factor;
    let mut sizes = Vec::new();
    loop {
        sizes.push((factor, scaled(upright, factor)));
        factor *= SHRINK;
        if long * factor < SHORTEST_LONG_SIDE {
            break;
        }
    }
    let transparent = sizes
        .iter()
        .filter(|(factor, _)| alpha && *factor >= whole * 0.5)
        .map(|(_, dimensions)| Attempt { dimensions: *dimensions, jpeg: None });
    let opaque = sizes.iter().flat_map(|(_, dimensions)| {
        QUANTISERS.into_iter().map(|quantiser| Attempt { dimensions: *dimensions, jpeg: Some(quantiser) })
    });
    transparent.chain(opaque).collect()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between one and 16,384")]
fn scaled(upright: Dimensions, factor: f64) -> Dimensions {
    let side = |length: u32| (f64::from(length) * factor).round().max(1.0) as u32;
    Dimensions::new(side(upright.width), side(upright.height))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quality_goes_before_size() {
        let list = attempts(Dimensions::new(4000, 3000), false, None);
        assert_eq!(list[0], Attempt { dimensions: Dimensions::new(4000, 3000), jpeg: Some(2) });
        assert_eq!(list[5], Attempt { dimensions: Dimensions::new(3200, 2400), jpeg: Some(2) });
    }

    #[test]
    fn transparency_is_tried_first() {
        let list = attempts(Dimensions::new(1000, 1000), true, None);
        assert!(list[..4].iter().all(|attempt| attempt.jpeg.is_none()));
        assert!(list[4..].iter().all(|attempt| attempt.jpeg.is_some()));
    }

    proptest! {
        #[test]
        fn no_attempt_is_larger_than_the_picture(width in 1_u32..40_000, height in 1_u32..40_000, alpha: bool, max in proptest::option::of(16_u32..3000)) {
            let list = attempts(Dimensions::new(width, height), alpha, max);
            prop_assert!(!list.is_empty() && list.len() < 400);
            for attempt in list {
                prop_assert!(attempt.dimensions.width <= width && attempt.dimensions.height <= height);
                prop_assert!(f64::from(attempt.dimensions.width) * f64::from(attempt.dimensions.height) <= 1.001 * MOST_PIXELS);
                prop_assert!(max.is_none_or(|max| attempt.dimensions.height <= max + 1));
            }
        }
    }
}
