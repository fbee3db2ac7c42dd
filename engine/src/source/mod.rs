//! Where an input's bytes come from.
//!
//! The room hands out bytes and knows nothing of what they mean; whether an input is empty, too large or no
//! media at all is judged by those who read it.
//!
//! Invariants:
//! - **Nothing is opened before the job runs.**
//! - **No read of ours outlasts a stop by more than 100 ms**; only a reader that the caller brought can.

use std::fmt;
use std::fs::{self, File, FileType};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::error::Error;
use crate::progress::{Control, StopReason};
use crate::units::ByteSize;

mod file;
mod growing;
#[cfg(test)]
mod tests;

pub use growing::GrowingWriter;

pub(crate) use growing::Arrival;

use file::FileReader;
use growing::GrowingReader;

/// An input. Nothing is opened before the job runs.
pub struct Source(Kind);

enum Kind {
    Path(PathBuf),
    File(File),
    Bytes(Bytes),
    Reader(Box<dyn ReadSeek>),
    Growing(GrowingReader),
}

trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

impl Source {
    /// A regular file. Anything else that has a path (a folder, a pipe, a device) is refused when the job
    /// begins, since it has no length or no end.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        Self(Kind::Path(path.into()))
    }

    /// Bytes in memory, which are not copied.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Bytes(bytes.into()))
    }

    /// Anything that can be read and seeked, from its first byte on, wherever it stands now.
    ///
    /// It is called on threads that can open neither files nor connections, unless the engine was built with
    /// [`confined(false)`](crate::EngineBuilder::confined): open what it reads from before.
    ///
    /// A call that blocks cannot be interrupted: after a cancel the job's handle is ready at once, but one of
    /// the engine's threads stays with the call until it returns. What is downloaded goes into
    /// [`Source::growing`], which has no such wait.
    pub fn reader(reader: impl Read + Seek + Send + 'static) -> Self {
        Self(Kind::Reader(Box::new(reader)))
    }

    /// A buffer in memory that is read while it is being filled: a download that the engine works on before
    /// it is whole.
    ///
    /// It holds at most `capacity` bytes, and all of them until the job is over, since media is read back and
    /// forth. `total` is the length that the sender announced: with it the end is known before it has arrived,
    /// without it a job that asks for the end waits for [`GrowingWriter::finish`].
    ///
    /// ```
    /// use azalea_engine::{ByteSize, Bytes, Source};
    ///
    /// # fn main() -> Result<(), azalea_engine::Error> {
    /// let (mut writer, source) = Source::growing(ByteSize::mebibytes(100), None);
    /// // The source goes to `Engine::submit`, the writer to the download.
    /// writer.append(Bytes::from_static(b"ftyp"))?;
    /// writer.finish();
    /// # drop(source);
    /// # Ok(())
    /// # }
    /// ```
    pub fn growing(capacity: ByteSize, total: Option<ByteSize>) -> (GrowingWriter, Self) {
        let (writer, reader) = growing::buffer(capacity, total);
        (writer, Self(Kind::Growing(reader)))
    }

    /// Whether there is a name to be opened.
    pub(crate) const fn is_named(&self) -> bool {
        matches!(self.0, Kind::Path(_))
    }

    /// The same source with what is named opened, for a thread that can open nothing.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub(crate) fn opened(self) -> Result<Self, Error> {
        match self.0 {
            Kind::Path(path) => open_file(&path).map(|file| Self(Kind::File(file))),
            other => Ok(Self(other)),
        }
    }

    /// Opens the source for the one job that reads it.
    ///
    /// # Errors
    /// `Io` when a file cannot be opened, `Unsupported` when a path names something that is no regular file.
    pub(crate) fn open(self, control: &Arc<Control>) -> Result<Reader, Error> {
        let inner = match self.0 {
            Kind::Path(path) => Inner::File(FileReader::new(open_file(&path)?)),
            Kind::File(file) => Inner::File(FileReader::new(file)),
            Kind::Bytes(bytes) => Inner::Bytes(Cursor::new(bytes)),
            Kind::Reader(reader) => Inner::Foreign(reader),
            Kind::Growing(reader) => Inner::Growing(reader),
        };
        let mut reader = Reader { inner, control: Arc::clone(control) };
        reader
            .rewind()
            .map_err(|cause| Error::Io { what: "cannot go to the input's beginning".into(), cause })?;
        Ok(reader)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut source = f.debug_tuple("Source");
        match &self.0 {
            Kind::Path(path) => source.field(path),
            Kind::File(file) => source.field(file),
            Kind::Bytes(bytes) => source.field(&format_args!("{} bytes", bytes.len())),
            Kind::Reader(_) => source.field(&format_args!("a reader")),
            Kind::Growing(reader) => source.field(reader),
        };
        source.finish()
    }
}

