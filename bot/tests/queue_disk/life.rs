//! What holds while nothing goes wrong, and when the file is missing or somebody else's.

use std::fs;
use std::io::Write;
use std::time::Instant;

use azalea_bot::clock::Clock;
use azalea_bot::domain::Stage;
use azalea_bot::queue::{
    Completed, DeadReason, Durability, EmbeddedQueue, Enqueued, Held, OpenError, Queue, QueueError,
    QueueState, Reason, State, StateKind,
};

use crate::house::{
    MINUTE, NOW, claim, done, enqueue, job, jobs, key, my_part, open, part, settings, until, wait_for_word,
};

#[tokio::test]
async fn everything_is_there_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    assert_eq!(queue.durability(), Durability::Fsync);
    for id in 1..=4 {
        assert!(matches!(enqueue(&queue, id).await, Enqueued::New(_)));
    }
    let finished = claim(&queue).await;
    assert_eq!(queue.complete(finished.lease, done(&finished)).await.unwrap(), Completed::Done);
    let buried = claim(&queue).await;
    let reason = Reason { stage: Some(Stage::Upload), code: "ours".into(), chain: vec!["why".into()] };
    assert!(matches!(queue.bury(buried.lease, reason, DeadReason::Permanent).await.unwrap(), Held::Until(_)));
    let before = jobs(&queue).await;
    queue.close().await;
    assert_eq!(queue.health().state, QueueState::Closed);

    let queue = open(folder.path());
    assert_eq!(queue.health().broken_records, 0);
    assert_eq!(jobs(&queue).await, before);
    assert_eq!(queue.result(finished.request.id).await.unwrap(), Some(done(&finished)));
    assert!(matches!(
        enqueue(&queue, finished.request.id.origin().get()).await,
        Enqueued::Duplicate(_, StateKind::Done)
    ));
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.leased, stats.dead), (2, 0, 1));
    // No number and no token comes twice.
    let next = claim(&queue).await;
    assert!(next.lease.token > buried.lease.token);
    let Enqueued::New(id) = enqueue(&queue, 5).await else { panic!("it was never there") };
    assert!(before.values().all(|view| view.id < id) && id > finished.lease.job);
}

#[tokio::test]
async fn leases_that_are_held_at_the_close_come_back_uncharged_and_unsuspected() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    enqueue(&queue, 1).await;
    let held = claim(&queue).await;
    queue.close().await;
    let queue = open(folder.path());
    let view = jobs(&queue).await.remove(&key(1)).unwrap();
    assert_eq!((view.attempts, view.suspicion), (0, 0));
    assert!(matches!(view.state, State::Scheduled { .. }));
    assert_eq!(queue.complete(held.lease, done(&held)).await.unwrap(), Completed::Lost);
    assert!(!claim(&queue).await.alone);
}

#[tokio::test]
async fn a_claim_whose_caller_is_gone_is_handed_back() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    for id in 1..=20 {
        enqueue(&queue, id).await;
    }
    for _ in 0..20 {
        // Polled once, so that it is sent, and then dropped: before, while or after it is done.
        let claim = queue.claim(3, MINUTE);
        tokio::select! {
            biased;
            _ = claim => {}
            () = tokio::task::yield_now() => {}
        }
    }
    // What was sent before is done before.
    queue.stats().await.unwrap();
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.leased), (20, 0));
    let all = jobs(&queue).await;
    assert!(all.values().all(|view| view.attempts == 0 && view.history.is_empty()));
}

