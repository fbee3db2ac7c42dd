//! Whole files, one of each kind that the engine opens.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A whole file.
pub(crate) struct Seed {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// Half a second of a small picture that moves.
const SMALL: &str = "-f lavfi -i testsrc2=size=96x64:rate=10:duration=0.6";
const TONE: &str = "-f lavfi -i sine=frequency=440:sample_rate=24000:duration=0.6";
/// A larger folder than this is for the long form alone.
const LARGEST: u64 = 1 << 20;

/// Name, whether there is sound, and what makes it.
const KINDS: [(&str, bool, &str); 29] = [
    ("h264.mp4", true, "-c:v libx264 -pix_fmt yuv420p -c:a aac -movflags +faststart"),
    ("index-last.mov", true, "-c:v libx264 -pix_fmt yuv420p -bf 2 -c:a aac"),
    (
        "fragments.mp4",
        true,
        "-c:v libx264 -pix_fmt yuv420p -g 3 -c:a aac -movflags +frag_keyframe+empty_moov",
    ),
    ("hevc.mp4", false, "-c:v libx265 -pix_fmt yuv420p10le -x265-params log-level=none -tag:v hvc1"),
    ("mpeg4.mp4", true, "-c:v mpeg4 -c:a libmp3lame"),
    ("prores.mov", true, "-c:v prores_ks -c:a pcm_s16le"),
    ("mjpeg.mov", false, "-c:v mjpeg -pix_fmt yuvj420p"),
    ("vp8.webm", true, "-c:v libvpx -deadline realtime -c:a libvorbis -ac 2"),
    ("vp9.webm", true, "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -c:a libopus"),
    ("av1.mkv", false, "-c:v libaom-av1 -cpu-used 8 -usage realtime"),
    ("flac.mkv", true, "-c:v libx264 -pix_fmt yuv444p -c:a flac"),
    ("msmpeg4.avi", true, "-c:v msmpeg4 -c:a libmp3lame"),
    ("raw.avi", true, "-c:v rawvideo -pix_fmt yuv420p -c:a pcm_s16le"),
    ("flv1.flv", true, "-c:v flv -c:a libmp3lame -ar 22050"),
    ("h264.flv", true, "-c:v libx264 -pix_fmt yuv420p -c:a aac"),
    ("h264.ts", true, "-c:v libx264 -pix_fmt yuv420p -c:a aac"),
    ("mpeg2.ts", true, "-c:v mpeg2video -r 25 -c:a mp2"),
    ("mpeg1.mpg", true, "-c:v mpeg1video -r 25 -c:a mp2"),
    ("theora.ogv", true, "-c:v libtheora -c:a libvorbis -ac 2"),
    ("opus.ogg", true, "-vn -c:a libopus"),
    ("sound.mp3", true, "-vn -c:a libmp3lame"),
    ("sound.aac", true, "-vn -c:a aac"),
    ("sound.wav", true, "-vn -c:a pcm_s16le"),
    ("sound.flac", true, "-vn -c:a flac"),
    ("moving.gif", false, ""),
    ("moving.apng", false, "-f apng -plays 0"),
    ("still.png", false, "-frames:v 1"),
    ("still.jpg", false, "-frames:v 1 -pix_fmt yuvj420p"),
    ("moving.webp", false, "-c:v libwebp_anim -loop 0"),
];

/// All of them, made in this folder by the `ffmpeg` program.
pub(crate) fn all(folder: &Path) -> Vec<Seed> {
    let mut seeds: Vec<Seed> =
        KINDS.iter().map(|(name, sound, words)| make(folder, name, *sound, words)).collect();
    if let Some(more) = env::var_os("AZALEA_HOSTILE_SEEDS") {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(more).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.retain(|path| {
            path.metadata().is_ok_and(|facts| facts.is_file() && (1..=LARGEST).contains(&facts.len()))
        });
        seeds.extend(paths.into_iter().map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            Seed { name, path: fs::canonicalize(path).unwrap() }
        }));
    }
    seeds
}

fn make(folder: &Path, name: &str, sound: bool, words: &str) -> Seed {
    let mut arguments: Vec<&str> = "-nostdin -hide_banner -loglevel error -y".split(' ').collect();
    arguments.extend(SMALL.split(' '));
    if sound {
        arguments.extend(TONE.split(' '));
    }
    arguments.extend(words.split_whitespace());
    arguments.extend(["-fflags", "+bitexact", "-flags", "+bitexact", name]);
    let output = Command::new("ffmpeg")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("this test needs the program ffmpeg; it does not start: {error}"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ffmpeg cannot make {name}: {complaint}");
    Seed { name: name.to_owned(), path: folder.join(name) }
}
