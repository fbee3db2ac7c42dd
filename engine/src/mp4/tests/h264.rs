use bytes::Bytes;
use proptest::prelude::*;

use crate::error::ErrorKind;
use crate::mp4::h264::{
    ColorDescription, DecoderConfig, SEI, Sps, Timing, UnitSet, annex_b_units, avcc_from_annex_b,
    nal_lengths_are_sound, prefixed_units, sample_from_annex_b, sample_from_prefixed,
};
use crate::units::Dimensions;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|digit| *digit != b' ').collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Parameter sets that x264 made; 640x360 at 30000/1001, BT.709.
const SPS: &str = "6764001eacd940a02ff97016a020202800001f480007530078b16cb0";
const PPS: &str = "68eae3cb22c0";

#[test]
fn high_profile_set_tells_everything() {
    let sps = Sps::parse(&bytes(SPS)).unwrap();
    assert_eq!((sps.profile, sps.constraints, sps.level), (100, 0, 30));
    assert_eq!((sps.chroma_format, sps.luma_depth, sps.chroma_depth), (1, 8, 8));
    assert_eq!(sps.coded, Dimensions::new(640, 368));
    assert_eq!(sps.cropped, Dimensions::new(640, 360));
    assert!(sps.frames_only);
    assert_eq!(sps.sample_aspect, Some((1, 1)));
    assert_eq!(sps.color, Some(ColorDescription { primaries: 1, transfer: 1, matrix: 1 }));
    assert_eq!(sps.timing, Some(Timing { tick: 1001, scale: 60_000, fixed: false }));
    assert_eq!(sps.reorder_frames, Some(2));
}

/// Profile, cropped size, pixel aspect, chroma format and luma depth of sets that x264 made.
#[test]
fn sets_of_all_profiles_are_read() {
    for (hex, profile, size, aspect, samples) in [
        ("6742c00cd901419f9fff000300041000000300100000030320f142a480", 66, (320, 180), (3, 4), (1, 8)),
        ("674d4028eca03c0113f2ffe000600082000003000200000300641e30632c", 77, (1920, 1080), (3, 4), (1, 8)),
        (
            "67f4001e90d9b281405ff3ffe016a01e02000003000200000300641e2c5b2c",
            244,
            (640, 362),
            (181, 240),
            (3, 10),
        ),
        (
            "677a001ebcd940a02ff89ffc000c0011b848904a000003000200000300641e2c5b2c",
            122,
            (640, 360),
            (3, 4),
            (2, 8),
        ),
    ] {
        let sps = Sps::parse(&bytes(hex)).unwrap();
        assert_eq!(sps.profile, profile);
        assert_eq!(sps.cropped, Dimensions::new(size.0, size.1), "{profile}");
        assert_eq!(sps.sample_aspect, Some(aspect), "{profile}");
        assert_eq!((sps.chroma_format, sps.luma_depth), samples, "{profile}");
        assert!(sps.frames_only, "{profile}");
        assert_eq!(sps.timing, Some(Timing { tick: 1, scale: 50, fixed: false }), "{profile}");
    }
}

#[test]
fn interlaced_set_with_buffer_model_is_read_to_its_end() {
    let hex = "6764001eacd940b424dff8008000788000000300800000193020007a12000f427261807c50a658";
    let sps = Sps::parse(&bytes(hex)).unwrap();
    assert!(!sps.frames_only);
    assert_eq!(sps.cropped, Dimensions::new(720, 576));
    assert_eq!(sps.sample_aspect, Some((16, 15)));
    assert_eq!(sps.reorder_frames, Some(2));
}

#[test]
fn full_range_and_hlg_are_seen() {
    let sps =
        Sps::parse(&bytes("677a001ebcd940a02ff89ffc000c0011b848904a000003000200000300641e2c5b2c")).unwrap();
    assert_eq!(sps.full_range, Some(true));
    assert_eq!(sps.color, Some(ColorDescription { primaries: 9, transfer: 18, matrix: 9 }));
}

