//! Where an input's bytes come from.

use std::fmt;
use std::io::{Cursor, Read, Seek};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::Error;
use crate::progress::Control;
use crate::units::ByteSize;

/// An input. Nothing is opened before the job runs.
pub struct Source(Kind);

enum Kind {
    Path(PathBuf),
    Bytes(Bytes),
    Reader(Box<dyn ReadSeek>),
}

pub(crate) trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

/// The end that a downloader appends to.
#[derive(Debug)]
#[must_use]
pub struct GrowingWriter;

impl Source {
    /// A file.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        Self(Kind::Path(path.into()))
    }

    /// Bytes in memory.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Bytes(bytes.into()))
    }

    /// Anything that can be read and seeked.
    pub fn reader(reader: impl Read + Seek + Send + 'static) -> Self {
        Self(Kind::Reader(Box::new(reader)))
    }

    pub(crate) fn open(self, _control: &Arc<Control>) -> Result<Reader, Error> {
        let inner: Box<dyn ReadSeek> = match self.0 {
            Kind::Path(path) => Box::new(
                std::fs::File::open(&path)
                    .map_err(|cause| Error::Io { what: format!("cannot open {}", path.display()), cause })?,
            ),
            Kind::Bytes(bytes) => Box::new(Cursor::new(bytes)),
            Kind::Reader(reader) => reader,
        };
        Ok(Reader { inner })
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

/// An opened source. Reads may wait for bytes that have not arrived yet; they end within 100 ms of a stop.
pub(crate) struct Reader {
    inner: Box<dyn ReadSeek>,
}

impl Reader {
    /// The input's whole length. Waits, for a source that still grows and was not told its length.
    pub(crate) fn size(&mut self) -> std::io::Result<ByteSize> {
        let here = self.inner.stream_position()?;
        let end = self.inner.seek(std::io::SeekFrom::End(0))?;
        self.inner.seek(std::io::SeekFrom::Start(here))?;
        Ok(ByteSize::new(end))
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.inner.read(buffer)
    }
}

impl Seek for Reader {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.inner.seek(to)
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}
