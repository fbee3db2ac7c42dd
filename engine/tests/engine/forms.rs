//! What goes in decides what comes out: animations, pictures, sound.

use azalea_engine::{Action, Bytes, Dimensions, OutputKind, Wanted};

use crate::support::clips::{self, H264, PICTURE, Place, TONE, make};
use crate::support::look::{Facts, Pictures, Sound, assert_colour, assert_decodes};
use crate::support::{KIB, MIB, fit, near, within};

/// Two seconds at ten frames a second.
const ANIMATION: &str = "-f lavfi -i testsrc2=size=160x90:rate=10:duration=2";

#[test]
fn animations_become_silent_video() {
    for (name, words) in [
        ("a.gif", ""),
        ("a.apng", "-f apng -plays 0"),
        ("a.png", "-f apng -plays 0 -pix_fmt rgba"),
        ("a.webp", "-c:v libwebp_anim -loop 0"),
    ] {
        let fitted = fit(&make(name, &format!("{ANIMATION} {words}")), within(MIB));
        assert_eq!(fitted.report().kind, OutputKind::Mp4, "{name}");
        let facts = Facts::of(fitted.bytes());
        facts.assert_plays_inline();
        assert_eq!((facts.streams(), facts.size()), (1, (160, 90)), "{name}");
        near(&format!("{name}: length"), facts.seconds(), 2.0, 0.1);
        assert_decodes(fitted.bytes());
    }
}

#[test]
fn very_short_delays_of_a_gif_last_as_long_as_in_browsers() {
    // Ten frames of one hundredth each: every browser shows them for a tenth.
    let source = make("fast.gif", "-f lavfi -i testsrc2=size=64x36:rate=100:duration=0.1");
    let fitted = fit(&source, within(MIB));
    near("length", Facts::of(fitted.bytes()).seconds(), 1.0, 0.05);
}

/// Repetitions that a GIF asks for, and its length in seconds.
fn gif_facts(gif: &[u8]) -> (Option<u16>, f64) {
    let at = gif.windows(11).position(|window| window == b"NETSCAPE2.0");
    let repeats = at.map(|at| u16::from_le_bytes([gif[at + 13], gif[at + 14]]));
    // Graphic control extensions: introducer, label, length, flags, delay.
    let delays = gif.windows(8).filter(|window| window.starts_with(&[0x21, 0xf9, 4]) && window[7] == 0);
    (repeats, delays.map(|window| f64::from(u16::from_le_bytes([window[4], window[5]])) / 100.0).sum())
}

#[test]
fn gif_that_is_asked_for_loops_and_fits() {
    for limit in [4 * MIB, 400 * KIB, 60 * KIB] {
        let fitted = fit(&clips::old(), within(limit).wanted(Wanted::Gif));
        assert_eq!(fitted.report().kind, OutputKind::Gif);
        let (repeats, seconds) = gif_facts(fitted.bytes());
        assert_eq!(repeats, Some(0), "it loops for ever");
        near("length", seconds, 2.0, 0.1);
        near("length in the report", fitted.report().duration.as_secs_f64(), 2.0, 0.1);
        assert_decodes(fitted.bytes());
    }
}

#[test]
fn gif_that_fits_is_kept() {
    let source = make("a.gif", ANIMATION);
    let fitted = fit(&source, within(MIB).wanted(Wanted::Gif));
    assert_eq!((fitted.report().action, fitted.report().kind), (Action::Pass, OutputKind::Gif));
    assert!(*fitted.bytes() == source);
}

#[track_caller]
fn check_sound(source: &Bytes, wanted: Wanted, action: Action) {
    let fitted = fit(source, within(MIB).wanted(wanted));
    let report = fitted.report();
    assert_eq!((report.kind, report.action, report.dimensions), (OutputKind::M4a, action, None));
    assert_eq!((report.frames, report.frame_rate), (0, None));
    let facts = Facts::of(fitted.bytes());
    assert_eq!((facts.streams(), facts.stream("audio", "codec_name")), (1, "aac"));
    assert_eq!(facts.stream("audio", "profile"), "LC");
    near("length", facts.seconds(), 2.0, 0.06);
    near("tone", Sound::of(fitted.bytes()).tone(440.0), 0.125, 0.02);
    assert_decodes(fitted.bytes());
}

