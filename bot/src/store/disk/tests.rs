use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};
use tempfile::TempDir;

use super::*;
use crate::store::queue::Queue;

const NOW: WallTime = WallTime::from_millis(1_800_000_000_000);

fn disk(folder: &TempDir) -> Disk {
    Disk::new(folder.path().to_owned(), Clock::manual(NOW))
}

/// A batch that puts these keys, with themselves as values.
fn puts(keys: impl IntoIterator<Item = String>, expires: WallTime) -> Vec<Entry> {
    let mut queue = Queue::new(usize::MAX);
    for key in keys {
        let change = Change::Put { value: key.as_bytes().into(), expires };
        queue.push((Shelf::Resolved, key.into()), change);
    }
    queue.batch(usize::MAX)
}

fn count_rows(disk: &Disk) -> u64 {
    let count = |database: &Database| {
        Ok(redb::ReadableTableMetadata::len(&database.begin_read()?.open_table(table(Shelf::Resolved))?)?)
    };
    disk.with(count).unwrap()
}

fn files(folder: &TempDir) -> Vec<String> {
    let names = fs::read_dir(folder.path()).unwrap();
    names.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn what_is_written_is_read_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let later = NOW.plus(Duration::from_secs(60));
    let first = disk(&folder);
    first.write(&puts(["a".to_owned()], later)).unwrap();
    first.close();
    let read = disk(&folder).read(Shelf::Resolved, "a").unwrap();
    assert_eq!(read, Some(Record { value: b"a".to_vec(), expires: later }));
    assert_eq!(disk(&folder).read(Shelf::Processed, "a").unwrap(), None);
}

#[test]
fn a_second_process_is_told_so_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let first = disk(&folder);
    first.write(&puts(["a".to_owned()], NOW)).unwrap();
    let second = disk(&folder);
    assert!(matches!(second.read(Shelf::Resolved, "a"), Err(DiskError::InUse)));
    assert_eq!((second.moved_aside(), first.moved_aside()), (None, None));
    assert!(first.read(Shelf::Resolved, "a").unwrap().is_some());
    drop(first);
    assert!(second.read(Shelf::Resolved, "a").unwrap().is_some());
}

#[test]
fn a_file_of_anything_else_is_moved_aside_and_a_new_one_begun() {
    for bytes in [1, 100, 4_096, 100_000] {
        let folder = tempfile::tempdir().unwrap();
        let mut random = fastrand::Rng::with_seed(7);
        let garbage: Vec<u8> = (0..bytes).map(|_| random.u8(..)).collect();
        fs::write(folder.path().join(FILE), &garbage).unwrap();
        let disk = disk(&folder);
        assert_eq!(disk.read(Shelf::Resolved, "a").unwrap(), None, "{bytes} bytes");
        disk.write(&puts(["a".to_owned()], NOW)).unwrap();
        assert!(disk.read(Shelf::Resolved, "a").unwrap().is_some());
        assert_eq!(fs::read(disk.moved_aside().unwrap()).unwrap(), garbage);
    }
}

#[test]
fn a_file_that_was_overwritten_inside_or_cut_never_panics_or_stays() {
    let good = {
        let folder = tempfile::tempdir().unwrap();
        let disk = disk(&folder);
        disk.write(&puts((0..2_000).map(|key| key.to_string()), NOW)).unwrap();
        drop(disk);
        fs::read(folder.path().join(FILE)).unwrap()
    };
    let mut random = fastrand::Rng::with_seed(11);
    for round in 0..40 {
        let mut bytes = good.clone();
        if round % 2 == 0 {
            bytes.truncate(random.usize(1..good.len()));
        } else {
            let at = random.usize(0..good.len() - 5_000);
            bytes[at..at + 5_000].fill_with(|| random.u8(..));
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), &bytes).unwrap();
        let disk = disk(&folder);
        // Twice: the first use may find the damage, and the one after it must work.
        for key in ["1", "1999"] {
            let _ = disk.read(Shelf::Resolved, key);
        }
        let first = disk.write(&puts(["new".to_owned()], NOW));
        if first.is_err() {
            disk.write(&puts(["new".to_owned()], NOW)).unwrap();
        }
        assert!(disk.read(Shelf::Resolved, "new").unwrap().is_some(), "round {round}");
    }
}

#[test]
fn few_damaged_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    for hour in 0..6 {
        clock.set(NOW.plus(GRACE * hour));
        fs::write(folder.path().join(FILE), b"garbage").unwrap();
        let _ = Disk::new(folder.path().to_owned(), clock.clone()).read(Shelf::Resolved, "a").unwrap();
    }
    let mut aside: Vec<_> = files(&folder).into_iter().filter(|name| name.starts_with(ASIDE)).collect();
    aside.sort();
    assert_eq!(aside.len(), ASIDE_KEPT);
    assert_eq!(aside.last().unwrap(), &format!("{ASIDE}{:015}", NOW.plus(GRACE * 5).as_millis()));
}

