//! Pictures and sounds keep their moments.

use std::time::Duration;

use azalea_engine::{Action, Bytes};

use crate::support::clips::{PICTURE, Place, TONE, flash_and_beep, make};
use crate::support::look::{Facts, Pictures, Sound, picture_times};
use crate::support::{MIB, fit, float, near, within};

/// The length of a frame of the sources here.
const FRAME: f64 = 1.0 / 30.0;
/// Nobody hears or sees less.
const SYNC: f64 = 0.05;

#[test]
fn uneven_frames_keep_their_times() {
    let uneven = "-vf select='lt(n,15)+not(mod(n,7))+gt(n,50)' -fps_mode vfr -c:v mpeg4 -q:v 3";
    let source = make("vfr.mkv", &format!("{PICTURE} {uneven}"));
    let fitted = fit(&source, within(MIB));
    Facts::of(fitted.bytes()).assert_plays_inline();
    let (found, expected) = (picture_times(fitted.bytes()), picture_times(&source));
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        near("a picture's time", *found, *expected, 0.002);
    }
    near("length", Facts::of(fitted.bytes()).seconds(), 2.0, FRAME);
}

#[test]
fn high_frame_rate_is_lowered_at_the_same_length() {
    let source = "-f lavfi -i testsrc2=size=320x180:rate=120:duration=2";
    let source = make("fast.mkv", &format!("{source} -c:v libx264 -preset ultrafast -pix_fmt yuv420p"));
    let fitted = fit(&source, within(4 * MIB));
    let facts = Facts::of(fitted.bytes());
    facts.assert_plays_inline();
    near("length", facts.seconds(), 2.0, 1.0 / 60.0);
    assert_eq!(fitted.report().frame_rate.map(|rate| rate.as_f64()), Some(60.0));
    assert_eq!(picture_times(fitted.bytes()).len(), 120);
}

/// What is seen and heard in a result, in seconds.
struct Moments {
    flash: f64,
    beep: f64,
    pictures: usize,
    sound: f64,
}

#[track_caller]
fn moments(source: &Bytes, start: Option<f64>, end: Option<f64>) -> Moments {
    let mut request = within(MIB);
    if let Some(start) = start {
        request = request.start(Duration::from_secs_f64(start));
    }
    if let Some(end) = end {
        request = request.end(Duration::from_secs_f64(end));
    }
    let fitted = fit(source, request);
    let (pictures, sound) = (Pictures::of(fitted.bytes()), Sound::of(fitted.bytes()));
    let (flash, beep) = (pictures.flash(), sound.beep());
    Moments { flash, beep, pictures: pictures.frames.len(), sound: sound.seconds() }
}

#[track_caller]
fn check_moments(source: &Bytes, flash: f64, beep: f64) {
    let found = moments(source, None, None);
    near("flash", found.flash, flash, FRAME + 0.002);
    near("beep", found.beep, beep, FRAME);
    near("distance", found.beep - found.flash, beep - flash, SYNC);
}

#[test]
fn trim_is_exact_for_picture_and_sound() {
    let (flash, beep) = flash_and_beep(1.5);
    let keyed = "-c:v mpeg4 -q:v 3 -g 300 -c:a libmp3lame";
    let plain = "-c:v libx264 -preset ultrafast -g 300 -pix_fmt yuv420p -c:a aac";
    for (name, codecs) in [("t.mkv", keyed), ("t.mp4", plain), ("t.avi", keyed)] {
        let source = make(name, &format!("{flash} {beep} {codecs}"));
        for (start, end) in
            [(Some(0.5), Some(2.5)), (Some(1.2), None), (None, Some(2.0)), (Some(1.0), Some(1.8))]
        {
            let found = moments(&source, start, end);
            let (from, to) = (start.unwrap_or(0.0), end.unwrap_or(3.0));
            let what = |what: &str| format!("{name} {start:?} {end:?}: {what}");
            near(&what("flash"), found.flash, 1.5 - from, FRAME + 0.002);
            near(&what("beep"), found.beep, 1.5 - from, FRAME);
            let pictures = float(found.pictures) * FRAME;
            near(&what("length of the pictures"), pictures, to - from, FRAME + 0.002);
            near(&what("length of the sound"), found.sound, to - from, 0.06);
        }
    }
}

#[test]
fn edit_list_is_honoured() {
    let place = Place::new();
    let (flash, beep) = flash_and_beep(1.5);
    let codecs = "-c:v libx264 -preset ultrafast -g 30 -pix_fmt yuv420p -c:a aac";
    place.make("whole.mp4", &format!("{flash} {beep} {codecs}"));
    // A copy that begins between two key frames keeps what is before, and hides it by an edit list.
    let cut = place.make("cut.mp4", "-ss 0.5 -i whole.mp4 -c copy");
    near("the flash as ffmpeg shows it", Pictures::of(&cut).flash(), 1.0, FRAME + 0.002);
    check_moments(&cut, 1.0, 1.0);
}

#[test]
fn late_and_early_sound_keeps_its_distance() {
    let (flash, beep) = flash_and_beep(1.0);
    for (name, codecs) in [
        ("s.mp4", "-c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:a aac"),
        ("s.mkv", "-c:v mpeg4 -q:v 3 -c:a libmp3lame"),
    ] {
        let late = make(name, &format!("{flash} -itsoffset 0.4 {beep} {codecs}"));
        check_moments(&late, 1.0, 1.4);
        // Sound that leads by this much is kept, with the first picture held.
        let early = make(name, &format!("-itsoffset 0.4 {flash} {beep} {codecs}"));
        let found = moments(&early, None, None);
        near("distance", found.flash - found.beep, 0.4, SYNC);
    }
}

