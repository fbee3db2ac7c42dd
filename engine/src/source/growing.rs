//! A buffer in memory that is read while it is being filled.

use std::fmt;
use std::io::{self, SeekFrom};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::stopped;
use crate::error::Error;
use crate::limits::LimitKind;
use crate::progress::Control;
use crate::units::ByteSize;

/// The end that a download appends to: see [`Source::growing`](crate::Source::growing).
///
/// Dropping it before [`finish`](Self::finish) tells the job that the download stopped: it may use what has
/// arrived, and fails with [`Error::Io`] when it needs more.
#[must_use = "dropping the writer tells the job that the download stopped"]
pub struct GrowingWriter {
    buffer: Arc<Buffer>,
}

impl GrowingWriter {
    /// Appends what has arrived. Never blocks; pieces of 4 KiB and more are not copied.
    ///
    /// # Errors
    /// The piece is left out as a whole, and the buffer stays as it was, when it gives
    /// - `TooLarge`: the buffer would hold more than its capacity;
    /// - `Corrupt`: the download would be longer than announced;
    /// - `Io` of kind [`BrokenPipe`](io::ErrorKind::BrokenPipe): nobody reads any more, since the job is over,
    ///   so the download can stop.
    pub fn append(&mut self, bytes: Bytes) -> Result<(), Error> {
        let mut state = self.buffer.lock();
        if state.readers == 0 {
            let what = "cannot append to the download".to_owned();
            return Err(Error::Io {
                what,
                cause: io::Error::new(io::ErrorKind::BrokenPipe, "the job is over"),
            });
        }
        let length = state.length.saturating_add(ByteSize::of(&bytes).get());
        if let Some(total) = self.buffer.total.filter(|total| length > *total) {
            let (length, total) = (ByteSize::new(length), ByteSize::new(total));
            return Err(Error::corrupt(format!(
                "the download is longer than announced: {length} instead of {total}"
            )));
        }
        if length > self.buffer.capacity {
            let (limit, allowed) = (LimitKind::InputBytes, self.buffer.capacity);
            return Err(Error::TooLarge { limit, found: length, allowed });
        }
        state.push(bytes);
        drop(state);
        self.buffer.changed.notify_all();
        Ok(())
    }

    /// Says that everything has arrived.
    ///
    /// When a total was announced and less has come, the job is told that the download stopped short.
    pub fn finish(self) {
        let length = self.buffer.lock().length;
        self.end(match self.buffer.total {
            Some(total) if length < total => End::Broken {
                kind: io::ErrorKind::UnexpectedEof,
                message: format!(
                    "the download stopped at {} of {}",
                    ByteSize::new(length),
                    ByteSize::new(total)
                ),
            },
            _ => End::Whole,
        });
    }

    /// Says that the download failed and why, in words for people; the job's error repeats them.
    pub fn fail(self, message: impl fmt::Display) {
        let message = format!("the download failed: {message}");
        self.end(End::Broken { kind: io::ErrorKind::Other, message });
    }

    /// Sets how the download ended; the first word counts.
    fn end(&self, end: End) {
        let mut state = self.buffer.lock();
        if matches!(state.end, End::Open) {
            state.end = end;
        }
        drop(state);
        self.buffer.changed.notify_all();
    }
}

impl Drop for GrowingWriter {
    fn drop(&mut self) {
        let message = "the download stopped before it was whole".to_owned();
        self.end(End::Broken { kind: io::ErrorKind::UnexpectedEof, message });
    }
}

impl fmt::Debug for GrowingWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GrowingWriter").field(&self.buffer).finish()
    }
}

/// The end that a job reads, as often as it likes. Dropping the last one frees the bytes and tells the writer
/// that it can stop.
pub(super) struct GrowingReader {
    buffer: Arc<Buffer>,
    position: u64,
}

