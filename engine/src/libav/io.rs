//! The only way that bytes reach libav: a [`Medium`] behind an `AVIOContext`.

use std::ffi::{c_int, c_void};
use std::io::{Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use ffmpeg_next::error::{EINVAL, EIO};
use ffmpeg_next::ffi as sys;

use super::Fault;
use crate::progress::Control;
use crate::units::ByteSize;

/// Bytes that can be read at any place.
pub(crate) trait Medium: Read + Seek + Send + std::fmt::Debug {
    /// The whole length. May wait for it.
    fn size(&mut self) -> std::io::Result<ByteSize>;

    /// The same bytes for another reader beside this one, from the first on; `None` where only one can read.
    fn another(&self) -> Option<Box<dyn Medium>>;
}

/// A custom I/O context and the reader behind it.
#[derive(Debug)]
pub(super) struct Io {
    context: *mut sys::AVIOContext,
    /// Boxed so that its address, which libav holds, never changes.
    state: Box<State>,
}

#[derive(Debug)]
struct State {
    /// `None` once it was taken out to be opened anew.
    reader: Option<Box<dyn Medium>>,
    control: Arc<Control>,
    /// The first failure of the reader that is neither the end nor a stop.
    failure: Option<std::io::Error>,
}

impl Io {
    pub(super) fn new(reader: Box<dyn Medium>, control: Arc<Control>) -> Result<Self, Fault> {
        let mut state = Box::new(State { reader: Some(reader), control, failure: None });
        // SAFETY: a plain allocation; checked for null.
        let buffer = unsafe { sys::av_malloc(BUFFER) };
        if buffer.is_null() {
            return Err(Fault::out_of_memory());
        }
        let opaque: *mut State = &raw mut *state;
        // SAFETY: the buffer is BUFFER bytes of av_malloc memory whose ownership passes to the context; the
        // opaque pointer is to a boxed State that `Io` keeps alive until the context is freed, and that is
        // touched by nobody else while libav runs, since every call into libav needs `&mut` of the owner.
        let context = unsafe {
            sys::avio_alloc_context(
                buffer.cast(),
                BUFFER_LENGTH,
                0,
                opaque.cast(),
                Some(read),
                None,
                Some(seek),
            )
        };
        if context.is_null() {
            // SAFETY: the buffer was not taken over.
            unsafe { sys::av_free(buffer) };
            return Err(Fault::out_of_memory());
        }
        Ok(Self { context, state })
    }

    pub(super) const fn as_ptr(&self) -> *mut sys::AVIOContext {
        self.context
    }

    /// Takes the reader's failure, if one ended the reading.
    pub(super) fn take_failure(&mut self) -> Option<std::io::Error> {
        self.state.failure.take()
    }

    /// Takes the reader out; what libav reads from now on is the end.
    pub(super) fn take_reader(&mut self) -> Option<Box<dyn Medium>> {
        self.state.reader.take()
    }

    /// Another reader of the same bytes.
    pub(super) fn another_reader(&self) -> Option<Box<dyn Medium>> {
        self.state.reader.as_ref()?.another()
    }

    /// The pointer for interrupt callbacks; valid as long as this value.
    pub(super) fn control_ptr(&self) -> *const Control {
        Arc::as_ptr(&self.state.control)
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        // SAFETY: the context is ours; libav may have replaced its buffer, so the current one is freed.
        unsafe {
            sys::av_freep(ptr::addr_of_mut!((*self.context).buffer).cast());
            sys::avio_context_free(&raw mut self.context);
        }
    }
}

/// Asked by libav inside long loops.
///
/// # Safety
/// `opaque` points to a live `Control`.
pub(super) unsafe extern "C" fn interrupted(opaque: *mut c_void) -> c_int {
    // SAFETY: the caller's promise; Control is Sync, so a shared reference from any thread is fine.
    let control = unsafe { &*opaque.cast::<Control>() };
    c_int::from(control.stop().is_err())
}

/// # Safety
/// `opaque` points to a live `State` that nobody else uses, `buffer` is writable for `length` bytes.
unsafe extern "C" fn read(opaque: *mut c_void, buffer: *mut u8, length: c_int) -> c_int {
    let Ok(length) = usize::try_from(length) else { return sys::AVERROR(EINVAL) };
    // SAFETY: the caller's promise, see `Io::new`.
    let state = unsafe { &mut *opaque.cast::<State>() };
    // SAFETY: libav hands its own buffer of at least `length` initialised or plain bytes; u8 has no invalid values.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer, length) };
    // A panic must not unwind into C.
    catch_unwind(AssertUnwindSafe(|| state.read(buffer))).unwrap_or(sys::AVERROR_EXTERNAL)
}

/// # Safety
/// `opaque` points to a live `State` that nobody else uses.
unsafe extern "C" fn seek(opaque: *mut c_void, offset: i64, whence: c_int) -> i64 {
    // SAFETY: the caller's promise, see `Io::new`.
    let state = unsafe { &mut *opaque.cast::<State>() };
    catch_unwind(AssertUnwindSafe(|| state.seek(offset, whence))).unwrap_or(i64::from(sys::AVERROR_EXTERNAL))
}

impl State {
    fn read(&mut self, buffer: &mut [u8]) -> c_int {
        if self.control.stop().is_err() {
            return sys::AVERROR_EXIT;
        }
        let Some(reader) = &mut self.reader else { return sys::AVERROR_EOF };
        match reader.read(buffer) {
            Ok(0) if !buffer.is_empty() => sys::AVERROR_EOF,
            Ok(count) => c_int::try_from(count).unwrap_or(sys::AVERROR(EINVAL)),
            Err(error) => self.failed(error),
        }
    }

    fn seek(&mut self, offset: i64, whence: c_int) -> i64 {
        let Some(reader) = &mut self.reader else { return i64::from(sys::AVERROR_EOF) };
        if whence & sys::AVSEEK_SIZE != 0 {
            return match reader.size() {
                Ok(size) => i64::try_from(size.get()).unwrap_or(i64::MAX),
                Err(error) => i64::from(self.failed(error)),
            };
        }
        // SEEK_SET, SEEK_CUR and SEEK_END are 0, 1 and 2 in every C library.
        let to = match (whence & 0xff, u64::try_from(offset)) {
            (0, Ok(offset)) => SeekFrom::Start(offset),
            (1, _) => SeekFrom::Current(offset),
            (2, _) => SeekFrom::End(offset),
            _ => return i64::from(sys::AVERROR(EINVAL)),
        };
        match reader.seek(to) {
            Ok(position) => i64::try_from(position).unwrap_or(i64::MAX),
            Err(error) => i64::from(self.failed(error)),
        }
    }

    fn failed(&mut self, error: std::io::Error) -> c_int {
        if self.control.stop().is_err() {
            return sys::AVERROR_EXIT;
        }
        self.failure.get_or_insert(error);
        sys::AVERROR(EIO)
    }
}

/// One read: large enough that a call costs little, small enough that a seek wastes little.
const BUFFER: usize = 64 * 1024;
const BUFFER_LENGTH: c_int = 64 * 1024;
