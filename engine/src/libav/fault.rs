//! libav's answers as values.

use std::ffi::CStr;

use ffmpeg_next::error::{EAGAIN, ENOMEM};
use ffmpeg_next::ffi as sys;

use crate::error::Error;

/// A negative return value of libav.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault(i32);

/// What a send or receive call answers: an item, "feed me" or "finished".
#[derive(Debug)]
pub(crate) enum Answer<T> {
    /// Here is one.
    Item(T),
    /// Nothing yet: give more input first.
    FeedMe,
    /// Nothing any more.
    Finished,
}

impl Fault {
    /// Splits a return value into a count and a fault.
    pub(super) fn check(code: i32) -> Result<i32, Self> {
        if code < 0 { Err(Self(code)) } else { Ok(code) }
    }

    /// Something that libav answers with a null pointer, which only happens when memory is short.
    pub(super) const fn out_of_memory() -> Self {
        Self(sys::AVERROR(ENOMEM))
    }

    pub(super) const fn again() -> i32 {
        sys::AVERROR(EAGAIN)
    }

    pub(super) fn is_again(self) -> bool {
        self.0 == Self::again()
    }

    pub(super) fn is_end(self) -> bool {
        self.0 == sys::AVERROR_EOF
    }

    /// Whether the job was told to stop inside a callback.
    pub(crate) fn is_exit(self) -> bool {
        self.0 == sys::AVERROR_EXIT
    }

    /// Whether the data is to blame, not the machine.
    pub(crate) fn is_bad_data(self) -> bool {
        self.0 == sys::AVERROR_INVALIDDATA
    }

    /// libav's own words, lower case.
    pub(crate) fn text(self) -> String {
        let mut buffer = [0; 128];
        // SAFETY: the buffer is writable for its whole length and libav ends it with NUL.
        let filled = unsafe { sys::av_strerror(self.0, buffer.as_mut_ptr(), buffer.len()) };
        if filled < 0 {
            return format!("libav error {}", self.0);
        }
        // SAFETY: av_strerror wrote a NUL-terminated string into the buffer, which lives until the copy.
        let text = unsafe { CStr::from_ptr(buffer.as_ptr()) }.to_string_lossy();
        let mut letters = text.chars();
        letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
    }

    /// This fault as an internal error of the engine.
    pub(crate) fn internal(self, tried: &str) -> Error {
        Error::internal(format!("{tried}: {}", self.text()))
    }
}
