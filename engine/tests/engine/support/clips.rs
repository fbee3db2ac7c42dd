//! Inputs, made by the `ffmpeg` program.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

use azalea_engine::Bytes;
use tempfile::TempDir;

/// A folder that is gone with the test.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(TempDir::with_prefix("azalea-engine-").unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// The file that `ffmpeg` makes with these words, which spaces part.
    #[track_caller]
    pub(crate) fn make(&self, name: &str, words: &str) -> Bytes {
        let mut arguments: Vec<&str> = "-nostdin -hide_banner -loglevel error -y".split(' ').collect();
        arguments.extend(words.split_whitespace());
        arguments.push(name);
        let output = self.run("ffmpeg", &arguments);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ffmpeg cannot make {name} ({words}): {complaint}");
        Bytes::from(fs::read(self.path(name)).unwrap())
    }

    /// Runs a program of FFmpeg's in the folder.
    #[track_caller]
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Output {
        Command::new(program).args(arguments).current_dir(self.0.path()).output().unwrap_or_else(|error| {
            panic!("these tests need the programs ffmpeg and ffprobe; {program} does not start: {error}")
        })
    }
}

/// One file in a folder of its own.
#[track_caller]
pub(crate) fn make(name: &str, words: &str) -> Bytes {
    Place::new().make(name, words)
}

/// Two seconds of a moving test picture at 30 frames a second.
pub(crate) const PICTURE: &str = "-f lavfi -i testsrc2=size=320x180:rate=30:duration=2";
/// Two seconds of a tone of 440 Hz.
pub(crate) const TONE: &str = "-f lavfi -i sine=frequency=440:sample_rate=48000:duration=2";
pub(crate) const H264: &str = "-c:v libx264 -preset ultrafast -pix_fmt yuv420p";
/// Nothing of this can be kept.
pub(crate) const OLD: &str = "-c:v mpeg4 -q:v 3 -c:a libmp3lame -b:a 96k";

/// A clip that needs nothing done to it.
pub(crate) fn plain() -> Bytes {
    static CLIP: OnceLock<Bytes> = OnceLock::new();
    let words = format!("{PICTURE} {TONE} {H264} -c:a aac -fflags +bitexact -movflags +faststart");
    CLIP.get_or_init(|| make("plain.mp4", &words)).clone()
}

/// A clip of which nothing can be kept.
pub(crate) fn old() -> Bytes {
    static CLIP: OnceLock<Bytes> = OnceLock::new();
    CLIP.get_or_init(|| make("old.mkv", &format!("{PICTURE} {TONE} {OLD}"))).clone()
}

/// Noise over a moving picture: two seconds that need all the bytes they can get.
pub(crate) fn noisy() -> Bytes {
    static CLIP: OnceLock<Bytes> = OnceLock::new();
    let noise = "-vf noise=alls=60:allf=t+u:all_seed=7";
    CLIP.get_or_init(|| {
        make("noisy.mkv", &format!("{PICTURE} {TONE} {noise} -c:v mpeg4 -q:v 1 -c:a libmp3lame"))
    })
    .clone()
}

/// A filter source of pictures with one colour in each quarter: red and lime above, blue and white below.
pub(crate) fn quarters(width: u32, height: u32, seconds: u32) -> String {
    quarters_of(["red", "lime", "blue", "white"], width, height, seconds)
}

/// The same with these colours.
pub(crate) fn quarters_of(colours: [&str; 4], width: u32, height: u32, seconds: u32) -> String {
    let [tl, tr, bl, br] = colours;
    let (x, y) = (width / 2, height / 2);
    format!(
        "color={tl}:s={width}x{height}:r=10:d={seconds},format=rgb24,\
         drawbox=x={x}:y=0:w=iw:h={y}:c={tr}:t=fill,\
         drawbox=x=0:y={y}:w={x}:h=ih:c={bl}:t=fill,\
         drawbox=x={x}:y={y}:w=iw:h=ih:c={br}:t=fill"
    )
}

/// Two inputs of three seconds: pictures that are white for 0.2 s from `at` on, and sound that beeps as long.
pub(crate) fn flash_and_beep(at: f64) -> (String, String) {
    let until = at + 0.2;
    (
        format!(
            "-f lavfi -i color=black:s=160x90:r=30:d=3,\
             drawbox=c=white:t=fill:enable='gte(t,{at})*lt(t,{until})'"
        ),
        format!("-f lavfi -i aevalsrc='0.8*sin(2*PI*1000*t)*gte(t,{at})*lt(t,{until})':s=48000:d=3"),
    )
}
