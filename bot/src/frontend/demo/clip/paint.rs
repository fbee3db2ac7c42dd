//! The pictures of the clip, one after the other.

use std::array;

use super::plane::{FULL, Ink, PIXEL, Petal, Picture};
use super::wave::{TURN, cosine, sine};
use super::{FRAME_RATE, SIZE};

/// Paints the pictures; what is the same in all of them is made once.
#[derive(Debug)]
pub(super) struct Painter {
    dusk: Picture,
    shimmer: Vec<u8>,
    petals: [Drifting; PETALS],
    /// Of the film grain. Goes on from picture to picture, so that no two have the same.
    noise: Noise,
}

impl Painter {
    pub(super) fn new() -> Self {
        let mut noise = Noise(0x61_7a_61_6c_65_61);
        let mut petals = array::from_fn(|_| Drifting::new(&mut noise));
        // The small ones are far away, so the large ones come over them.
        petals.sort_by_key(|petal| petal.length);
        Self { dusk: Picture::new(dusk), shimmer: shimmer(), petals, noise }
    }

    /// The picture of this number, in the order that a file holds it. Numbers are asked for in their order.
    pub(super) fn frame(&mut self, number: u32) -> Vec<u8> {
        let time = i32::try_from(number).unwrap_or_default();
        let mut picture = self.dusk.clone();
        self.lay_shimmer(&mut picture, time);
        let (far, near) = self.petals.split_at(PETALS / 2);
        for petal in far {
            picture.petal(&petal.at(time));
        }
        blossom(&mut picture, time);
        for petal in near {
            picture.petal(&petal.at(time));
        }
        counter(&mut picture, number);
        for cells in picture.brightness().chunks_mut(8) {
            let grain = self.noise.next().to_le_bytes();
            for (cell, grain) in cells.iter_mut().zip(grain) {
                // The sum of two even chances is rarely far from its middle, as grain is.
                let sum = (grain & 7) + (grain >> 3 & 7);
                *cell = cell.saturating_add_signed(sum.cast_signed() - 7);
            }
        }
        picture.bytes()
    }

    /// Lets bands of light wander over the picture.
    fn lay_shimmer(&self, picture: &mut Picture, time: i32) {
        for (row, line) in (0..).zip(picture.lines()) {
            let from = usize::try_from((row / 2 + time * 3).rem_euclid(SHIMMER)).unwrap_or_default();
            for (cell, light) in line.iter_mut().zip(self.shimmer.get(from..).unwrap_or_default()) {
                *cell = cell.saturating_add(*light);
            }
        }
    }
}

/// How many petals drift by.
const PETALS: usize = 28;

/// After how many pixels the bands of light come again.
const SHIMMER: i32 = 512;

const VIOLET: Ink = Ink::rgb(52, 40, 92);
const ROSE: Ink = Ink::rgb(158, 70, 118);
const PEACH: Ink = Ink::rgb(240, 176, 140);
/// Azaleas come in all of these.
const PINKS: [Ink; 4] =
    [Ink::rgb(236, 82, 150), Ink::rgb(247, 138, 180), Ink::rgb(212, 48, 112), Ink::rgb(252, 204, 220)];
const STAMEN: Ink = Ink::rgb(255, 226, 236);
const ANTHER: Ink = Ink::rgb(120, 40, 60);
const CHALK: Ink = Ink::rgb(250, 244, 246);
const SHADE: Ink = Ink::rgb(44, 30, 58);

/// The sky: violet above, peach below, a little lower on the left.
fn dusk(x: i32, y: i32) -> Ink {
    let (width, height) = (pixels(SIZE.width), pixels(SIZE.height));
    let fallen = y * (2 * FULL - 64) / height + x * 64 / width;
    if fallen < FULL { VIOLET.toward(ROSE, fallen) } else { ROSE.toward(PEACH, fallen - FULL) }
}

