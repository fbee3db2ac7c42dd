//! What an independent decoder sees and hears in a file.

use std::collections::BTreeMap;

use super::clips::Place;
use super::float;

/// What `ffprobe` says about a file.
pub(crate) struct Facts(BTreeMap<String, String>);

impl Facts {
    #[track_caller]
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let text = probe(bytes, &["-show_streams", "-show_format", "-show_chapters", "-of", "flat"]);
        let pair = |line: &str| {
            let (key, value) = line.split_once('=')?;
            Some((key.to_owned(), value.trim_matches('"').to_owned()))
        };
        Self(text.lines().filter_map(pair).collect())
    }

    /// A fact of the first stream of this kind; empty when there is none.
    pub(crate) fn stream(&self, kind: &str, fact: &str) -> &str {
        let key = (0..self.streams())
            .find(|number| self.get(&format!("streams.stream.{number}.codec_type")) == kind)
            .map(|number| format!("streams.stream.{number}.{fact}"));
        key.map_or("", |key| self.get(&key))
    }

    pub(crate) fn size(&self) -> (u32, u32) {
        let side = |name| self.stream("video", name).parse().unwrap();
        (side("width"), side("height"))
    }

    /// Length of the whole file in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.get("format.duration").parse().unwrap()
    }

    pub(crate) fn streams(&self) -> usize {
        self.get("format.nb_streams").parse().unwrap_or(0)
    }

    /// Whether any fact's name contains these words.
    pub(crate) fn mentions(&self, words: &str) -> bool {
        self.0.keys().any(|key| key.contains(words))
    }

    fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    /// Asserts what every video result keeps: plain H.264 and AAC-LC, upright, square, tagged, nothing else.
    #[track_caller]
    pub(crate) fn assert_plays_inline(&self) {
        assert_eq!(self.stream("video", "codec_name"), "h264");
        assert_eq!(self.stream("video", "pix_fmt"), "yuv420p");
        assert!(["1:1", ""].contains(&self.stream("video", "sample_aspect_ratio")));
        assert_eq!(self.stream("video", "side_data_list.side_data.0.side_data_type"), "");
        if !self.stream("audio", "codec_name").is_empty() {
            assert_eq!(self.stream("audio", "codec_name"), "aac");
            assert_eq!(self.stream("audio", "profile"), "LC");
            assert_eq!(self.streams(), 2);
        } else {
            assert_eq!(self.streams(), 1);
        }
    }
}

/// Decoded pictures with their times in seconds.
pub(crate) struct Pictures {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) frames: Vec<Vec<u8>>,
    pub(crate) times: Vec<f64>,
}

pub(crate) type Colour = [u8; 3];

impl Pictures {
    #[track_caller]
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let (width, height) = Facts::of(bytes).size();
        let (width, height) = (usize::try_from(width).unwrap(), usize::try_from(height).unwrap());
        // On the clock of an average rate two pictures of an uneven track could meet, and ffmpeg complains.
        let clock = "-fps_mode passthrough -enc_time_base 1:90000";
        let words = format!("-noautorotate -i file -map 0:v:0 {clock} -f rawvideo -pix_fmt rgb24 -");
        let raw = decode(bytes, &words);
        let frames = raw.chunks_exact(width * height * 3).map(<[u8]>::to_vec).collect();
        Self { width, height, frames, times: picture_times(bytes) }
    }

    /// The colour of the first picture at these parts of width and height.
    pub(crate) fn colour(&self, x: f64, y: f64) -> Colour {
        self.colour_in(0, x, y)
    }

    pub(crate) fn colour_in(&self, frame: usize, x: f64, y: f64) -> Colour {
        let at = place(self.height, y) * self.width + place(self.width, x);
        self.frames[frame][at * 3..at * 3 + 3].try_into().unwrap()
    }

    /// The colours in the middle of the first picture's quarters, row by row.
    pub(crate) fn quarters(&self) -> [Colour; 4] {
        [(0.25, 0.25), (0.75, 0.25), (0.25, 0.75), (0.75, 0.75)].map(|(x, y)| self.colour(x, y))
    }

    /// When the picture's middle becomes bright for the first time.
    #[track_caller]
    pub(crate) fn flash(&self) -> f64 {
        let bright = |frame: &usize| self.colour_in(*frame, 0.5, 0.5)[1] > 128;
        let frame = (0..self.frames.len()).find(bright).expect("no picture is bright");
        self.times[frame]
    }
}

