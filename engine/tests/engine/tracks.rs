//! The right tracks are chosen, and nothing else gets through.

use azalea_engine::{Action, Bytes, OutputKind, Wanted};

use crate::support::clips::{H264, PICTURE, Place, TONE, make};
use crate::support::look::{Facts, Sound, assert_decodes};
use crate::support::{KIB, MIB, fails, fit, near, within};

/// A tone of this pitch, as one more input.
fn tone(hertz: u32) -> String {
    TONE.replace("440", &hertz.to_string())
}

#[test]
fn cover_art_is_not_the_video() {
    let place = Place::new();
    place.make("cover.png", "-f lavfi -i color=red:s=600x600:d=1 -frames:v 1");
    place.make("clip.mp4", &format!("{PICTURE} {TONE} {H264} -c:a aac"));
    let words = "-i cover.png -i clip.mp4 -map 0:v -map 1:v -map 1:a -c copy -disposition:v:0 attached_pic";
    let fitted = fit(&place.make("covered.mp4", words), within(MIB));
    let facts = Facts::of(fitted.bytes());
    facts.assert_plays_inline();
    assert_eq!(facts.size(), (320, 180));
    assert_eq!(fitted.report().action, Action::Remux);
}

#[test]
fn cover_art_does_not_make_a_song_a_video() {
    let place = Place::new();
    place.make("cover.png", "-f lavfi -i color=red:s=600x600:d=1 -frames:v 1");
    let song =
        format!("{TONE} -i cover.png -map 0 -map 1 -c:a libmp3lame -c:v copy -disposition:v:0 attached_pic");
    for name in ["song.mp3", "song.m4a"] {
        let codecs = song.replace("libmp3lame", if name == "song.mp3" { "libmp3lame" } else { "aac" });
        let fitted = fit(&place.make(name, &codecs), within(MIB));
        assert_eq!((fitted.report().kind, fitted.report().dimensions), (OutputKind::M4a, None));
        let facts = Facts::of(fitted.bytes());
        assert_eq!((facts.streams(), facts.stream("audio", "codec_name")), (1, "aac"));
        near("length", facts.seconds(), 2.0, 0.06);
        near("tone", Sound::of(fitted.bytes()).tone(440.0), 0.125, 0.02);
    }
}

#[test]
fn audible_track_goes_before_a_silent_default() {
    let silence = "-f lavfi -i anullsrc=r=48000:cl=stereo:d=2";
    let maps = "-map 0 -map 1 -map 2 -map 3 -shortest -disposition:a:0 default";
    let (second, third) = (tone(440), tone(880));
    for (name, codecs) in [("t.mp4", format!("{H264} -c:a aac")), ("t.mkv", "-c:v mpeg4 -c:a libopus".into())]
    {
        let source = make(name, &format!("{PICTURE} {silence} {second} {third} {maps} {codecs}"));
        let fitted = fit(&source, within(MIB));
        Facts::of(fitted.bytes()).assert_plays_inline();
        let sound = Sound::of(fitted.bytes());
        near("the second track", sound.tone(440.0), 0.125, 0.03);
        near("the third track", sound.tone(880.0), 0.0, 0.01);
    }
}

#[test]
fn centre_of_surround_sound_is_heard_on_both_sides() {
    let centre = "-f lavfi -i aevalsrc='0|0|0.5*sin(2*PI*700*t)|0|0|0:c=5.1:s=48000:d=2'";
    for (name, codec) in [("c.mkv", "ac3"), ("c.mp4", "aac"), ("c.mkv", "flac")] {
        let source = make(name, &format!("{PICTURE} {centre} {H264} -c:a {codec}"));
        let fitted = fit(&source, within(MIB));
        let facts = Facts::of(fitted.bytes());
        facts.assert_plays_inline();
        assert_eq!(facts.stream("audio", "channels"), "2");
        for side in [0, 1] {
            let heard = Sound::channel(fitted.bytes(), side).tone(700.0);
            assert!((0.1..=0.5).contains(&heard), "{codec}, side {side}: {heard}");
        }
    }
}

