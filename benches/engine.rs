//! The engine in this process beside the `ffmpeg` and `ffprobe` programs, on the same files in the same run.
#![forbid(unsafe_code)]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a bench that cannot run has no other answer")]
#![allow(missing_docs, reason = "criterion's macros make public functions without documentation")]

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use azalea_engine::{Action, ByteSize, Engine, Fit, Limits, Preset, Source, Verify};
use criterion::{Criterion, criterion_group, criterion_main};

/// Runs a program to its end; its failure is the bench's.
fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .unwrap_or_else(|error| panic!("{program} is needed beside the engine: {error}"));
    assert!(status.success(), "{program} {arguments:?} failed");
}

/// A clip that is made once, in the target folder.
fn clip(name: &str, arguments: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(name);
    if !path.exists() {
        let unfinished = folder.join(format!("unfinished-{name}"));
        let mut all = vec!["-nostdin", "-v", "error", "-y"];
        all.extend(arguments);
        let out = unfinished.to_string_lossy();
        all.push(&out);
        run("ffmpeg", &all);
        std::fs::rename(&unfinished, &path).unwrap();
    }
    path
}

/// Moving test card with noise and a tone, as H.264 and AAC.
fn card(name: &str, size: &str, seconds: &str, crf: &str, extra: &[&str]) -> PathBuf {
    let video = format!("testsrc2=s={size}:r=30:d={seconds},noise=alls=12:allf=t:all_seed=7");
    let audio = format!("sine=f=300:r=48000:d={seconds}");
    let mut arguments = vec!["-f", "lavfi", "-i", &video, "-f", "lavfi", "-i", &audio, "-c:v", "libx264"];
    arguments
        .extend(["-preset", "veryfast", "-crf", crf, "-pix_fmt", "yuv420p", "-c:a", "aac", "-b:a", "96k"]);
    arguments.extend(extra);
    clip(name, &arguments)
}