#[test]
fn a_batch_with_a_row_that_fails_writes_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder);
    // A table of another kind under the name of the last shelf: writing its row must fail.
    let other = TableDefinition::<u64, u64>::new(Shelf::Metrics.code());
    disk.with(|database| {
        let writing = database.begin_write()?;
        writing.open_table(other)?.insert(1, 1)?;
        Ok(writing.commit()?)
    })
    .unwrap();
    let mut queue = Queue::new(9);
    for shelf in [Shelf::Resolved, Shelf::Metrics] {
        queue.push((shelf, "a".into()), Change::Put { value: b"1".as_slice().into(), expires: NOW });
    }
    assert!(matches!(disk.write(&queue.batch(9)), Err(DiskError::Damaged(_))));
    assert!(disk.moved_aside().is_some());
    assert_eq!(disk.read(Shelf::Resolved, "a").unwrap(), None);
}

#[test]
fn expired_records_are_swept_out_in_small_parts() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let disk = Disk::new(folder.path().to_owned(), clock.clone());
    let hours = |hours: u32| NOW.plus(Duration::from_secs(3_600) * hours);
    disk.write(&puts((0..300).map(|key| format!("old {key}")), hours(1))).unwrap();
    disk.write(&puts((0..300).map(|key| format!("young {key}")), hours(9))).unwrap();
    clock.set(hours(2));
    let mut left = Vec::new();
    for write in 0..40 {
        disk.write(&puts([format!("new {write}")], hours(9))).unwrap();
        left.push(count_rows(&disk));
    }
    let most = u64::try_from(SWEPT_AT_LEAST + SWEPT_PER_WRITTEN).unwrap();
    assert!(left.windows(2).all(|pair| pair[0] < pair[1] + most), "{left:?}");
    assert_eq!(left.last(), Some(&340), "{left:?}");
}

#[test]
fn a_clock_that_jumps_forward_for_a_while_destroys_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let disk = Disk::new(folder.path().to_owned(), clock.clone());
    disk.write(&puts(["a".to_owned()], NOW.plus(Duration::from_secs(60)))).unwrap();
    clock.set(NOW.plus(Duration::from_secs(3_600)));
    disk.write(&puts(["b".to_owned()], NOW.plus(Duration::from_secs(9_999)))).unwrap();
    assert!(disk.read(Shelf::Resolved, "a").unwrap().is_some());
}

/// Counts what is read from a file.
#[derive(Debug)]
struct Counting(FileBackend, Arc<AtomicU64>);

impl StorageBackend for Counting {
    fn len(&self) -> Result<u64, io::Error> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        self.1.fetch_add(u64::try_from(out.len()).unwrap(), Ordering::Relaxed);
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.0.write(offset, data)
    }

    fn close(&self) -> Result<(), io::Error> {
        self.0.close()
    }

    fn try_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Err(BackendError::Unsupported)
    }
}

/// Bytes read by opening a store of so many records and looking one up. `crashed`: as its process left it.
fn read_to_open(records: u32, crashed: bool) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let database = open_file(&path).unwrap();
    let mut writing = database.begin_write().unwrap();
    writing.set_quick_repair(true);
    {
        let mut table = writing.open_table(table(Shelf::Resolved)).unwrap();
        let record = record::encode(&[7; 32], NOW);
        for key in 0..records {
            table.insert(format!("{key:012}").as_str(), record.as_slice()).unwrap();
        }
    }
    writing.commit().unwrap();
    let copy = folder.path().join("copy");
    if crashed {
        // The open file, before it is closed, is what a crash leaves.
        fs::copy(&path, &copy).unwrap();
    }
    drop(database);
    let left = if crashed { copy } else { path };
    let read = Arc::new(AtomicU64::new(0));
    let file = File::options().read(true).write(true).open(&left).unwrap();
    let length = file.metadata().unwrap().len();
    let backend = Counting(FileBackend::new(file).unwrap(), Arc::clone(&read));
    let database = Builder::new().set_cache_size(CACHE_BYTES).create_with_backend(backend).unwrap();
    let table = database.begin_read().unwrap().open_table(table(Shelf::Resolved)).unwrap();
    let found = ReadableTable::get(&table, format!("{:012}", records / 2).as_str()).unwrap();
    assert_eq!(found.is_some(), records > 0);
    (read.load(Ordering::Relaxed), length)
}

#[test]
fn opening_a_million_records_reads_next_to_nothing() {
    for crashed in [false, true] {
        let (none, _) = read_to_open(0, crashed);
        let (million, length) = read_to_open(1_000_000, crashed);
        assert!(length > 60_000_000, "{length} bytes hold a million records");
        assert!(
            million < none + 1_000_000,
            "crashed {crashed}: {million} of {length} bytes, {none} of an empty file"
        );
    }
}

/// Once, a disk that became full while a new file was made left a half of it, which was taken for a damaged one.
#[test]
fn a_file_that_was_half_made_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("azalea.redb.new"), [7; 5_000]).unwrap();
    let disk = disk(&folder);
    disk.write(&puts(["a".to_owned()], NOW.plus(Duration::from_secs(60)))).unwrap();
    assert_eq!(disk.moved_aside(), None);
    assert_eq!(files(&folder), [FILE]);
}
