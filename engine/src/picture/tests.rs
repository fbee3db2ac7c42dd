mod build;

use proptest::prelude::*;

use self::build::{CANARY, IEND, JPEG_SCAN};
use super::*;
use crate::error::ErrorKind;

/// A file of each kind, with and without metadata.
fn samples(metadata: bool) -> Vec<(Container, Vec<u8>)> {
    vec![
        (Container::Gif, build::gif(&[10, 0, 3], metadata)),
        (Container::Png, build::png(&[], metadata)),
        (Container::Png, build::png(&[(1, 10), (0, 0), (3, 100)], metadata)),
        (Container::Jpeg, build::jpeg(metadata.then_some(1), metadata)),
        (Container::Webp, build::webp(metadata)),
        (Container::Webp, build::webp_animation(metadata)),
    ]
}

fn millis(durations: &[u64]) -> Vec<Duration> {
    durations.iter().copied().map(Duration::from_millis).collect()
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn stripped(container: Container, bytes: &[u8]) -> Bytes {
    strip(container, &Bytes::copy_from_slice(bytes)).unwrap()
}

#[track_caller]
fn check_corrupt(container: Container, bytes: &[u8]) {
    assert_eq!(facts(container, bytes).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(strip(container, &Bytes::copy_from_slice(bytes)).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn facts_tell_size_frames_and_transparency() {
    let clean = PictureFacts {
        dimensions: Dimensions::new(0, 0),
        animated: false,
        frames: None,
        alpha: false,
        bit_depth: 8,
        orientation: Orientation::Upright,
        has_metadata: false,
        whole: true,
    };
    let [gif, png, apng, jpeg, webp, animation] = samples(false).try_into().unwrap();
    for ((container, bytes), expected) in [
        (gif, PictureFacts { dimensions: Dimensions::new(8, 6), animated: true, frames: Some(3), ..clean }),
        (png, PictureFacts { dimensions: Dimensions::new(7, 5), alpha: true, ..clean }),
        (
            apng,
            PictureFacts {
                dimensions: Dimensions::new(7, 5),
                animated: true,
                frames: Some(3),
                alpha: true,
                ..clean
            },
        ),
        (jpeg, PictureFacts { dimensions: Dimensions::new(60, 40), ..clean }),
        (webp, PictureFacts { dimensions: Dimensions::new(9, 4), alpha: true, ..clean }),
        (
            animation,
            PictureFacts {
                dimensions: Dimensions::new(20, 16),
                animated: true,
                frames: Some(3),
                alpha: true,
                ..clean
            },
        ),
    ] {
        assert_eq!(facts(container, &bytes).unwrap(), expected, "{container}");
    }
}

#[test]
fn a_clean_picture_is_not_copied() {
    for (container, bytes) in samples(false) {
        let bytes = Bytes::from(bytes);
        let result = strip(container, &bytes).unwrap();
        assert_eq!((result.as_ptr(), result.len()), (bytes.as_ptr(), bytes.len()), "{container}");
    }
}

#[test]
fn metadata_goes_and_exactly_the_clean_picture_remains() {
    for ((container, clean), (_, full)) in samples(false).into_iter().zip(samples(true)) {
        assert!(facts(container, &full).unwrap().has_metadata, "{container}");
        let result = stripped(container, &full);
        assert!(!holds(&result, &CANARY[..7]), "{container}");
        assert_eq!(result, clean, "{container}");
    }
}

#[test]
fn a_cut_picture_is_never_called_whole() {
    for (container, bytes) in samples(false) {
        // A PNG's end is known by the name of its last chunk, before the checksum.
        let last = bytes.len() - if container == Container::Png { 4 } else { 0 };
        for cut in 0..last {
            match facts(container, &bytes[..cut]) {
                Ok(facts) => assert!(!facts.whole, "{container} cut at {cut}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{container} cut at {cut}"),
            }
        }
    }
}

#[test]
fn orientation_is_read_in_both_byte_orders() {
    for value in 0..=9 {
        let expected = Orientation::from_exif(value.into());
        for big_endian in [false, true] {
            assert_eq!(
                exif::orientation(&build::exif(big_endian, value)).unwrap_or_default(),
                expected,
                "{value}"
            );
        }
        let jpeg = build::jpeg(Some(value), false);
        assert_eq!(facts(Container::Jpeg, &jpeg).unwrap().orientation, expected, "{value}");
        assert!(facts(Container::Jpeg, &jpeg).unwrap().has_metadata);
    }
    assert_eq!(facts(Container::Png, &build::png(&[], true)).unwrap().orientation, Orientation::Turned90);
    assert_eq!(facts(Container::Webp, &build::webp(true)).unwrap().orientation, Orientation::Turned270);
}

#[test]
fn exif_data_that_lies_is_ignored() {
    let valid = build::exif(false, 6);
    for cut in 0..valid.len() {
        let _ = exif::orientation(&valid[..cut]);
    }
    for (at, value) in [(4, u32::MAX), (4, 7), (26, 3 << 16)] {
        let mut bytes = valid.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        assert_eq!(exif::orientation(&bytes), None, "{at}");
    }
    let mut many = valid;
    many[8..10].copy_from_slice(&[0xFF, 0xFF]);
    assert_eq!(exif::orientation(&many), Some(Orientation::Turned90));
}

#[test]
fn delays_follow_the_browsers_rule() {
    assert_eq!(
        frame_delays(Container::Gif, &build::gif(&[0, 1, 2, 10, 65535], false)).unwrap(),
        millis(&[100, 100, 20, 100, 655_350])
    );
    let apng = build::png(&[(0, 0), (1, 100), (1, 0), (2, 0), (1, 30), (11, 1000)], false);
    let mut expected = millis(&[100, 100, 100, 20, 0, 11]);
    expected[4] = Duration::from_secs(1) / 30;
    assert_eq!(frame_delays(Container::Png, &apng).unwrap(), expected);
    assert_eq!(frame_delays(Container::Webp, &build::webp_animation(false)).unwrap(), millis(&[40, 100, 11]));
    for (container, bytes) in
        [(Container::Png, build::png(&[], false)), (Container::Webp, build::webp(false))]
    {
        assert_eq!(frame_delays(container, &bytes).unwrap(), [], "{container}");
    }
}

#[test]
fn a_gif_delay_belongs_to_the_next_image_alone() {
    let mut bytes = build::gif_header(8, 6);
    bytes.extend(build::gif_control(50, true));
    bytes.extend(build::gif_control(7, false));
    bytes.extend(build::gif_image(8, 6));
    bytes.extend(build::gif_image(8, 6));
    bytes.push(0x3B);
    assert_eq!(frame_delays(Container::Gif, &bytes).unwrap(), millis(&[70, 100]));
    assert!(!facts(Container::Gif, &bytes).unwrap().alpha);
}

#[test]
fn a_gif_is_transparent_by_index_or_by_a_gap() {
    for (transparent, width) in [(true, 8), (false, 7)] {
        let mut bytes = build::gif_header(8, 6);
        bytes.extend(build::gif_control(0, transparent));
        bytes.extend(build::gif_image(width, 6));
        bytes.push(0x3B);
        let facts = facts(Container::Gif, &bytes).unwrap();
        assert!(facts.alpha);
        assert_eq!((facts.frames, facts.animated), (Some(1), false));
    }
}

#[test]
fn a_gif_without_a_screen_takes_the_first_images_size() {
    let bytes = [build::gif_header(0, 0), build::gif_image(8, 6), vec![0x3B]].concat();
    assert_eq!(facts(Container::Gif, &bytes).unwrap().dimensions, Dimensions::new(8, 6));
    check_corrupt(Container::Gif, &[build::gif_header(0, 0), build::gif_image(0, 6), vec![0x3B]].concat());
}

#[test]
fn a_gif_ends_where_browsers_end_it() {
    let good = [build::gif_header(8, 6), build::gif_image(8, 6)].concat();
    let result = stripped(Container::Gif, &[&good, CANARY].concat());
    assert_eq!(result, [good.as_slice(), &[0x3B]].concat());
}

#[test]
fn nothing_hides_in_the_gif_extensions_that_stay() {
    let long_control = build::gif_extension(0xF9, &[1, 2, 0, 3], CANARY);
    let long_loop = build::gif_extension(0xFF, b"NETSCAPE2.0", &[&[1, 5, 0], CANARY].concat());
    let bytes =
        [build::gif_header(8, 6), long_loop, long_control, build::gif_image(8, 6), vec![0x3B]].concat();
    let result = stripped(Container::Gif, &bytes);
    let expected = [
        build::gif_header(8, 6),
        build::gif_extension(0xFF, b"NETSCAPE2.0", &[1, 5, 0]),
        vec![0x21, 0xF9, 4, 1, 2, 0, 3, 0],
        build::gif_image(8, 6),
        vec![0x3B],
    ];
    assert_eq!(result, expected.concat());
}

#[test]
fn png_headers_that_no_decoder_takes_are_corrupt() {
    let rest = [build::png_chunk(b"IDAT", b"x"), IEND.to_vec()].concat();
    for (width, height, bit_depth, colour) in [
        (0, 1, 8, 6),
        (1, 0, 8, 6),
        (1 << 31, 1, 8, 6),
        (1, 1, 3, 0),
        (1, 1, 16, 3),
        (1, 1, 4, 2),
        (1, 1, 8, 5),
    ] {
        check_corrupt(
            Container::Png,
            &[build::png_header(width, height, bit_depth, colour), rest.clone()].concat(),
        );
    }
    let huge = [build::png_header(i32::MAX.unsigned_abs(), 1, 16, 2), rest].concat();
    let facts = facts(Container::Png, &huge).unwrap();
    assert_eq!((facts.dimensions, facts.bit_depth), (Dimensions::new(i32::MAX.unsigned_abs(), 1), 16));
    check_corrupt(Container::Png, &[build::png_header(1, 1, 8, 6), IEND.to_vec()].concat());
}

#[test]
fn a_png_is_animated_only_when_announced_before_its_pixels() {
    let announcement = build::png_chunk(b"acTL", &[0, 0, 0, 2, 0, 0, 0, 0]);
    let pixels = build::png_chunk(b"IDAT", b"x");
    let frames = [build::png_frame(1, 10), build::png_frame(1, 10), build::png_frame(1, 10)].concat();
    let header = build::png_header(1, 1, 8, 2);
    let early = [&header, &announcement, &pixels, &frames, IEND].concat();
    let late = [&header, &pixels, &announcement, &frames, IEND].concat();
    assert_eq!(facts(Container::Png, &early).unwrap().frames, Some(2));
    assert_eq!(facts(Container::Png, &late).unwrap().frames, None);
}

#[test]
fn a_jpeg_with_filling_and_noise_between_segments_is_read() {
    let clean = build::jpeg(None, false);
    let mut noisy = vec![0xFF, 0xD8, 0xFF, 0xFF, 0xFF];
    noisy.extend(&clean[3..clean.len() - 2]);
    noisy.extend([0xFF, 0xFF, 0xFF, 0xD9]);
    assert_eq!(stripped(Container::Jpeg, &noisy), clean);
    assert_eq!(facts(Container::Jpeg, &noisy).unwrap().dimensions, Dimensions::new(60, 40));
    assert!(holds(&clean, JPEG_SCAN));
}

#[test]
fn a_jpeg_without_scan_or_frame_is_corrupt() {
    let frame = build::jpeg_segment(0xC0, &[8, 0, 4, 0, 6, 1, 1, 0x11, 0]);
    let scan = build::jpeg_segment(0xDA, &[1, 1, 0, 0, 63, 0]);
    let wrap = |parts: &[&[u8]]| [&[0xFF, 0xD8], parts.concat().as_slice(), &[0xFF, 0xD9]].concat();
    check_corrupt(Container::Jpeg, &wrap(&[&frame]));
    check_corrupt(Container::Jpeg, &wrap(&[&scan]));
    assert!(facts(Container::Jpeg, &wrap(&[&frame, &scan])).unwrap().whole);
}

#[test]
fn webp_frames_become_pictures_of_their_own() {
    for metadata in [false, true] {
        let animation = webp_frames(&build::webp_animation(metadata)).unwrap();
        assert_eq!((animation.canvas, animation.background), (Dimensions::new(20, 16), [1, 2, 3, 4]));
        assert!(animation.complete);
        let [first, second, third] = animation.frames.try_into().unwrap();
        assert_eq!(
            (first.offset_x, first.offset_y, first.dimensions, first.blend, first.dispose),
            (0, 0, Dimensions::new(20, 16), true, false)
        );
        assert_eq!(first.image, build::riff(&[build::vp8(20, 16)]));
        assert_eq!(
            (second.offset_x, second.offset_y, second.dimensions, second.blend, second.dispose),
            (4, 2, Dimensions::new(8, 8), false, true)
        );
        let alpha = build::riff_chunk(b"ALPH", b"\x01alpha");
        assert_eq!(second.image, build::riff(&[build::vp8x(0x10, 8, 8), alpha, build::vp8(8, 8)]));
        assert_eq!(third.image, build::riff(&[build::vp8l(5, 3, false)]));
        assert_eq!([first.duration, second.duration, third.duration].as_slice(), millis(&[40, 100, 11]));
        for frame in [first, second, third] {
            let facts = facts(Container::Webp, &frame.image).unwrap();
            assert_eq!((facts.dimensions, facts.whole, facts.has_metadata), (frame.dimensions, true, false));
        }
    }
    assert_eq!(webp_frames(&build::webp(false)).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_webp_animation_ends_before_the_first_frame_that_makes_no_sense() {
    let good = build::anmf(0, 0, (20, 16), 40, 0, &[build::vp8(20, 16)]);
    for bad in [
        build::anmf(2, 0, (20, 16), 40, 0, &[build::vp8(20, 16)]),
        build::anmf(0, 0, (19, 16), 40, 0, &[build::vp8(20, 16)]),
        build::anmf(0, 0, (20, 16), 40, 0, &[]),
        build::riff_chunk(b"ANMF", b"short"),
    ] {
        let bytes = build::riff(&[build::vp8x(2, 20, 16), good.clone(), bad, good.clone()]);
        let animation = webp_frames(&bytes).unwrap();
        assert_eq!((animation.frames.len(), animation.complete), (1, false));
        assert_eq!(facts(Container::Webp, &bytes).unwrap().frames, Some(1));
        assert!(!facts(Container::Webp, &bytes).unwrap().whole);
    }
}

#[test]
fn too_many_frames_are_refused() {
    let limit = usize::try_from(MAX_FRAMES).unwrap();
    assert_eq!(frame_delays(Container::Gif, &build::gif(&vec![5; limit], false)).unwrap().len(), limit);
    let gif = build::gif(&vec![5; limit + 1], false);
    assert_eq!(frame_delays(Container::Gif, &gif).unwrap_err().kind(), ErrorKind::TooLarge);
    let mut chunks = vec![build::vp8x(2, 2, 2)];
    chunks.resize(limit + 2, build::anmf(0, 0, (2, 2), 40, 0, &[build::vp8(2, 2)]));
    assert_eq!(webp_frames(&build::riff(&chunks)).unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn other_containers_are_a_fault_of_the_caller() {
    assert_eq!(facts(Container::Mp4, b"").unwrap_err().kind(), ErrorKind::Internal);
}

/// Everything that must hold for any bytes.
#[track_caller]
fn check_any(container: Container, bytes: &[u8]) {
    let _ = frame_delays(container, bytes);
    if let Ok(animation) = webp_frames(bytes) {
        assert!(!animation.frames.is_empty());
        let delays: Vec<_> = animation.frames.iter().map(|frame| frame.duration).collect();
        assert_eq!(frame_delays(Container::Webp, bytes).unwrap(), delays);
        for frame in animation.frames {
            assert_eq!(facts(Container::Webp, &frame.image).unwrap().dimensions, frame.dimensions);
        }
    }
    let Ok(before) = facts(container, bytes) else { return };
    let once = stripped(container, bytes);
    assert_eq!(before.has_metadata, once != bytes);
    assert!(before.has_metadata || once == bytes);
    // A trailer is all that may be added, and a thumbnail's two sizes.
    assert!(once.len() <= bytes.len() + 4, "{} of {}", once.len(), bytes.len());
    let after = facts(container, &once).unwrap();
    assert_eq!(
        (after.dimensions, after.frames, after.alpha, after.bit_depth, after.has_metadata, after.orientation),
        (before.dimensions, before.frames, before.alpha, before.bit_depth, false, Orientation::Upright)
    );
    assert!(after.whole || !before.whole);
    assert_eq!(frame_delays(container, &once).unwrap(), frame_delays(container, bytes).unwrap());
    assert_eq!(stripped(container, &once), once);
}

const PICTURES: [Container; 4] = [Container::Gif, Container::Png, Container::Jpeg, Container::Webp];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_hold_the_promises(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for container in PICTURES {
            check_any(container, &bytes);
        }
    }

    #[test]
    fn damaged_pictures_hold_the_promises(
        sample in 0..6_usize,
        metadata: bool,
        cut in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        inserted in prop::collection::vec(any::<u8>(), 0..20),
        at in any::<prop::sample::Index>(),
        cuts: bool,
    ) {
        let (container, mut bytes) = samples(metadata).swap_remove(sample);
        for (index, value) in changes {
            let index = index.index(bytes.len());
            bytes[index] = value;
        }
        let at = at.index(bytes.len());
        bytes.splice(at..at, inserted);
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        check_any(container, &bytes);
    }
}
