//! Picture size and frame rate for a number of bits.

use crate::planner::guess::USUAL_SLOPE;
use crate::units::{BitRate, Dimensions, FrameRate};

/// The source's picture, upright and with square pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PictureSource {
    pub(crate) display: Dimensions,
    pub(crate) frame_rate: FrameRate,
    /// Bits per pixel and frame of the source in H.264's terms; `None` when it says nothing (lossless, unknown).
    pub(crate) bits_per_pixel: Option<f64>,
    /// The most height that was asked for.
    pub(crate) max_height: Option<u32>,
}

/// One candidate: a size, and every how many-th frame is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rung {
    pub(crate) dimensions: Dimensions,
    pub(crate) divisor: u32,
    pub(crate) frame_rate: FrameRate,
}

/// The rungs that a source can stand on, best first; never empty.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ladder {
    rungs: Vec<Rung>,
    /// How much easier than usual the source is to encode, 0.35 to 1.
    ease: f64,
}

/// Short sides that people know, in pixels.
const SHORT_SIDES: [u32; 12] = [2160, 1440, 1080, 720, 540, 480, 360, 270, 240, 180, 144, 120];
/// Most frames a second, and the classes below. Discord shows no more than 60.
const RATE_CLASSES: [f64; 4] = [60.5, 30.5, 15.5, 10.5];
/// Short sides below which the lower classes are worth it.
const CLASS_FROM: [u32; 4] = [u32::MAX, u32::MAX, 200, 150];
/// Bits per pixel and frame that x264 needs for a good picture at 1280x720 and 30 frames a second. Between the
/// ladders of public tools (0.029 to 0.07 at 720p).
const GOOD_AT_720P: f64 = 0.05;
/// A share of the good rate below which the last rung is no longer watchable.
const FLOOR: f64 = 0.2;
/// Encoders want sides of at least one macroblock.
const LEAST_SIDE: u32 = 16;
/// H.264 level 5.1 allows 36,864 macroblocks in a frame and 983,040 in a second (ITU-T H.264 table A-1).
const LEVEL_FRAME: u64 = 36_864;
const LEVEL_SECOND: f64 = 983_040.0;
/// The longest side within level 5.1: sqrt(36,864 × 8) macroblocks, further kept to what players decode.
const LONGEST_SIDE: u32 = 4096;

impl Ladder {
    pub(crate) fn new(source: &PictureSource) -> Self {
        let ease = source.bits_per_pixel.map_or(1.0, |bits| (bits / TYPICAL).clamp(0.35, 1.0));
        let display = Dimensions::new(source.display.width.max(1), source.display.height.max(1));
        let mut short_sides = vec![display.short_side()];
        short_sides.extend(SHORT_SIDES.into_iter().filter(|side| *side < display.short_side()));
        // Sides are even, and the bound is kept.
        let max_height = source.max_height.map(|height| (height / 2 * 2).max(LEAST_SIDE));
        let mut rungs: Vec<Rung> = Vec::new();
        for short in short_sides {
            let dimensions = scaled(display, short);
            if max_height.is_none_or(|height| dimensions.height <= height) {
                push(&mut rungs, source, dimensions);
            }
        }
        if rungs.is_empty() {
            // The height that was asked for is between or below the usual sizes, or the shape is extreme.
            let height = max_height.unwrap_or(LEAST_SIDE * 8);
            push(&mut rungs, source, with_height(display, height.min(display.height)));
        }
        if rungs.is_empty() {
            push(&mut rungs, source, scaled(display, LEAST_SIDE));
        } else if let Some(height) = max_height.filter(|height| *height < display.height) {
            // The height itself is the best rung that the request allows.
            let mut exact = Vec::new();
            push(&mut exact, source, with_height(display, height));
            exact.retain(|rung| rungs.iter().all(|other| other.dimensions != rung.dimensions));
            rungs.splice(0..0, exact);
        }
        Self { rungs, ease }
    }