impl GrowingReader {
    /// Reads what is there; waits when nothing is there yet and the end is not known to be reached.
    pub(super) fn read(&mut self, into: &mut [u8], control: &Control) -> io::Result<usize> {
        if into.is_empty() || self.buffer.total.is_some_and(|total| self.position >= total) {
            return Ok(0);
        }
        let mut state = self.buffer.lock();
        let count = loop {
            if self.position < state.length {
                match state.piece(self.position) {
                    Piece::Chunk(bytes) => {
                        // A large copy must not hold up the writer.
                        drop(state);
                        break copy(&bytes, into);
                    }
                    Piece::Tail(bytes) => break copy(bytes, into),
                }
            }
            if state.is_whole()? {
                break 0;
            }
            state = self.buffer.wait(state, control)?;
        };
        self.position = self.position.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        Ok(count)
    }

    /// Another reader of the same buffer, from its first byte on.
    pub(super) fn another(&self) -> Self {
        let mut state = self.buffer.lock();
        state.readers = state.readers.saturating_add(1);
        drop(state);
        Self { buffer: Arc::clone(&self.buffer), position: 0 }
    }

    pub(super) fn arrival(&self) -> Arrival {
        Arrival { buffer: Arc::clone(&self.buffer) }
    }

    /// Moves to where the next read begins, which may lie beyond what has arrived. To move in relation to the
    /// end waits until its place is known.
    pub(super) fn seek(&mut self, to: SeekFrom, control: &Control) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(target) => Some(target),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.length(control)?.checked_add_signed(by),
        };
        self.position = target
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a seek to before the first byte"))?;
        Ok(self.position)
    }

    fn length(&self, control: &Control) -> io::Result<u64> {
        if let Some(total) = self.buffer.total {
            return Ok(total);
        }
        let mut state = self.buffer.lock();
        while !state.is_whole()? {
            state = self.buffer.wait(state, control)?;
        }
        Ok(state.length)
    }
}

impl Drop for GrowingReader {
    fn drop(&mut self) {
        let mut state = self.buffer.lock();
        state.readers = state.readers.saturating_sub(1);
        if state.readers > 0 {
            return;
        }
        let unwanted = (mem::take(&mut state.chunks), mem::take(&mut state.tail));
        drop(state);
        drop(unwanted);
    }
}

/// What of a growing source has arrived; keeps none of its bytes alive.
#[derive(Clone)]
pub(crate) struct Arrival {
    buffer: Arc<Buffer>,
}

impl Arrival {
    /// The bytes from the first on that can be read without waiting; `None` when nothing more is waited for.
    pub(crate) fn bytes(&self) -> Option<ByteSize> {
        let state = self.buffer.lock();
        let whole = self.buffer.total.is_some_and(|total| state.length >= total);
        (matches!(state.end, End::Open) && !whole).then_some(ByteSize::new(state.length))
    }
}

impl fmt::Debug for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Arrival").field(&self.buffer).finish()
    }
}

impl fmt::Debug for GrowingReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GrowingReader").field(&self.buffer).finish()
    }
}

pub(super) fn buffer(capacity: ByteSize, total: Option<ByteSize>) -> (GrowingWriter, GrowingReader) {
    let state =
        State { chunks: Vec::new(), tail: Vec::new(), tail_start: 0, length: 0, end: End::Open, readers: 1 };
    let buffer = Arc::new(Buffer {
        capacity: capacity.get(),
        total: total.map(ByteSize::get),
        state: Mutex::new(state),
        changed: Condvar::new(),
    });
    (GrowingWriter { buffer: Arc::clone(&buffer) }, GrowingReader { buffer, position: 0 })
}

/// What writer and reader share. Counts are in bytes.
struct Buffer {
    capacity: u64,
    total: Option<u64>,
    state: Mutex<State>,
    changed: Condvar,
}

