//! A picture in three planes and what can be put on it: petals and blocks.
//!
//! Places and lengths are in sixteenths of a pixel, so that slow things glide rather than jump. Whatever lies outside
//! the picture is left out.

use super::SIZE;
use super::wave::{self, cosine, sine};

/// Sixteenths in a pixel.
pub(super) const PIXEL: i32 = 16;

/// A colour as the picture holds it: brightness and two differences, in the range that video uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ink {
    luma: i32,
    blue: i32,
    red: i32,
}

impl Ink {
    /// The colour of these lights, each from 0 to 255 (the matrix of standard definition, BT.601).
    pub(super) const fn rgb(red: i32, green: i32, blue: i32) -> Self {
        Self {
            luma: 16 + ((66 * red + 129 * green + 25 * blue + 128) >> 8),
            blue: 128 + ((-38 * red - 74 * green + 112 * blue + 128) >> 8),
            red: 128 + ((112 * red - 94 * green - 18 * blue + 128) >> 8),
        }
    }

    /// The colour at `part` of 256 on the way to another.
    pub(super) const fn toward(self, other: Self, part: i32) -> Self {
        Self {
            luma: self.luma + (other.luma - self.luma) * part / FULL,
            blue: self.blue + (other.blue - self.blue) * part / FULL,
            red: self.red + (other.red - self.red) * part / FULL,
        }
    }
}

/// One plane: a value for each square of `cell` sixteenths.
#[derive(Clone, Debug)]
struct Plane {
    cells: Vec<u8>,
    columns: usize,
    cell: i32,
}

impl Plane {
    fn new(cell: i32, value: impl Fn(i32, i32) -> i32) -> Self {
        let count = |pixels: u32| i32::try_from(pixels).unwrap_or_default() * PIXEL / cell;
        let (columns, rows) = (count(SIZE.width), count(SIZE.height));
        let across = |row| (0..columns).map(move |column| (column * cell / PIXEL, row * cell / PIXEL));
        let cells = (0..rows).flat_map(across).map(|(x, y)| byte(value(x, y))).collect();
        Self { cells, columns: usize::try_from(columns).unwrap_or(1).max(1), cell }
    }

    /// Lets `touch` change each cell whose middle lies in the area; it is told where that is.
    fn touch(&mut self, area: Area, mut touch: impl FnMut(i32, i32, &mut u8)) {
        let cell = self.cell;
        let first = |from: i32| usize::try_from((from / cell).max(0)).unwrap_or_default();
        let behind = |to: i32| usize::try_from((to / cell + 1).max(0)).unwrap_or_default();
        let middle = move |at: usize| i32::try_from(at).unwrap_or_default() * cell + cell / 2;
        let rows = self.cells.chunks_exact_mut(self.columns).enumerate();
        for (row, cells) in rows.take(behind(area.bottom)).skip(first(area.top)) {
            let y = middle(row);
            for (column, value) in
                cells.iter_mut().enumerate().take(behind(area.right)).skip(first(area.left))
            {
                touch(middle(column), y, value);
            }
        }
    }
}

/// A rectangle.
#[derive(Clone, Copy, Debug)]
struct Area {
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
}

/// A picture that is being painted.
#[derive(Clone, Debug)]
pub(super) struct Picture {
    luma: Plane,
    blue: Plane,
    red: Plane,
}

impl Picture {
    /// A picture that has this ink at each pixel, told by column and row.
    pub(super) fn new(ink: impl Fn(i32, i32) -> Ink) -> Self {
        Self {
            luma: Plane::new(PIXEL, |x, y| ink(x, y).luma),
            blue: Plane::new(2 * PIXEL, |x, y| ink(x, y).blue),
            red: Plane::new(2 * PIXEL, |x, y| ink(x, y).red),
        }
    }

    /// The lines of brightness, from the top.
    pub(super) fn lines(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.luma.cells.chunks_exact_mut(self.luma.columns)
    }

    /// All brightness, line by line.
    pub(super) fn brightness(&mut self) -> &mut [u8] {
        &mut self.luma.cells
    }

    /// Puts a petal on the picture.
    pub(super) fn petal(&mut self, petal: &Petal) {
        let turned = petal.turned();
        let ink = petal.ink;
        self.luma.touch(turned.area, |x, y, value| {
            if let Some(spot) = turned.spot(x, y) {
                // Lighter to the tip, darker along the vein.
                let vein = if spot.across.abs() < VEIN { (VEIN - spot.across.abs()) / 3 } else { 0 };
                blend(value, ink.luma + spot.along / 10 - vein, spot.cover);
            }
        });
        for (plane, colour) in [(&mut self.blue, ink.blue), (&mut self.red, ink.red)] {
            plane.touch(turned.area, |x, y, value| {
                if let Some(spot) = turned.spot(x, y) {
                    blend(value, colour, spot.cover);
                }
            });
        }
    }

    /// Puts a square on the picture, whose left upper corner is at a pixel.
    pub(super) fn block(&mut self, left: i32, top: i32, side: i32, ink: Ink) {
        let last = |from: i32| (from + side) * PIXEL - 1;
        let area = Area { left: left * PIXEL, top: top * PIXEL, right: last(left), bottom: last(top) };
        let planes = [(&mut self.luma, ink.luma), (&mut self.blue, ink.blue), (&mut self.red, ink.red)];
        for (plane, colour) in planes {
            plane.touch(area, |_, _, value| *value = byte(colour));
        }
    }

    /// The picture as a file holds it: brightness, then blue, then red.
    pub(super) fn bytes(&self) -> Vec<u8> {
        [&self.luma.cells, &self.blue.cells, &self.red.cells].into_iter().flatten().copied().collect()
    }
}

