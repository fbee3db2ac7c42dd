//! What people do without us: download the file, let `ffmpeg` make two passes, copy the result to its place.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use azalea_engine::{Engine, Limits, MediaInfo, Source};

use crate::clip::ffmpeg;

/// What `engine/src/libav/encoder.rs` gives libx264 for `balanced`, as in `versus/x264.py`.
const X264: [&str; 8] = [
    "-c:v",
    "libx264",
    "-preset",
    "medium",
    "-x264-params",
    "psy-rd=0.4,0:aq-mode=2:aq-strength=0.8:bframes=5:subme=8:trellis=2:ref=2:mixed-refs=0:weightp=1:\
     partitions=i8x8,i4x4",
    "-profile:v",
    "high",
];
/// Most seconds and most frames from one key frame to the next, as in the engine.
const KEY_SECONDS: f64 = 8.0;
const MOST_KEY_FRAMES: f64 = 600.0;

/// What `ffmpeg` is told so that it makes what we made: learnt from a result of ours.
#[derive(Debug)]
pub(crate) struct Told {
    filters: String,
    key_interval: String,
    video_rate: String,
    sound: Vec<String>,
    /// The result in words.
    pub(crate) words: String,
}

impl Told {
    /// Compares our result with what it was made from.
    pub(crate) fn of(source: &Path, result: &Path) -> Self {
        let engine = Engine::builder().threads(1).build().unwrap();
        let probe = |path: &Path| engine.probe(Source::path(path), &Limits::default()).unwrap();
        let (before, after) = (probe(source), probe(result));
        let (size, rate) = (after.video.as_ref().unwrap().coded, frame_rate(&after));
        let step = (frame_rate(&before) / rate).round().max(1.0);
        let kept = if step > 1.0 { format!("framestep={step},") } else { String::new() };
        let seconds = before.duration.unwrap().as_secs_f64();
        let video_rate = stream_bytes(result, "v:0") * 8.0 / seconds;
        let (sound, sound_words) = sound(&after, stream_bytes(result, "a:0") / stream_bytes(source, "a:0"));
        Self {
            filters: format!("{kept}scale={}:{}:flags=bicubic,format=yuv420p", size.width, size.height),
            key_interval: format!("{:.0}", (rate * KEY_SECONDS).round().min(MOST_KEY_FRAMES)),
            video_rate: format!("{video_rate:.0}"),
            sound,
            words: format!(
                "{}x{} at {rate:.2}, {:.0} kbit/s, {sound_words}",
                size.width,
                size.height,
                video_rate / 1e3
            ),
        }
    }
}

fn frame_rate(info: &MediaInfo) -> f64 {
    info.video.as_ref().and_then(|video| video.frame_rate).unwrap().as_f64()
}

/// Bytes of all packets of a stream.
fn stream_bytes(path: &Path, stream: &str) -> f64 {
    let out = Command::new("ffprobe")
        .args(["-v", "error", "-select_streams", stream, "-show_entries", "packet=size", "-of", "csv=p=0"])
        .arg(path)
        .output()
        .unwrap_or_else(|error| panic!("the ffprobe program is needed: {error}"));
    assert!(out.status.success(), "ffprobe failed at {}", path.display());
    let text = String::from_utf8(out.stdout).unwrap();
    // What is attached to a packet gets a line of its own, which is empty.
    let sizes = text.lines().map(|line| line.trim_end_matches(',')).filter(|line| !line.is_empty());
    sizes.map(|size| size.parse::<f64>().unwrap()).sum()
}

/// The sound is copied where ours is a copy, else encoded at the rate of ours. `share` is how much of it is left.
fn sound(result: &MediaInfo, share: f64) -> (Vec<String>, String) {
    // The ends of a track may lack a packet.
    if (share - 1.0).abs() < 0.01 {
        return (["-c:a", "copy"].map(str::to_owned).into(), "sound kept".to_owned());
    }
    let track = result.audio.as_ref().unwrap();
    let rate = track.bit_rate.unwrap();
    let told = ["-c:a", "aac", "-b:a", &rate.get().to_string(), "-ac", &track.channels.to_string(), "-ar"];
    let mut told: Vec<String> = told.map(str::to_owned).into();
    told.push(track.sample_rate.to_string());
    (told, format!("sound at {} kbit/s", rate.as_kilobits()))
}

/// How long each step took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    pub(crate) download: Duration,
    pub(crate) passes: Duration,
    pub(crate) copy: Duration,
    /// Bytes of the result, which may be above the limit: nobody asked `ffmpeg` to keep it.
    pub(crate) bytes: u64,
}

impl Steps {
    /// All of them, one after the other.
    pub(crate) fn sum(self) -> Duration {
        self.download + self.passes + self.copy
    }
}

/// Does it, in this folder.
pub(crate) fn run(url: &str, told: &Told, folder: &Path) -> Steps {
    let [source, made, place] = ["source.mp4", "made.mp4", "place.mp4"].map(|name| folder.join(name));
    let begun = Instant::now();
    download(url, &source);
    let downloaded = begun.elapsed();
    two_passes(&source, told, &made);
    let encoded = begun.elapsed();
    let bytes = std::fs::copy(&made, &place).unwrap();
    let copied = begun.elapsed();
    Steps { download: downloaded, passes: encoded - downloaded, copy: copied - encoded, bytes }
}

fn two_passes(source: &Path, told: &Told, made: &Path) {
    let (source, log) = (source.to_string_lossy(), made.with_extension("passes"));
    let (log, made) = (log.to_string_lossy(), made.to_string_lossy());
    for pass in ["1", "2"] {
        let mut words = vec!["-i", &source, "-map", "0:v:0", "-vf", &told.filters];
        words.extend(X264);
        words.extend([
            "-g",
            &told.key_interval,
            "-b:v",
            &told.video_rate,
            "-pass",
            pass,
            "-passlogfile",
            &log,
        ]);
        if pass == "1" {
            // Into mp4 as well, so that both passes see the same frames.
            words.extend(["-an", "-f", "mp4", "/dev/null"]);
        } else {
            words.extend(["-map", "0:a:0"]);
            words.extend(told.sound.iter().map(String::as_str));
            words.extend(["-map_metadata", "-1", "-movflags", "+faststart", "-f", "mp4", &made]);
        }
        ffmpeg(&words);
    }
}

/// Writes what the URL gives to a file, as it comes.
fn download(url: &str, to: &Path) {
    let mut file = std::fs::File::create(to).unwrap();
    let (mut body, length) = get(url);
    assert_eq!(std::io::copy(&mut body, &mut file).unwrap(), length, "the download was cut");
}

/// Where a post's video is.
pub(crate) fn media_url(base: &str) -> String {
    let (body, _) = get(&format!("{base}/ann/status/20"));
    let post: serde_json::Value = serde_json::from_reader(body).unwrap();
    post["media_extended"][0]["url"].as_str().unwrap().to_owned()
}

/// The body of what an http URL gives, and its length. The server closes the connection behind it.
fn get(url: &str) -> (BufReader<TcpStream>, u64) {
    let (host, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = BufReader::new(stream);
    let mut line = String::new();
    answer.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 200 "), "{url}: {line}");
    let mut length = None;
    while line != "\r\n" {
        line.clear();
        answer.read_line(&mut line).unwrap();
        if let Some(("Content-Length", value)) = line.split_once(": ") {
            length = value.trim().parse().ok();
        }
    }
    (answer, length.unwrap())
}
