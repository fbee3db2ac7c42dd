//! Several who want the same job.

use std::collections::HashSet;
use std::time::Duration;

use azalea_bot::queue::{Completed, DeadReason, Enqueued, Held, Intent, Retried};

use super::*;

pub(crate) async fn the_calls_of_an_expired_holder_are_lost(house: &impl House) {
    let (queue, clock) = opened(house);
    enqueue(&queue, [job(1)]).await;
    let old = claim(&queue).await.unwrap().lease;
    let now = pass(&clock, LEASE);
    let intent = Intent { started_at: now, channel: "3".parse().unwrap(), parts: 9, posted: Vec::new() };
    // First while nobody holds it, then while another does.
    let mut second = None;
    for held in [false, true] {
        if held {
            second = claim(&queue).await;
            assert_eq!(second.as_ref().unwrap().attempt, 2);
        }
        let before = queue.stats().await.unwrap();
        assert_eq!(queue.extend(old, LEASE).await, Ok(Held::Lost));
        assert_eq!(queue.intend(old, intent.clone()).await, Ok(Held::Lost));
        assert_eq!(queue.retry(old, Duration::ZERO, failed()).await, Ok(Retried::Lost));
        assert_eq!(queue.bury(old, failed(), DeadReason::Permanent).await, Ok(Held::Lost));
        assert_eq!(queue.release(old, Duration::ZERO).await, Ok(Held::Lost));
        assert_eq!(queue.complete(old, delivered(1, now)).await, Ok(Completed::Lost));
        assert_eq!(queue.stats().await.unwrap(), before);
        assert_eq!(queue.result(key(1)).await, Ok(None));
    }
    let second = second.unwrap();
    assert_eq!(second.intent, None, "nothing was changed");
    assert_eq!(queue.extend(second.lease, LEASE).await, Ok(Held::Until(now.plus(LEASE))));
    assert_eq!(queue.complete(second.lease, delivered(2, now)).await, Ok(Completed::Done));
    assert_eq!(queue.result(key(1)).await, Ok(Some(delivered(2, now))), "the result is the second's");
    assert_eq!(queue.complete(old, delivered(1, now)).await, Ok(Completed::Already(delivered(2, now))));
    assert_eq!(queue.result(key(1)).await, Ok(Some(delivered(2, now))));
}

pub(crate) async fn one_of_many_claimers_gets_a_job(house: &impl House) {
    let (queue, _) = opened(house);
    enqueue(&queue, (1..=200).map(|number| job_of(number, number % 5 + 1, number % 11 + 1))).await;
    let claimers = (0..16).map(|number| {
        let queue = Arc::clone(&queue);
        tokio::spawn(async move {
            let mut mine = Vec::new();
            loop {
                let leases = queue.claim(number % 3 + 1, LEASE).await.unwrap();
                if leases.is_empty() {
                    return mine;
                }
                mine.extend(leases);
            }
        })
    });
    let all: Vec<Lease> = join_all(claimers).await.into_iter().flat_map(Result::unwrap).collect();
    let jobs: HashSet<_> = all.iter().map(|lease| lease.lease.job).collect();
    let tokens: HashSet<_> = all.iter().map(|lease| lease.lease.token).collect();
    assert_eq!((all.len(), jobs.len(), tokens.len()), (200, 200, 200));
    assert!(all.iter().all(|lease| lease.attempt == 1));
}

pub(crate) async fn one_of_many_enqueues_of_a_request_is_new(house: &impl House) {
    let (queue, _) = opened(house);
    for number in 1..=10 {
        let enqueuers = (0..16).map(|_| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move { queue.enqueue(job(number)).await.unwrap() })
        });
        let answers: Vec<Enqueued> = join_all(enqueuers).await.into_iter().map(Result::unwrap).collect();
        let new: Vec<_> = answers.iter().filter(|answer| matches!(answer, Enqueued::New(_))).collect();
        assert_eq!(new.len(), 1, "{answers:?}");
        let ids: HashSet<_> = answers
            .iter()
            .map(|answer| match answer {
                Enqueued::New(id) | Enqueued::Duplicate(id, _) => *id,
            })
            .collect();
        assert_eq!(ids.len(), 1, "all are told of the same job");
    }
    assert_eq!(queue.stats().await.unwrap().ready, 10);
}