#[test]
fn gap_in_the_sound_stays_a_gap() {
    let (flash, beep) = flash_and_beep(2.0);
    let hole = "-af aselect='lt(t,0.5)+gt(t,1.3)'";
    for (name, codecs) in [
        ("gap.ts", "-c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:a mp2"),
        ("gap.ts", "-c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:a aac"),
        ("gap.mkv", "-c:v mpeg4 -q:v 3 -c:a pcm_s16le"),
    ] {
        check_moments(&make(name, &format!("{flash} {beep} {hole} {codecs}")), 2.0, 2.0);
    }
}

#[test]
fn picture_and_sound_of_a_transport_stream_begin_together() {
    let (flash, beep) = flash_and_beep(1.0);
    let source =
        make("t.ts", &format!("{flash} {beep} -c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:a aac"));
    check_moments(&source, 1.0, 1.0);
    let fitted = fit(&source, within(MIB));
    assert_eq!(fitted.report().action, Action::Remux);
    near("first picture", picture_times(fitted.bytes())[0], 0.0, 0.001);
}

#[test]
fn last_picture_stays_as_long_as_the_index_says() {
    let still = "-f lavfi -i color=red:s=160x90:r=1/4:d=4";
    let coded = "-c:v libx264 -preset ultrafast -pix_fmt yuv420p";
    let tone = TONE.replace("duration=2", "duration=4");
    let one = format!("{still} {tone} {coded} -c:a aac -fflags +bitexact -movflags +faststart");
    let one = make("one.mp4", &one);
    let kept = fit(&one, within(MIB));
    assert_eq!(kept.report().action, Action::Pass);
    let slides = "-f lavfi -i testsrc2=s=160x90:r=2:d=1.5,setpts='if(eq(N,2),4,N)/2/TB'";
    let slides = make("slides.mp4", &format!("{slides} -vsync vfr {coded} -t 4"));
    for (source, seconds) in [(&one, 4.0), (&slides, Facts::of(&slides).seconds())] {
        let made = fit(source, within(MIB).max_height(64));
        assert_eq!(made.report().action, Action::Transcode);
        near("length", Facts::of(made.bytes()).seconds(), seconds, 0.03);
        near("length of the pictures", made.report().duration.as_secs_f64(), seconds, 0.03);
    }
}

#[test]
fn joined_transport_streams_stay_in_step_whatever_ends_first() {
    let coded = "-c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:a aac";
    let (flash, beep) = flash_and_beep(1.0);
    let second = make("second.ts", &format!("{flash} {beep} {coded}"));
    for (picture, sound) in [(1.0, 1.5), (1.5, 1.0), (1.0, 1.0)] {
        let first = format!(
            "-f lavfi -i color=black:s=160x90:r=30:d={picture} -f lavfi -i anullsrc=r=48000:d={sound} {coded}"
        );
        let joined = Bytes::from([&make("first.ts", &first)[..], &second[..]].concat());
        let found = moments(&joined, None, None);
        near("distance", found.beep - found.flash, 0.0, SYNC);
        // The first part lasts as long as its longer track; a track's last packet and delay may add a little.
        near("flash", found.flash, f64::max(picture, sound) + 1.0, 0.1);
    }
}

#[test]
fn long_pause_of_one_track_stays_as_it_is() {
    let (flash, beep) = flash_and_beep(13.0);
    let (flash, beep) = (flash.replace(":d=3", ":d=14"), beep.replace(":d=3", ":d=14"));
    let sparse = "-vf select='lt(t,0.5)+gt(t,12.5)' -fps_mode vfr";
    let silent = "-af aselect='lt(t,0.5)+gt(t,12.5)'";
    let coded = "-c:v libx264 -preset ultrafast -bf 2 -pix_fmt yuv420p -c:a aac";
    for name in ["pause.flv", "pause.ts", "pause.mkv"] {
        for pause in [sparse, silent] {
            check_moments(&make(name, &format!("{flash} {beep} {pause} {coded}")), 13.0, 13.0);
        }
    }
}

#[test]
fn sound_that_ends_early_leaves_the_picture_whole() {
    let short = TONE.replace("duration=2", "duration=1");
    let fitted =
        fit(&make("short.mkv", &format!("{PICTURE} {short} -c:v mpeg4 -c:a libmp3lame")), within(MIB));
    near("length", fitted.report().duration.as_secs_f64(), 2.0, FRAME);
    assert_eq!(fitted.report().frames, 60);
}

/// A part that begins between two pictures once lost the one on the screen, or was refused as damaged when no
/// other came.
#[test]
fn the_picture_on_the_screen_opens_a_part() {
    // One slide every five seconds.
    let source = make("slides.mp4", "-f lavfi -i testsrc2=s=160x90:r=1/5 -t 30 -c:v mpeg4 -q:v 3");
    let part = |start: f64, end: f64| {
        let request = within(MIB).start(Duration::from_secs_f64(start)).end(Duration::from_secs_f64(end));
        picture_times(fit(&source, request).bytes())
    };
    assert_eq!(part(11.0, 14.0), [0.0]);
    let times = part(12.0, 18.0);
    assert_eq!(times.len(), 2, "{times:?}");
    near("the next slide", times[1], 3.0, 0.01);
}
