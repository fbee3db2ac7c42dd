//! libav's log, turned into `tracing` events.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ffmpeg_next::ffi as sys;

thread_local! {
    static ERRORS: Cell<u64> = const { Cell::new(0) };
}

/// How many lines of level "error" or worse libav has written on this thread so far.
///
/// A decoder that conceals damage reports success; only its log says that the picture is not whole. With one
/// codec thread a decoder logs on the thread that calls it.
pub(crate) fn errors_logged_here() -> u64 {
    ERRORS.with(Cell::get)
}

/// Sends libav's log to `tracing` from now on; nothing reaches stderr.
pub(super) fn install() {
    // SAFETY: the callback has the type that libav declares, keeps nothing that it is given, and may be
    // called from any thread.
    unsafe {
        sys::av_log_set_level(sys::AV_LOG_VERBOSE);
        sys::av_log_set_callback(Some(callback));
    }
}

/// libav calls this from any of its threads.
///
/// # Safety
/// `context` is null or a libav object, `format` and `arguments` belong together as for `vprintf`.
#[cfg(all(target_arch = "x86_64", not(windows)))]
unsafe extern "C" fn callback(
    context: *mut c_void,
    level: c_int,
    format: *const c_char,
    arguments: *mut sys::__va_list_tag,
) {
    if !wanted(level) {
        return;
    }
    let mut line: [c_char; LINE] = [0; LINE];
    let mut prefix: c_int = 1;
    // SAFETY: the caller's promise covers context, format and arguments; the buffer is writable for LINE bytes.
    let length = unsafe {
        sys::av_log_format_line2(
            context,
            level,
            format,
            arguments,
            line.as_mut_ptr(),
            LINE_LENGTH,
            &raw mut prefix,
        )
    };
    deliver(level, length, &line);
}

/// The same where `va_list` is another type: the words are passed on without their arguments.
///
/// # Safety
/// `format` is a NUL-terminated string.
#[cfg(not(all(target_arch = "x86_64", not(windows))))]
unsafe extern "C" fn callback(
    _context: *mut c_void,
    level: c_int,
    format: *const c_char,
    _arguments: sys::va_list,
) {
    if !wanted(level) || format.is_null() {
        return;
    }
    let mut line: [c_char; LINE] = [0; LINE];
    // SAFETY: libav's format strings are NUL-terminated literals.
    let bytes = unsafe { CStr::from_ptr(format) }.to_bytes_with_nul();
    for (to, from) in line.iter_mut().take(LINE - 1).zip(bytes) {
        *to = c_char::try_from(*from).unwrap_or(0);
    }
    deliver(level, 1, &line);
}

/// Counts errors, and says whether anybody reads lines of this level.
fn wanted(level: c_int) -> bool {
    if level <= sys::AV_LOG_ERROR {
        // A thread that is being torn down has no counter any more; its lines are not counted.
        let _ = ERRORS.try_with(|count| count.set(count.get().saturating_add(1)));
    }
    if level <= sys::AV_LOG_ERROR {
        tracing::enabled!(target: "libav", tracing::Level::WARN)
    } else if level <= sys::AV_LOG_WARNING {
        tracing::enabled!(target: "libav", tracing::Level::DEBUG)
    } else {
        level <= sys::AV_LOG_VERBOSE && tracing::enabled!(target: "libav", tracing::Level::TRACE)
    }
}

fn deliver(level: c_int, length: c_int, line: &[c_char; LINE]) {
    if length <= 0 {
        return;
    }
    // SAFETY: both writers above end the text inside the buffer with NUL.
    let text = unsafe { CStr::from_ptr(line.as_ptr()) }.to_string_lossy();
    let text = text.trim_end();
    let Some(suppressed) = admit() else { return };
    // Errors of the input's decoder are warnings to the operator: the job's own error says what they led to.
    if level <= sys::AV_LOG_ERROR {
        tracing::warn!(target: "libav", suppressed, "{text}");
    } else if level <= sys::AV_LOG_WARNING {
        tracing::debug!(target: "libav", suppressed, "{text}");
    } else {
        tracing::trace!(target: "libav", suppressed, "{text}");
    }
}

/// Lets at most [`BURST`] lines through in each [`WINDOW`]; tells the first line of a window how many were lost.
fn admit() -> Option<u64> {
    struct Gate {
        since: Option<Instant>,
        passed: u32,
        lost: u64,
    }
    static GATE: Mutex<Gate> = Mutex::new(Gate { since: None, passed: 0, lost: 0 });
    // A damaged file can log thousands of lines a second; a poisoned lock only means that one line was lost.
    let mut gate = GATE.lock().ok()?;
    let now = Instant::now();
    if gate.since.is_none_or(|since| now.duration_since(since) >= WINDOW) {
        let lost = gate.lost;
        *gate = Gate { since: Some(now), passed: 1, lost: 0 };
        return Some(lost);
    }
    if gate.passed < BURST {
        gate.passed += 1;
        Some(0)
    } else {
        gate.lost = gate.lost.saturating_add(1);
        None
    }
}

/// Longer lines are cut by libav.
const LINE: usize = 512;
const LINE_LENGTH: c_int = 512;
const BURST: u32 = 20;
const WINDOW: Duration = Duration::from_secs(1);
