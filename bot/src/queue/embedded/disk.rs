//! The database file. Everything here blocks, and only the writer's thread is here.
//!
//! The book in memory is what holds; the file is its image. So nothing is read but at the opening, no read
//! transaction is ever left open, and a file that is damaged while it is used is written anew from the book.
//!
//! A transaction that failed may be in the file all the same. Its callers were told that nothing was changed, so after
//! the file is opened again the first transaction puts back what stood there before.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use redb::backends::InMemoryBackend;
use redb::{Builder, Database, Durability, ReadableTable, StorageBackend, TableDefinition, WriteTransaction};

use super::failure::{DiskError, guarded};
use crate::clock::WallTime;
use crate::queue::book::{Book, Change, Counters, Ended, Entry};
use crate::queue::record::{self, ENDED_KEY_BYTES, RecordError};
use crate::queue::{JobId, State};

/// The file's name in its folder.
pub(super) const FILE: &str = "queue.redb";

/// Jobs that are not done, by number.
const JOBS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("jobs");

/// Results, by request.
const ENDED: TableDefinition<'_, &[u8; ENDED_KEY_BYTES], &[u8]> = TableDefinition::new("ended");

/// One row: the counters and the number of the last transaction.
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");

/// Records that cannot be read, as they were; the key says when, and where they stood.
const BROKEN: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("broken");

const COUNTERS: &str = "counters";

/// When the counters are lost, leases go on this far beyond the highest one that is seen, so that none comes twice.
const TOKENS_SKIPPED: u64 = 1 << 32;

/// The database.
#[derive(Debug)]
pub(super) struct Disk {
    folder: PathBuf,
    cache_bytes: usize,
    database: Option<Database>,
    /// Which file was opened, so that it is noticed when another one, or none, has its name.
    opened: Option<(u64, u64)>,
    owed: Owed,
}

/// What has to be written before anything else once the file is open again.
#[derive(Debug)]
enum Owed {
    /// Nothing: the file is as the book is.
    Nothing,
    /// These were reported as not stored, although nobody knows. What stood there before is put back.
    Doubt(Vec<Change>),
    /// Everything: the file is a new one.
    All,
}

/// What stood in the file.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) entries: Vec<Entry>,
    pub(super) ended: Vec<Ended>,
    pub(super) counters: Counters,
    pub(super) broken: Vec<Broken>,
}

/// A row that cannot be read.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) row: Row,
    pub(super) why: RecordError,
    bytes: Vec<u8>,
}

/// Where a row stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Row {
    Job(u64),
    Ended([u8; ENDED_KEY_BYTES]),
    Counters,
}

/// How much of the file is in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    /// The length of the file.
    pub(super) file: u64,
    /// Bytes of it that hold something.
    pub(super) used: u64,
}

impl Disk {
    /// The database in this folder, which exists. Touches nothing.
    pub(super) fn new(folder: PathBuf, cache_bytes: usize) -> Self {
        Self { folder, cache_bytes, database: None, opened: None, owed: Owed::Nothing }
    }

    /// Where the file is.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Where all of the queue's files are.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether changes can be stored, as far as is known.
    pub(super) fn is_open(&self) -> bool {
        self.database.is_some()
    }

    /// Opens the file, creating it when there is none, and reads all of it.
    pub(super) fn open(&mut self) -> Result<Loaded, DiskError> {
        let database = self.open_file()?;
        let loaded = guarded(|| load(&database))?;
        self.database = Some(database);
        self.opened = self.identity();
        self.owed = Owed::Nothing;
        Ok(loaded)
    }

    /// Whether the file that is open has lost its name: what is stored in it would be gone with this process.
    pub(super) fn is_lost(&self) -> bool {
        self.is_open() && self.opened.is_some() && self.identity() != self.opened
    }

    /// Lets go of a file that has lost its name. What has the name now is moved aside, and the next opening writes all
    /// of the book.
    pub(super) fn abandon(&mut self, now: WallTime) -> Result<Option<PathBuf>, DiskError> {
        self.close();
        self.owed = Owed::All;
        if self.path().exists() { self.move_aside(now).map(Some) } else { Ok(None) }
    }

