//! `probe`, `doctor`, `completions` and `--version`.

use std::io::Write;

use crate::support::Place;

#[test]
fn the_long_version_tells_what_is_linked() {
    let place = Place::new();
    let text = place.run(["--version"]).succeeds().text();
    assert!(text.starts_with(concat!("azalea ", env!("CARGO_PKG_VERSION"), "\nrevision ")), "{text}");
    for part in ["\nlibav from FFmpeg ", "\n  libavcodec ", "\n  libavformat ", "\nx264 present"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let short = place.run(["-V"]).succeeds().text();
    assert_eq!(short, concat!("azalea ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn completions_name_the_commands() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.run(["completions", shell]).succeeds().text();
        assert!(script.contains("doctor") && script.contains("audio-only"), "{shell}: {script}");
    }
}

#[test]
fn the_doctor_finds_this_machine_healthy() {
    let place = Place::new();
    let run = place.run(["doctor", "--json"]).succeeds();
    let report = run.object();
    assert_eq!(report["healthy"], true, "{report}");
    assert_eq!(report["x264"], true, "{report}");
    assert!(report["libraries"]["libavcodec"].is_string(), "{report}");
    assert!(report["checks"].as_array().unwrap().iter().all(|check| check["state"] != "fail"), "{report}");
    let text = place.run(["doctor"]).succeeds().text();
    assert!(text.lines().all(|line| line.starts_with("ok ") || line.starts_with("warn ")), "{text}");
    assert!(text.contains("licence"), "{text}");
    assert!(place.names().is_empty());
}

#[test]
fn the_doctor_answers_json_whatever_he_finds() {
    let run = Place::new().run(["doctor", "--json"]);
    let report = run.object();
    assert_eq!(run.code, Some(if report["healthy"] == true { 0 } else { 1 }));
    assert_eq!(run.stderr, "");
    for field in
        ["version", "revision", "rustc", "target", "ffmpeg", "license", "demuxers", "decoders", "encoders"]
    {
        assert!(report.get(field).is_some(), "{field} in {report}");
    }
}

#[test]
fn a_probe_tells_the_facts() {
    let place = Place::new();
    place.clip("in.mp4");
    let info = place.run(["probe", "in.mp4", "--json"]).succeeds().object();
    assert_eq!((&info["container"], &info["kind"]), (&"mp4".into(), &"video".into()));
    assert_eq!(info["bytes"], place.read("in.mp4").len());
    assert_eq!(info["video"]["codec"], "h264");
    assert_eq!(info["video"]["display"]["width"], 320);
    assert_eq!(info["video"]["frame_rate"], "30/1");
    assert_eq!(info["audio"]["codec"], "aac");
    assert_eq!(info["audio"]["channels"], 1);
    // ffmpeg puts the index at the end unless told otherwise.
    assert_eq!(info["plays_inline"], false);
    assert_eq!(info["hindrances"].as_array().map(Vec::len), Some(1), "{info}");
    let text = place.run(["probe", "in.mp4"]).succeeds().text();
    assert!(text.contains("h264, profile ") && text.contains("320x180, 30 fps"), "{text}");
    assert!(text.contains("does not play as it is"), "{text}");
}

#[test]
fn a_reader_who_leaves_is_no_error() {
    let place = Place::new();
    place.clip("in.mp4");
    let mut child = place.start(["probe", "-"]);
    // The program cannot answer before its input ends, so the pipe is closed when it does.
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(&place.read("in.mp4")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
