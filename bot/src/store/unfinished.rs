//! A file on its way to its name: whole under it, or gone. Everything here blocks.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file that is being written, under a name of its own that ends in `.part`. Locked as long as this lives, and
/// removed with it unless it was finished.
#[derive(Debug)]
#[must_use]
pub(crate) struct Unfinished {
    file: File,
    path: Option<PathBuf>,
}

impl Unfinished {
    /// A new file in this folder. It never opens what is there, so neither another writer nor a link that somebody
    /// put there is written to.
    pub(crate) fn create(dir: &Path) -> io::Result<Self> {
        Self::create_as(dir, || format!("{NAME}{:016x}.part", fastrand::u64(..)))
    }

    /// Removes a file of this kind whose writer is gone: then its lock can be had.
    pub(crate) fn remove_if_left(path: &Path) {
        // Nothing of ours is a link or a pipe, and to open one can take for ever.
        if !fs::symlink_metadata(path).is_ok_and(|facts| facts.is_file()) {
            return;
        }
        let Ok(file) = File::open(path) else { return };
        if file.try_lock().is_ok() {
            let _ = fs::remove_file(path);
        }
        // Unlocked only now: a writer who waited for the lock sees that its file is gone.
        drop(file);
    }

    /// Removes what writers that are gone left in this folder. What else stands there stays, whatever its name ends in.
    pub(crate) fn remove_leftovers(dir: &Path) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let is_ours = entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with(NAME) && name.ends_with(".part"));
            if is_ours {
                Self::remove_if_left(&entry.path());
            }
        }
    }

    fn create_as(dir: &Path, mut name: impl FnMut() -> String) -> io::Result<Self> {
        for _ in 0..CREATE_ATTEMPTS {
            let path = dir.join(name());
            let file = match File::options().write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            let unfinished = Self { file, path: Some(path) };
            // Waits at most for one who looks whether it is left over. Where locks do not work, nobody removes it.
            let _ = unfinished.file.lock();
            if unfinished.file.metadata()?.nlink() > 0 {
                return Ok(unfinished);
            }
            // It was taken for left over before it was locked.
        }
        Err(io::Error::other("each new file is there already or removed at once"))
    }

    /// Adds to the file.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Sets the file's time stamp, for after the last byte.
    pub(crate) fn stamp(&self, time: SystemTime) -> io::Result<()> {
        self.file.set_modified(time)
    }

    /// Gives the file its name, in place of what has it.
    pub(crate) fn finish(mut self, path: &Path) -> io::Result<()> {
        if let Some(from) = &self.path {
            fs::rename(from, path)?;
        }
        self.path = None;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // What stays is a leftover like that of a crash.
            let _ = fs::remove_file(path);
        }
    }
}

/// How the name of each begins, so that none of somebody else's is taken for one.
const NAME: &str = ".azalea-";

/// How often a new file is begun before something else must be wrong.
const CREATE_ATTEMPTS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_taken_name_is_left_alone_and_another_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("1.part"), folder.path().join("target"));
        fs::write(&target, b"precious").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut tried = 0;
        let mut unfinished = Unfinished::create_as(folder.path(), || {
            tried += 1;
            format!("{tried}.part")
        })
        .unwrap();
        unfinished.write(b"new").unwrap();
        assert_eq!(names(folder.path()), ["1.part", "2.part", "target"]);
        unfinished.finish(&folder.path().join("a.mp4")).unwrap();
        assert_eq!(names(folder.path()), ["1.part", "a.mp4", "target"]);
        assert_eq!(fs::read(target).unwrap(), b"precious");
    }

    #[test]
    fn what_writers_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let left_over = ".azalea-0123456789abcdef.part";
        for name in [left_over, "0123456789abcdef.part", ".azalea-film.mp4", "film.part"] {
            fs::write(folder.path().join(name), b"").unwrap();
        }
        // Opening a pipe that nobody writes to does not end; and what a link points at is somebody else's.
        let pipe = folder.path().join(".azalea-pipe.part");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink("film.part", folder.path().join(".azalea-link.part")).unwrap();
        let under_way = Unfinished::create(folder.path()).unwrap();
        Unfinished::remove_leftovers(folder.path());
        let left = names(folder.path());
        assert_eq!(left.len(), 6, "{left:?}");
        assert!(!left.contains(&left_over.to_owned()), "{left:?}");
        drop(under_way);
        assert_eq!(names(folder.path()).len(), 5);
        Unfinished::remove_leftovers(&folder.path().join("not there"));
    }

    #[test]
    fn names_that_are_all_taken_are_a_failure_and_no_wait() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("1.part"), b"theirs").unwrap();
        assert!(Unfinished::create_as(folder.path(), || "1.part".to_owned()).is_err());
        assert_eq!(fs::read(folder.path().join("1.part")).unwrap(), b"theirs");
    }

    #[test]
    fn what_is_dropped_or_cannot_get_its_name_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        drop(Unfinished::create(folder.path()).unwrap());
        let unfinished = Unfinished::create(folder.path()).unwrap();
        assert!(unfinished.finish(&folder.path().join("not there/a.mp4")).is_err());
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