    /// Device and number of the file that has the name.
    fn identity(&self) -> Option<(u64, u64)> {
        fs::metadata(self.path()).ok().map(|facts| (facts.dev(), facts.ino()))
    }

    /// Opens the file again after a failure, or begins a new one, and makes it what the book is.
    pub(super) fn reopen(&mut self, book: &Book) -> Result<(), DiskError> {
        self.close();
        self.database = Some(self.open_file()?);
        self.opened = self.identity();
        let changes = match &self.owed {
            Owed::Nothing => return Ok(()),
            Owed::Doubt(changes) => changes.iter().map(reversed).collect(),
            Owed::All => book.image(),
        };
        self.put(&changes, &book.counters(), &[], WallTime::default())?;
        self.owed = Owed::Nothing;
        Ok(())
    }

    /// Makes all changes durable, or none. After a failure the file is closed.
    pub(super) fn write(
        &mut self,
        changes: &[Change],
        counters: &Counters,
        broken: &[Broken],
        now: WallTime,
    ) -> Result<(), DiskError> {
        let written = self.put(changes, counters, broken, now);
        if written.is_err() {
            self.owed = Owed::Doubt(changes.to_vec());
        }
        written
    }

    fn put(
        &mut self,
        changes: &[Change],
        counters: &Counters,
        broken: &[Broken],
        now: WallTime,
    ) -> Result<(), DiskError> {
        let Some(database) = &self.database else { return Err(DiskError::Closed) };
        let written = guarded(|| {
            let mut writing = database.begin_write()?;
            writing.set_durability(Durability::Immediate)?;
            store(&writing, changes)?;
            move_broken(&writing, broken, now)?;
            let record = record::encode_counters(counters);
            writing.open_table(META)?.insert(COUNTERS, record.as_slice())?;
            writing.commit()?;
            Ok(())
        });
        if written.is_err() {
            self.close();
        }
        written
    }

    /// Closes the file and gives it another name, which is returned. It is never removed: somebody may want to look.
    ///
    /// The next opening begins a new one.
    pub(super) fn move_aside(&mut self, now: WallTime) -> Result<PathBuf, DiskError> {
        self.close();
        self.owed = Owed::All;
        let from = self.path();
        let mut millis = now.as_millis();
        let mut to = self.aside(millis);
        // A clock that stands still or ran back must not let one take another's place.
        while to.exists() {
            millis = millis.saturating_add(1);
            to = self.aside(millis);
        }
        fs::rename(&from, &to)
            .and_then(|()| sync_folder(&self.folder))
            .map_err(|error| DiskError::from_io("moving the damaged file aside", &error))?;
        Ok(to)
    }

    fn aside(&self, millis: u64) -> PathBuf {
        self.folder.join(format!("{FILE}.broken-{millis}"))
    }

    /// Gives the disk back what the file does not need. Takes some tenths of a second.
    pub(super) fn compact(&mut self) -> Result<(), DiskError> {
        let Some(database) = &mut self.database else { return Err(DiskError::Closed) };
        let compacted = guarded(|| {
            database.compact()?;
            Ok(())
        });
        if compacted.is_err() {
            self.close();
        }
        compacted
    }

    /// How much of the file is in use. Reads its inner pages.
    pub(super) fn space(&mut self) -> Result<Space, DiskError> {
        let file = self.file_bytes();
        let Some(database) = &self.database else { return Err(DiskError::Closed) };
        let used = guarded(|| {
            let writing = database.begin_write()?;
            let stats = writing.stats()?;
            writing.abort()?;
            Ok(stats.stored_bytes().saturating_add(stats.metadata_bytes()))
        });
        if used.is_err() {
            self.close();
        }
        Ok(Space { file, used: used? })
    }

    /// The length of the file; zero when it cannot be seen.
    pub(super) fn file_bytes(&self) -> u64 {
        fs::metadata(self.path()).map_or(0, |file| file.len())
    }

    /// Closes the file. Closing writes, so it can fail; then the next opening repairs.
    pub(super) fn close(&mut self) {
        if let Some(database) = self.database.take() {
            let _ = guarded(|| {
                database.close()?;
                Ok(())
            });
        }
    }

