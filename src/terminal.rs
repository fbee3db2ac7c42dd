//! Standard output and standard error: lines that survive a closed pipe, progress bars that stand only on a
//! terminal, and texts that cannot drive one.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use azalea_engine::{Progress, Stage};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Both standard streams and the bars that share the terminal with them.
#[derive(Debug)]
pub(crate) struct Screen {
    bars: MultiProgress,
    /// The reader of standard output has gone away; nothing more is written there.
    closed: Cell<bool>,
}

impl Screen {
    /// The process's own streams.
    pub(crate) fn new() -> Self {
        // Hides itself when standard error is no terminal.
        let target = ProgressDrawTarget::stderr_with_hz(BAR_HZ);
        Self { bars: MultiProgress::with_draw_target(target), closed: Cell::new(false) }
    }

    /// Whether a person watches standard error.
    pub(crate) fn is_watched(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// Writes one line to standard output, at once. A reader who has gone away is no error.
    ///
    /// # Errors
    /// What else kept the line from being written, such as a full disk.
    pub(crate) fn print(&self, line: &str) -> io::Result<()> {
        self.lenient(line.as_bytes(), b"\n")
    }

    /// Writes a text of whole lines to standard output in one piece. A reader who has gone away is no error.
    ///
    /// # Errors
    /// As of [`Screen::print`].
    pub(crate) fn print_text(&self, text: &str) -> io::Result<()> {
        if text.is_empty() { Ok(()) } else { self.lenient(text.as_bytes(), b"") }
    }

    /// Writes bytes to standard output as they are.
    ///
    /// # Errors
    /// What kept them from being written; `BrokenPipe` when the reader has gone away.
    pub(crate) fn write_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes, b"")
    }

    /// Writes `label: text` as one line to standard error; `text` has been made safe by [`escape`].
    pub(crate) fn complain(&self, label: &str, text: &str) {
        self.bars.suspend(|| {
            // There is no better place to tell that standard error is gone.
            let _ = io::stderr().lock().write_all(format!("{label}: {text}\n").as_bytes());
        });
    }

    /// Writes one line to standard error for a person who watches; silent when nobody does.
    pub(crate) fn note(&self, text: &str) {
        if self.is_watched() {
            self.bars.suspend(|| {
                // There is no better place to tell that standard error is gone.
                let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
            });
        }
    }

    /// A bar for one job; silent when standard error is no terminal.
    pub(crate) fn bar(&self, name: &Path) -> Bar {
        let bar = self.bars.add(ProgressBar::new(BAR_STEPS));
        // The template is a constant, so a mistake in it shows in every run; a plain bar is then good enough.
        if let Ok(style) =
            ProgressStyle::with_template("{prefix:24!} {bar:30} {percent:>3}% {elapsed:>4} {wide_msg}")
        {
            bar.set_style(style);
        }
        bar.set_prefix(path(Path::new(name.file_name().unwrap_or(name.as_os_str()))));
        Bar(bar)
    }

    fn lenient(&self, bytes: &[u8], end: &[u8]) -> io::Result<()> {
        match self.write(bytes, end) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed.set(true);
                Ok(())
            }
            other => other,
        }
    }

    fn write(&self, bytes: &[u8], end: &[u8]) -> io::Result<()> {
        if self.closed.get() {
            return Ok(());
        }
        self.bars.suspend(|| {
            let mut stdout = io::stdout().lock();
            stdout.write_all(bytes)?;
            stdout.write_all(end)?;
            stdout.flush()
        })
    }
}

/// One job's progress bar. It is wiped away on drop.
#[derive(Debug)]
#[must_use]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Shows how far the job is.
    pub(crate) fn show(&self, progress: Progress) {
        if self.0.is_hidden() {
            return;
        }
        self.0.set_position(steps(progress.fraction));
        let speed = if progress.stage == Stage::Video && progress.speed > 0.0 {
            format!(" {:.1}x", progress.speed)
        } else {
            String::new()
        };
        self.0.set_message(format!("{}{speed}", progress.stage.name()));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// `text` in one line that shows all that is in it and cannot drive a terminal: control characters, and format
/// characters that turn the direction of writing or take no room, are shown as escapes.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_unseen(c) {
            // Writing to a string cannot fail.
            let _ = write!(safe, "{}", c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Separators of lines, and the format characters (Unicode's class Cf) that nobody sees. The signs of that class that
/// stand above or before numbers in Arabic, Syriac and Kaithi are seen.
const fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}'
    )
}

/// A path in one line that cannot drive a terminal; bytes that are no text are shown as replacement characters.
pub(crate) fn path(path: &Path) -> String {
    escape(&path.to_string_lossy())
}

/// A length as people say it: `12.3 s`, `3:05`, `1:02:03`.
pub(crate) fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    // 59.95 and more would round to "60.0 s".
    if seconds < 59.95 {
        return format!("{seconds:.1} s");
    }
    let whole = duration.saturating_add(Duration::from_millis(500)).as_secs();
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=1000 just before")]
fn steps(fraction: f32) -> u64 {
    (f64::from(fraction) * 1000.0).clamp(0.0, 1000.0) as u64
}

/// Steps of a bar: finer than any terminal is wide.
const BAR_STEPS: u64 = 1000;

/// Redraws per second: as often as the jobs are asked for their progress.
const BAR_HZ: u8 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_shown_as_they_are() {
        let name = "clip: part 1 – été 🎬 100%d (1).mp4";
        assert_eq!(escape(name), name);
    }

    #[test]
    fn nothing_that_drives_a_terminal_is_left() {
        assert_eq!(
            escape("a\nb\tc\x07\x1b]0;x\u{9b}2J\u{2028}"),
            "a\\nb\\tc\\u{7}\\u{1b}]0;x\\u{9b}2J\\u{2028}"
        );
    }

    #[test]
    fn characters_that_nobody_sees_are_shown() {
        for (text, shown) in [
            ("a\u{200e}b\u{200f}", "a\\u{200e}b\\u{200f}"),
            ("\u{61c}\u{202e}\u{2066}", "\\u{61c}\\u{202e}\\u{2066}"),
            ("\u{200b}\u{200d}\u{2060}\u{feff}", "\\u{200b}\\u{200d}\\u{2060}\\u{feff}"),
            ("\u{ad}\u{180e}\u{fff9}\u{1d173}", "\\u{ad}\\u{180e}\\u{fff9}\\u{1d173}"),
            ("\u{e0001}\u{e0041}\u{e007f}", "\\u{e0001}\\u{e0041}\\u{e007f}"),
            // Neighbours of theirs, and signs of their class that are seen.
            ("\u{200a}\u{2010}\u{202f}\u{600}\u{6dd}שלום", "\u{200a}\u{2010}\u{202f}\u{600}\u{6dd}שלום"),
        ] {
            assert_eq!(escape(text), shown);
        }
    }

    #[test]
    fn lengths_read_as_people_say_them() {
        for (millis, text) in [
            (0, "0.0 s"),
            (12_340, "12.3 s"),
            (59_940, "59.9 s"),
            (59_960, "1:00"),
            (185_000, "3:05"),
            (3_723_000, "1:02:03"),
        ] {
            assert_eq!(clock(Duration::from_millis(millis)), text);
        }
    }
}
