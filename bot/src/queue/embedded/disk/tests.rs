use std::time::Duration;

use redb::ReadableTableMetadata;

use super::*;
use crate::queue::book::BookSettings;
use crate::queue::embedded::start::read_book;
use crate::queue::embedded::testing::{NOW, job};

fn disk(folder: &Path) -> Disk {
    Disk::new(folder.to_owned(), 1 << 20)
}

/// A disk and its book, with this many jobs stored.
fn stored(folder: &Path, jobs: u64) -> (Disk, Book) {
    let mut disk = disk(folder);
    let (mut book, broken) = read_book(&mut disk, BookSettings::default(), NOW).unwrap();
    assert!(broken.is_empty());
    (1..=jobs).for_each(|id| drop(book.enqueue(job(id), NOW)));
    disk.write(&book.changes(), &book.counters(), &[], NOW).unwrap();
    book.commit();
    (disk, book)
}

fn entries(folder: &Path) -> Vec<Entry> {
    disk(folder).open().unwrap().entries
}

/// Makes a change in the tables themselves.
fn meddle(folder: &Path, deed: impl FnOnce(&WriteTransaction)) {
    let database = Database::open(folder.join(FILE)).unwrap();
    let writing = database.begin_write().unwrap();
    deed(&writing);
    writing.commit().unwrap();
}

#[test]
fn what_was_reported_as_failed_is_taken_back_although_it_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let (mut disk, mut book) = stored(folder.path(), 2);
    let before = book.image();
    let lease = book.claim(1, Duration::from_secs(60), NOW).remove(0);
    assert!(book.enqueue(job(3), NOW).is_ok());
    let changes = book.changes();
    disk.write(&changes, &book.counters(), &[], NOW).unwrap();
    // As if the disk had said no after all: the book went back and the callers were told so.
    disk.owed = Owed::Doubt(changes);
    book.roll_back();
    disk.reopen(&book).unwrap();
    disk.close();
    assert_eq!(book.image(), before);
    let found = entries(folder.path());
    assert_eq!(found.iter().map(|entry| entry.id.0).collect::<Vec<_>>(), [1, 2]);
    assert!(found.iter().all(|entry| entry.attempts == 0), "{lease:?} was never given out");
}

#[test]
fn a_new_file_holds_what_the_book_holds() {
    let folder = tempfile::tempdir().unwrap();
    let (mut disk, mut book) = stored(folder.path(), 3);
    let lease = book.claim(1, Duration::from_secs(60), NOW).remove(0);
    let result = crate::queue::JobResult::Answered { code: "gone".into(), at: NOW };
    book.complete(lease.lease, result, NOW);
    disk.write(&book.changes(), &book.counters(), &[], NOW).unwrap();
    book.commit();
    let aside = disk.move_aside(NOW).unwrap();
    assert!(!disk.is_open() && aside.exists() && !disk.path().exists());
    disk.reopen(&book).unwrap();
    disk.close();
    let loaded = self::disk(folder.path()).open().unwrap();
    assert_eq!((loaded.entries.len(), loaded.ended.len(), loaded.counters), (2, 1, book.counters()));
}

#[test]
fn records_that_cannot_be_read_are_put_aside_and_the_rest_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (mut disk, _) = stored(folder.path(), 4);
    disk.close();
    meddle(folder.path(), |writing| {
        let mut jobs = writing.open_table(JOBS).unwrap();
        let mut record = jobs.get(2).unwrap().unwrap().value().to_vec();
        record[0] = 9;
        jobs.insert(2, record.as_slice()).unwrap();
        record[0] = 1;
        // A whole record that belongs to another.
        jobs.insert(3, record.as_slice()).unwrap();
        writing.open_table(ENDED).unwrap().insert(&[0; ENDED_KEY_BYTES], &b"?"[..]).unwrap();
    });
    let mut disk = self::disk(folder.path());
    let (book, broken) = read_book(&mut disk, BookSettings::default(), NOW).unwrap();
    disk.close();
    let reasons: Vec<_> = broken.iter().map(|broken| (broken.row.to_string(), broken.why.clone())).collect();
    let short = ("ended-00000000000000000000".to_owned(), RecordError::Version(b'?'));
    let wanted =
        [("job-2".to_owned(), RecordError::Version(9)), ("job-3".to_owned(), RecordError::Checksum), short];
    assert_eq!(reasons, wanted);
    assert_eq!(book.stats(NOW).ready, 2);

    // They are kept, and not reported again.
    meddle(folder.path(), |writing| assert_eq!(writing.open_table(BROKEN).unwrap().len().unwrap(), 3));
    let again = self::disk(folder.path()).open().unwrap();
    assert_eq!((again.entries.len(), again.broken.len()), (2, 0));
}

#[test]
fn lost_counters_name_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (mut disk, mut book) = stored(folder.path(), 4);
    let token = book.claim(1, Duration::from_secs(60), NOW).remove(0).lease.token;
    disk.write(&book.changes(), &book.counters(), &[], NOW).unwrap();
    disk.close();
    meddle(folder.path(), |writing| drop(writing.open_table(META).unwrap().remove(COUNTERS).unwrap()));
    let counters = self::disk(folder.path()).open().unwrap().counters;
    assert_eq!((counters.next_job, counters.next_token), (5, token.0 + TOKENS_SKIPPED));
}

#[test]
fn only_its_owner_reads_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (disk, _) = stored(folder.path(), 1);
    assert_eq!(fs::metadata(disk.path()).unwrap().permissions().mode() & 0o777, 0o600);
}
