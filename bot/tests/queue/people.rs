//! Several jobs, those who ask for them, and those who look at them.

use std::time::Duration;

use azalea_bot::queue::{DeadReason, Enqueued, Held, NewJob, Priority, QueueError, Retried, StateKind};
use tokio::time::timeout;

use super::*;

pub(crate) async fn a_request_is_queued_once(house: &impl House) {
    let (queue, clock) = opened(house);
    let Ok(Enqueued::New(id)) = queue.enqueue(job(1)).await else { panic!("it is new") };
    let again = |kind| Ok(Enqueued::Duplicate(id, kind));
    assert_eq!(queue.enqueue(job(1)).await, again(StateKind::Ready));
    let lease = claim(&queue).await.unwrap();
    assert_eq!(queue.enqueue(job(1)).await, again(StateKind::Leased));
    queue.retry(lease.lease, seconds(5), failed()).await.unwrap();
    assert_eq!(queue.enqueue(job(1)).await, again(StateKind::Delayed));
    pass(&clock, seconds(5));
    let lease = claim(&queue).await.unwrap();
    queue.complete(lease.lease, delivered(9, NOW)).await.unwrap();
    assert_eq!(queue.enqueue(job(1)).await, again(StateKind::Done));
    assert_eq!(claim(&queue).await, None);
}

pub(crate) async fn a_full_queue_says_so(house: &impl House) {
    let clock = Clock::manual(NOW);
    let queue = house.open(BookSettings { capacity: 3, ..settings() }, &clock);
    enqueue(&queue, (1..=3).map(job)).await;
    let full = Err(QueueError::Full { capacity: 3 });
    assert_eq!(queue.enqueue(job(4)).await, full);
    let lease = claim(&queue).await.unwrap();
    assert_eq!(queue.enqueue(job(4)).await, full, "what is held is still there");
    assert!(matches!(queue.enqueue(job(1)).await, Ok(Enqueued::Duplicate(..))));
    assert!(
        matches!(queue.retry(lease.lease, seconds(1), failed()).await, Ok(Retried::At(_))),
        "it has its place"
    );
    let lease = claim(&queue).await.unwrap();
    queue.complete(lease.lease, delivered(9, NOW)).await.unwrap();
    enqueue(&queue, [job(4)]).await;
    let lease = claim(&queue).await.unwrap();
    queue.bury(lease.lease, failed(), DeadReason::Permanent).await.unwrap();
    enqueue(&queue, [job(5)]).await;
}

pub(crate) async fn two_thousand_that_wait_hold_nobody_back(house: &impl House) {
    let (queue, clock) = opened(house);
    let later = NOW.plus(seconds(600));
    enqueue(&queue, (1..=1_900).map(|number| NewJob { not_before: later, ..job(number) })).await;
    enqueue(&queue, (1_901..=2_000).map(job)).await;
    let leases = queue.claim(200, LEASE).await.unwrap();
    assert_eq!(leases.len(), 100);
    let retries = leases.iter().map(|lease| queue.retry(lease.lease, seconds(600), failed()));
    assert!(join_all(retries).await.into_iter().all(|answer| answer == Ok(Retried::At(later))));
    assert_eq!(claim(&queue).await, None);
    enqueue(&queue, [job(9_999)]).await;
    assert_eq!(claim(&queue).await.unwrap().request.id, key(9_999));
    pass(&clock, seconds(600));
    assert_eq!(queue.claim(5_000, LEASE).await.unwrap().len(), 2_001, "and the one whose lease ran out");
}

pub(crate) async fn no_server_waits_for_a_busy_one(house: &impl House) {
    let (queue, _) = opened(house);
    enqueue(&queue, (1..=500).map(|number| job_of(number, 1, 1))).await;
    enqueue(&queue, (501..=505).map(|number| job_of(number, 2, number))).await;
    enqueue(&queue, (506..=515).map(|number| job_of(number, 3, 7))).await;
    let background =
        (601..=610).map(|number| NewJob { priority: Priority::Background, ..job_of(number, 4, 8) });
    enqueue(&queue, background).await;
    let mut served = [0; 5];
    for lease in queue.claim(32, LEASE).await.unwrap() {
        served[usize::try_from(lease.request.destination.guild.unwrap().get()).unwrap()] += 1;
    }
    assert_eq!(served, [0, 15, 5, 10, 2], "each has its share, and the background every sixteenth turn");
}

pub(crate) async fn whoever_waits_is_woken(house: &impl House) {
    let (queue, clock) = opened(house);
    let woken = || {
        let queue = Arc::clone(&queue);
        tokio::spawn(async move {
            let mut leases = Vec::new();
            while leases.is_empty() {
                queue.ready().await;
                leases = queue.claim(1, LEASE).await.unwrap();
            }
            leases.remove(0)
        })
    };
    // A failing test is not to hang; a passing one takes no time.
    let bound = |waiting| timeout(seconds(20), waiting);
    let waiting = [woken(), woken(), woken()];
    enqueue(&queue, (1..=3).map(job)).await;
    let mut leases = Vec::new();
    for one in waiting {
        leases.push(bound(one).await.expect("nobody is forgotten").unwrap());
    }
    let waiting = woken();
    queue.release(leases[0].lease, Duration::ZERO).await.unwrap();
    let lease = bound(waiting).await.expect("what is handed back wakes").unwrap();
    queue.retry(lease.lease, seconds(5), failed()).await.unwrap();
    let waiting = woken();
    pass(&clock, seconds(5));
    // Any call makes the queue look at its clock; without one it does so every second.
    queue.stats().await.unwrap();
    assert_eq!(bound(waiting).await.expect("a moment that comes wakes").unwrap().attempt, 2);
    let waiting = woken();
    pass(&clock, LEASE);
    queue.stats().await.unwrap();
    bound(waiting).await.expect("a lease that runs out wakes").unwrap();
}