    fn open_file(&self) -> Result<Database, DiskError> {
        let path = self.path();
        if !path.exists() {
            self.make_file(&path)?;
        }
        // To open a pipe can take for ever.
        if fs::metadata(&path).is_ok_and(|facts| !facts.is_file()) {
            return Err(DiskError::Failed("something that is no file has the queue's name".to_owned()));
        }
        self.create(&path)
    }

    /// Makes a new file under another name and gives it its own when it is whole: when the disk is full in the middle of
    /// that, no half of a file is there to be taken for a damaged one.
    fn make_file(&self, path: &Path) -> Result<(), DiskError> {
        let fresh = path.with_extension("redb.new");
        let made = self.make(&fresh).or_else(|error| match error {
            // What a process left that ended in the middle of it.
            DiskError::Damaged(_) => {
                let _ = fs::remove_file(&fresh);
                self.make(&fresh)
            }
            other => Err(other),
        });
        if let Err(error) = made {
            // Another process may make it in this very moment.
            if error != DiskError::InUse {
                let _ = fs::remove_file(&fresh);
            }
            return Err(error);
        }
        // A file whose name is not on the disk is lost with the power, whatever is in it.
        fs::rename(&fresh, path)
            .and_then(|()| sync_folder(&self.folder))
            .map_err(|error| DiskError::from_io("storing the file's name", &error))
    }

    fn make(&self, path: &Path) -> Result<(), DiskError> {
        // Who asked for what is nobody else's matter.
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options
            .open(path)
            .map_err(|error| DiskError::from_io(&format!("creating {}", path.display()), &error))?;
        self.create(path).map(drop)
    }

    fn create(&self, path: &Path) -> Result<Database, DiskError> {
        guarded(|| Ok(self.builder().create(path)?))
    }

    fn builder(&self) -> Builder {
        let mut builder = Builder::new();
        builder.set_cache_size(self.cache_bytes).set_check_integrity_on_open(true);
        builder
    }

    /// What stands in the file, without a change to it: of one that cannot be written, as on a disk that is read-only.
    pub(super) fn look(&self) -> Result<Loaded, DiskError> {
        let path = self.path();
        let failed =
            |error: &std::io::Error| DiskError::from_io(&format!("reading {}", path.display()), error);
        let length = fs::metadata(&path).map_err(|error| failed(&error))?.len();
        if length > MOST_LOOKED_AT {
            return Err(DiskError::Failed(format!("{} is too large to be looked at", path.display())));
        }
        let bytes = fs::read(&path).map_err(|error| failed(&error))?;
        // After a crash it has to be repaired first, which is done to the copy.
        guarded(|| {
            let copy = InMemoryBackend::new();
            copy.set_len(length).map_err(backend)?;
            copy.write(0, &bytes).map_err(backend)?;
            load(&self.builder().create_with_backend(copy)?)
        })
    }
}

fn backend(error: impl fmt::Debug) -> redb::Error {
    redb::Error::Io(std::io::Error::other(format!("{error:?}")))
}

/// A file that is read as a whole has at most so many bytes: some hundred thousand jobs.
const MOST_LOOKED_AT: u64 = 1 << 30;

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The change that takes this one back.
fn reversed(change: &Change) -> Change {
    match change.clone() {
        Change::Job { id, before, after } => Change::Job { id, before: after, after: before },
        Change::Ended { key, before, after } => Change::Ended { key, before: after, after: before },
    }
}

fn store(writing: &WriteTransaction, changes: &[Change]) -> Result<(), redb::Error> {
    let mut jobs = writing.open_table(JOBS)?;
    let mut ended = writing.open_table(ENDED)?;
    for change in changes {
        match change {
            Change::Job { after: Some(entry), .. } => {
                // Not a matter of the file, but there is no other way to say that it cannot be stored.
                let record = record::encode_entry(entry)
                    .map_err(|error| redb::Error::Io(std::io::Error::other(error.to_string())))?;
                jobs.insert(entry.id.0, record.as_slice())?;
            }
            Change::Job { id, after: None, .. } => {
                jobs.remove(id.0)?;
            }
            Change::Ended { after: Some(end), .. } => {
                ended.insert(&record::ended_key(end.key), record::encode_ended(end).as_slice())?;
            }
            Change::Ended { key, after: None, .. } => {
                ended.remove(&record::ended_key(*key))?;
            }
        }
    }
    Ok(())
}