fn shimmer() -> Vec<u8> {
    let light = |at: i32| (sine(i64::from(at) * TURN / i64::from(SHIMMER)) + 16_384) >> 11;
    // Long enough for a line that begins anywhere in the band.
    (0..SHIMMER + pixels(SIZE.width)).map(|at| u8::try_from(light(at)).unwrap_or_default()).collect()
}

/// A petal in the wind.
#[derive(Clone, Copy, Debug)]
struct Drifting {
    x: i32,
    y: i32,
    /// Sixteenths of a pixel a picture.
    wind: i32,
    /// The same, downward.
    fall: i32,
    length: i32,
    angle: i64,
    /// How far it turns in a picture.
    spin: i64,
    ink: Ink,
}

impl Drifting {
    fn new(noise: &mut Noise) -> Self {
        let length = noise.within(7, 26) * PIXEL;
        let [first, second, third, fourth] = PINKS;
        let ink = match noise.within(0, 4) {
            0 => first,
            1 => second,
            2 => third,
            _ => fourth,
        };
        Self {
            x: noise.within(0, SPAN_X),
            y: noise.within(0, SPAN_Y),
            // What is near looks faster.
            wind: length / 20 + noise.within(4, 14),
            fall: length / 24 + noise.within(6, 16),
            length,
            angle: i64::from(noise.within(0, 65_536)),
            spin: i64::from(noise.within(-900, 900)),
            ink,
        }
    }

    /// The petal at a time in pictures. What leaves the picture comes in again on the other side.
    fn at(&self, time: i32) -> Petal {
        let turn = self.angle + self.spin * i64::from(time);
        let sway = sine(self.angle + i64::from(time) * 700) >> 6;
        // It tumbles: seen from its edge it is narrow.
        let flat = 16_384 + 3 * sine(turn * 2 + self.angle).abs();
        Petal {
            x: (self.x + self.wind * time + sway).rem_euclid(SPAN_X) - MARGIN,
            y: (self.y + self.fall * time).rem_euclid(SPAN_Y) - MARGIN,
            length: self.length,
            width: (self.length * 5 / 8 * (flat >> 4)) >> 12,
            angle: turn,
            ink: self.ink,
        }
    }
}

/// How far outside a petal is surely out of sight.
const MARGIN: i32 = 40 * PIXEL;
const SPAN_X: i32 = pixels(SIZE.width) * PIXEL + 2 * MARGIN;
const SPAN_Y: i32 = pixels(SIZE.height) * PIXEL + 2 * MARGIN;

/// The azalea in the middle, which turns and sways.
fn blossom(picture: &mut Picture, time: i32) {
    let slow = i64::from(time);
    let x = (pixels(SIZE.width) / 2) * PIXEL + (sine(slow * 500) >> 5);
    let y = (pixels(SIZE.height) / 2) * PIXEL + (cosine(slow * 370) >> 6);
    let turn = slow * 130;
    let [bright, light, deep, _] = PINKS;
    let ring = |far: i32, shift: i64| {
        (0..5).map(move |place| {
            let angle = turn + shift + place * TURN / 5;
            let out = |part: i32| (far * PIXEL * (part >> 4)) >> 10;
            (x + out(cosine(angle)), y + out(sine(angle)), angle)
        })
    };
    let mut petals = |far: i32, shift: i64, length: i32, width: i32, ink: Ink| {
        for (x, y, angle) in ring(far, shift) {
            picture.petal(&Petal { x, y, length: length * PIXEL, width: width * PIXEL, angle, ink });
        }
    };
    petals(64, TURN / 10, 62, 34, deep);
    petals(60, 0, 60, 33, bright);
    petals(24, 0, 24, 9, light);
    petals(34, TURN / 12, 36, 1, STAMEN);
    petals(70, TURN / 12, 5, 3, ANTHER);
}

