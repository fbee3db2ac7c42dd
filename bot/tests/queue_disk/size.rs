//! How long the file becomes, and what is given back.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use azalea_bot::clock::Clock;
use azalea_bot::queue::{BookSettings, EmbeddedQueue, EmbeddedSettings, Queue};
use futures_util::future::join_all;

use crate::house::{MINUTE, NOW, done, job, settings, until};

/// Runs jobs through a queue with this many waiting, 250 calls at once.
async fn run_through(queue: &Arc<EmbeddedQueue>, jobs: u64, backlog: u64) -> u64 {
    let mut longest = 0;
    for first in (1..=jobs + backlog).step_by(250) {
        if first <= jobs {
            let added = (first..first + 250).map(|id| queue.enqueue(job(id, NOW)));
            assert!(join_all(added).await.iter().all(Result::is_ok));
        }
        if first > backlog {
            let claimed = join_all((0..250).map(|_| queue.claim(1, MINUTE))).await;
            let leases: Vec<_> = claimed.into_iter().flat_map(Result::unwrap).collect();
            join_all(leases.iter().map(|lease| queue.complete(lease.lease, done(lease)))).await;
        }
        longest = longest.max(queue.health().file_bytes);
    }
    longest
}

fn length(folder: &Path) -> u64 {
    fs::metadata(folder.join("queue.redb")).unwrap().len()
}

/// The bounds of the real thing with a fifth of its jobs; the bench `queue` has all of them.
#[tokio::test]
async fn the_file_stays_small_and_becomes_smaller_when_nothing_is_queued() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let settings = EmbeddedSettings { book: BookSettings::default(), ..settings(folder.path()) };
    let queue = Arc::new(EmbeddedQueue::open(settings.clone(), clock.clone()).unwrap());
    let longest = run_through(&queue, 10_000, 1_000).await;
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.leased), (0, 0));
    println!("10,000 jobs through a backlog of 1,000: {longest} bytes at most");
    assert!(longest <= 32 << 20, "{longest} bytes");

    clock.set(NOW.plus(MINUTE));
    until("the file is compacted", || queue.health().file_bytes < 1 << 20).await;
    println!("after an idle minute with 8,192 results: {} bytes", length(folder.path()));
    queue.close().await;
    assert!(length(folder.path()) < 1 << 20, "{} bytes", length(folder.path()));

    // What was kept is still there.
    let queue = EmbeddedQueue::open(settings, clock).unwrap();
    assert!(queue.result(crate::house::key(10_000)).await.unwrap().is_some());
}