    /// The best rung for `rate`; `None` when even the last one would not be watchable.
    pub(crate) fn choose(&self, rate: BitRate) -> Option<Rung> {
        self.rungs
            .iter()
            .find(|rung| good_rate(rung) * self.ease <= rate.as_f64())
            .or_else(|| self.rungs.last().filter(|rung| good_rate(rung) * self.ease * FLOOR <= rate.as_f64()))
            .copied()
    }

    /// A better rung than `rung`, of which probes say that it is filled at `crf`, and the CRF expected there.
    ///
    /// A size is right when its CRF is not so high that more would be seen of the next smaller one. How high that
    /// is depends on what the smaller one would lose: `kept` tells the peak signal-to-noise ratio, in decibels,
    /// of the source's pictures after they were made as small and large again.
    pub(crate) fn reconsider(
        &self,
        rung: &Rung,
        crf: f64,
        kept: &dyn Fn(Dimensions) -> Option<f64>,
    ) -> Option<(Rung, f64)> {
        // Halving the rate of pictures loses more than it gains as long as anything can be seen.
        let mut sizes: Vec<&Rung> = Vec::new();
        for other in &self.rungs {
            if sizes.last().is_none_or(|last| last.dimensions != other.dimensions) {
                sizes.push(other);
            }
        }
        let mut place = sizes.iter().position(|size| size.dimensions == rung.dimensions)?;
        let expected = |place: usize| sizes.get(place).map(|size| (**size, crf + shift(rung, size)));
        // How far a size's CRF is above the highest that is right for it; the smallest is always right.
        let excess = |place: usize| -> Option<f64> {
            let Some(smaller) = sizes.get(place + 1) else { return Some(f64::NEG_INFINITY) };
            Some(expected(place)?.1 - highest_crf(kept(smaller.dimensions)?))
        };
        if excess(place)? > HESITATION {
            while excess(place)? > 0.0 {
                place += 1;
            }
        } else {
            while place > 0 && excess(place - 1)? < -HESITATION {
                place -= 1;
            }
        }
        let (better, crf) = expected(place)?;
        if crf > HOPELESS_CRF {
            let slower = self
                .rungs
                .iter()
                .find(|other| other.dimensions == better.dimensions && other.divisor > better.divisor);
            if let Some(slower) = slower.filter(|slower| *slower != rung) {
                return Some((*slower, crf + shift(&better, slower)));
            }
        }
        let settled = better == *rung || (better.dimensions == rung.dimensions && crf > HOPELESS_CRF);
        (!settled).then_some((better, crf))
    }

    /// The next smaller rung with clearly fewer pixels a second, or the last one.
    pub(crate) fn below(&self, rung: &Rung) -> Option<Rung> {
        let clearly = self.rungs.iter().find(|other| good_rate(other) < good_rate(rung) * 0.75);
        clearly.or_else(|| self.rungs.last().filter(|last| good_rate(last) < good_rate(rung))).copied()
    }

    /// The largest picture.
    pub(crate) fn largest(&self) -> Dimensions {
        self.rungs.first().map_or_else(|| self.last().dimensions, |rung| rung.dimensions)
    }

    /// The smallest picture at the lowest rate.
    pub(crate) fn last(&self) -> Rung {
        // `new` always makes at least one rung.
        self.rungs.last().copied().unwrap_or(Rung {
            dimensions: Dimensions::new(LEAST_SIDE, LEAST_SIDE),
            divisor: 1,
            frame_rate: FALLBACK_RATE,
        })
    }

    /// The lowest rate at which [`Ladder::choose`] has an answer.
    pub(crate) fn least_rate(&self) -> BitRate {
        self.rungs.last().map_or(BitRate::new(0), |rung| {
            BitRate::from_f64((good_rate(rung) * self.ease * FLOOR).ceil() + 1.0)
        })
    }
}

