//! The result: the file and how it came about.

use std::fmt;
use std::io::{ErrorKind, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;

use crate::error::Error;
use crate::fit::Preset;
use crate::units::{BitRate, ByteSize, Dimensions, FrameRate};

/// What was done to the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The input is the result, byte by byte.
    Pass,
    /// The streams were kept, the container is new.
    Remux,
    /// At least one stream was encoded again.
    Transcode,
}

impl Action {
    /// The action as a lower-case word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Remux => "remux",
            Self::Transcode => "transcode",
        }
    }
}

/// The kind of file that a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutputKind {
    /// Video in mp4.
    Mp4,
    /// Sound alone in mp4.
    M4a,
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
    /// WebP.
    Webp,
    /// GIF.
    Gif,
}

impl OutputKind {
    /// The usual file extension, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Mp4 => "mp4",
            Self::M4a => "m4a",
            Self::Jpeg => "jpg",
            Self::Png => "png",
            Self::Webp => "webp",
            Self::Gif => "gif",
        }
    }

    /// The media type for HTTP.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Mp4 => "video/mp4",
            Self::M4a => "audio/mp4",
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Webp => "image/webp",
            Self::Gif => "image/gif",
        }
    }
}

/// Something a person should know although the job succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The input ends before its index says so; what was there was kept.
    CutShort,
    /// Packets or frames were damaged and left out.
    Damaged {
        /// How many.
        count: u64,
    },
    /// The picture is high dynamic range and this build has no filter to map it; colours are approximate.
    NotToneMapped,
    /// The picture could not be used; the result is sound alone.
    VideoDropped {
        /// Why, in words for people.
        reason: String,
    },
    /// The sound could not be used; the result is silent.
    AudioDropped {
        /// Why, in words for people.
        reason: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutShort => f.write_str("the input is cut short; what was there has been kept"),
            Self::Damaged { count: 1 } => f.write_str("1 damaged piece of the input was left out"),
            Self::Damaged { count } => write!(f, "{count} damaged pieces of the input were left out"),
            Self::NotToneMapped => {
                f.write_str("this libav has no zscale filter, so high dynamic range was not tone-mapped")
            }
            Self::VideoDropped { reason } => write!(f, "the picture was left out: {reason}"),
            Self::AudioDropped { reason } => write!(f, "the sound was left out: {reason}"),
        }
    }
}

/// Wall time by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StageTimes {
    /// Opening and looking at the input.
    pub probe: Duration,
    /// Decoding to see that a kept stream is whole.
    pub verify: Duration,
    /// Making the sound.
    pub audio: Duration,
    /// Planning: dividing the limit, finding the segments.
    pub plan: Duration,
    /// Decoding, scaling and encoding pictures.
    pub video: Duration,
    /// The part of `video` that was decoding, added up over the workers of the job.
    pub decode: Duration,
    /// The part of `video` that was scaling and other filters, added up over the workers of the job.
    pub scale: Duration,
    /// The part of `video` that was spent with the encoder, added up over the workers of the job.
    pub encode: Duration,
    /// Writing the container.
    pub mux: Duration,
}

/// How a result came about.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// What was done.
    pub action: Action,
    /// The kind of file.
    pub kind: OutputKind,
    /// Size of the result.
    pub bytes: ByteSize,
    /// The limit that was asked for.
    pub limit: ByteSize,
    /// Size of the input.
    pub input_bytes: ByteSize,
    /// Picture size; `None` for sound alone.
    pub dimensions: Option<Dimensions>,
    /// Frames per second; `None` for stills and sound.
    pub frame_rate: Option<FrameRate>,
    /// Length of the result; zero for stills.
    pub duration: Duration,
    /// Average rate of the video track.
    pub video_rate: Option<BitRate>,
    /// Average rate of the sound track.
    pub audio_rate: Option<BitRate>,
    /// Encoder effort, when pictures were encoded.
    pub preset: Option<Preset>,
    /// The constant rate factor that the video ended with, when it was encoded.
    pub crf: Option<f64>,
    /// Video frames in the result.
    pub frames: u64,
    /// Frames that were encoded and thrown away, since the bytes were wrong.
    pub frames_redone: u64,
    /// Frames that were encoded to learn how many bytes the pictures need, and thrown away.
    pub frames_probed: u64,
    /// Segments that were encoded again although they had been finished.
    pub repairs: u32,
    /// Bytes of video that were expected when its segments were begun; `None` when none was encoded.
    pub predicted_video: Option<ByteSize>,
    /// Bytes of video.
    pub video_bytes: ByteSize,
    /// What a person should know.
    pub warnings: Vec<Warning>,
    /// Wall time of the whole job, without its time in the queue.
    pub wall: Duration,
    /// Processor time of the whole process while the job ran: the job's own when no other ran beside it. Zero
    /// where the system does not tell.
    pub cpu: Duration,
    /// Wall time by stage.
    pub stages: StageTimes,
}