/// A petal: an oval that is wider toward its tip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Petal {
    /// The middle.
    pub(super) x: i32,
    /// The middle.
    pub(super) y: i32,
    /// From the middle to the tip; from a pixel to the picture's height.
    pub(super) length: i32,
    /// From the middle to the side, where it is as wide as an oval.
    pub(super) width: i32,
    /// Where the tip points.
    pub(super) angle: i64,
    /// Its colour.
    pub(super) ink: Ink,
}

impl Petal {
    fn turned(&self) -> Turned {
        let (cosine, sine) = (cosine(self.angle), sine(self.angle));
        let (length, width) = (self.length.max(PIXEL), self.width.max(PIXEL / 4));
        // Wider by half at its widest.
        let reach = |along: i32, across: i32| {
            ((length * along.abs() + width * 3 / 2 * across.abs()) >> wave::BITS) + PIXEL
        };
        let (x, y) = (reach(cosine, sine), reach(sine, cosine));
        let area = Area { left: self.x - x, top: self.y - y, right: self.x + x, bottom: self.y + y };
        Turned { area, x: self.x, y: self.y, cosine, sine, length, width }
    }
}

/// A petal with all that is the same for each of its pixels.
struct Turned {
    area: Area,
    x: i32,
    y: i32,
    cosine: i32,
    sine: i32,
    length: i32,
    width: i32,
}

/// Where on a petal a pixel lies, as parts of 256 of its length and width, and how much of the pixel it covers.
struct Spot {
    along: i32,
    across: i32,
    cover: i32,
}

impl Turned {
    fn spot(&self, x: i32, y: i32) -> Option<Spot> {
        let (x, y) = (x - self.x, y - self.y);
        let along = ((x * self.cosine + y * self.sine) >> wave::BITS) * FULL / self.length;
        if along.abs() > FULL {
            return None;
        }
        let width = self.width * (2 * FULL + along) / (2 * FULL);
        let across = ((y * self.cosine - x * self.sine) >> wave::BITS) * FULL / width.max(1);
        if across.abs() > FULL {
            return None;
        }
        let inside = FULL * FULL - along * along - across * across;
        // A soft edge.
        (inside > 0).then(|| Spot { along, across, cover: (inside / 24).min(FULL) })
    }
}

/// All of something that is counted in parts.
pub(super) const FULL: i32 = 256;

/// How wide the vein of a petal is, of 256.
const VEIN: i32 = 40;

/// Lays a value over another, `cover` parts of 256.
fn blend(under: &mut u8, over: i32, cover: i32) {
    let before = i32::from(*under);
    *under = byte(before + (over - before) * cover / FULL);
}

fn byte(value: i32) -> u8 {
    u8::try_from(value.clamp(0, 255)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREY: Ink = Ink::rgb(128, 128, 128);
    const PINK: Ink = Ink::rgb(230, 80, 150);

    fn petal(x: i32, y: i32, angle: i64) -> Petal {
        Petal { x: x * PIXEL, y: y * PIXEL, length: 40 * PIXEL, width: 12 * PIXEL, angle, ink: PINK }
    }

    /// The columns and rows of the pixels that differ from grey.
    fn touched(picture: &Picture) -> Vec<(usize, usize)> {
        let differs = |(at, value): (usize, &u8)| {
            (i32::from(*value) != GREY.luma).then_some((at % picture.luma.columns, at / picture.luma.columns))
        };
        picture.luma.cells.iter().enumerate().filter_map(differs).collect()
    }

    #[test]
    fn grey_white_and_black_have_no_colour() {
        for (light, luma) in [(0, 16), (128, 126), (255, 235)] {
            assert_eq!(Ink::rgb(light, light, light), Ink { luma, blue: 128, red: 128 });
        }
    }

    #[test]
    fn a_picture_has_a_byte_a_pixel_and_half_of_one_for_colour() {
        assert_eq!(Picture::new(|_, _| GREY).bytes().len(), 640 * 360 * 3 / 2);
    }

    #[test]
    fn a_petal_lies_where_it_is_put_and_points_where_it_should() {
        for (angle, wide, high) in [(0, 70..=82, 22..=34), (wave::TURN / 4, 22..=34, 70..=82)] {
            let mut picture = Picture::new(|_, _| GREY);
            picture.petal(&petal(300, 200, angle));
            let touched = touched(&picture);
            let spread = |along: fn(&(usize, usize)) -> usize| {
                let (least, most) = (touched.iter().map(along).min(), touched.iter().map(along).max());
                most.unwrap() - least.unwrap()
            };
            assert!(wide.contains(&spread(|at| at.0)), "{}", spread(|at| at.0));
            assert!(high.contains(&spread(|at| at.1)), "{}", spread(|at| at.1));
        }
    }

    #[test]
    fn what_lies_outside_is_left_out() {
        let mut picture = Picture::new(|_, _| GREY);
        for (x, y) in [(-500, 100), (100, -500), (900, 100), (100, 900)] {
            picture.petal(&petal(x, y, 9_000));
            picture.block(x, y, 6, PINK);
        }
        assert_eq!(touched(&picture), []);
        picture.petal(&petal(0, 0, 9_000));
        picture.petal(&petal(640, 360, 9_000));
        assert!(touched(&picture).contains(&(0, 0)) && touched(&picture).contains(&(639, 359)));
    }

    #[test]
    fn a_block_fills_its_pixels_and_no_others() {
        let mut picture = Picture::new(|_, _| GREY);
        picture.block(10, 20, 6, PINK);
        let touched = touched(&picture);
        assert_eq!((touched.len(), touched.first(), touched.last()), (36, Some(&(10, 20)), Some(&(15, 25))));
    }
}
