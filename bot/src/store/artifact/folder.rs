//! The folder of finished files. Everything here blocks.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::lease::Leases;
use super::{Artifact, ContentHash};
use crate::clock::{Clock, Instant, WallTime, instant};
use crate::store::Unfinished;

/// The files of one folder, their bound and who uses them.
#[derive(Debug)]
pub(super) struct Folder {
    dir: PathBuf,
    max_bytes: u64,
    max_age: Duration,
    clock: Clock,
    leases: Leases,
    /// Contents whose hash this process has compared.
    proven: Mutex<HashSet<ContentHash>>,
    /// The bytes of all contents, once counted, and when the folder was last looked through.
    total: Mutex<Option<(u64, Instant)>>,
    /// The operator knows already that nothing can be kept.
    complained: AtomicBool,
}

/// The first line of an entry's file, as JSON; the facts follow it.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    version: u8,
    key: String,
    hash: ContentHash,
    bytes: u64,
    made: WallTime,
}

/// The version of an entry's file. Others count as absent.
const VERSION: u8 = 1;

/// An entry's file has at most this many bytes; the facts are at most [`MOST_FACTS`].
const MOST_ENTRY: u64 = 72 << 10;
const MOST_FACTS: usize = 64 << 10;

/// A content without an entry stays this long, as another process may be about to write the entry.
const ORPHAN_STAYS: Duration = Duration::from_secs(3_600);

/// What became too old is removed this often, when something new comes.
const LOOKED_THROUGH_EVERY: Duration = Duration::from_secs(3_600);

/// Of the bound, so much is left after room was made, in percent, so that not every file makes room anew.
const LEFT_PERCENT: u64 = 90;

/// How many hashes are remembered. 32 bytes each; forgetting costs reading a file once more.
const MOST_PROVEN: usize = 10_000;

impl Folder {
    pub(super) fn new(dir: PathBuf, max_bytes: u64, max_age: Duration, clock: Clock) -> Self {
        Self {
            dir,
            max_bytes,
            max_age,
            clock,
            leases: Leases::default(),
            proven: Mutex::default(),
            total: Mutex::default(),
            complained: AtomicBool::new(false),
        }
    }

    /// The file of a key, if it is whole and not too old.
    pub(super) fn find(&self, key: &str) -> Option<Artifact> {
        let entry = self.entry(key);
        let (line, facts) = read_entry(&entry)?;
        if line.key != key || self.is_old(line.made) {
            return None;
        }
        let path = self.media(line.hash);
        // Held before it is looked at: what is there now stays there.
        let lease = self.leases.take(line.hash);
        if fs::metadata(&path).ok()?.len() != line.bytes || !self.prove(line.hash, &path) {
            tracing::warn!(file = %path.display(), "a finished file is damaged and will be made again");
            // The damaged file stays until the next content of that hash replaces it or nobody holds it.
            self.remove(&entry);
            drop(lease);
            self.remove_media(line.hash);
            return None;
        }
        self.stamp(&entry);
        Some(Artifact { path, bytes: line.bytes, hash: line.hash, facts, _lease: lease })
    }

    /// Keeps a content under a key. `None` when it cannot be kept.
    pub(super) fn keep(&self, key: &str, content: &[u8], facts: Vec<u8>) -> Option<Artifact> {
        let bytes = u64::try_from(content.len()).ok()?;
        if bytes > self.max_bytes || facts.len() > MOST_FACTS {
            return None;
        }
        let hash = ContentHash::of(content);
        let lease = self.leases.take(hash);
        let made = self.clock.now();
        let line = Line { version: VERSION, key: key.to_owned(), hash, bytes, made };
        match self.write(&line, content, &facts) {
            Ok(grown) => {
                self.complained.store(false, Ordering::Relaxed);
                self.proven(hash);
                self.count(grown);
                Some(Artifact { path: self.media(hash), bytes, hash, facts, _lease: lease })
            }
            Err(error) => {
                if !self.complained.swap(true, Ordering::Relaxed) {
                    tracing::error!(%error, folder = %self.dir.display(), "finished files cannot be kept");
                }
                None
            }
        }
    }

    /// Removes leftovers, what is too old, and the least recently used when there is too much.
    pub(super) fn tidy(&self) {
        let mut total = self.total.lock().unwrap_or_else(PoisonError::into_inner);
        *total = self.make_room(self.max_bytes).ok().map(|sum| (sum, instant()));
    }

    /// Writes content and entry, in this order, and gives the bytes that came new into the folder.
    fn write(&self, line: &Line, content: &[u8], facts: &[u8]) -> io::Result<u64> {
        fs::create_dir_all(&self.dir)?;
        let media = self.media(line.hash);
        let there = fs::metadata(&media).map(|facts| facts.len()).ok();
        if there != Some(line.bytes) || !self.is_proven(line.hash) {
            self.write_whole(&media, &[content])?;
        }
        let mut head = serde_json::to_vec(line)?;
        head.push(b'\n');
        self.write_whole(&self.entry(&line.key), &[&head, facts])?;
        Ok(line.bytes.saturating_sub(there.unwrap_or(0)))
    }

    /// A file of these parts appears under `path`, whole, or not at all.
    fn write_whole(&self, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
        let mut unfinished = Unfinished::create(&self.dir)?;
        for part in parts {
            unfinished.write(part)?;
        }
        unfinished.stamp(self.now())?;
        unfinished.finish(path)
    }

