//! Room that is held back for the day on which the disk is full.
//!
//! On a full disk not even a job that is done can be stored. Then this file is removed, new jobs are refused, and
//! those that are there are worked off in the room that it left, until there is enough to hold it back again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use rustix::fs::{FallocateFlags, fallocate, statvfs};

/// The file's name in its folder.
pub(super) const FILE: &str = "queue.ballast";

/// At most one part in so many of the disk is held back.
const LARGEST_PART: u64 = 8;

/// What has to be free besides, before room is held back again.
const SPARE_BYTES: u64 = 1 << 20;

/// The file.
#[derive(Debug)]
pub(super) struct Ballast {
    folder: PathBuf,
    bytes: u64,
}

impl Ballast {
    /// `bytes` held back in this folder, which is there, but never more than an eighth of its disk; zero holds nothing
    /// back.
    pub(super) fn new(folder: PathBuf, bytes: u64) -> Self {
        let whole = statvfs(folder.as_path()).map(|system| system.f_blocks.saturating_mul(system.f_frsize));
        // Some file systems do not say how large they are.
        let most = whole.ok().filter(|bytes| *bytes > 0).map_or(u64::MAX, |bytes| bytes / LARGEST_PART);
        Self { folder, bytes: bytes.min(most) }
    }

    /// How much it is.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the room is held back.
    pub(super) fn is_held(&self) -> bool {
        self.bytes == 0
            || fs::metadata(self.path()).is_ok_and(|file| file.is_file() && file.len() == self.bytes)
    }

    /// Gives the room free. Whether there was any.
    pub(super) fn free(&self) -> bool {
        fs::remove_file(self.path()).is_ok()
    }

    /// Holds the room back, when there is so much and some more.
    ///
    /// # Errors
    /// `StorageFull` when there is not, another when it cannot be held back; then nothing is.
    pub(super) fn hold(&self) -> io::Result<()> {
        if self.free_bytes()? < self.bytes.saturating_add(SPARE_BYTES) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if self.bytes == 0 {
            return Ok(());
        }
        let made = self.make();
        if made.is_err() {
            self.free();
        }
        made.map_err(|error| match error.kind() {
            io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => io::ErrorKind::StorageFull.into(),
            _ => error,
        })
    }

    fn make(&self) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(self.path())?;
        if fallocate(&file, FallocateFlags::empty(), 0, self.bytes).is_err() {
            // Not every file system can reserve room; all of them can be written to.
            write_zeros(&mut file, self.bytes)?;
        }
        file.sync_all()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let system = statvfs(self.folder.as_path())?;
        Ok(system.f_bavail.saturating_mul(system.f_frsize))
    }

    /// Where the file is, or would be.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }
}

fn write_zeros(file: &mut File, bytes: u64) -> io::Result<()> {
    static PIECE: [u8; 1 << 16] = [0; 1 << 16];
    let mut left = bytes;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE.len());
        file.write_all(PIECE.get(..now).unwrap_or_default())?;
        left = left.saturating_sub(u64::try_from(now).unwrap_or(u64::MAX));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_back_is_really_taken_and_given_free() {
        let folder = tempfile::tempdir().unwrap();
        let ballast = Ballast::new(folder.path().to_owned(), 1 << 20);
        assert!(!ballast.is_held());
        ballast.hold().unwrap();
        assert!(ballast.is_held());
        let file = fs::metadata(folder.path().join(FILE)).unwrap();
        assert!(
            std::os::unix::fs::MetadataExt::blocks(&file) * 512 >= 1 << 20,
            "a sparse file holds nothing"
        );
        assert!(ballast.free() && !ballast.is_held() && !ballast.free());
    }

    #[test]
    fn what_is_not_there_is_not_held_back() {
        let folder = tempfile::tempdir().unwrap();
        let ballast = Ballast { folder: folder.path().to_owned(), bytes: u64::MAX / 2 };
        assert_eq!(ballast.hold().unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// Once, a disk of 8 MiB never stored anything, since 16 MiB were to be held back on it.
    #[test]
    fn of_a_small_disk_a_part_is_held_back() {
        let folder = tempfile::tempdir().unwrap();
        let system = statvfs(folder.path()).unwrap();
        let whole = system.f_blocks * system.f_frsize;
        assert_eq!(Ballast::new(folder.path().to_owned(), u64::MAX).bytes(), whole / 8);
        assert_eq!(Ballast::new(folder.path().to_owned(), 1 << 20).bytes(), 1 << 20);
    }

    #[test]
    fn what_stands_in_its_place_is_said() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(FILE)).unwrap();
        let ballast = Ballast::new(folder.path().to_owned(), 1 << 20);
        assert_eq!(ballast.hold().unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert!(!ballast.is_held());
    }

    #[test]
    fn no_ballast_is_always_held() {
        let folder = tempfile::tempdir().unwrap();
        let ballast = Ballast::new(folder.path().to_owned(), 0);
        assert!(ballast.is_held() && ballast.hold().is_ok() && !ballast.free());
    }

    #[test]
    fn zeros_are_written_where_room_cannot_be_reserved() {
        let mut file = tempfile::tempfile().unwrap();
        write_zeros(&mut file, 100_001).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 100_001);
    }
}