/// Puts rows that cannot be read where they are in nobody's way, and are still there.
fn move_broken(writing: &WriteTransaction, broken: &[Broken], now: WallTime) -> Result<(), redb::Error> {
    if broken.is_empty() {
        return Ok(());
    }
    let mut table = writing.open_table(BROKEN)?;
    for Broken { row, bytes, .. } in broken {
        let name = format!("{:015}-{row}", now.as_millis());
        table.insert(name.as_str(), bytes.as_slice())?;
        match row {
            Row::Job(id) => {
                writing.open_table(JOBS)?.remove(*id)?;
            }
            Row::Ended(key) => {
                writing.open_table(ENDED)?.remove(key)?;
            }
            // Written anew by every transaction.
            Row::Counters => {}
        }
    }
    Ok(())
}

/// Everything in the file.
fn load(database: &Database) -> Result<Loaded, redb::Error> {
    // A transaction that writes, since it makes the tables that are not there; nothing of it stays.
    let writing = database.begin_write()?;
    let mut loaded = Loaded::default();
    for row in writing.open_table(JOBS)?.iter()? {
        let (id, bytes) = row?;
        match record::decode_entry(JobId(id.value()), bytes.value()) {
            Ok(entry) => loaded.entries.push(entry),
            Err(why) => loaded.note(Row::Job(id.value()), why, bytes.value()),
        }
    }
    for row in writing.open_table(ENDED)?.iter()? {
        let (key, bytes) = row?;
        match record::decode_ended(key.value(), bytes.value()) {
            Ok(ended) => loaded.ended.push(ended),
            Err(why) => loaded.note(Row::Ended(*key.value()), why, bytes.value()),
        }
    }
    let stored = writing.open_table(META)?.get(COUNTERS)?.map(|bytes| bytes.value().to_vec());
    writing.abort()?;
    match stored.as_deref().map(record::decode_counters) {
        Some(Ok(counters)) => loaded.counters = counters,
        Some(Err(why)) => {
            loaded.note(Row::Counters, why, stored.as_deref().unwrap_or_default());
            loaded.counters = loaded.safe_counters();
        }
        None => loaded.counters = loaded.safe_counters(),
    }
    Ok(loaded)
}

impl Loaded {
    fn note(&mut self, row: Row, why: RecordError, bytes: &[u8]) {
        self.broken.push(Broken { row, why, bytes: bytes.to_vec() });
    }

    /// Counters that name nothing which was named before, as far as can be seen.
    fn safe_counters(&self) -> Counters {
        if self.entries.is_empty() && self.ended.is_empty() && self.broken.is_empty() {
            return Counters::default();
        }
        let jobs = self.entries.iter().map(|entry| entry.id.0);
        let unread = self.broken.iter().filter_map(|broken| match broken.row {
            Row::Job(id) => Some(id),
            Row::Ended(_) | Row::Counters => None,
        });
        let ids = jobs.chain(unread).chain(self.ended.iter().map(|ended| ended.id.0));
        let tokens = self.entries.iter().filter_map(|entry| match entry.state {
            State::Leased { token, .. } => Some(token.0),
            State::Scheduled { .. } | State::Suspect { .. } | State::Done | State::Dead { .. } => None,
        });
        Counters {
            next_job: ids.max().unwrap_or_default().saturating_add(1),
            next_token: tokens.max().unwrap_or_default().saturating_add(TOKENS_SKIPPED),
            clock: WallTime::default(),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(id) => write!(f, "job-{id}"),
            Self::Ended(key) => {
                f.write_str("ended-")?;
                key.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Self::Counters => f.write_str("counters"),
        }
    }
}

#[cfg(test)]
mod tests;
