//! A finished file and what is known about it.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use crate::domain::Failure;
use crate::store::{Artifact, Unfinished};

/// A finished file, ready to be delivered.
#[derive(Clone, Debug)]
pub struct Made {
    /// Its content.
    pub content: Content,
    /// What is known about it.
    pub facts: Facts,
    /// How long it took to make; zero when it was there already.
    pub times: Times,
}

/// Where the bytes of a file are.
#[derive(Clone, Debug)]
pub enum Content {
    /// In memory.
    Memory(Bytes),
    /// On disk, where they stay as long as this lives.
    Disk(Artifact),
}

/// What is known about a finished file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// What was done: `pass`, `remux` or `transcode`.
    pub action: String,
    /// The file extension without the dot.
    pub extension: String,
    /// The media type for HTTP.
    pub media_type: String,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes of what it was made from.
    pub source_bytes: u64,
    /// Pixels from left to right; 0 for sound.
    pub width: u32,
    /// Pixels from top to bottom; 0 for sound.
    pub height: u32,
    /// Its length in seconds; 0 for a still picture.
    pub duration: f64,
    /// What a person should know although it worked.
    pub warnings: Vec<String>,
}

/// How long the stages took. They overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// From the first request to the last byte.
    pub download: Duration,
    /// From the first byte to the finished file.
    pub optimize: Duration,
}

impl Made {
    /// The whole content in memory.
    ///
    /// # Errors
    /// `Ours` when the file on disk cannot be read any more.
    pub async fn bytes(&self) -> Result<Bytes, Failure> {
        match &self.content {
            Content::Memory(bytes) => Ok(bytes.clone()),
            Content::Disk(artifact) => tokio::fs::read(&artifact.path)
                .await
                .map(Bytes::from)
                .map_err(|error| Failure::ours(format!("a finished file cannot be read: {error}"))),
        }
    }

    /// Writes the content to `path`, whole or not at all. A call that is dropped may still write it.
    ///
    /// # Errors
    /// `Ours` when it cannot be written.
    pub async fn write_to(&self, path: &Path) -> Result<(), Failure> {
        let bytes = self.bytes().await?;
        let to = path.to_owned();
        // In one piece, since whoever waits for it can be broken off, and the name must change all the same.
        let written = spawn_blocking(move || write(&to, &bytes)).await.map_err(io::Error::other).flatten();
        written.map_err(|error| Failure::ours(format!("cannot write {}: {error}", path.display())))
    }
}

/// Writes a file under a temporary name of its own, which it loses when it is whole.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut unfinished = Unfinished::create(path.parent().unwrap_or(Path::new("")))?;
    unfinished.write(bytes)?;
    unfinished.finish(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Once, all writers of a file wrote to `NAME.part`: one renamed it, and the others failed as it was gone.
    #[test]
    fn writers_of_one_file_are_not_in_each_others_way() {
        const BYTES: usize = 256 << 10;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mp4");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let writers: Vec<_> = (0..16_u8)
            .map(|number| {
                let path = path.clone();
                runtime.spawn_blocking(move || write(&path, &vec![number; BYTES]))
            })
            .collect();
        for writer in writers {
            runtime.block_on(writer).unwrap().unwrap();
        }
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), BYTES);
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "it is of one writer");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// Once, a link of the temporary file's name was followed, and what it led to was overwritten.
    #[test]
    fn a_link_beside_the_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, target) = (folder.path().join("a.mp4"), folder.path().join("target"));
        fs::write(&target, b"precious").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join("a.mp4.part")).unwrap();
        write(&path, b"film").unwrap();
        assert_eq!(
            (fs::read(path).unwrap(), fs::read(target).unwrap()),
            (b"film".to_vec(), b"precious".to_vec())
        );
    }
}
