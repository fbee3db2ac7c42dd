use std::fs::{self, File};
use std::num::{NonZeroU8, NonZeroU32, NonZeroU64};

use tempfile::TempDir;

use super::*;
use crate::clock::WallTime;
use crate::domain::{Edits, LimitClass, MediumIndex, PostId, ProfileVersion};

const NOW: WallTime = WallTime::from_millis(1_800_000_000_000);
const HOUR: Duration = Duration::from_secs(3_600);

fn key(post: u32) -> ArtifactKey {
    ArtifactKey {
        post: PostId::x(&post.to_string()).unwrap(),
        medium: MediumIndex::new(NonZeroU8::MIN),
        edits: Edits::default(),
        limit: LimitClass::new(NonZeroU64::MIN),
        profile: ProfileVersion::new(NonZeroU32::MIN),
    }
}

fn settings(folder: &TempDir, max_bytes: u64) -> ArtifactSettings {
    ArtifactSettings { dir: Some(folder.path().to_owned()), max_bytes, max_age: 24 * HOUR }
}

fn artifacts(folder: &TempDir, clock: &Clock) -> Artifacts {
    Artifacts::open(settings(folder, 1_000), clock.clone())
}

fn content(of: u8, bytes: usize) -> Bytes {
    Bytes::from(vec![of; bytes])
}

/// The names in the folder that end so.
fn named(folder: &TempDir, ending: &str) -> Vec<String> {
    let names = fs::read_dir(folder.path()).unwrap();
    let names = names.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(ending)).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_found_also_by_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let kept =
        artifacts(&folder, &clock).put(&key(1), content(7, 300), b"facts\nmore".to_vec()).await.unwrap();
    let found = artifacts(&folder, &clock).get(&key(1)).await.unwrap();
    assert_eq!((found.bytes, &found.path, found.hash), (300, &kept.path, ContentHash::of(&[7; 300])));
    assert_eq!(found.facts, b"facts\nmore");
    assert_eq!(fs::read(&found.path).unwrap(), [7; 300]);
    assert!(artifacts(&folder, &clock).get(&key(2)).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn keys_with_the_same_content_share_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = artifacts(&folder, &Clock::manual(NOW));
    let first = artifacts.put(&key(1), content(7, 300), vec![1]).await.unwrap();
    let second = artifacts.put(&key(2), content(7, 300), vec![2]).await.unwrap();
    assert_eq!(first.path, second.path);
    assert_eq!(named(&folder, ".media").len(), 1);
    assert_eq!(artifacts.get(&key(1)).await.unwrap().facts, [1]);
}

#[tokio::test(start_paused = true)]
async fn the_least_recently_used_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let artifacts = artifacts(&folder, &clock);
    for post in 1..=3 {
        clock.set(NOW.plus(HOUR * post));
        drop(artifacts.put(&key(post), content(u8::try_from(post).unwrap(), 300), vec![]).await.unwrap());
    }
    clock.set(NOW.plus(HOUR * 4));
    drop(artifacts.get(&key(1)).await.unwrap());
    drop(artifacts.put(&key(4), content(4, 300), vec![]).await.unwrap());
    let mut left = Vec::new();
    for post in 1..=4 {
        if artifacts.get(&key(post)).await.is_some() {
            left.push(post);
        }
    }
    assert_eq!(left, [1, 3, 4]);
    assert_eq!((named(&folder, ".media").len(), named(&folder, ".entry").len()), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_file_in_use_is_not_removed_under_its_reader() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = artifacts(&folder, &Clock::manual(NOW));
    let held = artifacts.put(&key(1), content(1, 800), vec![]).await.unwrap();
    drop(artifacts.put(&key(2), content(2, 800), vec![]).await.unwrap());
    assert_eq!(fs::read(&held.path).unwrap().len(), 800);
    let clone = held.clone();
    drop(held);
    drop(artifacts.put(&key(3), content(3, 900), vec![]).await.unwrap());
    assert!(clone.path.exists());
    let path = clone.path.clone();
    drop(clone);
    drop(artifacts.put(&key(4), content(4, 900), vec![]).await.unwrap());
    assert!(!path.exists());
}

