//! A file beside the database that says whether there was one with something in it.
//!
//! redb takes a missing or empty file for a new one. After a crash of the file system, or a slip of the hand, that
//! would be a queue that lost everything and says nothing.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::disk::sync_folder;

/// The file's name in its folder.
pub(super) const FILE: &str = "queue.marker";

/// The name under which it is written, until it is whole.
const PART: &str = "queue.marker.part";

/// What the marker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    /// There was no queue yet.
    None,
    /// It was closed with no job in it.
    Empty,
    /// It was closed with this many jobs in it, dead ones among them.
    Holds(u64),
    /// It is in use, or was when its process died.
    InUse,
}

impl Marker {
    /// What is said in this folder. What cannot be read counts as in use: something was there.
    pub(super) fn read(folder: &Path) -> Self {
        let text = match fs::read_to_string(folder.join(FILE)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::None,
            Err(_) => return Self::InUse,
        };
        match text.trim().strip_prefix("closed ").and_then(|jobs| jobs.parse().ok()) {
            Some(0) => Self::Empty,
            Some(jobs) => Self::Holds(jobs),
            None => Self::InUse,
        }
    }

    /// Says it in this folder, durably.
    ///
    /// # Errors
    /// When the disk does not take it; then what was said before still stands.
    pub(super) fn write(self, folder: &Path) -> io::Result<()> {
        let text = match self {
            Self::None => return Ok(()),
            Self::Empty => "closed 0\n".to_owned(),
            Self::Holds(jobs) => format!("closed {jobs}\n"),
            Self::InUse => "in use\n".to_owned(),
        };
        let part = folder.join(PART);
        let mut file = File::create(&part)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, folder.join(FILE))?;
        sync_folder(folder)
    }

    /// Whether a database that is not there now is a loss.
    pub(super) const fn promises_jobs(self) -> bool {
        match self {
            Self::None | Self::Empty => false,
            Self::Holds(_) | Self::InUse => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_says_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Marker::read(folder.path()), Marker::None);
        for marker in [Marker::InUse, Marker::Empty, Marker::Holds(12)] {
            marker.write(folder.path()).unwrap();
            assert_eq!(Marker::read(folder.path()), marker);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no part is left");
    }

    #[test]
    fn a_damaged_marker_promises_jobs() {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [&b""[..], b"closed", b"closed -1", b"closed x", &[0xff, 0xfe], &[0; 64]] {
            fs::write(folder.path().join(FILE), bytes).unwrap();
            assert!(Marker::read(folder.path()).promises_jobs(), "{bytes:?}");
        }
    }
}