impl Report {
    /// Size of the result as a share of the limit.
    pub fn fill(&self) -> f64 {
        if self.limit == ByteSize::ZERO { 0.0 } else { self.bytes.as_f64() / self.limit.as_f64() }
    }
}

/// A finished file with its report.
#[derive(Clone, Debug)]
#[must_use]
pub struct Fitted {
    /// The file in pieces, as the encoders made them: a second copy would double what a job holds.
    pieces: Vec<Bytes>,
    /// The file in one piece, once somebody asked for it.
    whole: OnceLock<Bytes>,
    report: Report,
}

impl Fitted {
    pub(crate) const fn new(pieces: Vec<Bytes>, report: Report) -> Self {
        Self { pieces, whole: OnceLock::new(), report }
    }

    /// The file. Its pieces are joined on the first call, which copies them; [`Fitted::write_to`] does without.
    pub fn bytes(&self) -> &Bytes {
        self.whole.get_or_init(|| join(&self.pieces))
    }

    /// How it came about.
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// Takes the file and the report apart.
    pub fn into_parts(self) -> (Bytes, Report) {
        let bytes = self.whole.into_inner().unwrap_or_else(|| join(&self.pieces));
        (bytes, self.report)
    }

    /// Writes the file to `path`: whole, or not at all.
    ///
    /// It is written beside `path` under a temporary name and then renamed, so an existing file is replaced
    /// only on success, and its permissions stay. Blocks.
    ///
    /// # Errors
    /// `Io` when the folder cannot be written or the disk is full; the temporary file is removed.
    pub fn write_to(&self, path: &Path) -> Result<(), Error> {
        let failed = |cause| Error::Io { what: format!("cannot write {}", path.display()), cause };
        if path.file_name().is_none() {
            return Err(failed(ErrorKind::InvalidInput.into()));
        }
        let before = std::fs::metadata(path).ok();
        let (mut file, temporary) = create_beside(path).map_err(failed)?;
        let written = (|| {
            write_pieces(&mut file, &self.pieces)?;
            if let Some(before) = before {
                // Who may read the old file may read the new one, and nobody else.
                file.set_permissions(before.permissions())?;
            }
            drop(file);
            std::fs::rename(&temporary, path)
        })();
        written.map_err(|cause| {
            // The temporary file may not exist; the first error is the one that matters.
            let _ = std::fs::remove_file(&temporary);
            failed(cause)
        })
    }
}

/// A new file in the folder of `path`, which nobody else has made and, where `path` exists, nobody else may read.
fn create_beside(path: &Path) -> std::io::Result<(std::fs::File, PathBuf)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if path.exists() {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let mut tries = 0;
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // A name of its own length: with the result's name in it, it could be too long for the folder.
        let temporary = path.with_file_name(format!(".azalea-{}-{number}.tmp", std::process::id()));
        match options.open(&temporary) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < MOST_NAMES => {
                tries += 1;
            }
            opened => return opened.map(|file| (file, temporary)),
        }
    }
}

/// Left-overs of a killed process with the same number may stand in the way.
const MOST_NAMES: u32 = 100;

fn join(pieces: &[Bytes]) -> Bytes {
    match pieces {
        [piece] => piece.clone(),
        pieces => Bytes::from(pieces.concat()),
    }
}

/// Hands many pieces at once to the system, since a call for each would cost more than its bytes.
fn write_pieces(file: &mut impl Write, pieces: &[Bytes]) -> std::io::Result<()> {
    for group in pieces.chunks(PIECES_A_CALL) {
        let mut slices: Vec<IoSlice<'_>> = group.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut rest = slices.as_mut_slice();
        // What comes first may be empty, and writing nothing would look like a full disk.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match file.write_vectored(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => IoSlice::advance_slices(&mut rest, count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// What Linux takes in one call.
const PIECES_A_CALL: usize = 1024;
