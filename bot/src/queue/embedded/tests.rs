use super::testing::{NOW, job};
use super::*;
use crate::queue::{Filter, State};

fn open(folder: &Path) -> EmbeddedQueue {
    let settings = EmbeddedSettings { ballast_bytes: 0, ..EmbeddedSettings::new(folder.to_owned()) };
    EmbeddedQueue::open(settings, Clock::manual(NOW)).unwrap()
}

#[tokio::test]
async fn a_panic_in_the_middle_of_a_change_ends_nothing_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    queue.enqueue(job(1)).await.unwrap();
    let held = queue.claim(1, Duration::from_secs(60)).await.unwrap().remove(0);
    let panicked: Result<(), QueueError> = queue
        .call(Kind::Change, |book, now| {
            book.enqueue(job(2), now)?;
            panic!("in the middle of it")
        })
        .await;
    assert_eq!(panicked, Err(QueueError::Unknown));
    // The book was read from the file again, where nothing of it is.
    let jobs = queue.list(Filter::default()).await.unwrap();
    assert_eq!(jobs.len(), 1);
    assert!(
        matches!(jobs[0].state, State::Scheduled { .. }),
        "it was held when the writer fell: {:?}",
        jobs[0].state
    );
    let result = JobResult::Answered { code: "gone".into(), at: NOW };
    assert_eq!(queue.complete(held.lease, result).await.unwrap(), Completed::Lost);
    queue.enqueue(job(2)).await.unwrap();
    assert_eq!(queue.health().state, QueueState::Working);
    queue.close().await;
}

#[tokio::test]
async fn leases_that_are_dropped_on_their_way_are_handed_back() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    queue.enqueue(job(1)).await.unwrap();
    let back = queue.messages.clone();
    let leases = queue
        .call_wrapped(
            Kind::Claim,
            |book, now| Ok(book.claim(1, Duration::from_secs(60), now)),
            move |leases| Leases::new(leases, back),
        )
        .await
        .unwrap();
    assert_eq!(queue.stats().await.unwrap().leased, 1);
    drop(leases);
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.leased, stats.ready), (0, 1));
    let again = queue.claim(1, Duration::from_secs(60)).await.unwrap();
    assert_eq!(again[0].attempt, 1, "the one that did not arrive is not counted");
}

#[test]
fn a_queue_can_be_shared_by_threads() {
    fn check<T: Send + Sync + 'static>() {}
    check::<EmbeddedQueue>();
}
