//! A folder, a program in it, and what it said.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A temporary folder in which the program runs.
pub(crate) struct Place(TempDir);

/// How a run of the program ended.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(TempDir::with_prefix("azalea-cli-").unwrap())
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        fs::read(self.path(&name)).unwrap_or_else(|error| panic!("{}: {error}", name.as_ref().display()))
    }

    /// The names of everything in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        self.names_in("")
    }

    /// The names of everything in a folder below, sorted.
    pub(crate) fn names_in(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The program with these arguments, not started yet.
    pub(crate) fn command<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_azalea"));
        command.args(arguments).current_dir(self.0.path()).env_remove("AZALEA_LOG").stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Run {
        self.command(arguments).output().unwrap().into()
    }

    /// Runs the program with these bytes on its standard input.
    pub(crate) fn run_with<I: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = I>,
        input: &str,
    ) -> Run {
        let input = fs::File::open(self.path(input)).unwrap();
        self.command(arguments).stdin(input).output().unwrap().into()
    }

    /// Starts the program with all three streams as pipes.
    pub(crate) fn start<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Child {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Two seconds of moving test picture with a tone: H.264 and AAC, far below every limit.
    pub(crate) fn clip(&self, name: impl AsRef<Path>) {
        let source = "testsrc2=duration=2:size=320x180:rate=30";
        let words = ["-f", "lavfi", "-i", source, "-f", "lavfi", "-i", "sine=frequency=440:duration=2"];
        let codecs = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac"];
        self.ffmpeg(words.iter().chain(&codecs), name);
    }

    /// Two seconds of the same picture as it comes from an old camera: nothing in it can be kept.
    pub(crate) fn old_clip(&self, name: impl AsRef<Path>) {
        let source = "testsrc2=duration=2:size=640x360:rate=30";
        let words = ["-f", "lavfi", "-i", source, "-f", "lavfi", "-i", "sine=frequency=440:duration=2"];
        let codecs = ["-c:v", "mpeg4", "-q:v", "2", "-c:a", "libmp3lame"];
        self.ffmpeg(words.iter().chain(&codecs), name);
    }

    /// The first picture of a clip, as a JPEG.
    pub(crate) fn picture(&self, from: &str, name: &str) {
        self.ffmpeg(["-i", from, "-frames:v", "1", "-pix_fmt", "yuvj420p"], name);
    }

    /// The file `from` over and over, for more seconds than a test will ever wait.
    pub(crate) fn repeat(&self, from: &str, name: &str) {
        self.ffmpeg(["-stream_loop", "600", "-i", from, "-c", "copy"], name);
    }

    fn ffmpeg<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>, name: impl AsRef<Path>) {
        let mut command = Command::new("ffmpeg");
        command.args(["-nostdin", "-loglevel", "error", "-y"]).args(arguments);
        // `file:` keeps a colon in the name from being read as a protocol.
        let mut target = std::ffi::OsString::from("file:");
        target.push(self.path(name));
        let made = command
            .arg(target)
            .current_dir(self.0.path())
            .output()
            .expect("the ffmpeg program makes the inputs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let stderr = String::from_utf8(output.stderr).expect("standard error is text");
        Self { code: output.status.code(), stdout: output.stdout, stderr }
    }
}

impl Run {
    /// Asserts that all went well and nothing was complained about.
    #[track_caller]
    pub(crate) fn succeeds(self) -> Self {
        assert_eq!(self.stderr, "");
        assert_eq!(self.code, Some(0), "{}", self.text());
        self
    }

    /// Asserts this exit code, and exactly one line on standard error that names the reason.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, reason: &str) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        assert!(self.stderr.starts_with("error: ") && self.stderr.ends_with('\n'), "{}", self.stderr);
        assert!(self.stderr.to_lowercase().contains(&reason.to_lowercase()), "{reason:?} in {}", self.stderr);
        self
    }

    /// Standard output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard output as JSON, one object per line.
    #[track_caller]
    pub(crate) fn objects(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.text().lines().map(parse).collect()
    }

    /// Standard output as the one JSON object that it must be.
    #[track_caller]
    pub(crate) fn object(&self) -> Value {
        let mut objects = self.objects();
        assert_eq!(objects.len(), 1, "{}", self.text());
        objects.remove(0)
    }
}
