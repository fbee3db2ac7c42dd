//! The database file: opened on first use, moved aside when it is damaged. Everything here blocks.
//!
//! One table per shelf, key to [record](super::record), and one table that remembers how far the sweep for expired
//! records has come. All of a batch is written in one transaction or not at all, so that no row's failure can hide.
//!
//! Start-up reads nothing. Opening reads the header and the saved allocator state: every commit saves it ("quick
//! repair"), so that even after a crash the file is not walked, however many records it holds.

use std::fs;
use std::io;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use crate::clock::{Clock, WallTime};
use crate::store::Shelf;
use crate::store::queue::{Change, Entry};
use crate::store::record::{self, Record};

/// Why the database could not be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum DiskError {
    /// The file is not what this program wrote. It is moved aside.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// Another process has it open.
    #[error("the database is in use by another process")]
    InUse,
    /// The disk or the system says no.
    #[error("the database cannot be used: {0}")]
    Failed(String),
}

/// The database and its folder.
#[derive(Debug)]
pub(super) struct Disk {
    folder: PathBuf,
    clock: Clock,
    /// Held for reading while the database is used, for writing while it is opened or closed.
    open: RwLock<Opened>,
    moved_aside: Mutex<Option<PathBuf>>,
}

#[derive(Debug, Default)]
struct Opened {
    database: Option<Database>,
    /// Grows with every opening, so that one failure seen by several users closes one opening only.
    opening: u64,
}

/// The file's name in the folder.
const FILE: &str = "azalea.redb";

/// What a damaged file's name begins with; the time in milliseconds follows.
const ASIDE: &str = "azalea.redb.damaged-";

/// How many damaged files are kept. The disk must not fill with them when it damages file after file.
const ASIDE_KEPT: usize = 3;

/// Memory for pages. Records are looked up once each and then cached above, so there is little to gain from more.
const CACHE_BYTES: usize = 8 << 20;

/// Where each shelf's sweep goes on.
const SWEEPS: TableDefinition<'_, &str, &str> = TableDefinition::new("sweeps");

/// Rows looked at per row written. The number of expired rows stays below a third of the others when this is four.
const SWEPT_PER_WRITTEN: usize = 4;

/// Rows looked at in each sweep besides.
const SWEPT_AT_LEAST: usize = 16;

/// Expired records stay this long, unseen, so that a clock that jumps forward for a while destroys nothing.
const GRACE: Duration = Duration::from_secs(3_600);