#[test]
fn set_cut_short_is_refused_unless_only_display_is_missing() {
    let whole = bytes(SPS);
    let reads: Vec<bool> = (0..whole.len()).map(|length| Sps::parse(&whole[..length]).is_some()).collect();
    assert_eq!(reads.iter().position(|read| *read), Some(11));
    assert!(reads[11..].iter().all(|read| *read));
    assert_eq!(Sps::parse(&whole[..11]).unwrap().cropped, Dimensions::new(640, 360));
    assert_eq!(Sps::parse(&bytes(PPS)), None);
}

#[test]
fn configuration_is_what_the_format_wants() {
    let header = bytes(&format!("00000001{SPS}000001{PPS}00000001{PPS}0000010605ff80"));
    let avcc = avcc_from_annex_b(&header).unwrap();
    assert_eq!(avcc, bytes(&format!("0164001effe1001c{SPS}010006{PPS}fdf8f800")));
    let config = DecoderConfig::parse(&avcc).unwrap();
    assert_eq!(config.length_size, 4);
    assert_eq!((config.sequence, config.picture), (vec![&bytes(SPS)[..]], vec![&bytes(PPS)[..]]));
    let baseline = "6742c00cd901419f9fff000300041000000300100000030320f142a480";
    let avcc = avcc_from_annex_b(&bytes(&format!("000001{baseline}000001{PPS}"))).unwrap();
    assert_eq!(avcc, bytes(&format!("0142c00cffe1001d{baseline}010006{PPS}")));
}

