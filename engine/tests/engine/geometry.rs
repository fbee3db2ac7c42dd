//! Results are upright, with square pixels, of an even size.

use azalea_engine::{Action, Bytes, OutputKind};

use crate::support::clips::{self, H264, make, quarters};
use crate::support::look::{Colour, Facts, Pictures, assert_colour};
use crate::support::{MIB, fit, within};

const RED: Colour = [255, 0, 0];
const LIME: Colour = [0, 255, 0];
const BLUE: Colour = [0, 0, 255];
const WHITE: Colour = [255, 255, 255];
/// Quarters as they are stored, row by row.
const STORED: [Colour; 4] = [RED, LIME, BLUE, WHITE];

/// Colours pass through 4:2:0, an encoder and two conversions.
const TOLERANCE: u8 = 40;

#[track_caller]
fn check_quarters(what: &str, pictures: &Pictures, expected: [Colour; 4]) {
    for (place, (found, expected)) in pictures.quarters().into_iter().zip(expected).enumerate() {
        assert_colour(&format!("{what}, quarter {place}"), found, expected, TOLERANCE);
    }
}

/// Writes a display matrix into the first track of an mp4.
fn with_matrix(mp4: &Bytes, [a, b, c, d]: [i32; 4]) -> Bytes {
    let mut bytes = mp4.to_vec();
    let name = bytes.windows(4).position(|window| window == b"tkhd").unwrap();
    // Behind the name: version and flags, times, number, duration, reserved words, layer, group, volume.
    let at = name + 4 + 40;
    let words = [a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30];
    for (number, word) in words.into_iter().enumerate() {
        bytes[at + number * 4..at + number * 4 + 4].copy_from_slice(&word.to_be_bytes());
    }
    bytes.into()
}

/// Where the matrix puts the four stored quarters.
fn shown_by([a, b, c, d]: [i32; 4]) -> [Colour; 4] {
    let mut shown = [[0; 3]; 4];
    for (colour, (x, y)) in STORED.into_iter().zip([(-1, -1), (1, -1), (-1, 1), (1, 1)]) {
        let (x, y) = (a * x + c * y, b * x + d * y);
        shown[match (x, y) {
            (-1, -1) => 0,
            (1, -1) => 1,
            (-1, 1) => 2,
            _ => 3,
        }] = colour;
    }
    shown
}

#[test]
fn every_display_matrix_is_applied_to_the_pixels() {
    let source = make("q.mp4", &format!("-f lavfi -i {} {H264}", quarters(320, 180, 1)));
    let matrices = [
        [1, 0, 0, 1],
        [-1, 0, 0, 1],
        [-1, 0, 0, -1],
        [1, 0, 0, -1],
        [0, 1, 1, 0],
        [0, 1, -1, 0],
        [0, -1, -1, 0],
        [0, -1, 1, 0],
    ];
    for matrix in matrices {
        let fitted = fit(&with_matrix(&source, matrix), within(MIB));
        let facts = Facts::of(fitted.bytes());
        facts.assert_plays_inline();
        let expected = if matrix[0] == 0 { (180, 320) } else { (320, 180) };
        assert_eq!(facts.size(), expected, "{matrix:?}");
        check_quarters(&format!("{matrix:?}"), &Pictures::of(fitted.bytes()), shown_by(matrix));
    }
}

/// Puts an EXIF block with nothing but an orientation into a JPEG.
fn with_exif(jpeg: &Bytes, orientation: u8) -> Bytes {
    let mut block = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    block.extend([orientation, 0, 0, 0, 0, 0, 0]);
    let length = u16::try_from(block.len() + 2).unwrap();
    let mut bytes = jpeg[..2].to_vec();
    bytes.extend([0xff, 0xe1]);
    bytes.extend(length.to_be_bytes());
    bytes.extend(block);
    bytes.extend(&jpeg[2..]);
    bytes.into()
}