impl Buffer {
    /// Takes the lock, whose owner may have panicked: the state is whole between any two statements.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the writer, or for a stop, which is looked for every 50 ms since it has no bell.
    fn wait<'a>(&self, state: MutexGuard<'a, State>, control: &Control) -> io::Result<MutexGuard<'a, State>> {
        control.stop().map_err(stopped)?;
        Ok(self.changed.wait_timeout(state, STOP_CHECK).unwrap_or_else(PoisonError::into_inner).0)
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.lock().length;
        write!(f, "{length} bytes of ")?;
        match self.total {
            Some(total) => write!(f, "{total}"),
            None => f.write_str("an unknown number"),
        }
    }
}

struct State {
    /// In order and without gaps, from the first byte to `tail_start`; none is empty.
    chunks: Vec<Chunk>,
    /// Small pieces since the last chunk: a sender that drips byte by byte must not cost a chunk each, nor keep
    /// a whole network buffer alive for each.
    tail: Vec<u8>,
    tail_start: u64,
    /// All that has arrived.
    length: u64,
    end: End,
    readers: usize,
}

struct Chunk {
    start: u64,
    bytes: Bytes,
}

enum End {
    Open,
    Whole,
    Broken { kind: io::ErrorKind, message: String },
}

enum Piece<'a> {
    Chunk(Bytes),
    Tail(&'a [u8]),
}

impl State {
    fn push(&mut self, bytes: Bytes) {
        let length = self.length.saturating_add(ByteSize::of(&bytes).get());
        if bytes.len() < SMALL_PIECE {
            self.tail.extend_from_slice(&bytes);
            if self.tail.len() >= FULL_TAIL {
                self.close_tail(length);
            }
        } else {
            self.close_tail(self.length);
            self.chunks.push(Chunk { start: self.length, bytes });
            self.tail_start = length;
        }
        self.length = length;
    }

    /// Makes the tail a chunk that ends at `end`.
    fn close_tail(&mut self, end: u64) {
        if !self.tail.is_empty() {
            // A boxed slice has no spare room, which would stay for as long as the chunk does.
            let bytes = Bytes::from(mem::take(&mut self.tail).into_boxed_slice());
            self.chunks.push(Chunk { start: self.tail_start, bytes });
            self.tail_start = end;
        }
    }

    /// What lies from `position` to the end of its chunk.
    fn piece(&self, position: u64) -> Piece<'_> {
        if position >= self.tail_start {
            return Piece::Tail(from(&self.tail, position.saturating_sub(self.tail_start)));
        }
        let after = self.chunks.partition_point(|chunk| chunk.start <= position);
        let chunk = after.checked_sub(1).and_then(|index| self.chunks.get(index));
        Piece::Chunk(chunk.map_or_else(Bytes::new, |chunk| {
            chunk.bytes.slice_ref(from(&chunk.bytes, position.saturating_sub(chunk.start)))
        }))
    }

    /// Whether everything has arrived.
    fn is_whole(&self) -> io::Result<bool> {
        match &self.end {
            End::Open => Ok(false),
            End::Whole => Ok(true),
            End::Broken { kind, message } => Err(io::Error::new(*kind, message.clone())),
        }
    }
}

fn from(bytes: &[u8], offset: u64) -> &[u8] {
    usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default()
}

fn copy(bytes: &[u8], into: &mut [u8]) -> usize {
    let count = bytes.len().min(into.len());
    if let (Some(into), Some(bytes)) = (into.get_mut(..count), bytes.get(..count)) {
        into.copy_from_slice(bytes);
    }
    count
}

/// Half of the 100 ms in which a stop must take effect.
const STOP_CHECK: Duration = Duration::from_millis(50);
/// In bytes. A piece below costs less to copy than to keep track of; the overhead of one above is one percent.
const SMALL_PIECE: usize = 4 << 10;
/// In bytes. Where gathered pieces become a chunk: large enough that chunks are few, small enough that the
/// vector has been grown, and so copied, a few times only.
const FULL_TAIL: usize = 64 << 10;
