//! The store on disks that fail: read-only, full, damaged, gone and back again.
//!
//! Time stands still in these tests and goes on by itself when nothing else is left to do, so that no wait is real.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has no other answer")]

use std::env;
use std::fmt::{self, Write};
use std::fs;
use std::num::{NonZeroU8, NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, Once};
use std::time::Duration;

use azalea_bot::clock::{Clock, WallTime, instant};
use azalea_bot::domain::{ArtifactKey, Edits, LimitClass, MediumIndex, PostId, ProfileVersion};
use azalea_bot::metrics::{Counter, Tracker};
use azalea_bot::store::{ArtifactSettings, Artifacts, Shelf, Store, StoreSettings, StoreState};
use bytes::Bytes;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record as SpanRecord};
use tracing::{Event, Level, Metadata, Subscriber};

const NOW: WallTime = WallTime::from_millis(1_800_000_000_000);
const MINUTE: Duration = Duration::from_secs(60);

fn later() -> WallTime {
    NOW.plus(MINUTE)
}

/// A store with batches of ten.
fn open(folder: &Path, clock: &Clock) -> Store {
    open_counting(folder, clock, Tracker::new(false))
}

fn open_counting(folder: &Path, clock: &Clock, tracker: Tracker) -> Store {
    let settings =
        StoreSettings { path: Some(folder.to_owned()), batch_size: 10, ..StoreSettings::default() };
    Store::open(settings, clock.clone(), tracker)
}

fn put(store: &Store, key: &str) {
    store.put(Shelf::Resolved, key.to_owned(), key.as_bytes().to_vec(), later());
}

async fn value(store: &Store, key: &str) -> Option<Vec<u8>> {
    store.get(Shelf::Resolved, key).await.map(|record| record.value)
}

/// Lets time go on, at most an hour of it, until the store is so.
async fn until(store: &Store, what: impl Fn(&Store) -> bool) {
    let begun = instant();
    while !what(store) {
        assert!(begun.elapsed() < 60 * MINUTE, "{:?}", store.health());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

// ---- what is said ------------------------------------------------------------------------------------------

/// Keeps what was said as errors, warnings and infos.
struct Said;

static SAID: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());

impl Subscriber for Said {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("azalea_bot")
    }

    fn event(&self, event: &Event<'_>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                let _ = write!(self.0, "{}={value:?} ", field.name());
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        SAID.lock().unwrap().push((*event.metadata().level(), text.0));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &SpanRecord<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Said).unwrap());
}

/// How often something was said about a folder.
fn said(level: Level, folder: &Path) -> usize {
    let folder = folder.to_string_lossy();
    SAID.lock().unwrap().iter().filter(|(said, text)| *said == level && text.contains(&*folder)).count()
}

// ---- a disk that works -------------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn what_was_put_is_read_before_and_after_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), &Clock::manual(NOW));
    put(&store, "a");
    assert_eq!(value(&store, "a").await.as_deref(), Some(&b"a"[..]));
    assert_eq!(store.health().queued, 1);
    let begun = instant();
    until(&store, |store| store.health().queued == 0).await;
    assert!((Duration::from_secs(2)..Duration::from_secs(3)).contains(&begun.elapsed()));
    assert_eq!(value(&store, "a").await.as_deref(), Some(&b"a"[..]));
    store.remove(Shelf::Resolved, "a".to_owned());
    assert_eq!(value(&store, "a").await, None);
    assert_eq!(value(&store, "b").await, None);
    assert_eq!(store.health().state, StoreState::Working);
}

#[tokio::test(start_paused = true)]
async fn a_full_batch_does_not_wait_for_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), &Clock::manual(NOW));
    let begun = instant();
    for key in 0..10 {
        put(&store, &key.to_string());
    }
    until(&store, |store| store.health().queued == 0).await;
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn records_keep_their_expiry_over_restarts_and_clock_jumps() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let store = open(folder.path(), &clock);
    put(&store, "a");
    store.close().await;

    clock.set(WallTime::from_millis(NOW.as_millis() - 3_600_000));
    let store = open(folder.path(), &clock);
    let record = store.get(Shelf::Resolved, "a").await.unwrap();
    assert_eq!(record.expires, later(), "an hour back");
    clock.set(WallTime::from_millis(later().as_millis() - 1));
    assert!(store.get(Shelf::Resolved, "a").await.is_some());
    clock.set(later());
    assert_eq!(store.get(Shelf::Resolved, "a").await, None);
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_written_when_the_last_handle_goes() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let store = open(folder.path(), &clock);
    put(&store, "a");
    drop(store.clone());
    drop(store);
    // Paused time goes on when the writer has nothing left to do.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(value(&open(folder.path(), &clock), "a").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_closed_store_takes_and_gives_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), &Clock::manual(NOW));
    put(&store, "a");
    tokio::join!(store.close(), store.close());
    put(&store, "b");
    let health = store.health();
    assert_eq!((health.state, health.queued, health.dropped), (StoreState::Off, 0, 1));
    assert_eq!(value(&store, "a").await, None);
}

