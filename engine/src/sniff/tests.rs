use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;

#[track_caller]
fn check(head: &[u8], expected: Container) {
    assert_eq!(sniff(head).map_err(|error| error.to_string()), Ok(expected), "{:02x?}", head.get(..16));
}

/// The head is refused with a text that holds `words`.
#[track_caller]
fn check_refused(head: &[u8], words: &str) {
    let error = sniff(head).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(text.contains(words), "\"{text}\" lacks \"{words}\"");
    assert!(!text.contains('\n') && !text.ends_with('.'), "{text}");
}

fn padded(head: &[u8]) -> Vec<u8> {
    let mut bytes = head.to_vec();
    bytes.extend([0x80, 0, 1, 0xFE].repeat(100));
    bytes
}

fn box_of(size: u32, kind: &[u8; 4], payload: &[u8]) -> Vec<u8> {
    [size.to_be_bytes().as_slice(), kind, payload].concat()
}

fn repeated(frame: &[u8], length: usize, count: usize) -> Vec<u8> {
    let mut one = frame.to_vec();
    one.resize(length, 0xA5);
    one.repeat(count)
}

/// 128 kbit/s, 44.1 kHz, layer III: 417 bytes.
const MP3_FRAME: [u8; 4] = [0xFF, 0xFB, 0x90, 0x64];

fn mp3(count: usize) -> Vec<u8> {
    repeated(&MP3_FRAME, 417, count)
}

/// AAC-LC, 44.1 kHz, stereo, 100 bytes.
fn adts(count: usize) -> Vec<u8> {
    repeated(&[0xFF, 0xF1, 0x50, 0x80, 0x0C, 0x9F, 0xFC], 100, count)
}

fn packets(size: usize, sync_at: usize, count: usize) -> Vec<u8> {
    let mut one = vec![0xFF; size];
    one.splice(sync_at..sync_at + 4, [0x47, 0x40, 0x00, 0x10]);
    one.repeat(count)
}

fn id3(body: usize, rest: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body).unwrap();
    let mut bytes = b"ID3\x04\x00\x00".to_vec();
    bytes.extend([21, 14, 7, 0].map(|shift| u8::try_from((size >> shift) & 0x7F).unwrap()));
    bytes.resize(10 + body, 0x55);
    bytes.extend(rest);
    bytes
}

#[test]
fn every_container_is_recognised() {
    for (head, container) in [
        (b"GIF89a\x01\x00".as_slice(), Container::Gif),
        (b"GIF87a\x01\x00", Container::Gif),
        (b"\x89PNG\r\n\x1A\n", Container::Png),
        (b"\xFF\xD8\xFF\xE0", Container::Jpeg),
        (b"\x1A\x45\xDF\xA3\x9F", Container::Matroska),
        (b"FLV\x01\x05\x00\x00\x00\x09", Container::Flv),
        (b"OggS\x00\x02", Container::Ogg),
        (b"fLaC\x00\x00\x00\x22", Container::Flac),
        (b"\x00\x00\x01\xBA\x44", Container::MpegPs),
        (b"RIFF\x00\x00\x01\x00AVI LIST", Container::Avi),
        (b"RIFF\x00\x00\x01\x00WAVEfmt ", Container::Wav),
        (b"RF64\xFF\xFF\xFF\xFFWAVEds64", Container::Wav),
        (b"RIFF\x00\x00\x01\x00WEBPVP8 ", Container::Webp),
    ] {
        check(head, container);
        check(&padded(head), container);
    }
}

#[test]
fn an_mp4_may_begin_with_any_of_its_usual_boxes() {
    for (size, kind) in [
        (32, b"ftyp"),
        (24, b"styp"),
        (8, b"wide"),
        (8, b"free"),
        (4096, b"skip"),
        (20, b"pnot"),
        (0, b"mdat"),
        (1, b"mdat"),
        (0xFFFF_FFF0, b"mdat"),
        (5000, b"moov"),
    ] {
        check(&padded(&box_of(size, kind, b"isom\x00\x00\x02\x00isomiso2")), Container::Mp4);
    }
    for (size, kind) in [(3, b"ftyp"), (7, b"moov"), (0xFFFF_0000, b"ftyp"), (3, b"mdat"), (32, b"ftyq")] {
        check_refused(&padded(&box_of(size, kind, b"isom")), "not a media file");
    }
    check_refused(&padded(&box_of(100, b"moof", b"")), "segmented");
}