#[test]
fn sound_becomes_m4a() {
    for (name, codec) in [
        ("s.mp3", "libmp3lame"),
        ("s.ogg", "libopus"),
        ("s.wav", "pcm_s16le"),
        ("s.flac", "flac"),
        ("s.ogg", "libvorbis"),
    ] {
        check_sound(&make(name, &format!("{TONE} -c:a {codec}")), Wanted::Natural, Action::Transcode);
    }
    check_sound(&make("s.aac", &format!("{TONE} -c:a aac")), Wanted::Natural, Action::Remux);
}

#[test]
fn sound_of_a_video_can_be_had_alone() {
    check_sound(&clips::plain(), Wanted::AudioOnly, Action::Remux);
    check_sound(&clips::old(), Wanted::AudioOnly, Action::Transcode);
}

#[test]
fn sound_shrinks_to_its_limit() {
    let song = make("s.wav", "-f lavfi -i anoisesrc=d=3:c=pink:r=48000:a=0.3,aformat=channel_layouts=stereo");
    for limit in [8 * KIB, 20 * KIB, 100 * KIB] {
        let fitted = fit(&song, within(limit));
        near("length", Facts::of(fitted.bytes()).seconds(), 3.0, 0.1);
        assert_decodes(fitted.bytes());
    }
}

/// A picture with words in it that nobody meant to post.
fn private_picture(name: &str, words: &str) -> Bytes {
    let plain = make(name, &format!("{PICTURE} -frames:v 1 {words}")).to_vec();
    let block = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\0\0\0\0\0CANARY";
    let mut bytes = Vec::new();
    if name.ends_with("jpg") {
        bytes.extend(&plain[..2]);
        bytes.extend([0xff, 0xe1]);
        bytes.extend(u16::try_from(block.len() + 2).unwrap().to_be_bytes());
        bytes.extend(block);
        bytes.extend(&plain[2..]);
    } else {
        // Behind the header chunk; the checksum is that of the text chunk below.
        let chunk = b"tEXtComment\0CANARY";
        bytes.extend(&plain[..33]);
        bytes.extend(u32::try_from(chunk.len() - 4).unwrap().to_be_bytes());
        bytes.extend(chunk);
        bytes.extend(checksum(chunk).to_be_bytes());
        bytes.extend(&plain[33..]);
    }
    bytes.into()
}

/// The CRC of PNG, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

#[test]
fn pictures_are_kept_without_their_metadata() {
    for (name, words, kind) in [("p.jpg", "-q:v 3", OutputKind::Jpeg), ("p.png", "", OutputKind::Png)] {
        let source = private_picture(name, words);
        let fitted = fit(&source, within(MIB));
        assert_eq!((fitted.report().kind, fitted.report().action), (kind, Action::Remux), "{name}");
        assert!(!fitted.bytes().windows(6).any(|window| window == b"CANARY"), "{name}");
        assert!(fitted.bytes().len() < source.len());
        let (found, expected) = (Pictures::of(fitted.bytes()), Pictures::of(&source));
        assert!(found.frames == expected.frames, "{name}: every pixel is the same");
    }
}

#[test]
fn pictures_that_are_fine_are_passed() {
    for (name, words, kind) in [("p.png", "", OutputKind::Png), ("p.webp", "-c:v libwebp", OutputKind::Webp)]
    {
        let source = make(name, &format!("{PICTURE} -frames:v 1 {words}"));
        let fitted = fit(&source, within(MIB));
        assert_eq!((fitted.report().kind, fitted.report().action), (kind, Action::Pass), "{name}");
        assert!(*fitted.bytes() == source);
    }
}

#[test]
fn pictures_shrink_to_a_small_limit() {
    let place = Place::new();
    for (name, words) in [("p.jpg", "-q:v 1"), ("p.png", ""), ("p.webp", "-c:v libwebp -quality 100")] {
        let noise = "-vf scale=640:360,noise=alls=20:all_seed=3";
        let source = place.make(name, &format!("{PICTURE} -frames:v 1 {noise} {words}"));
        for limit in [40 * KIB, 6 * KIB] {
            assert!(ByteCount(&source) > limit, "{name}");
            let fitted = fit(&source, within(limit));
            assert_eq!(fitted.report().kind, OutputKind::Jpeg, "{name}");
            let Dimensions { width, height } = fitted.report().dimensions.unwrap();
            assert_eq!(Facts::of(fitted.bytes()).size(), (width, height));
            near("aspect", f64::from(width) / f64::from(height), 16.0 / 9.0, 0.05);
            assert_decodes(fitted.bytes());
        }
    }
}

