//! Long tracks are encoded in segments; what comes out is as if they had not been.

use std::time::Duration;

use azalea_engine::{Bytes, Engine, Fit, Preset, Source};

use crate::support::clips::{TONE, make};
use crate::support::look::{Facts, Pictures, assert_decodes, picture_times};
use crate::support::{KIB, fit, near, within};

/// Fourteen seconds whose pictures all differ in brightness from their neighbours on the left, and cost bytes on
/// the right, with a cut after 7 s.
const NUMBERED: &str = "-f lavfi -i color=black:s=256x216:r=30:d=14,format=yuv420p,\
    geq=lum='if(lt(X,218),40+mod(N*23,170),100+80*random(0))':cb='128+50*gt(T,7)':cr=128";

/// Every picture of `source` is in the result, at its time and with its brightness.
#[track_caller]
fn check_pictures(what: &str, source: &Bytes, request: Fit, skip: f64, every: usize) {
    let engine = Engine::builder().threads(8).build().unwrap();
    let fitted = engine.try_submit(Source::bytes(source.clone()), request).unwrap().wait().unwrap();
    assert_eq!(fitted.report().warnings, [], "{what}");
    Facts::of(fitted.bytes()).assert_plays_inline();
    assert_decodes(fitted.bytes());
    let (before, after) = (Pictures::of(source), Pictures::of(fitted.bytes()));
    let (source_times, times) = (picture_times(source), picture_times(fitted.bytes()));
    let first = source_times.iter().position(|time| *time >= skip - 0.001).unwrap();
    let expected: Vec<usize> = (first..source_times.len()).step_by(every).collect();
    assert_eq!(times.len(), expected.len(), "{what}");
    for (number, (time, source_number)) in times.iter().zip(expected).enumerate() {
        near(what, *time, source_times[source_number] - source_times[first], 0.002);
        let found = f64::from(after.colour_in(number, 0.25, 0.5)[1]);
        near(what, found, f64::from(before.colour_in(source_number, 0.25, 0.5)[1]), 8.0);
    }
}

#[test]
fn pictures_before_an_open_key_frame_are_no_damage() {
    // They refer to the group before, cannot be decoded from the key frame on, and belong to the other segment.
    let source = make(
        "open.mp4",
        &format!(
            "{NUMBERED} -c:v libx264 -preset veryfast -pix_fmt yuv420p \
             -x264-params open-gop=1:keyint=60:bframes=5:b-adapt=0"
        ),
    );
    let engine = Engine::builder().threads(2).build().unwrap();
    let fitted = engine.try_submit(Source::bytes(source.clone()), half(&source)).unwrap().wait().unwrap();
    let report = fitted.report();
    // Were it taken for damage, all would be encoded again by one running decoder.
    assert!(report.frames_redone < 210, "{} of {}", report.frames_redone, report.frames);
}

#[test]
fn a_damaged_track_of_one_segment_is_not_encoded_twice_for_it() {
    let whole = make(
        "short.mkv",
        "-f lavfi -i testsrc2=s=320x180:r=30:d=7,noise=alls=30 -c:v libx264 -preset ultrafast -crf 20",
    );
    let mut broken = whole.to_vec();
    let middle = broken.len() / 2;
    broken[middle..middle + 20_000].iter_mut().step_by(50).for_each(|byte| *byte ^= 0xFF);
    let engine = Engine::builder().threads(2).build().unwrap();
    let request = within(u64::try_from(broken.len()).unwrap() / 3);
    let fitted = engine.try_submit(Source::bytes(broken), request).unwrap().wait().unwrap();
    let report = fitted.report();
    assert!(!report.warnings.is_empty(), "it is damaged");
    assert!(report.frames_redone < report.frames / 2, "{} of {}", report.frames_redone, report.frames);
}

/// Half of the source's bytes: it has to be encoded, and need not be made much smaller.
fn half(source: &Bytes) -> Fit {
    within(u64::try_from(source.len()).unwrap() / 2)
}