#[test]
fn picture_brands_are_refused_by_name_and_films_that_list_them_are_not() {
    let brands = |brands: &[u8]| padded(&box_of(u32::try_from(brands.len()).unwrap() + 8, b"ftyp", brands));
    check_refused(&brands(b"avif\0\0\0\0avifmif1"), "AVIF pictures are not supported");
    check_refused(&brands(b"mif1\0\0\0\0mif1avif"), "AVIF");
    check_refused(&brands(b"mif1\0\0\0\0mif1heic"), "HEIC pictures");
    check_refused(&brands(b"heic\0\0\0\0mif1heic"), "HEIC pictures");
    check_refused(&brands(b"heix\0\0\0\0"), "HEIC pictures");
    check(&brands(b"mp42\0\0\0\0mif1heic"), Container::Mp4);
    check(&brands(b"qt  \0\0\0\0"), Container::Mp4);
}

#[test]
fn empty_and_blank_files_are_corrupt() {
    let error = sniff(&[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(error.to_string(), "the file is empty (0 bytes)");
    assert_eq!(sniff(&[0; 100]).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn pages_and_manifests_are_refused_by_name() {
    for (text, words) in [
        ("<!DOCTYPE html><html><body>Not found</body></html>", "an HTML page"),
        ("\u{FEFF}\r\n  <HTML>\n<head>", "an HTML page"),
        ("<!-- saved -->\n<html lang=\"en\">", "an HTML page"),
        ("<?xml version=\"1.0\"?><!DOCTYPE html PUBLIC \"x\"><html>", "an HTML page"),
        ("<head><title>x</title></head>", "an HTML page"),
        ("<?xml version=\"1.0\"?>\n<!-- x --><MPD xmlns=\"urn:mpeg:dash\">", "DASH manifest is not allowed"),
        ("<MPD>", "DASH manifest"),
        ("<smil xmlns=\"x\"><body>", "SMIL"),
        ("<svg xmlns=\"http://www.w3.org/2000/svg\">", "SVG"),
        ("<?xml version=\"1.0\"?><svg:svg>", "SVG"),
        ("<asx version=\"3.0\">", "ASX"),
        ("<?xml version=\"1.0\"?><playlist version=\"1\">", "XSPF"),
        ("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "an XML file"),
        ("<Error>x</Error>", "an XML file"),
        ("<?xml version=\"1.0\"?><!-- never closed", "an XML file"),
        ("{\"error\": \"not found\"}", "a JSON file"),
        ("[ {\"a\":1}]", "a JSON file"),
        ("[]", "a JSON file"),
        ("#EXTM3U\n#EXT-X-VERSION:3\nhttp://x/y.ts", "an HLS playlist is not allowed"),
        ("\u{FEFF}#extm3u\n", "an HLS playlist is not allowed"),
        ("ffconcat version 1.0\nfile 'a.mp4'", "a concat script is not allowed"),
        ("file '/etc/passwd'\n", "a concat script is not allowed"),
        ("[playlist]\nFile1=http://x", "PLS playlist"),
        ("[Reference]\r\nRef1=http://x", "ASX playlist"),
        ("v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\n", "SDP"),
        ("WEBVTT\n\n00:00", "a subtitle file"),
        ("%PDF-1.7\n", "a PDF document"),
        ("P3\n1 1\n255\n0 0 0\n", "PNM"),
        ("hello, this is the skip and the free text\n", "a text file, not a media file"),
        ("the moov of a poem", "a text file"),
        ("ID3 tags are old", "a text file"),
        ("MZ is short", "a text file"),
        ("DDS is a format", "a text file"),
        ("< 3", "a text file"),
        ("    \n\n", "a text file"),
        ("été à la plage 🎬", "a text file"),
    ] {
        check_refused(text.as_bytes(), words);
        let wide: Vec<u8> =
            [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
        if !words.contains("PDF") {
            check_refused(&wide, words);
        }
    }
    check_refused(
        "<html>\u{e9}t\u{e9}".chars().map(|c| u8::try_from(c).unwrap()).collect::<Vec<_>>().as_slice(),
        "HTML",
    );
    let mut cut = "<html>é".as_bytes().to_vec();
    cut.pop();
    check_refused(&cut, "an HTML page");
}

#[test]
fn foreign_files_are_refused_by_name() {
    for (magic, words) in [
        (b"PK\x03\x04\x14\x00".as_slice(), "a ZIP archive, not a media file"),
        (b"\x1F\x8B\x08\x00", "gzip"),
        (b"7z\xBC\xAF\x27\x1C", "7z"),
        (b"Rar!\x1A\x07\x01\x00", "RAR"),
        (b"\x7FELF\x02\x01", "ELF"),
        (b"MZ\x90\x00\x03", "EXE"),
        (b"\x30\x26\xB2\x75\x8E\x66\xCF\x11\xA6\xD9", "ASF"),
        (b".RMF\x00\x00", "RealMedia is not supported"),
        (b"BM\x36\x00\x03\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00", "BMP"),
        (b"II*\x00\x08\x00", "TIFF"),
        (b"8BPS\x00\x01", "PSD"),
        (b"\x00\x00\x01\x00\x01\x00\x10\x10\x00\x00", "ICO"),
        (b"\xFF\x0A\xFA", "JPEG XL"),
        (b"\x00\x00\x00\x0CJXL \r\n\x87\n", "JPEG XL"),
        (b"#!AMR\n\x3C\x08", "AMR"),
        (b"MThd\x00\x00\x00\x06", "MIDI"),
        (b"caff\x00\x01", "CAF"),
        (b"FORM\x00\x00\x10\x00AIFF", "AIFF"),
        (b"DSD \x1C\x00\x00", "DSF"),
        (b"\x06\x0E\x2B\x34\x02\x05\x01\x01\x0D", "MXF"),
        (b"YUV4MPEG2 W16 H16\nFRAME\n\x00", "Y4M"),
        (b"DKIF\x00\x00\x20\x00", "IVF"),
        (b"nut/multimedia container\x00", "NUT"),
        (b"\x00\x00\x00\x01\x67\x64\x00\x1F", "H.264"),
        (b"\x00\x00\x01\x09\x10", "H.264"),
        (b"\x00\x00\x00\x01\x40\x01\x0C", "H.265"),
        (b"\x00\x00\x01\xB3\x16\x00", "MPEG video"),
        (b"RIFF\x00\x00\x01\x00ACON", "ANI"),
        (b"\xDE\xAD\xBE\xEF\x00\x01", "not a media file that Azalea knows"),
    ] {
        check_refused(&padded(magic), words);
    }
}

#[test]
fn mp3_is_recognised_with_and_without_tag() {
    check(&mp3(3), Container::Mp3);
    check(&mp3(1), Container::Mp3);
    check(&mp3(2)[..500], Container::Mp3);
    check(&id3(300, &mp3(3)), Container::Mp3);
    check(&id3(300, &[]), Container::Mp3);
    check(&id3(200_000, &[])[..head_bytes()], Container::Mp3);
    check(&[b"\x12\x34\x56\x00\xFF".as_slice(), &mp3(6)].concat(), Container::Mp3);
    // MPEG-2 layer III, 64 kbit/s, 22.05 kHz: 208 bytes; layer II, 192 kbit/s, 48 kHz: 576 bytes.
    check(&repeated(&[0xFF, 0xF3, 0x80, 0xC4], 208, 3), Container::Mp3);
    check(&repeated(&[0xFF, 0xFD, 0xA4, 0x00], 576, 3), Container::Mp3);
    check_refused(&repeated(&MP3_FRAME, 300, 3), "not a media file");
}

#[test]
fn aac_and_flac_are_found_behind_a_tag() {
    check(&adts(3), Container::Adts);
    check(&adts(1), Container::Adts);
    check(&id3(64, &adts(3)), Container::Adts);
    check(&id3(64, b"\0\0\0fLaC\0\0\0\x22"), Container::Flac);
    check(&id3(64, &id3(32, &adts(2))), Container::Adts);
    check(&[b"\x01\x02\x00".as_slice(), &adts(6)].concat(), Container::Adts);
}

#[test]
fn transport_streams_are_found_in_all_packet_sizes() {
    for (size, sync_at) in [(188, 0), (192, 4), (204, 0)] {
        check(&packets(size, sync_at, 10), Container::MpegTs);
        check(&packets(size, sync_at, 2), Container::MpegTs);
        let cut = packets(size, sync_at, 12).split_off(100);
        check(&cut, Container::MpegTs);
    }
    let with_garbage = [vec![0x80; 188], packets(188, 0, 6)].concat();
    check(&with_garbage, Container::MpegTs);
    check_refused(&packets(188, 0, 1), "not a media file");
}

proptest! {
    #[test]
    fn no_head_panics(head in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = sniff(&head);
    }

    #[test]
    fn no_head_with_a_known_beginning_panics(
        beginning in prop::sample::select(vec![
            b"ID3\x04\x00\x00".to_vec(), b"RIFF".to_vec(), b"\x00\x00\x00\x20ftyp".to_vec(), vec![0xFF, 0xFB],
            vec![0xFF, 0xF1], vec![0x47], b"<?xml".to_vec(), b"<!--".to_vec(), vec![0xFF, 0xFE], b"[".to_vec(),
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let _ = sniff(&[beginning, rest].concat());
    }

    #[test]
    fn printable_text_is_never_media(text in "[ -~\n]{1,300}") {
        prop_assert!(sniff(text.as_bytes()).is_err() || text.starts_with("GIF8") || text.starts_with("RIFF"));
    }

    #[test]
    fn a_cut_file_keeps_its_name(cut in 417_usize..1600) {
        prop_assert_eq!(sniff(&mp3(4)[..cut]).unwrap(), Container::Mp3);
    }
}