/// The same card as VP8 and Opus, which mp4 does not carry.
fn webm() -> PathBuf {
    let video = "testsrc2=s=640x360:r=30:d=6,noise=alls=12:allf=t:all_seed=7";
    let mut arguments = vec!["-f", "lavfi", "-i", video, "-f", "lavfi", "-i", "sine=f=300:r=48000:d=6"];
    arguments.extend(["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "1M"]);
    arguments.extend(["-pix_fmt", "yuv420p", "-c:a", "libopus", "-b:a", "96k"]);
    clip("360p.webm", &arguments)
}

/// Where results go: into memory where the system has a place for that, so that the disk does not decide.
fn results() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory } else { Path::new(env!("CARGO_TARGET_TMPDIR")) };
    let folder = base.join(format!("azalea-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn engine() -> Engine {
    Engine::builder().build().unwrap()
}

fn probe(criterion: &mut Criterion) {
    let engine = engine();
    let files = [
        ("176x144 mp4", card("small.mp4", "176x144", "3", "28", &[])),
        ("720p mp4", card("720p.mp4", "1280x720", "10", "28", &[])),
        ("1080p mp4", card("1080p.mp4", "1920x1080", "10", "28", &[])),
        ("720p mkv", card("720p.mkv", "1280x720", "10", "28", &[])),
        ("360p webm", webm()),
    ];
    for (name, path) in files {
        let text = path.to_string_lossy().into_owned();
        let mut group = criterion.benchmark_group(format!("probe {name}"));
        group.bench_function("azalea", |bencher| {
            bencher.iter(|| engine.probe(Source::path(&path), &Limits::default()).unwrap());
        });
        group.bench_function("ffprobe", |bencher| {
            bencher.iter(|| {
                run("ffprobe", &["-v", "error", "-show_format", "-show_streams", "-of", "json", &text]);
            });
        });
        group.finish();
    }
}

/// The program's way to a new container: streams kept, metadata dropped, index first.
fn copy(from: &str, to: &str) {
    let mut arguments =
        vec!["-nostdin", "-v", "error", "-y", "-i", from, "-c", "copy", "-map_metadata", "-1"];
    arguments.extend(["-movflags", "+faststart", "-f", "mp4", to]);
    run("ffmpeg", &arguments);
}

fn remux(criterion: &mut Criterion) {
    let engine = engine();
    let files = [
        ("4 MB", card("index-last.mp4", "640x360", "6", "23", &["-movflags", "-faststart"])),
        ("10 MB", card("index-last-large.mp4", "1280x720", "10", "25", &["-movflags", "-faststart"])),
    ];
    let folder = results();
    let out = folder.join("remuxed.mp4");
    let out_text = out.to_string_lossy().into_owned();
    for (name, path) in files {
        let text = path.to_string_lossy().into_owned();
        let mut group = criterion.benchmark_group(format!("remux {name}"));
        for (row, verify) in
            [("azalea, trusted source", Verify::Container), ("azalea, decoded first", Verify::Decode)]
        {
            group.bench_function(row, |bencher| {
                bencher.iter(|| {
                    let fit = Fit::within(ByteSize::mebibytes(100)).verify(verify);
                    let fitted = engine.try_submit(Source::path(&path), fit).unwrap().wait().unwrap();
                    assert_eq!(fitted.report().action, Action::Remux);
                    fitted.write_to(&out).unwrap();
                });
            });
        }
        group.bench_function("ffmpeg -c copy", |bencher| {
            bencher.iter(|| copy(&text, &out_text));
        });
        group.finish();
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// A file that is fine already: nothing to do but to see that it is.
fn pass(criterion: &mut Criterion) {
    let engine = engine();
    let path =
        card("index-first.mp4", "1280x720", "10", "25", &["-map_metadata", "-1", "-movflags", "+faststart"]);
    let (folder, text) = (results(), path.to_string_lossy().into_owned());
    let out = folder.join("passed.mp4");
    let out_text = out.to_string_lossy().into_owned();
    let mut group = criterion.benchmark_group("pass 10 MB");
    for (row, verify) in
        [("azalea, trusted source", Verify::Container), ("azalea, decoded first", Verify::Decode)]
    {
        group.bench_function(row, |bencher| {
            bencher.iter(|| {
                let fit = Fit::within(ByteSize::mebibytes(100)).verify(verify);
                let fitted = engine.try_submit(Source::path(&path), fit).unwrap().wait().unwrap();
                assert_eq!(fitted.report().action, Action::Pass);
                fitted.write_to(&out).unwrap();
            });
        });
    }
    // What "decoded first" costs the program on the same file.
    group.bench_function("ffmpeg, decoding to nothing", |bencher| {
        bencher.iter(|| run("ffmpeg", &["-nostdin", "-v", "error", "-i", &text, "-f", "null", "-"]));
    });
    group.bench_function("ffmpeg -c copy", |bencher| {
        bencher.iter(|| copy(&text, &out_text));
    });
    group.finish();
    std::fs::remove_dir_all(folder).unwrap();
}

/// What the program is told in its two passes, learnt from the engine's result.
struct Told {
    size: String,
    rate: String,
}

/// Four seconds of 720p into 512 KiB, against two passes of the program with the same x264 preset, size and sound.
/// The program is told the bit rate that the engine ended with; it may miss the limit, and is not asked to try
/// again.
fn fit(criterion: &mut Criterion) {
    let engine = engine();
    let path = card("720p-short.mp4", "1280x720", "4", "28", &[]);
    let (folder, text) = (results(), path.to_string_lossy().into_owned());
    let out = folder.join("fitted.mp4");
    let (log_text, out_text) =
        (folder.join("passes").to_string_lossy().into_owned(), out.to_string_lossy().into_owned());
    let make = || {
        let request = Fit::within(ByteSize::new(512 * 1024)).preset(Preset::Balanced);
        let fitted = engine.try_submit(Source::path(&path), request).unwrap().wait().unwrap();
        fitted.write_to(&out).unwrap();
        let report = fitted.report();
        Told {
            size: report.dimensions.map(|size| format!("scale={}:{}", size.width, size.height)).unwrap(),
            rate: report.video_rate.map(|rate| rate.get().to_string()).unwrap(),
        }
    };
    let told = OnceCell::new();
    let mut group = criterion.benchmark_group("fit 4 s of 720p into 512 KiB");
    group.sample_size(10).warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_secs(10));
    group.bench_function("azalea", |bencher| {
        bencher.iter(|| {
            let made = make();
            told.get_or_init(|| made);
        });
    });
    group.bench_function("ffmpeg, two passes", |bencher| {
        let Told { size, rate } = told.get_or_init(make);
        bencher.iter(|| {
            for pass in ["1", "2"] {
                let mut arguments =
                    vec!["-nostdin", "-v", "error", "-y", "-i", &text, "-vf", size, "-c:v", "libx264"];
                arguments.extend(["-preset", "fast", "-b:v", rate, "-pass", pass, "-passlogfile", &log_text]);
                if pass == "1" {
                    arguments.extend(["-an", "-f", "null", "-"]);
                } else {
                    arguments.extend(["-c:a", "aac", "-b:a", "96k", "-movflags", "+faststart", &out_text]);
                }
                run("ffmpeg", &arguments);
            }
        });
    });
    group.finish();
    std::fs::remove_dir_all(folder).unwrap();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(12)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    targets = probe, remux, pass, fit
}
criterion_main!(benches);