impl Disk {
    /// The database in this folder. Touches nothing.
    pub(super) fn new(folder: PathBuf, clock: Clock) -> Self {
        Self { folder, clock, open: RwLock::default(), moved_aside: Mutex::new(None) }
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The record at a place, expired or not.
    pub(super) fn read(&self, shelf: Shelf, key: &str) -> Result<Option<Record>, DiskError> {
        self.with(|database| {
            let reading = database.begin_read()?;
            let table = match reading.open_table(table(shelf)) {
                Ok(table) => table,
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let found = ReadableTable::get(&table, key)?;
            Ok(found.and_then(|bytes| record::decode(bytes.value())))
        })
    }

    /// Makes all changes durable, or none, and sweeps out some expired records.
    pub(super) fn write(&self, batch: &[Entry]) -> Result<(), DiskError> {
        let now = self.clock.now();
        self.with(|database| {
            let mut writing = database.begin_write()?;
            writing.set_quick_repair(true);
            for shelf in Shelf::ALL {
                let rows = write_shelf(&writing, shelf, batch)?;
                if rows > 0 {
                    let looks = rows.saturating_mul(SWEPT_PER_WRITTEN).saturating_add(SWEPT_AT_LEAST);
                    sweep(&writing, shelf, looks, now)?;
                }
            }
            writing.commit()?;
            Ok(())
        })
    }

    /// Closes the file. The next use opens it again.
    pub(super) fn close(&self) {
        close(&mut self.open.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Where the last damaged file was moved to.
    pub(super) fn moved_aside(&self) -> Option<PathBuf> {
        self.moved_aside.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Uses the database, opened if need be. A failure closes it: after one, redb wants the file opened anew.
    fn with<T>(&self, deed: impl FnOnce(&Database) -> Result<T, redb::Error>) -> Result<T, DiskError> {
        self.ensure_open()?;
        let (result, opening) = {
            let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
            let result = match &open.database {
                Some(database) => guarded(|| deed(database)),
                None => Err(DiskError::Failed("another use of it has just failed".into())),
            };
            (result, open.opening)
        };
        if let Err(error) = &result {
            self.failed(error, opening)?;
        }
        result
    }

    fn ensure_open(&self) -> Result<(), DiskError> {
        if self.open.read().unwrap_or_else(PoisonError::into_inner).database.is_some() {
            return Ok(());
        }
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if open.database.is_some() {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)
            .map_err(|error| DiskError::Failed(format!("creating {}: {error}", self.folder.display())))?;
        let path = self.folder.join(FILE);
        let database = match guarded(|| open_file(&path)) {
            Err(DiskError::Damaged(what)) => {
                self.move_aside(&what)?;
                guarded(|| open_file(&path))?
            }
            other => other?,
        };
        *open = Opened { database: Some(database), opening: open.opening.saturating_add(1) };
        Ok(())
    }

    /// Closes the opening that failed, and moves its file aside when that is the cause.
    fn failed(&self, error: &DiskError, opening: u64) -> Result<(), DiskError> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if open.opening != opening || open.database.is_none() {
            return Ok(());
        }
        close(&mut open);
        match error {
            DiskError::Damaged(what) => self.move_aside(what),
            DiskError::InUse | DiskError::Failed(_) => Ok(()),
        }
    }

    /// Gives a damaged file another name and says so.
    fn move_aside(&self, what: &str) -> Result<(), DiskError> {
        let from = self.folder.join(FILE);
        let to = self.folder.join(format!("{ASIDE}{:015}", self.clock.now().as_millis()));
        fs::rename(&from, &to).map_err(|error| {
            DiskError::Failed(format!("moving the damaged {} aside: {error}", from.display()))
        })?;
        tracing::error!(file = %to.display(), "the database was damaged ({what}); it was moved aside and begins anew");
        *self.moved_aside.lock().unwrap_or_else(PoisonError::into_inner) = Some(to);
        self.keep_few_aside();
        Ok(())
    }

    fn keep_few_aside(&self) {
        let Ok(files) = fs::read_dir(&self.folder) else { return };
        let is_aside = |path: &PathBuf| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(ASIDE))
        };
        let mut aside: Vec<PathBuf> = files.flatten().map(|file| file.path()).filter(is_aside).collect();
        aside.sort();
        let too_many = aside.len().saturating_sub(ASIDE_KEPT);
        for path in aside.iter().take(too_many) {
            // What cannot be removed stays; the next damage tries again.
            let _ = fs::remove_file(path);
        }
    }
}

/// Closes what is open. Closing writes, so it can fail; then opening repairs.
fn close(open: &mut Opened) {
    let database = open.database.take();
    let _ = guarded(|| {
        drop(database);
        Ok(())
    });
}

/// Opens or creates the file. A new one is made under another name first: when the disk is full in the middle of that,
/// no half of a file is there to be taken for a damaged one.
fn open_file(path: &Path) -> Result<Database, redb::Error> {
    let create = |path: &Path| -> Result<Database, redb::Error> {
        Ok(Builder::new().set_cache_size(CACHE_BYTES).create(path)?)
    };
    if !path.exists() {
        let fresh = path.with_extension("redb.new");
        let made = create(&fresh).or_else(|error| match classify(&error) {
            // What a process left that ended in the middle of it.
            DiskError::Damaged(_) => {
                fs::remove_file(&fresh)?;
                create(&fresh)
            }
            DiskError::InUse | DiskError::Failed(_) => Err(error),
        });
        match made {
            Ok(database) => drop(database),
            Err(error) => {
                if !matches!(classify(&error), DiskError::InUse) {
                    let _ = fs::remove_file(&fresh);
                }
                return Err(error);
            }
        }
        fs::rename(&fresh, path)?;
    }
    create(path)
}

/// The table of a shelf. The names stand in files.
fn table(shelf: Shelf) -> TableDefinition<'static, &'static str, &'static [u8]> {
    TableDefinition::new(shelf.code())
}

/// Makes the changes of one shelf and gives their number.
fn write_shelf(writing: &WriteTransaction, shelf: Shelf, batch: &[Entry]) -> Result<usize, redb::Error> {
    let mut changes = batch.iter().filter(|entry| entry.place.0 == shelf).peekable();
    if changes.peek().is_none() {
        return Ok(0);
    }
    let mut rows = 0_usize;
    let mut table = writing.open_table(table(shelf))?;
    for Entry { place: (_, key), change, .. } in changes {
        rows = rows.saturating_add(1);
        match change {
            Change::Put { value, expires } => {
                table.insert(&**key, record::encode(value, *expires).as_slice())?;
            }
            Change::Remove => {
                table.remove(&**key)?;
            }
        }
    }
    Ok(rows)
}

/// Looks at some rows of a shelf, behind those that the last sweep saw, and removes the expired ones.
fn sweep(writing: &WriteTransaction, shelf: Shelf, looks: usize, now: WallTime) -> Result<(), redb::Error> {
    let mut sweeps = writing.open_table(SWEEPS)?;
    let begin = sweeps.get(shelf.code())?.map(|key| key.value().to_owned());
    let mut table = writing.open_table(table(shelf))?;
    let (mut seen, mut last, mut expired) = (0_usize, None, Vec::new());
    let behind = match &begin {
        Some(key) => Bound::Excluded(key.as_str()),
        None => Bound::Unbounded,
    };
    for row in table.range::<&str>((behind, Bound::Unbounded))?.take(looks) {
        let (key, bytes) = row?;
        seen = seen.saturating_add(1);
        // Rows of other versions are left to the program that knows them.
        if record::expiry(bytes.value()).is_some_and(|expires| expires.plus(GRACE) <= now) {
            expired.push(key.value().to_owned());
        }
        last = Some(key.value().to_owned());
    }
    for key in &expired {
        table.remove(key.as_str())?;
    }
    match last.filter(|_| seen == looks) {
        Some(key) => sweeps.insert(shelf.code(), key.as_str())?,
        // The end was reached: the next sweep begins at the beginning.
        None => sweeps.remove(shelf.code())?,
    };
    Ok(())
}

/// Runs a deed of redb. A file that was damaged cleverly enough can make it panic; that ends here.
fn guarded<T>(deed: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, DiskError> {
    match catch_unwind(AssertUnwindSafe(deed)) {
        Ok(result) => result.map_err(|error| classify(&error)),
        Err(_) => Err(DiskError::Damaged("it made the database code panic".into())),
    }
}

/// Whether a new file would help.
fn classify(error: &redb::Error) -> DiskError {
    use redb::Error as E;
    let what = error.to_string();
    match error {
        E::DatabaseAlreadyOpen | E::LockProtocolMismatch => DiskError::InUse,
        E::Io(cause)
            if !matches!(cause.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
        {
            DiskError::Failed(what)
        }
        E::Io(_)
        | E::Corrupted(_)
        | E::UpgradeRequired(_)
        | E::RepairAborted
        | E::TableTypeMismatch { .. }
        | E::TypeDefinitionChanged { .. }
        | E::TableIsMultimap(_)
        | E::TableIsNotMultimap(_) => DiskError::Damaged(what),
        // The rest is a matter of the moment or of this program; a new file would not help.
        _ => DiskError::Failed(what),
    }
}

#[cfg(test)]
mod tests;
