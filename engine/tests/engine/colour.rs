//! Colours come out as they were meant, in the one form that every player shows right.

use azalea_engine::{Bytes, Wanted};

use crate::support::clips::{H264, make, quarters, quarters_of};
use crate::support::look::{Facts, Pictures, assert_colour};
use crate::support::{MIB, fit, within};

const QUARTERS: [[u8; 3]; 4] = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]];

/// Makes `source` fit; the result is plain and tagged.
#[track_caller]
fn shown(source: &Bytes) -> Pictures {
    let fitted = fit(source, within(MIB));
    let facts = Facts::of(fitted.bytes());
    facts.assert_plays_inline();
    for tag in ["color_primaries", "color_transfer", "color_space"] {
        assert_eq!(facts.stream("video", tag), "bt709", "{tag}");
    }
    assert_eq!(facts.stream("video", "color_range"), "tv");
    assert!(fitted.report().warnings.is_empty(), "{:?}", fitted.report().warnings);
    Pictures::of(fitted.bytes())
}

#[track_caller]
fn check_quarters(source: &Bytes) {
    for (place, (found, expected)) in shown(source).quarters().into_iter().zip(QUARTERS).enumerate() {
        assert_colour(&format!("quarter {place}"), found, expected, 12);
    }
}

/// A picture of quarters as BT.709 of this pixel format.
fn quarters_as(format: &str, words: &str) -> Bytes {
    let range = if format.starts_with("yuvj") { "pc" } else { "tv" };
    let source = quarters(320, 180, 1);
    make(
        "q.mkv",
        &format!(
            "-f lavfi -i {source},scale=out_color_matrix=bt709:out_range={range},format={format} \
             -color_range {range} -colorspace bt709 -color_primaries bt709 -color_trc bt709 {words}"
        ),
    )
}

#[test]
fn full_range_becomes_limited_and_keeps_its_colours() {
    check_quarters(&quarters_as("yuvj420p", "-c:v libx264 -preset ultrafast -qp 10"));
    let source = quarters_of(["black", "white", "gray", "black"], 320, 180, 1);
    let full =
        make("f.mkv", &format!("-f lavfi -i {source},format=yuvj420p -color_range pc -c:v mjpeg -q:v 2"));
    let pictures = shown(&full);
    let expected = [[0; 3], [255; 3], [128; 3], [0; 3]];
    for (found, expected) in pictures.quarters().into_iter().zip(expected) {
        assert_colour("grey", found, expected, 5);
    }
}

#[test]
fn ten_bits_become_eight() {
    check_quarters(&quarters_as("yuv420p10le", "-c:v libx264 -preset ultrafast -qp 10"));
}

#[test]
fn chroma_of_full_size_is_halved() {
    check_quarters(&quarters_as("yuv444p", "-c:v libx264 -preset ultrafast -qp 10"));
    check_quarters(&quarters_as("yuv422p", "-c:v libx264 -preset ultrafast -qp 10"));
}

#[test]
fn small_pictures_without_tags_are_taken_for_bt601() {
    let source = quarters(320, 180, 1);
    let untagged =
        format!("-f lavfi -i {source},scale=out_color_matrix=bt601 -pix_fmt yuv420p -c:v mpeg4 -q:v 2");
    check_quarters(&make("q.avi", &untagged));
}

#[test]
fn transparency_goes_over_black() {
    let halves = "-f lavfi -i color=white@0.0:s=160x180:r=10:d=1,format=rgba[left];\
                  color=red:s=160x180:r=10:d=1,format=rgba[right];[left][right]hstack";
    for (name, words) in [
        ("a.mov", "-c:v png -pix_fmt rgba"),
        ("a.mov", "-c:v prores_ks -profile:v 4444 -pix_fmt yuva444p10le"),
        ("a.apng", "-f apng -plays 0 -pix_fmt rgba"),
    ] {
        let pictures = shown(&make(name, &format!("{halves} {words}")));
        assert_colour(words, pictures.colour(0.25, 0.5), [0, 0, 0], 8);
        assert_colour(words, pictures.colour(0.75, 0.5), [255, 0, 0], 16);
    }
}

/// The code value of reference white, 203 cd/m², under PQ and HLG, and half-bright colours.
#[track_caller]
fn check_high_dynamic_range(transfer: &str, white: &str, red: &str) {
    let source = quarters_of([red, "black", "0x203080", white], 320, 180, 1);
    // On the frames and on the output: old releases of the program heed only the options, new ones the frames.
    let tags = format!("setparams=range=tv:color_primaries=bt2020:color_trc={transfer}:colorspace=bt2020nc");
    let x265 = "-c:v libx265 -preset ultrafast -x265-params log-level=none:crf=10";
    let source = make(
        "hdr.mp4",
        &format!(
            "-f lavfi -i {source},scale=out_color_matrix=bt2020:out_range=tv,format=yuv420p10le,{tags} \
             -colorspace bt2020nc -color_primaries bt2020 -color_trc {transfer} -color_range tv {x265} -tag:v hvc1"
        ),
    );
    assert_eq!(Facts::of(&source).stream("video", "color_transfer"), transfer);
    // zscale once refused the odd sizes that a GIF may have.
    let gif = fit(&source, within(MIB).wanted(Wanted::Gif).max_height(45));
    assert_eq!(gif.report().dimensions.map(|size| size.height), Some(45));
    let pictures = shown(&source);
    let [red, black, blue, white] = pictures.quarters();
    assert!(white.iter().all(|component| *component >= 170), "{transfer}: white is bright, {white:?}");
    assert!(
        white.iter().max().unwrap().abs_diff(*white.iter().min().unwrap()) <= 8,
        "white is grey, {white:?}"
    );
    assert_colour("black stays black", black, [0, 0, 0], 8);
    assert!(red[0] >= 150 && red[1] < 90 && red[2] < 90, "{transfer}: red is saturated, {red:?}");
    assert!(blue[2] > blue[0].saturating_add(40), "{transfer}: blue is blue, {blue:?}");
}

#[test]
fn pq_is_tone_mapped() {
    check_high_dynamic_range("smpte2084", "0x949494", "0x940000");
}

#[test]
fn hlg_is_tone_mapped() {
    check_high_dynamic_range("arib-std-b67", "0xbfbfbf", "0xbf0000");
}

#[test]
fn limited_range_black_and_white_keep_their_values() {
    let source = quarters_of(["black", "white", "black", "white"], 320, 180, 1);
    let pictures = shown(&make("b.avi", &format!("-f lavfi -i {source} {H264} -qp 8")));
    assert_colour("black", pictures.colour(0.25, 0.5), [0; 3], 3);
    assert_colour("white", pictures.colour(0.75, 0.5), [255; 3], 6);
}