/// An opened source. Reads may wait for bytes that have not arrived yet.
///
/// After a stop each call fails with kind `TimedOut` and an [`Error`] inside that says why. It is not
/// `Interrupted`, which the helpers of `std` would try again.
pub(crate) struct Reader {
    inner: Inner,
    control: Arc<Control>,
}

enum Inner {
    File(FileReader),
    Bytes(Cursor<Bytes>),
    Foreign(Box<dyn ReadSeek>),
    Growing(GrowingReader),
}

impl Reader {
    /// Another reader of the same bytes, from the first on; `None` for a reader of the caller's.
    pub(crate) fn another(&self) -> Option<Self> {
        let inner = match &self.inner {
            Inner::File(file) => Inner::File(file.another()),
            Inner::Bytes(bytes) => Inner::Bytes(Cursor::new(bytes.get_ref().clone())),
            Inner::Foreign(_) => return None,
            Inner::Growing(reader) => Inner::Growing(reader.another()),
        };
        Some(Self { inner, control: Arc::clone(&self.control) })
    }

    /// What of a source that still grows has arrived; `None` for all others.
    pub(crate) fn arrival(&self) -> Option<Arrival> {
        match &self.inner {
            Inner::Growing(reader) => Some(reader.arrival()),
            Inner::File(_) | Inner::Bytes(_) | Inner::Foreign(_) => None,
        }
    }

    /// The input's whole length. Waits, for a source that still grows and was not told its length.
    pub(crate) fn size(&mut self) -> io::Result<ByteSize> {
        let here = self.stream_position()?;
        let end = self.seek(SeekFrom::End(0))?;
        self.seek(SeekFrom::Start(here))?;
        Ok(ByteSize::new(end))
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.control.stop().map_err(stopped)?;
        let count = match &mut self.inner {
            Inner::File(file) => file.read(buffer)?,
            Inner::Bytes(bytes) => bytes.read(buffer)?,
            Inner::Foreign(reader) => reader.read(buffer)?,
            Inner::Growing(reader) => reader.read(buffer, &self.control)?,
        };
        // A foreign reader may claim anything, and what is behind us hands the count on to C.
        if count > buffer.len() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the reader claims more bytes than it was asked for",
            ));
        }
        Ok(count)
    }
}

impl Seek for Reader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.control.stop().map_err(stopped)?;
        match &mut self.inner {
            Inner::File(file) => file.seek(to),
            Inner::Bytes(bytes) => bytes.seek(to),
            Inner::Foreign(reader) => reader.seek(to),
            Inner::Growing(reader) => reader.seek(to, &self.control),
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.inner {
            Inner::File(_) => "file",
            Inner::Bytes(_) => "bytes",
            Inner::Foreign(_) => "reader",
            Inner::Growing(_) => "growing",
        };
        f.debug_tuple("Reader").field(&kind).finish()
    }
}

fn open_file(path: &Path) -> Result<File, Error> {
    let failed = |cause| Error::Io { what: format!("cannot open {}", path.display()), cause };
    // Asked before it is opened, since to open a pipe is to wait for whoever writes into it.
    let kind = fs::metadata(path).map_err(failed)?.file_type();
    if !kind.is_file() {
        let what = format!("cannot open {}: it is {}, not a regular file", path.display(), name(kind));
        return Err(Error::unsupported(what));
    }
    File::open(path).map_err(failed)
}

#[cfg(unix)]
fn name(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;

    match kind {
        _ if kind.is_dir() => "a folder",
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_socket() => "a socket",
        _ if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "something special",
    }
}

#[cfg(not(unix))]
fn name(kind: FileType) -> &'static str {
    if kind.is_dir() { "a folder" } else { "something special" }
}

fn stopped(reason: StopReason) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, Error::from(reason))
}
