//! A file that is not what was written: never wrong data, never a panic, and nothing thrown away.

use std::collections::HashMap;
use std::env;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use azalea_bot::clock::Clock;
use azalea_bot::domain::RequestId;
use azalea_bot::queue::{Completed, EmbeddedQueue, EmbeddedSettings, JobView, Queue, QueueState};

use crate::house::{NOW, claim, done, enqueue, job, jobs, open, settings};

const JOBS: u64 = 400;
const RESULTS: u64 = 100;
const PAGE: usize = 4096;

/// How often each kind of damage is done when `AZALEA_TEST_DAMAGE` says nothing else. An opening takes a tenth of a
/// second on a slow disk.
const TIMES: usize = 5;

/// A file with jobs and results in it, and what is in it.
async fn whole() -> (Vec<u8>, HashMap<RequestId, JobView>) {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    let added = (1..=JOBS + RESULTS).map(|id| queue.enqueue(job(id, NOW)));
    let added = futures_util::future::join_all(added).await;
    assert!(added.iter().all(Result::is_ok));
    for _ in 0..RESULTS {
        let lease = claim(&queue).await;
        queue.complete(lease.lease, done(&lease)).await.unwrap();
    }
    let all = jobs(&queue).await;
    queue.close().await;
    (fs::read(folder.path().join("queue.redb")).unwrap(), all)
}

/// How an opening ended.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    whole: u32,
    some_broken: u32,
    moved_aside: u32,
}

/// Opens a damaged file and checks that nothing in it is wrong.
async fn check(bytes: &[u8], all: &HashMap<RequestId, JobView>, what: &str, count: &mut Count) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queue.redb");
    fs::write(&file, bytes).unwrap();
    // What is held back takes as long to store as all the rest, and has no part in this.
    let settings = EmbeddedSettings { ballast_bytes: 0, ..settings(folder.path()) };
    let queue = EmbeddedQueue::open(settings.clone(), Clock::manual(NOW))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let health = queue.health();
    let there = jobs(&queue).await;
    for (id, view) in &there {
        assert_eq!(all.get(id), Some(view), "{what}");
    }
    if let Some(aside) = &health.moved_aside {
        count.moved_aside += 1;
        assert_eq!(there.len(), 0, "{what}");
        assert_eq!(
            fs::metadata(aside).unwrap().len(),
            u64::try_from(bytes.len()).unwrap(),
            "{what}: the old file is kept"
        );
        assert!(aside.file_name().unwrap().to_str().unwrap().starts_with("queue.redb.broken-"), "{what}");
    } else {
        let missing = all.len() - there.len();
        assert!(missing <= health.broken_records, "{what}: {missing} jobs are gone and nobody says so");
        if health.broken_records == 0 {
            count.whole += 1;
        } else {
            count.some_broken += 1;
        }
    }
    // Whatever it was, it works.
    assert_eq!(health.state, QueueState::Working, "{what}");
    enqueue(&queue, 9_999).await;
    queue.close().await;
    let queue = EmbeddedQueue::open(settings, Clock::manual(NOW)).unwrap();
    assert_eq!(jobs(&queue).await.len(), there.len() + 1, "{what}");
}

