//! Every kind of failure says what it is, and means it.

use std::time::Duration;

use azalea_engine::{ByteSize, Bytes, Error, ErrorKind, Fit, LimitKind, Limits, Source, Wanted};

use crate::support::clips::{self, H264, PICTURE, TONE, make};
use crate::support::{KIB, MIB, engine, fails, fit, try_fit, within};

#[track_caller]
fn check(input: &[u8], kind: ErrorKind, says: &str) {
    let error = fails(&Bytes::copy_from_slice(input), within(MIB));
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().to_lowercase().contains(says), "{says:?} in {error}");
}

#[test]
fn what_is_no_media_is_named() {
    check(b"", ErrorKind::Corrupt, "empty");
    check(b"<!DOCTYPE html><html><body>not found</body></html>", ErrorKind::Unsupported, "html page");
    check(b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", ErrorKind::Unsupported, "playlist");
    check(b"ffconcat version 1.0\nfile '/etc/passwd'\n", ErrorKind::Unsupported, "concat script");
    check(b"just some words, long enough to be looked at", ErrorKind::Unsupported, "");
}

#[test]
fn unknown_codec_is_named() {
    let source = make("old.avi", &format!("{PICTURE} -c:v cinepak -s 64x64 -t 0.2"));
    let error = fails(&source, within(MIB));
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("cinepak"), "{error}");
}

#[test]
fn file_without_its_index_is_corrupt() {
    let whole = make("last.mp4", &format!("{PICTURE} {TONE} {H264} -c:a aac"));
    check(&whole[..whole.len() / 2], ErrorKind::Corrupt, "index");
}

#[test]
fn what_the_input_does_not_have_cannot_be_asked_for() {
    let silent = make("silent.mkv", &format!("{PICTURE} -c:v mpeg4"));
    let song = make("song.mp3", &format!("{TONE} -c:a libmp3lame"));
    let still = make("still.png", &format!("{PICTURE} -frames:v 1"));
    for (input, wanted) in [(&silent, Wanted::AudioOnly), (&song, Wanted::Gif), (&still, Wanted::AudioOnly)] {
        assert_eq!(fails(input, within(MIB).wanted(wanted)).kind(), ErrorKind::Unsupported);
    }
    let late = fails(&silent, within(MIB).start(Duration::from_secs(60)));
    assert_eq!(late.kind(), ErrorKind::Unsupported);
    assert!(late.to_string().contains("2.0 s"), "{late}");
}

#[test]
fn missing_file_is_a_matter_of_input_and_output() {
    let error =
        engine().try_submit(Source::path("no such file.mp4"), within(MIB)).unwrap().wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("no such file.mp4"), "{error}");
    let folder = engine().try_submit(Source::path("."), within(MIB)).unwrap().wait().unwrap_err();
    assert_eq!(folder.kind(), ErrorKind::Unsupported, "{folder}");
}

/// A limit just below what the input needs is named with both numbers; one just above lets it pass.
#[track_caller]
fn check_limit(input: &Bytes, kind: LimitKind, needs: u64, set: fn(&mut Limits, u64)) {
    let request = |value| {
        let mut limits = Limits::default();
        set(&mut limits, value);
        within(MIB).limits(limits)
    };
    match fails(input, request(needs - 1)) {
        Error::TooLarge { limit, found, allowed } => {
            assert_eq!((limit, allowed), (kind, needs - 1));
            // A length is told in whole seconds.
            assert!(found >= needs || kind == LimitKind::Duration, "{kind:?}: {found} of {needs}");
        }
        error => panic!("{kind:?}: {error}"),
    }
    let _ = fit(input, request(needs));
}