pub(crate) async fn a_closed_queue_takes_no_calls(house: &impl House) {
    let (queue, _) = opened(house);
    enqueue(&queue, [job(1)]).await;
    let lease = claim(&queue).await.unwrap().lease;
    let waiting = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move { queue.ready().await }
    });
    queue.close().await;
    queue.close().await;
    timeout(seconds(20), waiting).await.expect("who waits is woken").unwrap();
    assert_eq!(queue.enqueue(job(2)).await, Err(QueueError::Closed));
    assert_eq!(queue.claim(1, LEASE).await, Err(QueueError::Closed));
    assert_eq!(queue.extend(lease, LEASE).await, Err(QueueError::Closed));
    assert_eq!(queue.complete(lease, delivered(9, NOW)).await, Err(QueueError::Closed));
    assert_eq!(queue.stats().await, Err(QueueError::Closed));
}

pub(crate) async fn an_operator_lists_shows_and_forgets(house: &impl House) {
    let (queue, clock) = opened(house);
    enqueue(&queue, (1..=4).map(|number| job_of(number, number % 2 + 1, number))).await;
    let views = queue.list(Filter::default()).await.unwrap();
    assert_eq!(views.iter().map(|view| view.request.id).collect::<Vec<_>>(), [1, 2, 3, 4].map(key));
    let lease = claim(&queue).await.unwrap();
    assert_eq!(queue.forget(lease.lease.job).await, Ok(false), "it is held");
    let guild = Filter { guild: Some("1".parse().unwrap()), ..Filter::default() };
    let of_guild: Vec<_> = queue.list(guild).await.unwrap().iter().map(|view| view.request.id).collect();
    assert_eq!(of_guild, [2, 4].map(key));
    assert_eq!(queue.forget(views[3].id).await, Ok(true));
    assert_eq!(queue.forget(views[3].id).await, Ok(false));
    assert_eq!(queue.show(views[3].id).await, Ok(None));
    assert_eq!(queue.bury(lease.lease, failed(), DeadReason::Permanent).await, Ok(Held::Until(NOW)));
    let now = pass(&clock, seconds(100));
    let dead =
        Filter { state: Some(StateKind::Dead), reason: Some("transient".to_owned()), ..Filter::default() };
    let found = queue.list(dead).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(queue.show(lease.lease.job).await, Ok(Some(found[0].clone())));
    assert_eq!((found[0].enqueued_at, found[0].attempts, found[0].result.clone()), (NOW, 1, None));
    let old = Filter { older_than: Some(now.since(NOW)), most: 2, ..Filter::default() };
    assert_eq!(queue.list(old).await.unwrap().len(), 2);
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.leased, stats.dead, stats.oldest_ready), (2, 0, 1, Some(NOW)));
    assert_eq!(queue.forget(lease.lease.job).await, Ok(true), "a dead one too");
    enqueue(&queue, [job(4)]).await;
}

pub(crate) async fn of_one_delivery_one_is_worked_on_at_a_time(house: &impl House) {
    let (queue, _) = opened(house);
    let same = |number| NewJob {
        request: Request { link: job(1).request.link, ..job(number).request },
        ..job(number)
    };
    enqueue(&queue, [job(1)]).await;
    enqueue(&queue, [same(2)]).await;
    enqueue(&queue, [same(3)]).await;
    enqueue(&queue, [job(4)]).await;
    let leases = queue.claim(9, LEASE).await.unwrap();
    assert_eq!(leases.iter().map(|lease| lease.lease.job).collect::<Vec<_>>(), [1, 4].map(JobId));
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.delayed, stats.leased, stats.oldest_ready), (0, 2, 2, None));
    let delayed = Filter { state: Some(StateKind::Delayed), ..Filter::default() };
    let behind: Vec<_> =
        queue.list(delayed).await.unwrap().iter().map(|view| (view.id, view.behind)).collect();
    assert_eq!(behind, [2, 3].map(|id| (JobId(id), Some(JobId(1)))));
    // Whoever is first waits for its next attempt, and the others with it.
    queue.retry(leases[0].lease, seconds(5), failed()).await.unwrap();
    assert_eq!(queue.claim(9, LEASE).await, Ok(Vec::new()));
    // It is dropped: the next one is first.
    assert_eq!(queue.forget(JobId(1)).await, Ok(true));
    let lease = claim(&queue).await.unwrap();
    assert_eq!(lease.lease.job, JobId(2));
    queue.complete(lease.lease, delivered(9, NOW)).await.unwrap();
    assert_eq!(claim(&queue).await.unwrap().lease.job, JobId(3));
}

pub(crate) async fn whom_somebody_answers_is_not_worked_on_before_it_is_let_go(house: &impl House) {
    let (queue, _) = opened(house);
    let Ok(Enqueued::New(id)) = queue.enqueue_behind(job(1)).await else { panic!("it is new") };
    assert_eq!(queue.claim(9, LEASE).await, Ok(Vec::new()));
    let view = queue.show(id).await.unwrap().unwrap();
    assert_eq!((view.waits, view.behind), (true, None));
    queue.let_go(JobId(99));
    queue.let_go(id);
    let woken = async {
        queue.ready().await;
        claim(&queue).await
    };
    let lease = timeout(seconds(20), woken).await.expect("it wakes whoever waits").unwrap();
    assert_eq!(lease.lease.job, id);
}