/// How many steps of CRF higher `other` is filled with the same bytes as `rung`.
fn shift(rung: &Rung, other: &Rung) -> f64 {
    let pixels = |rung: &Rung| f64::from(rung.dimensions.width) * f64::from(rung.dimensions.height);
    let size = (pixels(other) / pixels(rung)).log2() * SIZE_EXPONENT;
    let rate = (other.frame_rate.as_f64() / rung.frame_rate.as_f64()).log2() * RATE_EXPONENT;
    (size + rate) / USUAL_SLOPE
}

/// The highest CRF at which a size is still better than the next smaller one, which keeps so many decibels.
fn highest_crf(decibels: f64) -> f64 {
    (CRF_AT_45_DB + CRF_PER_DB * (45.0 - decibels)).clamp(18.0, HOPELESS_CRF)
}

/// Fitted to the crossings of VMAF at the source's size, for 11 clips at 7 rates each: within one size of the best
/// in 97 of 100 cases. See docs/planner.md.
const CRF_AT_45_DB: f64 = 27.5;
const CRF_PER_DB: f64 = 0.6;
/// Beyond, no size looks good.
const HOPELESS_CRF: f64 = 38.0;
/// Bytes grow with this power of the pixels and of the frames in a second at equal CRF: measured 0.85 with a
/// deviation of 0.10, and 0.05 to 0.3.
const SIZE_EXPONENT: f64 = 0.85;
const RATE_EXPONENT: f64 = 0.15;
/// Steps of CRF within which a change of size is not worth another probe.
const HESITATION: f64 = 0.8;

const FALLBACK_RATE: FrameRate = match FrameRate::new(1, 1) {
    Some(rate) => rate,
    None => unreachable!(),
};

/// Bits per pixel and frame of a usual good H.264 file at its own size.
const TYPICAL: f64 = 0.1;

/// The bits a second at which a rung looks good. Larger pictures need fewer bits for each pixel; twice the
/// frames need about half as many bits again.
fn good_rate(rung: &Rung) -> f64 {
    let pixels = f64::from(rung.dimensions.width) * f64::from(rung.dimensions.height);
    let bits = GOOD_AT_720P * (921_600.0 / pixels).powf(0.25);
    bits * pixels * 30.0 * (rung.frame_rate.as_f64() / 30.0).powf(0.6)
}

/// Adds the rate classes of one size that are within the level.
fn push(rungs: &mut Vec<Rung>, source: &PictureSource, dimensions: Dimensions) {
    if macroblocks(dimensions) > LEVEL_FRAME {
        return;
    }
    let mut last = None;
    for (class, from) in RATE_CLASSES.into_iter().zip(CLASS_FROM) {
        if dimensions.short_side() > from {
            continue;
        }
        let divisor = divisor_for(source.frame_rate, class);
        let frame_rate = source.frame_rate.divided_by(divisor);
        let within_level = macroblocks_per_second(dimensions, frame_rate) <= LEVEL_SECOND;
        if last != Some(divisor) && within_level {
            rungs.push(Rung { dimensions, divisor, frame_rate });
            last = Some(divisor);
        }
    }
}

/// The smallest whole number that brings `rate` under `most`.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a small positive number; saturates"
)]
fn divisor_for(rate: FrameRate, most: f64) -> u32 {
    ((rate.as_f64() / most).ceil() as u32).max(1)
}

fn macroblocks(dimensions: Dimensions) -> u64 {
    u64::from(dimensions.width.div_ceil(16)) * u64::from(dimensions.height.div_ceil(16))
}

fn macroblocks_per_second(dimensions: Dimensions, rate: FrameRate) -> f64 {
    f64::from(dimensions.width.div_ceil(16)) * f64::from(dimensions.height.div_ceil(16)) * rate.as_f64()
}

fn scaled(display: Dimensions, short: u32) -> Dimensions {
    let short = f64::from(short.max(LEAST_SIDE));
    let factor = short / f64::from(display.short_side());
    // A very long picture is bounded by its long side instead.
    let factor = factor.min(f64::from(LONGEST_SIDE) / f64::from(display.long_side()));
    even_dimensions(display, factor)
}

