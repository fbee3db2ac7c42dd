//! From what lies in the folder to a queue that can be worked with.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::EmbeddedSettings;
use super::ballast::Ballast;
use super::disk::{Broken, Disk, Loaded};
use super::failure::DiskError;
use super::marker::Marker;
use super::shared::{QueueHealth, QueueState};
use crate::clock::{Clock, WallTime};
use crate::queue::MemoryQueue;
use crate::queue::book::{Book, BookSettings};

/// Why a queue could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it.
    #[error("{} is open in another process; stop it, or give this one another folder", file.display())]
    InUse {
        /// The file.
        file: PathBuf,
    },
    /// The folder is not there and cannot be made.
    #[error("the folder {} cannot be made", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The disk or the system says no.
    #[error("{} cannot be opened: {what}", file.display())]
    Failed {
        /// The file.
        file: PathBuf,
        /// Why.
        what: String,
    },
    /// There is no thread for it.
    #[error("the queue's thread cannot be started")]
    Thread(#[source] std::io::Error),
}

/// What the writer begins with.
pub(super) struct Stock {
    pub(super) book: Book,
    pub(super) disk: Disk,
    pub(super) ballast: Ballast,
    /// There is less room than is to be held back.
    pub(super) full: bool,
}

/// Opens what is in the folder. Blocks.
pub(super) fn open(settings: &EmbeddedSettings, now: WallTime) -> Result<(Stock, QueueHealth), OpenError> {
    let folder = settings.folder.clone();
    fs::create_dir_all(&folder).map_err(|source| OpenError::Folder { folder: folder.clone(), source })?;
    let marker = Marker::read(&folder);
    let ballast = Ballast::new(folder.clone(), settings.ballast_bytes);
    let mut disk = Disk::new(folder.clone(), settings.cache_bytes);
    let mut health = QueueHealth::default();
    let was_missing = disk.file_bytes() == 0;

    let mut read = read_book(&mut disk, settings.book, now);
    if matches!(read, Err(DiskError::Full(_))) && ballast.free() {
        read = read_book(&mut disk, settings.book, now);
    }
    if let Err(DiskError::Damaged(what)) = &read {
        let aside = disk.move_aside(now).map_err(|error| failed(&disk, &error))?;
        tracing::error!(
            file = %disk.path().display(),
            aside = %aside.display(),
            "the queue's file is damaged ({what}); it was moved aside, and the queue begins anew without its jobs"
        );
        health.last_error = Some(what.clone());
        health.moved_aside = Some(aside);
        read = read_book(&mut disk, settings.book, now);
    }
    let (book, broken) = read.map_err(|error| failed(&disk, &error))?;

    // From here on the file is ours.
    if was_missing && marker.promises_jobs() {
        say_missing(&disk.path(), marker);
        health.file_was_missing = true;
    }
    health.broken_records = broken.len();
    say_broken(&disk.path(), &broken);
    if let Err(error) = Marker::InUse.write(&folder) {
        tracing::warn!("that the queue is in use could not be noted beside it: {error}");
    }
    let mut full = false;
    match if ballast.is_held() { Ok(()) } else { ballast.hold() } {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::StorageFull => {
            full = true;
            tracing::error!(
                folder = %folder.display(),
                "there is no room to hold {} bytes back beside the queue; it takes nothing new until there is",
                ballast.bytes()
            );
        }
        // It works without, until the disk is full.
        Err(error) => tracing::error!(
            file = %ballast.path().display(),
            "no room can be held back beside the queue: {error}"
        ),
    }
    health.state = if full { QueueState::Full } else { QueueState::Working };
    health.ballast_held = ballast.is_held();
    health.file_bytes = disk.file_bytes();
    Ok((Stock { book, disk, ballast, full }, health))
}

/// What is in the folder, in memory.
pub(super) fn look(settings: &EmbeddedSettings, clock: Clock) -> Result<MemoryQueue, OpenError> {
    let disk = Disk::new(settings.folder.clone(), settings.cache_bytes);
    let Loaded { entries, ended, counters, broken } = disk.look().map_err(|error| failed(&disk, &error))?;
    say_broken(&disk.path(), &broken);
    let book = Book::restore(settings.book, entries, ended, counters, clock.now());
    Ok(MemoryQueue::holding(book, clock))
}

/// Reads the file and makes a book of it. What is changed by that is stored before it is returned.
pub(super) fn read_book(
    disk: &mut Disk,
    settings: BookSettings,
    now: WallTime,
) -> Result<(Book, Vec<Broken>), DiskError> {
    let loaded = disk.open()?;
    let mut book = Book::restore(settings, loaded.entries, loaded.ended, loaded.counters, now);
    let changes = book.changes();
    if !changes.is_empty() || !loaded.broken.is_empty() {
        disk.write(&changes, &book.counters(), &loaded.broken, now)?;
    }
    book.commit();
    Ok((book, loaded.broken))
}

fn say_missing(file: &Path, marker: Marker) {
    let held = match marker {
        Marker::Holds(jobs) => format!("{jobs} jobs"),
        Marker::None | Marker::Empty | Marker::InUse => "jobs, perhaps".to_owned(),
    };
    tracing::error!(
        file = %file.display(),
        "the queue's file is missing or empty, although it held {held}; they are lost unless you have it elsewhere"
    );
}

fn say_broken(file: &Path, broken: &[Broken]) {
    let Some(first) = broken.first() else { return };
    tracing::error!(
        file = %file.display(),
        "{} records of the queue cannot be read and were put into its table of broken ones; the first is {}: {}",
        broken.len(),
        first.row,
        first.why
    );
}

fn failed(disk: &Disk, error: &DiskError) -> OpenError {
    match error {
        DiskError::InUse => OpenError::InUse { file: disk.path() },
        other => OpenError::Failed { file: disk.path(), what: other.to_string() },
    }
}