#[test]
fn every_exif_orientation_is_applied_to_the_pixels() {
    let source = make("q.jpg", &format!("-f lavfi -i {} -frames:v 1 -q:v 2", quarters(320, 180, 1)));
    let (tl, tr, bl, br) = (RED, LIME, BLUE, WHITE);
    let shown = [
        [tl, tr, bl, br],
        [tr, tl, br, bl],
        [br, bl, tr, tl],
        [bl, br, tl, tr],
        [tl, bl, tr, br],
        [bl, tl, br, tr],
        [br, tr, bl, tl],
        [tr, br, tl, bl],
    ];
    for (orientation, expected) in (1..).zip(shown) {
        let fitted = fit(&with_exif(&source, orientation), within(MIB));
        assert_eq!(fitted.report().kind, OutputKind::Jpeg);
        assert!(!fitted.bytes().windows(4).any(|window| window == b"Exif"), "the block is gone");
        let pictures = Pictures::of(fitted.bytes());
        let turned = orientation > 4;
        assert_eq!((pictures.width, pictures.height), if turned { (180, 320) } else { (320, 180) });
        check_quarters(&format!("orientation {orientation}"), &pictures, expected);
    }
}

/// Makes a clip of quarters fit, and looks at size and colours.
#[track_caller]
fn check_size(words: &str, max_height: Option<u32>, expected: (u32, u32)) {
    let source = make("q.mkv", words);
    let request = within(MIB);
    let fitted = fit(&source, max_height.map_or(request, |height| request.max_height(height)));
    let facts = Facts::of(fitted.bytes());
    facts.assert_plays_inline();
    assert_eq!(facts.size(), expected, "{words}");
    let dimensions = fitted.report().dimensions.unwrap();
    assert_eq!((dimensions.width, dimensions.height), expected);
    check_quarters(words, &Pictures::of(fitted.bytes()), STORED);
}

#[test]
fn odd_sizes_become_even() {
    let source = |width, height| {
        format!("-f lavfi -i {} -c:v libx264 -preset ultrafast -pix_fmt yuv444p", quarters(width, height, 1))
    };
    // Up, so that no line of pixels is lost.
    check_size(&source(321, 181), None, (322, 182));
    check_size(&source(319, 180), None, (320, 180));
    check_size(&source(65, 33), None, (66, 34));
}

#[test]
fn pixels_become_square() {
    let wide = format!("-f lavfi -i {},setsar=2/1 {H264}", quarters(160, 180, 1));
    check_size(&wide, None, (320, 180));
    let tall = format!("-f lavfi -i {},setsar=1/2 {H264}", quarters(320, 90, 1));
    check_size(&tall, None, (320, 180));
}

#[test]
fn another_shape_in_mid_stream_is_framed_in_black() {
    let part = |name: &str, width, height| {
        let words = format!(
            "-f lavfi -i {} -c:v libx264 -preset ultrafast -pix_fmt yuv420p",
            quarters(width, height, 1)
        );
        make(name, &words)
    };
    let joined = [&part("wide.ts", 320, 180)[..], &part("tall.ts", 180, 320)[..]].concat();
    let fitted = fit(&joined.into(), within(MIB));
    let pictures = Pictures::of(fitted.bytes());
    assert_eq!((pictures.width, pictures.height), (320, 180));
    check_quarters("the first part", &pictures, STORED);
    let last = pictures.frames.len() - 1;
    // The tall picture is 101 of the 320 pixels wide.
    for (x, colour) in
        [(0.1, [0, 0, 0]), (0.3, [0, 0, 0]), (0.7, [0, 0, 0]), (0.4, [255, 0, 0]), (0.6, [0, 255, 0])]
    {
        assert_colour(&format!("the second part at {x}"), pictures.colour_in(last, x, 0.25), colour, 12);
    }
}

#[test]
fn height_is_bounded_and_never_raised() {
    let source = format!("-f lavfi -i {} -c:v mpeg4 -q:v 2", quarters(320, 180, 1));
    check_size(&source, Some(90), (160, 90));
    check_size(&source, Some(91), (160, 90));
    check_size(&source, Some(720), (320, 180));
}

#[test]
fn height_below_the_bound_leaves_a_file_as_it_is() {
    let fitted = fit(&clips::plain(), within(MIB).max_height(180));
    assert_eq!(fitted.report().action, Action::Pass);
}