#[test]
fn header_without_a_parameter_set_is_corrupt() {
    for header in
        [String::new(), format!("000001{SPS}"), format!("000001{PPS}"), format!("000001{PPS}00000167")]
    {
        let error = avcc_from_annex_b(&bytes(&header)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{header}");
    }
}

#[test]
fn damaged_configurations_are_refused() {
    let whole = bytes(&format!("0164001effe1001c{SPS}010006{PPS}"));
    assert!(DecoderConfig::parse(&whole).is_some());
    for length in 0..whole.len() {
        assert_eq!(DecoderConfig::parse(&whole[..length]), None, "{length}");
    }
    assert_eq!(DecoderConfig::parse(&bytes("0064001effe000")), None);
    assert_eq!(DecoderConfig::parse(&bytes("0164001efee000")), None);
}

#[test]
fn annex_b_is_cut_at_start_codes_of_both_lengths() {
    let stream = bytes("ff00000001091000000165aa0000030100000000000106050000000141");
    let units: Vec<_> = annex_b_units(&stream).collect();
    assert_eq!(units, [&[0x09, 0x10][..], &[0x65, 0xaa, 0, 0, 3, 1], &[0x06, 0x05], &[0x41]]);
    assert_eq!(annex_b_units(&[0, 0, 1]).count() + annex_b_units(&[0, 0]).count(), 0);
}

#[test]
fn units_without_a_place_in_a_sample_are_dropped() {
    let stream =
        bytes(&format!("000000010910000001{SPS}000001{PPS}0000010605ff80000001650102000001410300000001"));
    let sample = sample_from_annex_b(&stream, UnitSet::REDUNDANT);
    assert_eq!(sample, bytes("00000004 0605ff80 00000003 650102 00000002 4103"));
    let sample = sample_from_annex_b(&stream, UnitSet::REDUNDANT.with(SEI));
    assert_eq!(sample, bytes("00000003 650102 00000002 4103"));
    assert!(nal_lengths_are_sound(&sample, 4));
    let delimiter = sample_from_annex_b(&bytes("0000010910"), UnitSet::REDUNDANT);
    assert!(delimiter.is_empty() && !nal_lengths_are_sound(&delimiter, 4));
}

#[test]
fn short_lengths_become_long_ones() {
    let sample = Bytes::from(bytes("000206050003650102"));
    let long = sample_from_prefixed(&sample, 2, UnitSet::NONE).unwrap();
    assert_eq!(long, bytes("00000002 0605 00000003 650102"));
    assert_eq!(sample_from_prefixed(&long, 4, UnitSet::NONE.with(SEI)).unwrap(), bytes("00000003650102"));
    assert_eq!(sample_from_prefixed(&sample, 4, UnitSet::NONE).unwrap_err().kind(), ErrorKind::Corrupt);
    let same = sample_from_prefixed(&long, 4, UnitSet::REDUNDANT).unwrap();
    assert_eq!(same.as_ptr(), long.as_ptr(), "an unchanged sample is not copied");
}

#[test]
fn unsound_samples_are_told() {
    for (sample, sound) in [
        ("00000002 6501 00000001 41", true),
        ("00000002 6501 00000001", false),
        ("00000003 6501", false),
        ("00000002 6501 0000", false),
        ("00000000 00000001 41", false),
        ("00000001 c1", false),
        ("00000001 18", false),
        ("00000001 00", false),
        ("ffffffff 41", false),
    ] {
        assert_eq!(nal_lengths_are_sound(&bytes(sample), 4), sound, "{sample}");
    }
    assert!(!nal_lengths_are_sound(&[1, 0x41], 0) && !nal_lengths_are_sound(&[0; 32], 5));
}

#[test]
fn decoding_begins_at_idr_slices_alone() {}

/// A unit as an encoder makes it: no start code inside, no zero at its end.
fn any_unit() -> impl Strategy<Value = Vec<u8>> {
    (1_u8..=23, prop::collection::vec(prop_oneof![Just(0), Just(1), any::<u8>()], 0..40)).prop_map(
        |(unit_type, body)| {
            let mut unit = vec![0x60 | unit_type];
            for byte in body {
                if unit.ends_with(&[0, 0]) && byte <= 3 {
                    unit.push(3);
                }
                unit.push(byte);
            }
            unit.push(0x80);
            unit
        },
    )
}

proptest! {
    #[test]
    fn units_survive_annex_b_and_back(
        units in prop::collection::vec((any_unit(), any::<bool>(), 0_usize..4), 0..8),
    ) {
        let mut stream = Vec::new();
        for (unit, long, zeros) in &units {
            stream.extend_from_slice(if *long { &[0, 0, 0, 1] } else { &[0, 0, 1] });
            stream.extend_from_slice(unit);
            stream.resize(stream.len() + zeros, 0);
        }
        let units: Vec<&[u8]> = units.iter().map(|(unit, ..)| &unit[..]).collect();
        prop_assert_eq!(annex_b_units(&stream).collect::<Vec<_>>(), units.clone());
        let sample = sample_from_annex_b(&stream, UnitSet::NONE);
        prop_assert_eq!(nal_lengths_are_sound(&sample, 4), !units.is_empty());
        prop_assert_eq!(prefixed_units(&sample, 4).collect::<Result<Vec<_>, _>>().unwrap(), units);
        prop_assert_eq!(sample_from_prefixed(&sample, 4, UnitSet::NONE).unwrap(), sample);
    }

    #[test]
    fn damaged_parameter_sets_never_panic(
        at in prop::collection::vec((0_usize..40, any::<u8>()), 0..6),
        tail in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut unit = [bytes(SPS), tail].concat();
        for (at, byte) in at {
            if let Some(slot) = unit.get_mut(at) {
                *slot = byte;
            }
        }
        if let Some(sps) = Sps::parse(&unit) {
            prop_assert!(sps.cropped.width <= sps.coded.width && sps.cropped.height <= sps.coded.height);
        }
    }

    #[test]
    fn nothing_panics_on_noise(noise in prop::collection::vec(any::<u8>(), 0..200), length_size in 0_usize..6) {
        let _ = Sps::parse(&[&[0x67][..], &noise].concat());
        let _ = DecoderConfig::parse(&[&[1][..], &noise].concat());
        let _ = avcc_from_annex_b(&noise);
        let _ = nal_lengths_are_sound(&noise, length_size);
        let _ = sample_from_prefixed(&Bytes::from(noise), length_size, UnitSet::REDUNDANT);
    }
}