/// The pixel at a part of a side.
fn place(side: usize, part: f64) -> usize {
    let wanted = float(side) * part;
    (0..side).take_while(|pixel| float(*pixel) < wanted).last().unwrap_or(0)
}

/// Asserts that each component is within `tolerance` steps.
#[track_caller]
pub(crate) fn assert_colour(what: &str, found: Colour, expected: Colour, tolerance: u8) {
    let fine = found.iter().zip(expected).all(|(found, expected)| found.abs_diff(expected) <= tolerance);
    assert!(fine, "{what}: {found:?}, expected {expected:?} ± {tolerance}");
}

/// When each picture is shown, in seconds.
#[track_caller]
pub(crate) fn picture_times(bytes: &[u8]) -> Vec<f64> {
    let words =
        ["-select_streams", "v:0", "-show_entries", "frame=best_effort_timestamp_time", "-of", "csv=p=0"];
    let text = probe(bytes, &words);
    // A frame's side data gives a line of its own.
    text.lines()
        .map(|line| line.trim_matches(','))
        .filter(|line| !line.is_empty())
        .map(|line| line.parse().unwrap())
        .collect()
}

/// One channel of decoded sound at 48 kHz; silence stands where the file has none.
pub(crate) struct Sound(Vec<f32>);

impl Sound {
    /// All channels as one.
    #[track_caller]
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self::filtered(bytes, "aformat=channel_layouts=mono")
    }

    /// One of two channels, 0 or 1.
    #[track_caller]
    pub(crate) fn channel(bytes: &[u8], number: u32) -> Self {
        Self::filtered(bytes, &format!("pan=mono|c0=c{number}"))
    }

    #[track_caller]
    fn filtered(bytes: &[u8], filter: &str) -> Self {
        let filter = format!("aresample=48000:async=1:first_pts=0,{filter}");
        let raw = decode(bytes, &format!("-i file -map 0:a:0 -af {filter} -f f32le -c:a pcm_f32le -"));
        Self(raw.chunks_exact(4).map(|sample| f32::from_le_bytes(sample.try_into().unwrap())).collect())
    }

    pub(crate) fn seconds(&self) -> f64 {
        float(self.0.len()) / RATE
    }

    /// When something is heard for the first time.
    #[track_caller]
    pub(crate) fn beep(&self) -> f64 {
        float(self.0.iter().position(|sample| sample.abs() > 0.2).expect("nothing is heard")) / RATE
    }

    /// How strong a tone is, as the amplitude of a sine; Goertzel's filter over the whole sound.
    pub(crate) fn tone(&self, hertz: f64) -> f64 {
        let step = 2.0 * (std::f64::consts::TAU * hertz / RATE).cos();
        let (mut one, mut two) = (0.0, 0.0);
        for sample in &self.0 {
            (one, two) = (f64::from(*sample) + step * one - two, one);
        }
        (one * one + two * two - step * one * two).max(0.0).sqrt() * 2.0 / float(self.0.len().max(1))
    }
}

const RATE: f64 = 48_000.0;

/// Asserts that a file decodes from start to end without a word of complaint.
#[track_caller]
pub(crate) fn assert_decodes(bytes: &[u8]) {
    // See above for the clock.
    decode(bytes, "-i file -map 0 -fps_mode passthrough -enc_time_base:v 1:90000 -f null -");
}

#[track_caller]
fn decode(bytes: &[u8], words: &str) -> Vec<u8> {
    let place = Place::new();
    place.write("file", bytes);
    let mut arguments: Vec<&str> = "-nostdin -hide_banner -loglevel error".split(' ').collect();
    arguments.extend(words.split(' '));
    let output = place.run("ffmpeg", &arguments);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaint.is_empty(), "ffmpeg {words}: {complaint}");
    output.stdout
}

#[track_caller]
fn probe(bytes: &[u8], words: &[&str]) -> String {
    let place = Place::new();
    place.write("file", bytes);
    let arguments: Vec<&str> = ["-v", "error"].iter().chain(words).copied().chain(["file"]).collect();
    let output = place.run("ffprobe", &arguments);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaint.is_empty(), "ffprobe: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}
