//! Small media, made once by the `ffmpeg` program.

use std::process::Command;
use std::sync::{Arc, LazyLock};

/// Bytes of a file, as the server takes them.
pub(crate) type Film = Arc<[u8]>;

/// A second of H.264 and AAC with its index first: nothing is to be done about it.
pub(crate) fn ready() -> Film {
    static FILM: LazyLock<Film> = LazyLock::new(|| {
        let codecs = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac"];
        let words: Vec<&str> =
            VIDEO.iter().chain(&codecs).chain(&["-movflags", "+faststart"]).copied().collect();
        make(&words, "ready.mp4")
    });
    Arc::clone(&FILM)
}

/// A second of MPEG-4 part 2, which no browser plays: its pictures must be encoded anew.
pub(crate) fn old() -> Film {
    static FILM: LazyLock<Film> = LazyLock::new(|| {
        let codecs = ["-c:v", "mpeg4", "-q:v", "5", "-c:a", "aac", "-movflags", "+faststart"];
        make(&VIDEO.iter().chain(&codecs).copied().collect::<Vec<&str>>(), "old.mp4")
    });
    Arc::clone(&FILM)
}

/// Two minutes of the same in small pictures, some megabytes: more to encode than a test waits for.
pub(crate) fn endless() -> Film {
    static FILM: LazyLock<Film> = LazyLock::new(|| {
        let source = "testsrc2=duration=10:size=1280x720:rate=30";
        let folder = tempfile::tempdir().unwrap();
        let short = folder.path().join("short.mp4");
        std::fs::write(
            &short,
            make(&["-f", "lavfi", "-i", source, "-c:v", "mpeg4", "-q:v", "31"], "short.mp4"),
        )
        .unwrap();
        let words = ["-stream_loop", "11", "-i", short.to_str().unwrap(), "-c", "copy"];
        make(&[&words[..], &["-movflags", "+faststart"]].concat(), "endless.mp4")
    });
    Arc::clone(&FILM)
}

/// A picture of this colour, so that one is not taken for another.
pub(crate) fn photo(colour: &str) -> Film {
    let source = format!("color=c={colour}:size=64x48:duration=1:rate=1");
    make(&["-f", "lavfi", "-i", &source, "-frames:v", "1", "-pix_fmt", "yuvj420p"], "photo.jpg")
}

const VIDEO: [&str; 8] = [
    "-f",
    "lavfi",
    "-i",
    "testsrc2=duration=1:size=160x90:rate=25",
    "-f",
    "lavfi",
    "-i",
    "sine=frequency=440:duration=1",
];

pub(crate) fn make(words: &[&str], name: &str) -> Film {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-loglevel", "error", "-y"]).args(words).arg(&path);
    let made = command.output().expect("the ffmpeg program makes the media");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    std::fs::read(path).unwrap().into()
}
