//! A result in words: one line for people, one JSON object for programs.

use std::path::Path;
use std::time::Duration;

use azalea_engine::{BitRate, ByteSize, Preset, Report};
use serde_json::{Value, json};

use crate::exit;
use crate::terminal;

/// One line for people.
pub(super) fn line(input: &Path, output: &Path, report: &Report) -> String {
    let mut line = format!("{} → {}", terminal::path(input), terminal::path(output));
    line.push_str(&format!("  {} of {}", report.bytes, report.limit));
    let picture = [report.dimensions.map(|d| d.to_string()), report.frame_rate.map(|rate| rate.to_string())];
    let picture: Vec<String> = picture.into_iter().flatten().collect();
    if !picture.is_empty() {
        line.push_str(&format!("  {}", picture.join(" ")));
    }
    line.push_str(&format!("  {}  {}", report.action.name(), terminal::clock(report.wall)));
    line
}

/// One JSON object. Its names are a promise to programs; sizes are bytes, times seconds, rates kbit/s.
pub(super) fn object(input: &Path, output: &Path, report: &Report) -> Value {
    let stages = &report.stages;
    json!({
        "input": input.to_string_lossy(),
        "output": output.to_string_lossy(),
        "action": report.action.name(),
        "kind": report.kind.extension(),
        "bytes": report.bytes.get(),
        "limit": report.limit.get(),
        "fill": rounded(report.fill()),
        "input_bytes": report.input_bytes.get(),
        "width": report.dimensions.map(|d| d.width),
        "height": report.dimensions.map(|d| d.height),
        "fps": report.frame_rate.map(|rate| rounded(rate.as_f64())),
        "duration": seconds(report.duration),
        "video_kbps": report.video_rate.map(BitRate::as_kilobits),
        "audio_kbps": report.audio_rate.map(BitRate::as_kilobits),
        "preset": report.preset.map(Preset::name),
        "crf": report.crf.map(rounded),
        "frames": report.frames,
        "frames_redone": report.frames_redone,
        "frames_probed": report.frames_probed,
        "repairs": report.repairs,
        "video_bytes": report.video_bytes.get(),
        "predicted_video_bytes": report.predicted_video.map(ByteSize::get),
        "warnings": report.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "wall_seconds": seconds(report.wall),
        "cpu_seconds": seconds(report.cpu),
        "stages": {
            "probe": seconds(stages.probe),
            "verify": seconds(stages.verify),
            "audio": seconds(stages.audio),
            "plan": seconds(stages.plan),
            "video": seconds(stages.video),
            "decode": seconds(stages.decode),
            "scale": seconds(stages.scale),
            "encode": seconds(stages.encode),
            "mux": seconds(stages.mux),
        },
    })
}

/// The JSON object of an input that gave no result.
pub(super) fn failure(input: &Path, error: &anyhow::Error) -> Value {
    json!({ "input": input.to_string_lossy(), "error": exit::object(error) })
}

fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e6
}

fn rounded(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}