    /// Adds to the count, and makes room when it is too much.
    fn count(&self, grown: u64) {
        let mut total = self.total.lock().unwrap_or_else(PoisonError::into_inner);
        let most = match &mut *total {
            Some((sum, looked)) => {
                *sum = sum.saturating_add(grown);
                if *sum > self.max_bytes {
                    (self.max_bytes / 100).saturating_mul(LEFT_PERCENT)
                } else if looked.elapsed() < LOOKED_THROUGH_EVERY {
                    return;
                } else {
                    self.max_bytes
                }
            }
            None => self.max_bytes,
        };
        *total = self.make_room(most).ok().map(|sum| (sum, instant()));
    }

    /// Removes what need not stay until contents have at most `most` bytes together, and gives what they have then.
    fn make_room(&self, most: u64) -> io::Result<u64> {
        let now = self.clock.now();
        let mut entries: HashMap<ContentHash, (WallTime, Vec<PathBuf>)> = HashMap::new();
        let mut contents: Vec<(ContentHash, u64, WallTime)> = Vec::new();
        for file in fs::read_dir(&self.dir)?.flatten() {
            let path = file.path();
            let Ok(facts) = file.metadata() else { continue };
            let stamped = wall_time(&facts);
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("part") => Unfinished::remove_if_left(&path),
                Some("media") => {
                    if let Some(hash) = hash_in_name(&path) {
                        contents.push((hash, facts.len(), stamped));
                    }
                }
                Some("entry") => match read_entry(&path) {
                    Some((line, _)) if !self.is_old(line.made) => {
                        let (used, paths) = entries.entry(line.hash).or_default();
                        *used = stamped.max(*used);
                        paths.push(path);
                    }
                    _ => self.remove(&path),
                },
                // Not ours.
                _ => {}
            }
        }
        let mut total = contents.iter().fold(0_u64, |sum, (_, bytes, _)| sum.saturating_add(*bytes));
        contents.sort_by_key(|(hash, _, stamped)| entries.get(hash).map_or(*stamped, |(used, _)| *used));
        for (hash, bytes, stamped) in &contents {
            let wanted = entries.remove(hash);
            let orphaned = wanted.is_none() && now.since(*stamped) >= ORPHAN_STAYS;
            if (total > most || orphaned) && self.remove_media(*hash) {
                total = total.saturating_sub(*bytes);
                for entry in wanted.iter().flat_map(|(_, paths)| paths) {
                    self.remove(entry);
                }
            }
        }
        // Entries whose content is not there, as it was removed by another process or by hand. Looked for once more: a
        // listing need not show what is written meanwhile.
        for (hash, (_, paths)) in &entries {
            self.leases.unless_held(*hash, || {
                if !self.media(*hash).exists() {
                    paths.iter().for_each(|entry| self.remove(entry));
                }
            });
        }
        Ok(total)
    }

    /// Whether the content is what its name says; read once per process.
    fn prove(&self, hash: ContentHash, path: &Path) -> bool {
        if self.is_proven(hash) {
            return true;
        }
        let mut hasher = blake3::Hasher::new();
        let read = File::open(path).and_then(|file| hasher.update_reader(file).map(|_| ()));
        let right = read.is_ok() && ContentHash(hasher.finalize()) == hash;
        if right {
            self.proven(hash);
        }
        right
    }

    fn is_proven(&self, hash: ContentHash) -> bool {
        self.proven.lock().unwrap_or_else(PoisonError::into_inner).contains(&hash)
    }

    fn proven(&self, hash: ContentHash) {
        let mut proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        if proven.len() >= MOST_PROVEN {
            proven.clear();
        }
        proven.insert(hash);
    }

    /// Removes a content that nobody holds; whether it is gone.
    fn remove_media(&self, hash: ContentHash) -> bool {
        let removed = self.leases.unless_held(hash, || fs::remove_file(self.media(hash)));
        let gone = matches!(removed, Some(Ok(())));
        if gone {
            self.proven.lock().unwrap_or_else(PoisonError::into_inner).remove(&hash);
        }
        gone
    }

    /// Removes a small file. One that stays is found again by the next who makes room.
    fn remove(&self, path: &Path) {
        if let Err(error) = fs::remove_file(path) {
            tracing::debug!(%error, file = %path.display(), "not removed");
        }
    }

    /// Notes that an entry was wanted. In a folder that cannot be written, nothing is ever removed either.
    fn stamp(&self, entry: &Path) {
        if let Ok(file) = File::options().write(true).open(entry) {
            let _ = file.set_modified(self.now());
        }
    }

    fn is_old(&self, made: WallTime) -> bool {
        self.clock.now().since(made) >= self.max_age
    }

    /// Our own clock's time, as files carry it.
    fn now(&self) -> SystemTime {
        let since = Duration::from_millis(self.clock.now().as_millis());
        UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
    }

    fn entry(&self, key: &str) -> PathBuf {
        self.dir.join(format!("{}.entry", ContentHash::of(key.as_bytes())))
    }

    fn media(&self, hash: ContentHash) -> PathBuf {
        self.dir.join(format!("{hash}.media"))
    }
}

/// What an entry's file says, and the facts.
fn read_entry(path: &Path) -> Option<(Line, Vec<u8>)> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MOST_ENTRY).read_to_end(&mut bytes).ok()?;
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let facts = bytes.get(end.saturating_add(1)..)?.to_vec();
    let line: Line = serde_json::from_slice(bytes.get(..end)?).ok()?;
    (line.version == VERSION).then_some((line, facts))
}

fn hash_in_name(path: &Path) -> Option<ContentHash> {
    ContentHash::try_from(path.file_stem()?.to_str()?.to_owned()).ok()
}

/// When a file was stamped; 1970 when that is not known.
fn wall_time(facts: &fs::Metadata) -> WallTime {
    let since = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    WallTime::default().plus(since.unwrap_or_default())
}