#[test]
fn without_a_folder_or_a_runtime_nothing_is_kept() {
    let settings = StoreSettings { path: Some(PathBuf::from("nowhere")), ..StoreSettings::default() };
    let off = [Store::none(), Store::open(settings, Clock::system(), Tracker::new(false))];
    for store in off {
        put(&store, "a");
        assert_eq!(store.health().state, StoreState::Off);
    }
}

// ---- disks that do not -------------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_read_only_folder_degrades_and_is_said_once() {
    listen();
    // A folder in which nobody, not even root, can create a file.
    let folder = Path::new("/proc/self/fdinfo");
    let tracker = Tracker::new(true);
    let store = open_counting(folder, &Clock::manual(NOW), tracker.clone());
    let begun = instant();
    for key in 0..130 {
        put(&store, &key.to_string());
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let health = store.health();
    assert_eq!((health.queued, health.dropped), (100, 30));
    assert_eq!(value(&store, "129").await.as_deref(), Some(&b"129"[..]), "what waits can be read");
    // A read that failed before the first write would count as the first failure.
    until(&store, |store| store.health().failures_in_a_row == 1).await;
    assert_eq!(value(&store, "0").await, None);

    until(&store, |store| store.health().state == StoreState::Suspended).await;
    assert!((15..=16).contains(&begun.elapsed().as_secs()), "1 + 2 + 4 + 8 s, not {:?}", begun.elapsed());
    until(&store, |store| store.health().failures_in_a_row == 8).await;
    assert!((915..=917).contains(&begun.elapsed().as_secs()), "every 5 min, not {:?}", begun.elapsed());
    assert_eq!(said(Level::ERROR, folder), 1);

    let begun = instant();
    store.close().await;
    assert!(begun.elapsed() <= Duration::from_secs(5));
    assert_eq!(store.health().dropped, 130);
    let counted =
        [Counter::StoreDrops, Counter::StoreFailures].map(|counter| tracker.totals().counter(counter));
    // Nine flushes: eight on their time, and one at the end.
    assert_eq!(counted, [130, 9]);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_comes_back_is_used_again() {
    listen();
    let outside = tempfile::tempdir().unwrap();
    let folder = outside.path().join("store");
    // Where the folder should be stands a file.
    fs::write(&folder, b"").unwrap();
    let store = open(&folder, &Clock::manual(NOW));
    put(&store, "a");
    until(&store, |store| store.health().state == StoreState::Suspended).await;
    fs::remove_file(&folder).unwrap();
    let begun = instant();
    until(&store, |store| store.health().state == StoreState::Working).await;
    assert!(begun.elapsed() <= 5 * MINUTE);
    assert_eq!((store.health().queued, store.health().failures_in_a_row), (0, 0));
    assert!(store.health().last_error.is_some());
    assert_eq!((said(Level::ERROR, &folder), said(Level::INFO, &folder)), (1, 1));
    store.close().await;
    assert_eq!(value(&open(&folder, &Clock::manual(NOW)), "a").await.as_deref(), Some(&b"a"[..]));
}

#[tokio::test(start_paused = true)]
async fn readers_of_a_broken_disk_are_answered_at_once() {
    let store = open(Path::new("/proc/self/fdinfo"), &Clock::manual(NOW));
    for key in 0..50 {
        assert_eq!(value(&store, &key.to_string()).await, None);
    }
    assert_eq!((store.health().state, store.health().failures_in_a_row), (StoreState::Retrying, 1));
}

#[tokio::test(start_paused = true)]
async fn a_file_of_random_bytes_is_moved_aside_and_reported_once() {
    listen();
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..50_000_u32).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    fs::write(folder.path().join("azalea.redb"), &bytes).unwrap();
    let store = open(folder.path(), &Clock::manual(NOW));
    assert_eq!(value(&store, "a").await, None);
    put(&store, "a");
    until(&store, |store| store.health().queued == 0).await;
    assert_eq!(value(&store, "a").await.as_deref(), Some(&b"a"[..]));
    let health = store.health();
    assert_eq!(health.state, StoreState::Working);
    assert_eq!(fs::read(health.moved_aside.unwrap()).unwrap(), bytes);
    assert_eq!(said(Level::ERROR, folder.path()), 1);
}