#[test]
fn other_sound_becomes_plain_aac_beside_the_kept_picture() {
    for codec in ["libopus", "libmp3lame", "flac"] {
        let source = make("o.mkv", &format!("{PICTURE} {TONE} {H264} -c:a {codec}"));
        let fitted = fit(&source, within(MIB));
        Facts::of(fitted.bytes()).assert_plays_inline();
        assert_eq!((fitted.report().action, fitted.report().crf), (Action::Transcode, None), "{codec}");
        near("tone", Sound::of(fitted.bytes()).tone(440.0), 0.125, 0.02);
    }
}

const CANARY: &[u8] = b"CANARY";

/// A clip with chapters, subtitles, a title and a place, all of which name the canary or tell where it lives.
fn private(name: &str, words: &str) -> Bytes {
    let place = Place::new();
    place.write(
        "facts.txt",
        b";FFMETADATA1\ntitle=CANARY\ncomment=CANARY\nartist=CANARY\nlocation=+48.8584+002.2945/\n\
          [CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=1000\ntitle=CANARY one\n\
          [CHAPTER]\nTIMEBASE=1/1000\nSTART=1000\nEND=2000\ntitle=CANARY two\n",
    );
    place.write("words.srt", b"1\n00:00:00,000 --> 00:00:01,500\nCANARY\n");
    let maps = "-i facts.txt -i words.srt -map 0:v -map 1:a -map 3:s -map_metadata 2 -map_chapters 2";
    let tags = "-metadata:s:v:0 handler_name=CANARY -metadata:s:a:0 title=CANARY";
    place.make(name, &format!("{PICTURE} {TONE} {maps} {tags} {words}"))
}

#[test]
fn nothing_private_gets_through() {
    let kept = format!("{H264} -c:a aac");
    for (name, words, limit, action) in [
        ("p.mp4", format!("{kept} -c:s mov_text -movflags +faststart"), MIB, Action::Remux),
        ("p.mkv", format!("{kept} -c:s srt"), MIB, Action::Remux),
        ("p.mp4", format!("{kept} -c:s mov_text"), 80 * KIB, Action::Transcode),
        ("p.mkv", "-c:v mpeg4 -c:a libopus -c:s srt".into(), MIB, Action::Transcode),
    ] {
        let source = private(name, &words);
        let has_canary = |bytes: &[u8]| bytes.windows(CANARY.len()).any(|window| window == CANARY);
        assert!(has_canary(&source), "the source holds what must go");
        let fitted = fit(&source, within(limit));
        assert_eq!(fitted.report().action, action, "{name}");
        assert!(!has_canary(fitted.bytes()), "{name}: the canary is gone");
        assert!(!fitted.bytes().windows(8).any(|window| window == b"+48.8584"), "{name}: the place is gone");
        let facts = Facts::of(fitted.bytes());
        facts.assert_plays_inline();
        assert!(!facts.mentions("chapters.") && !facts.mentions("tags.title"), "{name}");
        assert_decodes(fitted.bytes());
    }
}

#[test]
fn sound_that_cannot_be_decoded_is_missed_aloud() {
    let source = make("wma.mkv", &format!("{PICTURE} {TONE} {H264} -c:a wmav2"));
    let fitted = fit(&source, within(MIB));
    Facts::of(fitted.bytes()).assert_plays_inline();
    let warnings: Vec<String> = fitted.report().warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["the sound was left out: its codec wmav2 is not supported"]);
}

#[test]
fn picture_that_cannot_be_decoded_is_not_passed_over() {
    let source = make("ffv1.mkv", &format!("{PICTURE} {TONE} -c:v ffv1 -c:a aac"));
    let error = fails(&source, within(MIB));
    assert_eq!(error.to_string(), "the codec ffv1 of the picture is not supported");
    let sound = fit(&source, within(MIB).wanted(Wanted::AudioOnly));
    assert_eq!((sound.report().kind, sound.report().warnings.len()), (OutputKind::M4a, 0));
}