#[tokio::test]
async fn who_waits_for_a_job_is_woken_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let queue = std::sync::Arc::new(open(folder.path()));
    let waiting = tokio::spawn({
        let queue = std::sync::Arc::clone(&queue);
        async move {
            queue.ready().await;
            queue.claim(1, MINUTE).await.unwrap()
        }
    });
    tokio::task::yield_now().await;
    enqueue(&queue, 1).await;
    assert_eq!(waiting.await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_job_that_waits_for_a_moment_is_ready_when_the_clock_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(NOW);
    let queue = EmbeddedQueue::open(settings(folder.path()), clock.clone()).unwrap();
    let mut later = job(1, NOW);
    later.not_before = NOW.plus(MINUTE);
    queue.enqueue(later).await.unwrap();
    assert!(queue.claim(1, MINUTE).await.unwrap().is_empty());
    clock.set(NOW.plus(MINUTE));
    queue.ready().await;
    assert_eq!(queue.claim(1, MINUTE).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_closed_queue_takes_nothing_and_closes_again() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    tokio::join!(queue.close(), queue.close());
    queue.close().await;
    assert_eq!(queue.enqueue(job(1, NOW)).await, Err(QueueError::Closed));
    assert_eq!(queue.claim(1, MINUTE).await, Err(QueueError::Closed));
    // Nobody waits for ever.
    queue.ready().await;
}

// ---- the file ---------------------------------------------------------------------------------------------

#[tokio::test]
async fn a_missing_or_empty_file_of_a_queue_with_jobs_is_told() {
    for is_emptied in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("queue.redb");
        let lose = || if is_emptied { fs::write(&file, b"") } else { fs::remove_file(&file) };
        let queue = open(folder.path());
        assert!(!queue.health().file_was_missing, "a new queue");
        queue.close().await;
        lose().unwrap();
        let queue = open(folder.path());
        assert!(!queue.health().file_was_missing, "nothing was in it");
        enqueue(&queue, 1).await;
        queue.close().await;
        lose().unwrap();
        let queue = open(folder.path());
        assert!(queue.health().file_was_missing);
        assert_eq!(queue.health().state, QueueState::Working);
        enqueue(&queue, 1).await;
        queue.close().await;
        assert!(!open(folder.path()).health().file_was_missing, "it is told once");
    }
}

#[test]
fn who_holds_a_queue() {
    let Some(folder) = my_part() else { return };
    let _queue = open(&folder);
    println!("\nopen");
    std::io::stdout().flush().unwrap();
    // Until it is killed.
    std::thread::park();
}

#[test]
fn a_second_process_is_told_why_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut holder = part("life::who_holds_a_queue", folder.path()).spawn().unwrap();
    wait_for_word(&mut holder, "open");
    let begun = Instant::now();
    let error = EmbeddedQueue::open(settings(folder.path()), Clock::manual(NOW)).unwrap_err();
    assert!(begun.elapsed().as_secs() < 2, "{:?}", begun.elapsed());
    assert!(matches!(error, OpenError::InUse { .. }), "{error:?}");
    assert!(error.to_string().contains("queue.redb is open in another process"), "{error}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    open(folder.path());
}

#[tokio::test]
async fn a_dropped_queue_lets_go_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    enqueue(&queue, 1).await;
    drop(queue);
    let again = || EmbeddedQueue::open(settings(folder.path()), Clock::manual(NOW)).ok();
    let mut queue = None;
    until("the file is free", || {
        queue = again();
        queue.is_some()
    })
    .await;
    assert_eq!(jobs(&queue.unwrap()).await.len(), 1);
}

/// What cannot be opened for changes, as on a disk that is read-only, can be looked into.
#[tokio::test]
async fn a_queue_is_looked_into_without_a_change_to_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    for id in 1..=3 {
        enqueue(&queue, id).await;
    }
    let held = claim(&queue).await;
    queue.complete(held.lease, done(&held)).await.unwrap();
    claim(&queue).await;
    // As its process leaves it that is killed now.
    let killed = tempfile::tempdir().unwrap();
    let file = killed.path().join("queue.redb");
    fs::copy(folder.path().join("queue.redb"), &file).unwrap();
    let before = fs::read(&file).unwrap();
    let found = EmbeddedQueue::look(settings(killed.path()), Clock::manual(NOW)).unwrap();
    let stats = found.stats().await.unwrap();
    assert_eq!((stats.ready, stats.leased), (2, 0));
    assert!(found.result(held.request.id).await.unwrap().is_some());
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(fs::read_dir(killed.path()).unwrap().count(), 1, "nothing is made beside it");
    let nothing = tempfile::tempdir().unwrap();
    assert!(EmbeddedQueue::look(settings(nothing.path()), Clock::manual(NOW)).is_err());
}

/// Once, a disk that became full while a new file was made left a half of it, which was taken for a damaged one.
#[tokio::test]
async fn a_file_that_was_half_made_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("queue.redb.new"), [7; 5_000]).unwrap();
    let queue = open(folder.path());
    enqueue(&queue, 1).await;
    assert_eq!(queue.health().moved_aside, None);
    assert!(!folder.path().join("queue.redb.new").exists());
    queue.close().await;
}

/// Once, a folder in the ballast's place read as a disk without room, and nothing was stored.
#[tokio::test]
async fn a_queue_works_without_its_ballast() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("queue.ballast")).unwrap();
    let queue = EmbeddedQueue::open(settings(folder.path()), Clock::manual(NOW)).unwrap();
    assert_eq!((queue.health().state, queue.health().ballast_held), (QueueState::Working, false));
    enqueue(&queue, 1).await;
    queue.close().await;
}