#[test]
fn each_limit_is_strict_and_named() {
    let three =
        make("three.mkv", &format!("{PICTURE} {TONE} {TONE} -map 0 -map 1 -map 2 -c:v mpeg4 -c:a aac"));
    let frames: fn(&mut Limits, u64) = |limits, value| limits.frames = value;
    let pixels: fn(&mut Limits, u64) = |limits, value| limits.frame_pixels = value;
    for input in [clips::plain(), clips::old()] {
        let bytes = ByteSize::of(&input).get();
        check_limit(&input, LimitKind::InputBytes, bytes, |limits, value| {
            limits.input_bytes = ByteSize::new(value);
        });
        check_limit(&input, LimitKind::Frames, 60, frames);
    }
    check_limit(&three, LimitKind::Streams, 3, |limits, value| {
        limits.streams = u32::try_from(value).unwrap();
    });
    let still = make("still.png", &format!("{PICTURE} -frames:v 1"));
    check_limit(&still, LimitKind::FramePixels, 320 * 180, pixels);
    let gif = make("a.gif", "-f lavfi -i testsrc2=size=64x36:rate=10:duration=2");
    check_limit(&gif, LimitKind::FramePixels, 64 * 36, pixels);
    check_limit(&gif, LimitKind::Frames, 20, frames);
    let seconds: fn(&mut Limits, u64) = |limits, value| limits.duration = Duration::from_secs(value);
    let long = make("l.mkv", &format!("{PICTURE} {TONE} -t 1.9 -c:v mpeg4 -c:a libmp3lame"));
    check_limit(&long, LimitKind::Duration, 2, seconds);
}

#[test]
fn length_is_that_of_the_part_that_is_asked_for() {
    let mut limits = Limits::default();
    limits.duration = Duration::from_secs(1);
    let part = within(MIB).limits(limits).start(Duration::from_millis(500)).end(Duration::from_millis(1400));
    let _ = fit(&clips::old(), part);
}

/// Asks again with the limit that each error names, until there is a result; how often that was.
#[track_caller]
fn tries(what: &str, input: &Bytes, limit: u64, request: fn(Fit) -> Fit) -> u32 {
    let mut limit = limit;
    for tries in 0..6 {
        match try_fit(input, request(within(limit))) {
            Ok(_) => return tries,
            Err(Error::CannotFit { limit: asked, min_bytes, .. }) => {
                assert_eq!(asked.get(), limit);
                assert!(min_bytes.get() > limit, "{what}: {min_bytes} at {limit}");
                limit = min_bytes.get();
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
    panic!("{what}: the limits that are named never work");
}

#[test]
fn smallest_limit_that_would_work_works_for_sound_and_pictures() {
    let song = make("song.mp3", &format!("{TONE} -c:a libmp3lame"));
    let photo = make("photo.png", &format!("{PICTURE} -vf noise=alls=80:allf=t -frames:v 1"));
    let gif = make("a.gif", "-f lavfi -i testsrc2=size=64x36:rate=10:duration=1");
    assert_eq!(tries("a song", &song, 2 * KIB, |fit| fit), 1);
    let sound_alone: fn(Fit) -> Fit = |fit| fit.wanted(Wanted::AudioOnly);
    assert_eq!(tries("the sound of a clip", &clips::old(), 2 * KIB, sound_alone), 1);
    assert_eq!(tries("a photo", &photo, 300, |fit| fit), 1);
    assert_eq!(tries("an animation", &gif, 300, |fit| fit), 1);
}

#[test]
fn smallest_limit_that_would_work_works_for_video() {
    for (what, input) in
        [("a clip", clips::plain()), ("an old clip", clips::old()), ("noise", clips::noisy())]
    {
        assert_eq!(tries(what, &input, 3 * KIB, |fit| fit), 1, "{what}");
    }
    assert_eq!(tries("a GIF", &clips::old(), 2 * KIB, |fit| fit.wanted(Wanted::Gif)), 1);
}

#[test]
fn no_limit_at_all_cannot_be_kept() {
    for limit in [0, 1] {
        for input in [clips::plain(), clips::old()] {
            assert_eq!(fails(&input, within(limit)).kind(), ErrorKind::CannotFit);
        }
    }
}

#[test]
fn time_that_is_over_is_said() {
    let mut limits = Limits::default();
    limits.wall_time = Duration::from_millis(1);
    match fails(&clips::noisy(), within(MIB).limits(limits)) {
        Error::Deadline { allowed } => assert_eq!(allowed, Duration::from_millis(1)),
        error => panic!("{error}"),
    }
}

#[test]
fn probe_tells_the_same_as_the_result() {
    let info = engine().probe(Source::bytes(clips::plain()), &Limits::default()).unwrap();
    assert!(info.plays_inline, "{:?}", info.hindrances);
    let old = engine().probe(Source::bytes(clips::old()), &Limits::default()).unwrap();
    assert!(!old.plays_inline && !old.hindrances.is_empty());
    assert_eq!(old.video.map(|video| video.codec), Some("mpeg4".to_owned()));
    assert_eq!(old.audio.map(|audio| audio.codec), Some("mp3".to_owned()));
}