// ---- a full disk -------------------------------------------------------------------------------------------

/// Says to the test program, run once more, that it stands on a small disk, and which.
const SMALL_DISK: &str = "AZALEA_TEST_SMALL_DISK";

/// Runs the test below on a small tmpfs in a mount namespace of its own, or, where that is not allowed, with a bound
/// on the length of files, beyond which writing fails as it does on a full disk.
#[test]
fn a_full_disk_stops_nothing_and_is_used_again_when_it_has_room() {
    let folder = tempfile::tempdir().unwrap();
    let run = |program: &[&str], script: &str| {
        let (first, rest) = program.split_first().unwrap();
        let mut command = Command::new(first);
        command.args(rest).args(["-c", script, "sh"]).arg(folder.path()).arg(env::current_exe().unwrap());
        command.args(["--exact", "on_a_small_disk", "--nocapture"]).output()
    };
    let tmpfs = format!(
        "mount -t tmpfs -o size=1m none \"$1\" || exit; export {SMALL_DISK}=\"tmpfs $1\"; shift; exec \"$@\""
    );
    let limit = format!("trap '' XFSZ; ulimit -f 1024; export {SMALL_DISK}=\"limit $1\"; shift; exec \"$@\"");
    let output = match run(&["unshare", "--mount", "--map-root-user", "sh"], &tmpfs) {
        // Nothing was printed: the test did not even begin.
        Ok(output) if !output.stdout.is_empty() => output,
        _ => run(&["sh"], &limit).unwrap(),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn on_a_small_disk() {
    let Ok(disk) = env::var(SMALL_DISK) else { return };
    listen();
    let (kind, folder) = disk.split_once(' ').unwrap();
    println!("a small disk by {kind}");
    let (store_folder, ballast) = (Path::new(folder).join("store"), Path::new(folder).join("ballast"));
    if kind == "tmpfs" {
        fs::write(&ballast, vec![0; 500 << 10]).unwrap();
    }
    let store = open(&store_folder, &Clock::manual(NOW));
    put(&store, "first");
    until(&store, |store| store.health().queued == 0).await;

    let mut last = 0;
    while store.health().state == StoreState::Working {
        for _ in 0..10 {
            last += 1;
            store.put(Shelf::Resolved, last.to_string(), vec![7; 8 << 10], later());
        }
        assert!(last < 1_000, "it never becomes full");
        until(&store, |store| store.health().queued == 0 || store.health().state != StoreState::Working)
            .await;
    }
    let last = last.to_string();
    assert_eq!(value(&store, "first").await.as_deref(), Some(&b"first"[..]), "what is there can be read");
    assert!(value(&store, &last).await.is_some(), "what waits can be read");

    until(&store, |store| store.health().state == StoreState::Suspended).await;
    assert_eq!(said(Level::ERROR, &store_folder), 1);
    assert!(value(&store, &last).await.is_some());
    keep_no_file(&Path::new(folder).join("artifacts")).await;

    if kind == "tmpfs" {
        fs::remove_file(&ballast).unwrap();
        until(&store, |store| store.health().queued == 0).await;
        assert_eq!((store.health().state, store.health().dropped), (StoreState::Working, 0));
        assert_eq!((said(Level::ERROR, &store_folder), said(Level::INFO, &store_folder)), (1, 1));
        store.close().await;
        let again = open(&store_folder, &Clock::manual(NOW));
        assert!(value(&again, "first").await.is_some() && value(&again, &last).await.is_some());
    }
}

/// A finished file that finds no room is not kept, and leaves nothing behind.
async fn keep_no_file(folder: &Path) {
    let settings = ArtifactSettings { dir: Some(folder.to_owned()), ..ArtifactSettings::default() };
    let artifacts = Artifacts::open(settings, Clock::manual(NOW));
    let key = ArtifactKey {
        post: PostId::x("1").unwrap(),
        medium: MediumIndex::new(NonZeroU8::MIN),
        edits: Edits::default(),
        limit: LimitClass::new(NonZeroU64::MIN),
        profile: ProfileVersion::new(NonZeroU32::MIN),
    };
    let content = Bytes::from(vec![7; 700 << 10]);
    assert!(artifacts.put(&key, content, vec![]).await.is_none());
    assert!(artifacts.get(&key).await.is_none());
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    assert_eq!(said(Level::ERROR, folder), 1);
}