/// Bytes to compare with a limit.
struct ByteCount<'a>(&'a [u8]);

impl PartialEq<u64> for ByteCount<'_> {
    fn eq(&self, other: &u64) -> bool {
        u64::try_from(self.0.len()).is_ok_and(|length| length == *other)
    }
}

impl PartialOrd<u64> for ByteCount<'_> {
    fn partial_cmp(&self, other: &u64) -> Option<std::cmp::Ordering> {
        u64::try_from(self.0.len()).ok()?.partial_cmp(other)
    }
}

#[test]
fn picture_keeps_its_transparency_where_it_can() {
    let halves = "-f lavfi -i color=white@0.0:s=160x180:d=1,format=rgba[left];\
                  color=red:s=160x180:d=1,format=rgba,noise=alls=40[right];[left][right]hstack";
    let source = make("t.png", &format!("{halves} -frames:v 1 -pix_fmt rgba"));
    let limit = u64::try_from(source.len()).unwrap() * 3 / 4;
    let fitted = fit(&source, within(limit));
    assert_eq!(fitted.report().kind, OutputKind::Png);
    assert_eq!(Facts::of(fitted.bytes()).stream("video", "pix_fmt"), "rgba");
    let small = fit(&source, within(3 * KIB));
    assert_eq!(small.report().kind, OutputKind::Jpeg);
    assert_colour("over black", Pictures::of(small.bytes()).colour(0.2, 0.5), [0; 3], 16);
}

#[test]
fn video_of_one_frame_stays_a_video() {
    let source = make("one.mkv", &format!("{PICTURE} -frames:v 1 {H264}"));
    let fitted = fit(&source, within(MIB));
    assert_eq!((fitted.report().kind, fitted.report().frames), (OutputKind::Mp4, 1));
    assert_decodes(fitted.bytes());
}

/// A GIF was once passed on by its structure alone, with pictures inside that no decoder could read.
#[test]
fn damaged_gif_is_not_passed_on() {
    let whole = make("whole.gif", ANIMATION);
    let mut damaged = whole.to_vec();
    for at in (whole.len() / 2..whole.len() * 3 / 4).step_by(97) {
        damaged[at] ^= 0x55;
    }
    assert_eq!(fit(&whole, within(MIB).wanted(Wanted::Gif)).report().action, Action::Pass);
    if let Ok(fitted) = crate::support::try_fit(&Bytes::from(damaged), within(MIB).wanted(Wanted::Gif)) {
        assert_ne!(fitted.report().action, Action::Pass);
        assert_decodes(fitted.bytes());
    }
}

#[test]
fn no_part_is_cut_out_of_a_still() {
    let still = make("a.png", "-f lavfi -i testsrc2=size=64x36:rate=1 -frames:v 1");
    let error = crate::support::fails(&still, within(MIB).start(std::time::Duration::from_secs(1)));
    assert_eq!(error.to_string(), "the part that is asked for is empty: a picture has no length");
}

#[test]
fn no_gif_is_made_of_a_still() {
    let still = make("a.png", "-f lavfi -i testsrc2=size=64x36:rate=1 -frames:v 1");
    let error = crate::support::fails(&still, within(MIB).wanted(Wanted::Gif));
    assert_eq!(error.kind(), azalea_engine::ErrorKind::Unsupported);
}

/// A replaced file once became readable for everybody, and a long name left no room for the temporary one.
#[cfg(unix)]
#[test]
fn a_replaced_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let name = format!("{}.png", "n".repeat(251));
    place.write(&name, b"old");
    let path = place.path(&name);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let still = make("a.png", "-f lavfi -i testsrc2=size=64x36:rate=1 -frames:v 1");
    fit(&still, within(MIB)).write_to(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read(&path).unwrap().starts_with(b"\x89PNG"));
}