fn with_height(display: Dimensions, height: u32) -> Dimensions {
    even_dimensions(display, f64::from(height) / f64::from(display.height))
}

fn even_dimensions(display: Dimensions, factor: f64) -> Dimensions {
    Dimensions::new(even(f64::from(display.width) * factor), even(f64::from(display.height) * factor))
}

/// The nearest even number, at least two.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounded by LONGEST_SIDE; saturates"
)]
fn even(length: f64) -> u32 {
    ((length / 2.0).round() as u32).max(1) * 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn source(width: u32, height: u32, fps: u32) -> PictureSource {
        PictureSource {
            display: Dimensions::new(width, height),
            frame_rate: FrameRate::new(fps, 1).unwrap(),
            bits_per_pixel: None,
            max_height: None,
        }
    }

    #[track_caller]
    fn check(source: PictureSource, kilobits: u64, expected: (u32, u32, u32)) {
        let rung = Ladder::new(&source).choose(BitRate::kilobits(kilobits)).unwrap();
        assert_eq!((rung.dimensions.width, rung.dimensions.height, rung.divisor), expected);
    }

    #[test]
    fn fewer_bits_give_a_smaller_picture() {
        check(source(1920, 1080, 60), 20_000, (1920, 1080, 1));
        check(source(1920, 1080, 60), 3000, (1920, 1080, 2));
        check(source(1920, 1080, 30), 1500, (1280, 720, 1));
        check(source(1080, 1920, 30), 1500, (720, 1280, 1));
        check(source(1280, 720, 30), 300, (426, 240, 1));
        check(source(640, 360, 240), 20_000, (640, 360, 4));
    }

    #[test]
    fn odd_and_tiny_pictures_get_even_sides() {
        check(source(401, 225, 30), 20_000, (402, 226, 1));
        check(source(1, 1, 10), 20_000, (16, 16, 1));
    }

    #[test]
    fn an_easy_source_keeps_its_size() {
        let easy = PictureSource { bits_per_pixel: Some(0.02), ..source(1280, 720, 30) };
        check(easy, 600, (1280, 720, 1));
        check(source(1280, 720, 30), 600, (640, 360, 1));
    }

    #[test]
    fn a_height_that_was_asked_for_is_kept() {
        let asked = PictureSource { max_height: Some(300), ..source(1280, 720, 30) };
        check(asked, 20_000, (534, 300, 1));
        check(PictureSource { max_height: Some(241), ..source(1280, 720, 30) }, 20_000, (426, 240, 1));
        check(PictureSource { max_height: Some(181), ..source(321, 181, 30) }, 20_000, (320, 180, 1));
        check(PictureSource { max_height: Some(1080), ..source(640, 360, 30) }, 20_000, (640, 360, 1));
    }

    #[test]
    fn hopeless_rates_have_no_rung() {
        assert_eq!(Ladder::new(&source(1280, 720, 30)).choose(BitRate::kilobits(1)), None);
    }

    proptest! {
        #[test]
        fn every_rung_is_legal(width in 1_u32..20_000, height in 1_u32..20_000, fps in 1_u32..1000, max in proptest::option::of(1_u32..5000), rate in 0_u64..100_000_000) {
            let ladder = Ladder::new(&PictureSource { max_height: max, ..source(width, height, fps) });
            prop_assert!(!ladder.rungs.is_empty());
            for rung in &ladder.rungs {
                prop_assert!(rung.dimensions.width % 2 == 0 && rung.dimensions.height % 2 == 0);
                prop_assert!(rung.dimensions.width >= 2 && rung.dimensions.height >= 2);
                prop_assert!(rung.frame_rate.as_f64() <= 60.5);
                prop_assert!(macroblocks(rung.dimensions) <= LEVEL_FRAME);
            }
            if let Some(rung) = ladder.choose(BitRate::new(rate)) {
                prop_assert!(ladder.below(&rung).is_none_or(|below| good_rate(&below) < good_rate(&rung)));
            }
            prop_assert!(ladder.choose(ladder.least_rate()).is_some());
        }
    }
}