#[tokio::test]
async fn damage_of_any_kind_is_seen_at_the_opening() {
    let (bytes, all) = whole().await;
    assert_eq!(all.len(), usize::try_from(JOBS).unwrap());
    let mut count = Count::default();
    check(&bytes, &all, "no damage", &mut count).await;
    assert_eq!(count.whole, 1);

    let times = env::var("AZALEA_TEST_DAMAGE").map_or(TIMES, |times| times.parse().unwrap());
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..times * 2 {
        let (mut damaged, at, bit) = (bytes.clone(), random.usize(0..bytes.len()), random.u32(0..8));
        damaged[at] ^= 1 << bit;
        check(&damaged, &all, &format!("bit {bit} of byte {at} flipped"), &mut count).await;
    }
    for at in 0..times * 2 {
        let mut damaged = bytes.clone();
        let place = random.usize(0..320);
        damaged[place] ^= 1 << (at % 8);
        check(&damaged, &all, &format!("a bit of byte {place} of the header flipped"), &mut count).await;
    }
    for _ in 0..times {
        let (mut damaged, page) = (bytes.clone(), random.usize(0..bytes.len() / PAGE));
        damaged[page * PAGE..(page + 1) * PAGE].fill(0);
        check(&damaged, &all, &format!("page {page} zeroed"), &mut count).await;
    }
    for _ in 0..times {
        let length = random.usize(1..bytes.len());
        check(&bytes[..length], &all, &format!("cut to {length} bytes"), &mut count).await;
    }
    let noise: Vec<u8> = (0..100_000).map(|_| random.u8(..)).collect();
    check(&noise, &all, "noise", &mut count).await;
    println!("{count:?}");
    assert!(
        usize::try_from(count.moved_aside).unwrap() > times,
        "every cut is seen, and the noise: {count:?}"
    );
}

#[tokio::test]
async fn several_damaged_files_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..4 {
        fs::write(folder.path().join("queue.redb"), format!("not a queue, round {round}")).unwrap();
        open(folder.path()).close().await;
    }
    let is_aside = |path: &Path| path.to_string_lossy().contains("queue.redb.broken-");
    let aside: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| is_aside(path))
        .collect();
    assert_eq!(aside.len(), 4, "none took another's name though the clock stood still");
}

/// Once, nobody noticed, and an orderly end lost all that waited.
#[tokio::test]
async fn a_file_that_is_taken_away_while_it_is_used_is_written_anew_from_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queue.redb");
    for put in [false, true] {
        let queue = open(folder.path());
        for id in 1..=20 {
            enqueue(&queue, id).await;
        }
        let before = jobs(&queue).await;
        fs::remove_file(&file).unwrap();
        if put {
            fs::write(&file, b"somebody's own").unwrap();
        }
        queue.close().await;
        let queue = open(folder.path());
        assert_eq!((before.len(), jobs(&queue).await), (20, before), "{put}");
        queue.close().await;
    }
    let aside = fs::read_dir(folder.path()).unwrap().flatten();
    let aside: Vec<_> =
        aside.filter(|entry| entry.file_name().to_string_lossy().contains("broken")).collect();
    assert_eq!(aside.len(), 1);
    assert_eq!(fs::read(aside[0].path()).unwrap(), b"somebody's own");
}

#[tokio::test]
async fn a_file_that_is_damaged_while_it_is_used_is_written_anew_from_memory() {
    let folder = tempfile::tempdir().unwrap();
    // With nothing in its cache it has to look at the file.
    let settings = EmbeddedSettings { cache_bytes: 0, ..settings(folder.path()) };
    let queue = EmbeddedQueue::open(settings, Clock::manual(NOW)).unwrap();
    for id in 1..=40 {
        enqueue(&queue, id).await;
    }
    let lease = claim(&queue).await;
    let file = folder.path().join("queue.redb");
    let length = fs::metadata(&file).unwrap().len();
    let noise = OpenOptions::new().write(true).open(&file).unwrap();
    noise.write_all_at(&vec![0xa5; usize::try_from(length).unwrap()], 0).unwrap();

    enqueue(&queue, 41).await;
    // Who held a job holds it still.
    assert_eq!(queue.complete(lease.lease, done(&lease)).await.unwrap(), Completed::Done);
    let health = queue.health();
    assert_eq!(health.state, QueueState::Working);
    assert_eq!(fs::metadata(health.moved_aside.unwrap()).unwrap().len(), length);
    let before = jobs(&queue).await;
    queue.close().await;
    let queue = open(folder.path());
    assert_eq!((before.len(), jobs(&queue).await), (40, before));
    assert_eq!(queue.result(lease.request.id).await.unwrap(), Some(done(&lease)));
}
