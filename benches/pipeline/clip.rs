//! Clips as they are in posts, made once by the `ffmpeg` program in the target folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use azalea_bot::domain::PixelSize;

/// How a clip is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    name: &'static str,
    pub(crate) size: PixelSize,
    seconds: u32,
    /// Mean rate of the pictures in kbit/s.
    kbps: u32,
    /// The file has between so many bytes and so many.
    bytes: [u64; 2],
}

/// About a minute, about 38 MB. A constant rate factor of 23 would take half as much again for it, so the bytes are not
/// padding.
pub(crate) const POST: Recipe = Recipe {
    name: "post",
    size: PixelSize { width: 1280, height: 720 },
    seconds: 68,
    kbps: 4_400,
    bytes: [37_000_000, 40_000_000],
};

/// The same in small: for the crowd, and for a first look.
pub(crate) const SMALL: Recipe = Recipe {
    name: "small",
    size: PixelSize { width: 640, height: 360 },
    seconds: 6,
    kbps: 1_600,
    bytes: [900_000, 1_700_000],
};

impl Recipe {
    /// How long it plays.
    pub(crate) fn length(self) -> Duration {
        Duration::from_secs(u64::from(self.seconds))
    }

    /// The clip with its index first: it can be read while it arrives.
    pub(crate) fn index_first(self) -> PathBuf {
        let made = once(&format!("{}-first.mp4", self.name), |to| {
            let (graph, seconds) = (self.graph(), self.seconds.to_string());
            let [mean, most, buffer] =
                [1.0, 1.5, 2.0].map(|times| format!("{}k", f64::from(self.kbps) * times));
            let sound = format!("sine=f=220:b=4:r=48000:d={seconds},aformat=channel_layouts=stereo");
            let mut words = vec!["-filter_complex", &graph, "-f", "lavfi", "-i", &sound];
            words.extend(["-map", "[v]", "-map", "0:a", "-t", &seconds]);
            words.extend(["-c:v", "libx264", "-preset", "fast", "-g", "90", "-b:v", &mean]);
            words.extend(["-maxrate", &most, "-bufsize", &buffer, "-c:a", "aac", "-b:a", "128k"]);
            words.extend(["-movflags", "+faststart", to]);
            ffmpeg(&words);
        });
        let bytes = std::fs::metadata(&made).unwrap().len();
        let [least, most] = self.bytes;
        assert!((least..=most).contains(&bytes), "{} has {bytes} bytes", made.display());
        made
    }

    /// The same packets with the index at the end: nothing can be read before the last byte is there.
    pub(crate) fn index_last(self) -> PathBuf {
        let from = self.index_first();
        once(&format!("{}-last.mp4", self.name), |to| {
            ffmpeg(&["-i", &from.to_string_lossy(), "-c", "copy", "-map_metadata", "-1", to]);
        })
    }

    /// A landscape of noise in four sizes, which has detail at every scale as a photograph has, seen by a camera in
    /// eight shots, with something in front of it that moves against it, an open shutter and a sensor's noise.
    fn graph(self) -> String {
        let mut graph = String::new();
        for (number, size) in (1..).zip(OCTAVES) {
            // A hash of the place and not `random`, which depends on the number of threads.
            let hash = |x: f64, y: f64| format!("mod(abs(sin(X*{x}+Y*{y}+{number})*43758.5),1)");
            let (luma, blue, red) = (hash(12.9898, 78.233), hash(39.346, 11.135), hash(73.156, 52.235));
            graph += &format!(
                "nullsrc=s={size}:r=1:d=1,format=yuv444p,geq=lum='255*{luma}':cb='88+80*{blue}':cr='88+80*{red}',\
                 scale=2560:1440:flags=bicubic,setsar=1[o{number}];"
            );
        }
        graph +=
            "[o1][o2][o3][o4]mix=inputs=4:weights='8 4 2 1',split=9[s0][s1][s2][s3][s4][s5][s6][s7][s8];";
        let PixelSize { width, height } = self.size;
        let frames = (self.seconds * FRAME_RATE).div_ceil(8);
        let mut shots = String::new();
        for (number, (x, y, zoom)) in SHOTS.into_iter().enumerate() {
            let hue = number * 40;
            graph += &format!(
                "[s{number}]hue=h={hue},zoompan=z='{zoom}':x='(iw-iw/zoom)*({x})':y='(ih-ih/zoom)*({y})'\
                 :d={frames}:s={width}x{height}:fps={FRAME_RATE}[p{number}];"
            );
            shots += &format!("[p{number}]");
        }
        graph += &format!(
            "[s8]crop=600:900:900:200,hue=h=150,scale={}:{},setsar=1[front];",
            width / 5,
            height / 2
        );
        graph += &format!("{shots}concat=n=8:v=1[far];");
        graph += "[far][front]overlay=x='(W-w)*(0.5+0.4*sin(t*1.3))':y='(H-h)*(0.6+0.3*sin(t*2.1))',";
        graph + "tmix=frames=2,noise=alls=8:allf=t:all_seed=7,setsar=1,format=yuv420p[v]"
    }
}

/// Runs `ffmpeg` to its end; its failure is the bench's.
pub(crate) fn ffmpeg(words: &[&str]) {
    let ran = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-y"])
        .args(words)
        .stdin(Stdio::null())
        .status()
        .unwrap_or_else(|error| panic!("the ffmpeg program is needed: {error}"));
    assert!(ran.success(), "ffmpeg {words:?} failed");
}

/// A file in the target folder: there already, or made now, whole or not at all.
fn once(name: &str, make: impl FnOnce(&str)) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("pipeline-{name}"));
    if !path.exists() {
        let unfinished = folder.join(format!("unfinished-{name}"));
        println!("clip: {name} is made, once");
        make(&unfinished.to_string_lossy());
        std::fs::rename(&unfinished, &path).unwrap();
    }
    path
}

const FRAME_RATE: u32 = 30;

/// From hills to grains of sand.
const OCTAVES: [&str; 4] = ["20x12", "80x45", "320x180", "1280x720"];

/// Where the camera is, as a share of the room that it has, and its zoom; `on` counts frames: a pan, a drive forward,
/// a search, a stand by hand, a climb, a whip, a drive backward, another stand.
const SHOTS: [(&str, &str, &str); 8] = [
    ("mod(on/256,1)", "0.5+0.1*sin(on/9)", "1.5"),
    ("0.5", "0.5", "1.2+on/400"),
    ("0.5+0.3*sin(on/25)", "0.5+0.3*cos(on/31)", "1.8"),
    ("0.4+0.01*sin(on/7)", "0.5+0.01*sin(on/11)", "2"),
    ("0.5+0.02*sin(on/13)", "1-mod(on/256,1)", "1.6"),
    ("0.5+0.45*sin(on/19)", "0.3+0.05*sin(on/5)", "1.9"),
    ("0.6", "0.4", "2-on/400"),
    ("0.7+0.01*sin(on/8)", "0.3+0.01*sin(on/15)", "1.7"),
];
