//! Names behind numbers: a terminal's channels and people have names, and the service knows numbers.
//!
//! A number is made of its name and is the same in every run. The way back is a list, kept in a file, since an answer
//! may come in a later run than its question.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use dashmap::DashMap;
use tokio::io::AsyncWriteExt;

/// Names that are kept at most; those beyond it keep their numbers and lose their names with the process.
const MOST: usize = 10_000;
/// In bytes. Longer names are not kept in the file.
const LONGEST: usize = 256;

/// Names by their numbers.
#[derive(Debug, Default)]
pub struct Names {
    known: DashMap<NonZeroU64, String>,
    file: Option<PathBuf>,
    failed: AtomicBool,
}

impl Names {
    /// Names that end with the process.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// The names in this file, to which new ones are added; it is created when there is one. A file that cannot be
    /// read is one without names.
    pub async fn kept_in(file: PathBuf) -> Self {
        let known = DashMap::new();
        // To open a pipe can take for ever.
        if tokio::fs::metadata(&file).await.is_ok_and(|facts| !facts.is_file()) {
            tracing::warn!(file = %file.display(), "names of channels and people are not kept: that is no file");
            return Self::in_memory();
        }
        match tokio::fs::read(&file).await {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                for name in text.lines().filter(|name| !name.is_empty()).take(MOST) {
                    known.insert(number_of(name), name.to_owned());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(%error, file = %file.display(), "names of channels and people cannot be read");
            }
        }
        Self { known, file: Some(file), failed: AtomicBool::new(false) }
    }

    /// The number of this name, which is kept from now on. Never fails: what cannot be written is known until the end.
    pub async fn keep(&self, name: &str) -> NonZeroU64 {
        let number = number_of(name);
        if self.known.contains_key(&number) {
            return number;
        }
        let room = self.known.len() < MOST;
        if room {
            self.known.insert(number, name.to_owned());
        }
        let plain = name.len() <= LONGEST && !name.is_empty() && !name.contains(['\n', '\r']);
        if let Some(file) = self.file.as_deref().filter(|_| room && plain)
            && let Err(error) = append(file, name).await
            && !self.failed.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(%error, file = %file.display(), "names of channels and people are not kept");
        }
        number
    }

    /// The name of this number; `None` when it was never kept.
    pub fn get(&self, number: NonZeroU64) -> Option<String> {
        self.known.get(&number).map(|name| name.clone())
    }
}

async fn append(file: &Path, name: &str) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        tokio::fs::create_dir_all(folder).await?;
    }
    let mut file = tokio::fs::OpenOptions::new().append(true).create(true).open(file).await?;
    // In one piece, so that two who write at once do not mix their lines.
    file.write_all(format!("{name}\n").as_bytes()).await?;
    file.flush().await
}

/// A number for a name: the same on every machine and in every run, since deliveries are remembered by it.
pub(super) fn number_of(name: &str) -> NonZeroU64 {
    // FNV-1a, 64 bits: offset basis and prime of its reference.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_same_number_in_every_run() {
        assert_eq!(number_of("general").get(), 0x9e27_5796_a0d9_a90b);
        assert_ne!(number_of("general"), number_of("cats"));
    }

    #[tokio::test]
    async fn names_are_known_in_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store/names");
        let names = Names::kept_in(file.clone()).await;
        let general = names.keep("general").await;
        let ann = names.keep("änn").await;
        names.keep("general").await;
        // Longer than what is kept, and not a line.
        let long = names.keep(&"x".repeat(300)).await;
        let lines = names.keep("a\nb").await;
        assert!(names.get(long).is_some() && names.get(lines).is_some());
        let later = Names::kept_in(file.clone()).await;
        assert_eq!(later.get(general).as_deref(), Some("general"));
        assert_eq!(later.get(ann).as_deref(), Some("änn"));
        assert_eq!((later.get(long), later.get(lines)), (None, None));
        assert_eq!(std::fs::read_to_string(file).unwrap(), "general\nänn\n");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_pipe_in_the_place_of_the_file_holds_up_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("names");
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        let names = Names::kept_in(file).await;
        let number = names.keep("general").await;
        assert_eq!(names.get(number).as_deref(), Some("general"));
    }

    #[tokio::test]
    async fn names_that_cannot_be_written_are_known_until_the_end() {
        let names = Names::kept_in("/proc/self/fdinfo/names".into()).await;
        let number = names.keep("general").await;
        assert_eq!(names.get(number).as_deref(), Some("general"));
    }
}
