//! Finished files on disk, by the hash of their content, shared by all who want the same.
//!
//! A file is whole or counts as absent: it is written under a temporary name and renamed, and its length is compared
//! at every look and its hash at the first one of each process. So nothing has to be forced to the disk while somebody
//! waits for an answer, and a power cut costs one cached file at most.
//!
//! The folder is its own index. `<hash of the key>.entry` says what a key's file is, `<hash of the content>.media`
//! is the file, `*.part` is being written and locked by its writer. An entry's time stamp says when it was last wanted.
//! Several processes may share the folder.

mod folder;
mod lease;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use self::folder::Folder;
use self::lease::Lease;
use crate::clock::Clock;
use crate::domain::ArtifactKey;

/// Where finished files are kept, and how many.
#[derive(Clone, Debug)]
pub struct ArtifactSettings {
    /// Their folder, which holds nothing else; it is created on first use. `None`: nothing is kept. Default: `None`.
    pub dir: Option<PathBuf>,
    /// All files together have at most this many bytes, those in use and one that just came aside. Default: 2 GiB.
    pub max_bytes: u64,
    /// A file is used for this long after it was made. Default: 7 days.
    pub max_age: Duration,
}

impl Default for ArtifactSettings {
    fn default() -> Self {
        Self { dir: None, max_bytes: 2 << 30, max_age: Duration::from_secs(7 * 86_400) }
    }
}

/// The BLAKE3 hash of a file's bytes. Prints as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContentHash(blake3::Hash);

impl ContentHash {
    /// The hash of these bytes. Takes about a millisecond per megabyte.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes))
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

impl From<ContentHash> for String {
    fn from(hash: ContentHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for ContentHash {
    type Error = blake3::HexError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        blake3::Hash::from_hex(text).map(Self)
    }
}

/// A finished file. As long as a clone of it lives, this process does not remove the file.
#[derive(Clone, Debug)]
#[must_use = "dropping it lets the file be removed"]
pub struct Artifact {
    /// Where it stands. Not to be written to.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// The hash of its content.
    pub hash: ContentHash,
    /// What its maker said about it.
    pub facts: Vec<u8>,
    /// Only held.
    _lease: Lease,
}

/// The finished files. Clones share one folder.
#[derive(Clone, Debug)]
pub struct Artifacts(Option<Arc<Folder>>);

impl Artifacts {
    /// The files in the settings' folder. Returns at once; leftovers are removed in the background.
    pub fn open(settings: ArtifactSettings, clock: Clock) -> Self {
        let Some(dir) = settings.dir.filter(|_| settings.max_bytes > 0) else { return Self::none() };
        let folder = Arc::new(Folder::new(dir, settings.max_bytes, settings.max_age, clock));
        if let Ok(runtime) = Handle::try_current() {
            let tidied = Arc::clone(&folder);
            // Nobody waits for it: it ends by itself, and whatever it leaves behind, the next one finds.
            drop(runtime.spawn_blocking(move || tidied.tidy()));
        }
        Self(Some(folder))
    }

    /// A cache that keeps nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// The file for this key, if there is one that is whole and not too old.
    ///
    /// Cancel-safe. Must be called within a tokio runtime.
    pub async fn get(&self, key: &ArtifactKey) -> Option<Artifact> {
        let folder = Arc::clone(self.0.as_ref()?);
        let key = key.to_string();
        spawn_blocking(move || folder.find(&key)).await.ok().flatten()
    }

    /// Keeps a finished file, and `facts` about it, of at most 64 KiB. `None` when it cannot be kept: the caller still
    /// has the bytes, so a full disk means no caching and not no answer.
    ///
    /// A call that is dropped may keep the file all the same. Must be called within a tokio runtime.
    pub async fn put(&self, key: &ArtifactKey, content: Bytes, facts: Vec<u8>) -> Option<Artifact> {
        let folder = Arc::clone(self.0.as_ref()?);
        let key = key.to_string();
        spawn_blocking(move || folder.keep(&key, &content, facts)).await.ok().flatten()
    }
}
