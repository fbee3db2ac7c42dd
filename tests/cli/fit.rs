//! `azalea fit` on real media.

use std::fs;

use crate::support::Place;

/// An mp4 begins with its file type box.
#[track_caller]
fn assert_is_mp4(bytes: &[u8], limit: usize) {
    assert_eq!(bytes.get(4..8), Some(&b"ftyp"[..]));
    assert!(bytes.len() <= limit, "{} > {limit}", bytes.len());
}

#[test]
fn a_result_stands_beside_its_input_and_within_the_limit() {
    let place = Place::new();
    place.old_clip("in.avi");
    let run = place.run(["fit", "in.avi", "--limit", "200KiB"]).succeeds();
    assert_is_mp4(&place.read("in.fit.mp4"), 200 << 10);
    assert_eq!(place.names(), ["in.avi", "in.fit.mp4"]);
    let line = run.text();
    assert!(line.starts_with("in.avi → in.fit.mp4  "), "{line}");
    assert!(line.contains(" of 200 KiB  ") && line.contains("  transcode  "), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
}

#[test]
fn the_report_has_every_promised_field() {
    let place = Place::new();
    place.old_clip("in.avi");
    let report = place.run(["fit", "in.avi", "-o", "out.mp4", "--json"]).succeeds().object();
    for field in [
        "input",
        "output",
        "action",
        "bytes",
        "limit",
        "fill",
        "width",
        "height",
        "fps",
        "duration",
        "video_kbps",
        "audio_kbps",
        "preset",
        "frames",
        "frames_redone",
        "warnings",
        "wall_seconds",
        "cpu_seconds",
        "kind",
        "crf",
        "input_bytes",
        "stages",
    ] {
        assert!(report.get(field).is_some(), "{field} in {report}");
    }
    assert_eq!(report["input"], "in.avi");
    assert_eq!(report["output"], "out.mp4");
    assert_eq!(report["action"], "transcode");
    assert_eq!(report["limit"], 10 << 20);
    assert_eq!(report["bytes"], place.read("out.mp4").len());
    assert_eq!(report["input_bytes"], place.read("in.avi").len());
    assert_eq!((&report["width"], &report["height"]), (&640.into(), &360.into()));
    assert_eq!(report["preset"], "balanced");
    let near = |field: &str, value: f64, off: f64| (report[field].as_f64().unwrap() - value).abs() <= off;
    assert!(near("fps", 30.0, 0.1) && near("duration", 2.0, 0.2) && near("frames", 60.0, 2.0), "{report}");
    for stage in ["probe", "verify", "audio", "video", "mux"] {
        assert!(report["stages"][stage].is_f64(), "{stage} in {report}");
    }
}

#[test]
fn what_plays_already_is_passed_or_put_into_a_new_container() {
    let place = Place::new();
    place.clip("in.mp4");
    let report = place.run(["fit", "in.mp4", "--json"]).succeeds().object();
    assert!(report["action"] == "pass" || report["action"] == "remux", "{report}");
    assert!(report["preset"].is_null() && report["crf"].is_null(), "{report}");
}

#[test]
fn a_part_can_be_cut_out() {
    let place = Place::new();
    place.old_clip("in.avi");
    let report =
        place.run(["fit", "in.avi", "--start", "500ms", "--end", "0:01.5", "--json"]).succeeds().object();
    assert!((report["duration"].as_f64().unwrap() - 1.0).abs() < 0.15, "{report}");
}

#[test]
fn the_sound_alone_becomes_an_m4a() {
    let place = Place::new();
    place.old_clip("in.avi");
    let report = place.run(["fit", "in.avi", "--audio-only", "--json"]).succeeds().object();
    assert_eq!(report["kind"], "m4a");
    assert!(report["width"].is_null() && report["video_kbps"].is_null(), "{report}");
    assert_eq!(place.names(), ["in.avi", "in.fit.m4a"]);
}

#[test]
fn an_output_name_is_kept_to_the_letter() {
    let place = Place::new();
    place.old_clip("in.avi");
    place.run(["fit", "in.avi", "--audio-only", "-o", "out.mp4"]).succeeds();
    assert_eq!(place.names(), ["in.avi", "out.mp4"]);
}

#[test]
fn a_result_may_replace_its_own_input() {
    let place = Place::new();
    place.old_clip("in.avi");
    place.run(["fit", "in.avi", "-o", "in.avi"]).succeeds();
    assert_is_mp4(&place.read("in.avi"), 10 << 20);
    assert_eq!(place.names(), ["in.avi"]);
}

#[test]
fn several_inputs_go_into_a_folder_without_meeting() {
    let place = Place::new();
    fs::create_dir(place.path("a")).unwrap();
    fs::create_dir(place.path("b")).unwrap();
    place.clip("a/clip.mp4");
    place.old_clip("b/clip.avi");
    place.clip("other.mp4");
    let inputs = ["a/clip.mp4", "b/clip.avi", "other.mp4"];
    let reports = place.run(["fit", "--json", "-o", "out"].iter().chain(&inputs)).succeeds().objects();
    let told: Vec<_> = reports.iter().map(|report| report["input"].as_str().unwrap()).collect();
    assert_eq!(told, inputs);
    assert_eq!(place.names_in("out"), ["clip-2.mp4", "clip.mp4", "other.mp4"]);
    assert_eq!(place.names_in("a"), ["clip.mp4"]);
}

#[test]
fn a_folder_of_inputs_is_never_written_over() {
    let place = Place::new();
    place.clip("in.mp4");
    let before = place.read("in.mp4");
    place.run(["fit", "in.mp4", "-o", "."]).succeeds();
    assert_eq!(place.names(), ["in.fit.mp4", "in.mp4"]);
    assert_eq!(place.read("in.mp4"), before);
}

#[test]
fn the_standard_streams_are_a_file_each() {
    let place = Place::new();
    place.old_clip("in.avi");
    let run = place.run_with(["fit", "-", "-o", "-"], "in.avi").succeeds();
    assert_is_mp4(&run.stdout, 10 << 20);
    assert_eq!(place.names(), ["in.avi"]);
    let report = place.run_with(["fit", "-", "-o", "out.mp4", "--json"], "in.avi").succeeds().object();
    assert_eq!(report["input"], "-");
    assert_eq!(report["bytes"], place.read("out.mp4").len());
}

#[test]
fn any_name_is_a_name() {
    let place = Place::new();
    let name = "clip: part 1 – été 🎬 100%d (1).mp4";
    place.clip(name);
    place.run(["fit", name]).succeeds();
    assert!(place.path("clip: part 1 – été 🎬 100%d (1).fit.mp4").is_file(), "{:?}", place.names());
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_need_not_be_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let place = Place::new();
    let (input, output) = (OsStr::from_bytes(b"in\xff\n.mp4"), OsStr::from_bytes(b"out\xfe.mp4"));
    place.clip(input);
    let run = place.run([OsStr::new("fit"), input, OsStr::new("-o"), output]).succeeds();
    assert_is_mp4(&place.read(output), 10 << 20);
    assert_eq!(run.text().lines().count(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_link_stays_and_a_device_is_not_replaced() {
    use std::os::unix::fs::{FileTypeExt, symlink};

    let place = Place::new();
    place.old_clip("in.avi");
    place.write("target.mp4", b"old");
    symlink("target.mp4", place.path("link.mp4")).unwrap();
    place.run(["fit", "in.avi", "-o", "link.mp4"]).succeeds();
    assert!(place.path("link.mp4").is_symlink());
    symlink("not-yet.mp4", place.path("ahead.mp4")).unwrap();
    place.run(["fit", "in.avi", "-o", "ahead.mp4"]).succeeds();
    assert!(place.path("ahead.mp4").is_symlink() && !place.path("not-yet.mp4").is_symlink());
    assert_is_mp4(&place.read("target.mp4"), 10 << 20);
    place.run(["fit", "in.avi", "-o", "/dev/null"]).succeeds();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}