#[tokio::test(start_paused = true)]
async fn a_file_lives_for_its_age_from_when_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let cache = artifacts(&folder, &clock);
    drop(cache.put(&key(1), content(7, 300), vec![]).await.unwrap());
    clock.set(NOW.plus(23 * HOUR));
    assert!(cache.get(&key(1)).await.is_some(), "looked at, which does not make it younger");
    clock.set(NOW.plus(24 * HOUR));
    assert!(cache.get(&key(1)).await.is_none());
    let Some(inner) = cache.0 else { panic!("it is open") };
    inner.tidy();
    assert!(named(&folder, "").is_empty(), "{:?}", named(&folder, ""));
}

#[tokio::test(start_paused = true)]
async fn a_damaged_file_counts_as_absent_and_can_be_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let path = artifacts(&folder, &clock).put(&key(1), content(7, 300), vec![]).await.unwrap().path.clone();
    for damaged in [vec![8; 300], vec![7; 299], vec![]] {
        fs::write(&path, damaged).unwrap();
        let next_process = artifacts(&folder, &clock);
        assert!(next_process.get(&key(1)).await.is_none());
        drop(next_process.put(&key(1), content(7, 300), vec![]).await.unwrap());
        assert!(next_process.get(&key(1)).await.is_some());
        assert_eq!(fs::read(&path).unwrap(), [7; 300]);
    }
}

#[tokio::test(start_paused = true)]
async fn entries_of_nonsense_or_of_another_key_count_as_absent() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let artifacts = artifacts(&folder, &clock);
    drop(artifacts.put(&key(1), content(7, 300), vec![]).await.unwrap());
    let entry = folder.path().join(&named(&folder, ".entry")[0]);
    let good = fs::read(&entry).unwrap();
    for at in 0..good.len() {
        fs::write(&entry, &good[..at]).unwrap();
        assert!(artifacts.get(&key(1)).await.is_none(), "cut at {at}");
    }
    let other = folder.path().join(format!("{}.entry", ContentHash::of(key(2).to_string().as_bytes())));
    fs::write(other, &good).unwrap();
    assert!(artifacts.get(&key(2)).await.is_none());
    let newer = String::from_utf8(good).unwrap().replace("\"version\":1", "\"version\":2");
    fs::write(&entry, newer).unwrap();
    assert!(artifacts.get(&key(1)).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn leftovers_are_removed_and_files_being_written_are_not() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("0000000000000001.part"), b"left by a crash").unwrap();
    let writing = folder.path().join("0000000000000002.part");
    let lock = File::create(&writing).unwrap();
    lock.try_lock().unwrap();
    fs::write(folder.path().join("notes.txt"), b"somebody else's").unwrap();
    let Some(inner) = artifacts(&folder, &Clock::manual(NOW)).0 else { panic!("it is open") };
    inner.tidy();
    let mut left = named(&folder, "");
    left.sort();
    assert_eq!(left, ["0000000000000002.part", "notes.txt"]);
}

/// Tidying once took an entry whose content it had not listed yet for one without content.
#[tokio::test(start_paused = true)]
async fn tidying_takes_nothing_away_that_is_being_kept() {
    for _ in 0..100 {
        let folder = tempfile::tempdir().unwrap();
        let artifacts = artifacts(&folder, &Clock::manual(NOW));
        let inner = artifacts.0.clone().unwrap();
        let tidying = spawn_blocking(move || (0..5).for_each(|_| inner.tidy()));
        drop(artifacts.put(&key(1), content(7, 300), vec![]).await.unwrap());
        tidying.await.unwrap();
        assert!(artifacts.get(&key(1)).await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_cannot_be_written_means_no_caching() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    for dir in [file.join("below a file"), "/proc/self/fdinfo".into()] {
        let settings = ArtifactSettings { dir: Some(dir), ..ArtifactSettings::default() };
        let artifacts = Artifacts::open(settings, Clock::manual(NOW));
        assert!(artifacts.put(&key(1), content(7, 300), vec![]).await.is_none());
        assert!(artifacts.get(&key(1)).await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_larger_than_the_whole_cache_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = artifacts(&folder, &Clock::manual(NOW));
    drop(artifacts.put(&key(1), content(7, 300), vec![]).await.unwrap());
    assert!(artifacts.put(&key(2), content(7, 1_001), vec![]).await.is_none());
    assert!(artifacts.get(&key(1)).await.is_some(), "and pushes nothing out");
    let off = Artifacts::open(settings(&folder, 0), Clock::manual(NOW));
    assert!(off.get(&key(1)).await.is_none());
}