/// Seconds and pictures in blocks, at the lower left.
fn counter(picture: &mut Picture, number: u32) {
    const SIDE: i32 = 6;
    const LEFT: i32 = 28;
    let top = pixels(SIZE.height) - 28 - 5 * SIDE;
    let (second, frame) = (number / FRAME_RATE, number % FRAME_RATE);
    let glyphs = [digit(second / 10), digit(second), COLON, digit(frame / 10), digit(frame)];
    for (ink, shift) in [(SHADE, 2), (CHALK, 0)] {
        for (place, glyph) in (0..).zip(glyphs) {
            for (row, bits) in (0..).zip(glyph) {
                for column in (0..3).filter(|column| bits >> (2 - column) & 1 == 1) {
                    let left = LEFT + (place * 4 + column) * SIDE + shift;
                    picture.block(left, top + row * SIDE + shift, SIDE, ink);
                }
            }
        }
    }
}

/// Five rows of three blocks each, the leftmost in the highest bit.
type Glyph = [u8; 5];

const COLON: Glyph = [0b000, 0b010, 0b000, 0b010, 0b000];

/// The last digit of a number.
const fn digit(number: u32) -> Glyph {
    match number % 10 {
        0 => [0b111, 0b101, 0b101, 0b101, 0b111],
        1 => [0b010, 0b110, 0b010, 0b010, 0b111],
        2 => [0b111, 0b001, 0b111, 0b100, 0b111],
        3 => [0b111, 0b001, 0b111, 0b001, 0b111],
        4 => [0b101, 0b101, 0b111, 0b001, 0b001],
        5 => [0b111, 0b100, 0b111, 0b001, 0b111],
        6 => [0b111, 0b100, 0b111, 0b101, 0b111],
        7 => [0b111, 0b001, 0b010, 0b010, 0b010],
        8 => [0b111, 0b101, 0b111, 0b101, 0b111],
        _ => [0b111, 0b101, 0b111, 0b001, 0b111],
    }
}

/// Numbers that look like chance and are the same each time (xorshift).
#[derive(Clone, Debug)]
struct Noise(u64);

impl Noise {
    const fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from `least` to just below `end`.
    fn within(&mut self, least: i32, end: i32) -> i32 {
        let span = u64::from(end.abs_diff(least).max(1));
        // The low bits of this generator are its weakest.
        least.saturating_add(i32::try_from((self.next() >> 16) % span).unwrap_or_default())
    }
}

/// A count of pixels as places are counted. Both sizes of the clip are far below the bound.
const fn pixels(count: u32) -> i32 {
    count.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_picture_is_painted_each_time_and_no_two_are_alike() {
        let (mut one, mut other) = (Painter::new(), Painter::new());
        let (first, second) = (one.frame(0), one.frame(1));
        assert!(first == other.frame(0) && second == other.frame(1));
        let differ = first.iter().zip(&second).filter(|(before, after)| before != after).count();
        assert!(differ > first.len() / 2, "{differ} of {}", first.len());
    }

    #[test]
    fn a_picture_has_shades_from_dark_to_bright_and_colours_that_are_not_glaring() {
        let picture = Painter::new().frame(30);
        let (luma, chroma) = picture.split_at(640 * 360);
        let spread = |cells: &[u8]| (*cells.iter().min().unwrap(), *cells.iter().max().unwrap());
        let (darkest, brightest) = spread(luma);
        assert!((16..60).contains(&darkest) && (200..250).contains(&brightest), "{darkest} {brightest}");
        let (least, most) = spread(chroma);
        assert!(least > 90 && most < 220 && most - least > 60, "{least} {most}");
    }

    #[test]
    fn every_digit_is_another() {
        for one in 0..10 {
            for other in 0..one {
                assert_ne!(digit(one), digit(other));
            }
            assert_eq!(digit(one), digit(one + 30));
        }
    }

    #[test]
    fn noise_fills_its_bounds_evenly() {
        let mut noise = Noise(1);
        let drawn: Vec<i32> = (0..4_000).map(|_| noise.within(-2, 2)).collect();
        for value in -2..2 {
            let count = drawn.iter().filter(|drawn| **drawn == value).count();
            assert!((800..1_200).contains(&count), "{value}: {count}");
        }
        assert_eq!(noise.within(5, 5), 5);
    }
}
