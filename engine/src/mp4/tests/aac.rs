use proptest::prelude::*;

use crate::mp4::aac::{AdtsHeader, SpecificConfig};

#[track_caller]
fn check(bytes: &[u8], object_type: u8, rate: u32, channels: u8) -> SpecificConfig {
    let config = SpecificConfig::parse(bytes).unwrap();
    assert_eq!(
        (config.object_type, config.sample_rate, config.channels),
        (object_type, rate, Some(channels))
    );
    config
}

#[test]
fn plain_configurations_tell_rate_and_channels() {
    assert!(check(&[0x12, 0x08], 2, 44_100, 1).is_plain_lc());
    assert!(check(&[0x11, 0x90], 2, 48_000, 2).is_plain_lc());
    assert!(check(&[0x11, 0xb0], 2, 48_000, 6).is_plain_lc());
    // 960 samples in a packet, as in digital radio.
    assert!(!check(&[0x11, 0x94], 2, 48_000, 2).is_plain_lc());
    // A rate of 24 bits: 0b00010_1111, 50000, two channels, no flags.
    assert!(check(&[0x17, 0x80, 0x61, 0xa8, 0x10], 2, 50_000, 2).is_plain_lc());
    // Object type 42 takes the escape: 0b11111_001010.
    assert!(!check(&[0xf9, 0x46, 0x40], 42, 48_000, 2).sbr);
}

#[test]
fn band_replication_is_seen_in_all_its_signals() {
    // Object type 5 at 24 kHz, extended to 48 kHz, core LC.
    let config = check(&[0x2b, 0x11, 0x88, 0x00], 2, 24_000, 2);
    assert_eq!((config.sbr, config.ps, config.extension_rate), (true, false, Some(48_000)));
    // Object type 29, mono core.
    let config = check(&[0xeb, 0x09, 0x88, 0x00], 2, 24_000, 1);
    assert_eq!((config.sbr, config.ps, config.extension_rate), (true, true, Some(48_000)));
    // Appended behind a plain configuration: 0x2b7, type 5, present, 48 kHz.
    let config = check(&[0x13, 0x10, 0x56, 0xe5, 0x98], 2, 24_000, 2);
    assert_eq!((config.sbr, config.ps, config.extension_rate), (true, false, Some(48_000)));
    assert!(!config.is_plain_lc());
    // The same with parametric stereo: 0x548 and a flag.
    let config = check(&[0x13, 0x08, 0x56, 0xe5, 0x9d, 0x48, 0x80], 2, 24_000, 1);
    assert!(config.sbr && config.ps);
    // As ffmpeg writes it behind plain LC: type 5, not present.
    assert!(check(&[0x11, 0x90, 0x56, 0xe5, 0x00], 2, 48_000, 2).is_plain_lc());
}

#[test]
fn channels_described_by_an_element_are_counted() {
    // Object type 2, 48 kHz, configuration 0; one front pair, one front single, a low-frequency channel.
    let bits =
        "00010 0011 0000 000 0000 01 0011 0010 0000 0000 01 000 0000 000 1 0000 0 0001 0000".replace(' ', "");
    let padded = format!("{bits:0<72}");
    let bytes: Vec<u8> = padded
        .as_bytes()
        .chunks(8)
        .map(|byte| u8::from_str_radix(str::from_utf8(byte).unwrap(), 2).unwrap())
        .collect();
    check(&bytes, 2, 48_000, 4);
}

#[test]
fn damaged_configurations_are_refused() {
    for bytes in [&[][..], &[0x11], &[0x00, 0x10], &[0x16, 0x90], &[0x11, 0x80], &[0x2b, 0x11]] {
        assert_eq!(SpecificConfig::parse(bytes), None, "{bytes:x?}");
    }
}

#[test]
fn adts_header_tells_what_the_configuration_says() {
    let header = AdtsHeader::parse(&[0xff, 0xf1, 0x50, 0x40, 0x21, 0x3f, 0xfc, 0xde]).unwrap();
    assert_eq!((header.object_type, header.sample_rate, header.channels), (2, 44_100, Some(1)));
    assert_eq!((header.header_bytes, header.frame_bytes, header.packets), (7, 265, 1));
    assert_eq!(header.specific_config(), [0x12, 0x08]);
    let header = AdtsHeader::parse(&[0xff, 0xf0, 0x4d, 0x80, 0x2f, 0x3f, 0xfd]).unwrap();
    assert_eq!((header.sample_rate, header.channels, header.header_bytes), (48_000, Some(6), 9));
    assert_eq!((header.frame_bytes, header.packets), (377, 2));
    assert_eq!(header.specific_config(), [0x11, 0xb0]);
}

#[test]
fn what_is_no_adts_is_refused() {
    let good = [0xff, 0xf1, 0x50, 0x40, 0x21, 0x3f, 0xfc];
    assert_eq!(AdtsHeader::parse(&good[..6]), None);
    // Layer 3 is MP3; rate 13 is reserved; a frame is not shorter than its header.
    for (at, byte) in [(0, 0xfe), (1, 0xfb), (2, 0x74), (4, 0x00)] {
        let mut bad = good;
        bad[at] = byte;
        if at == 4 {
            bad[5] = 0x1f;
        }
        assert_eq!(AdtsHeader::parse(&bad), None, "{bad:x?}");
    }
}

proptest! {
    #[test]
    fn headers_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = SpecificConfig::parse(&bytes);
        if let Some(header) = AdtsHeader::parse(&bytes) {
            let config = SpecificConfig::parse(&[&header.specific_config()[..], &[0; 8]].concat()).unwrap();
            prop_assert_eq!(config.sample_rate, header.sample_rate);
            prop_assert_eq!(config.object_type, header.object_type);
            if header.channels.is_some() {
                prop_assert_eq!(config.channels, header.channels);
            }
        }
    }
}
