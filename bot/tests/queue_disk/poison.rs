//! A job that ends the process whenever it is worked on ends as dead, and those beside it are done.

use std::process;
use std::sync::Arc;

use azalea_bot::clock::Clock;
use azalea_bot::queue::{DeadReason, EmbeddedQueue, Queue, State};

use crate::house::{MINUTE, done, job, jobs, key, my_part, part, settings};

/// The key of the job that nothing survives.
const POISON: u64 = 13;
const ALL: u64 = 31;

/// Works off what is there, up to eight at once, and ends well if it lives.
#[test]
fn doomed_process() {
    let Some(folder) = my_part() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let queue = Arc::new(EmbeddedQueue::open(settings(&folder), Clock::system()).unwrap());
        loop {
            let leases = queue.claim(8, MINUTE).await.unwrap();
            if leases.is_empty() {
                break;
            }
            for lease in &leases {
                queue.engage(lease.lease).await.unwrap();
            }
            if leases.iter().any(|lease| lease.request.id == key(POISON)) {
                process::abort();
            }
            for lease in leases {
                queue.complete(lease.lease, done(&lease)).await.unwrap();
            }
        }
        queue.close().await;
    });
}

#[test]
fn a_job_that_aborts_the_process_costs_those_beside_it_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let queue = EmbeddedQueue::open(settings(folder.path()), Clock::system()).unwrap();
        for id in 1..=ALL {
            queue.enqueue(job(id, Clock::system().now())).await.unwrap();
        }
        queue.close().await;
    });
    let mut aborts = 0;
    while !part("poison::doomed_process", folder.path()).status().unwrap().success() {
        aborts += 1;
        assert!(aborts < 10, "it goes on for ever");
    }
    // Once beside others, which proves nothing, and then alone as often as that may be.
    assert_eq!(aborts, 3);
    runtime.block_on(async {
        let queue = EmbeddedQueue::open(settings(folder.path()), Clock::system()).unwrap();
        let left = jobs(&queue).await;
        assert_eq!(left.len(), 1, "{left:?}");
        let view = &left[&key(POISON)];
        assert!(matches!(view.state, State::Dead { reason: DeadReason::Poison, .. }), "{view:?}");
        assert!(!view.history.is_empty());
        for id in (1..=ALL).filter(|id| *id != POISON) {
            assert!(queue.result(key(id)).await.unwrap().is_some(), "job {id} was harmed");
        }
    });
}