#[test]
fn no_picture_is_lost_or_doubled_at_a_join() {
    for (what, words) in [
        ("key frames at every second", "-c:v libx264 -preset ultrafast -g 30 -bf 0"),
        ("scene cuts alone", "-c:v libx264 -preset veryfast -g 250 -sc_threshold 40"),
        (
            "open groups of pictures",
            "-c:v libx264 -preset veryfast -x264-params open-gop=1:keyint=60:bframes=5:b-adapt=0",
        ),
        ("one key frame", "-c:v libx264 -preset ultrafast -g 9999 -sc_threshold 0"),
        ("no index", "-c:v libx264 -preset ultrafast -g 60 -f mpegts"),
        ("Matroska", "-c:v libx264 -preset veryfast -g 60 -bf 3 -f matroska"),
        ("fragments", "-c:v libx264 -preset veryfast -g 60 -movflags frag_keyframe+empty_moov -f mp4"),
        ("VP9", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 60 -b:v 400k -f webm"),
        ("MPEG-2 with B-frames", "-c:v mpeg2video -q:v 2 -bf 2 -g 15 -f matroska"),
    ] {
        let source = make("numbered.mp4", &format!("{NUMBERED} {words} -pix_fmt yuv420p"));
        check_pictures(what, &source, half(&source), 0.0, 1);
    }
}

#[test]
fn a_part_keeps_its_pictures_over_joins() {
    let source =
        make("numbered.mp4", &format!("{NUMBERED} -c:v libx264 -preset veryfast -g 45 -pix_fmt yuv420p"));
    check_pictures("from 1.5 s on", &source, half(&source).start(Duration::from_millis(1500)), 1.5, 1);
}

#[test]
fn uneven_pictures_keep_their_times_over_joins() {
    let uneven = "-vf select='not(mod(n,3))+lt(mod(n,40),9)' -fps_mode vfr";
    let source = make(
        "uneven.mp4",
        &format!("{NUMBERED} {uneven} -c:v libx264 -preset veryfast -g 45 -pix_fmt yuv420p"),
    );
    check_pictures("uneven", &source, half(&source), 0.0, 1);
}

#[test]
fn a_halved_rate_keeps_every_second_picture_over_joins() {
    let numbered = NUMBERED.replace("r=30:d=14", "r=120:d=13");
    for group in [47, 60] {
        let words = format!("-c:v libx264 -preset ultrafast -g {group} -keyint_min {group} -pix_fmt yuv420p");
        let source = make("fast.mp4", &format!("{numbered} {words}"));
        check_pictures("120 a second", &source, half(&source), 0.0, 2);
    }
}

#[test]
fn sound_stays_with_long_pictures() {
    let tone = TONE.replace("duration=2", "duration=14");
    let source = make(
        "both.mkv",
        &format!("{NUMBERED} {tone} -c:v libx264 -preset veryfast -g 60 -c:a aac -pix_fmt yuv420p"),
    );
    let fitted = fit(&source, half(&source));
    let facts = Facts::of(fitted.bytes());
    near("length", facts.seconds(), 14.0, 0.05);
    assert_eq!(picture_times(fitted.bytes()).len(), 420);
}

#[test]
fn the_last_picture_is_shown_as_long_as_before_where_decoding_begins_ahead() {
    let source =
        make("ahead.mp4", &format!("{NUMBERED} -c:v libx264 -preset veryfast -bf 3 -pix_fmt yuv420p"));
    let fitted = fit(&source, half(&source));
    near("length", fitted.report().duration.as_secs_f64(), 14.0, 0.001);
    near("length of the file", Facts::of(fitted.bytes()).seconds(), 14.0, 0.001);
}

#[test]
fn segments_that_begin_again_are_counted_once() {
    // Twenty seconds that cost nothing and ten that cost all: encodes are given up at every moment.
    let words = "-f lavfi -i color=gray:s=426x240:r=30:d=30,noise=alls=90:allf=t:all_seed=3:enable='gte(t,20)' \
                 -c:v libx264 -preset veryfast -crf 16 -g 60 -pix_fmt yuv420p";
    let source = make("easy-hard.mp4", words);
    let fitted = fit(&source, within(700 * KIB).preset(Preset::Best));
    assert!(fitted.report().fill() > 0.9, "{:?}", fitted.report());
    assert_decodes(fitted.bytes());
}
