//! What is left when the process dies. Of a queue that promises nothing, nothing is.

use std::time::Duration;

use azalea_bot::domain::DeliveryKey;
use azalea_bot::queue::{Completed, DeadReason, Durability, Enqueued, Held, Intent, StateKind, Stats};

use super::*;

/// The queue after its process died; `None` when it is empty, as it may be.
async fn killed(house: &impl House, queue: Arc<dyn Queue>, clock: &Clock) -> Option<Arc<dyn Queue>> {
    let durability = queue.durability();
    let queue = house.kill_and_open(queue, settings(), clock);
    match durability {
        Durability::None => {
            assert_eq!(queue.stats().await, Ok(Stats::default()));
            None
        }
        Durability::Fsync => Some(queue),
    }
}

pub(crate) async fn what_was_accepted_outlives_the_process(house: &impl House) {
    let (queue, clock) = opened(house);
    enqueue(&queue, (1..=20).map(|number| job_of(number, number, number))).await;
    let leases = queue.claim(3, LEASE).await.unwrap();
    let result = delivered(5, NOW);
    queue.complete(leases[0].lease, result.clone()).await.unwrap();
    queue.bury(leases[1].lease, failed(), DeadReason::Permanent).await.unwrap();
    queue.retry(leases[2].lease, seconds(30), failed()).await.unwrap();
    let before = (queue.list(Filter::default()).await.unwrap(), queue.stats().await.unwrap());
    assert_eq!(before.0.len(), 19);
    let Some(queue) = killed(house, queue, &clock).await else { return };
    assert_eq!((queue.list(Filter::default()).await.unwrap(), queue.stats().await.unwrap()), before);
    let done = leases[0].request.id;
    assert_eq!(queue.result(done).await, Ok(Some(result.clone())));
    assert_eq!(queue.complete(leases[0].lease, delivered(6, NOW)).await, Ok(Completed::Already(result)));
    let again = NewJob { request: leases[0].request.clone(), ..job(1) };
    assert_eq!(queue.enqueue(again).await, Ok(Enqueued::Duplicate(leases[0].lease.job, StateKind::Done)));
    assert_eq!(queue.claim(100, LEASE).await.unwrap().len(), 17);
}

pub(crate) async fn what_was_held_comes_back_at_once(house: &impl House) {
    let (queue, clock) = opened(house);
    enqueue(&queue, (1..=3).map(job)).await;
    let held = queue.claim(2, LEASE).await.unwrap();
    let intent = Intent { started_at: NOW, channel: "3".parse().unwrap(), parts: 1, posted: Vec::new() };
    queue.intend(held[0].lease, intent.clone()).await.unwrap();
    // Their media are at the engine when it dies.
    for lease in &held {
        assert_eq!(queue.engage(lease.lease).await, Ok(Held::Until(NOW.plus(LEASE))));
    }
    let Some(queue) = killed(house, queue, &clock).await else { return };
    assert_eq!(queue.extend(held[0].lease, LEASE).await, Ok(Held::Lost));
    assert_eq!(queue.enqueue(job(1)).await, Ok(Enqueued::Duplicate(held[0].lease.job, StateKind::Suspect)));
    // They are run one by one, and none of them is charged for it.
    for (one, intent) in [(&held[0], Some(intent)), (&held[1], None)] {
        let leases = queue.claim(9, LEASE).await.unwrap();
        let [lease] = &leases[..] else { panic!("{leases:?}") };
        assert_eq!((lease.lease.job, lease.attempt, lease.alone), (one.lease.job, 1, true));
        assert_eq!(lease.intent, intent);
        assert!(lease.lease.token > held[1].lease.token);
        assert_eq!(queue.claim(9, LEASE).await, Ok(Vec::new()));
        let view = queue.show(lease.lease.job).await.unwrap().unwrap();
        assert_eq!((view.suspicion, &*view.history[0].code), (1, "crashed"));
        queue.complete(lease.lease, delivered(9, NOW)).await.unwrap();
    }
    let last = claim(&queue).await.unwrap();
    assert_eq!((last.request.id, last.alone), (key(3), false));
}

pub(crate) async fn who_was_not_at_the_engine_goes_on_beside_others(house: &impl House) {
    let (mut queue, clock) = opened(house);
    enqueue(&queue, (1..=50).map(job)).await;
    for death in 1..=3 {
        let held = queue.claim(50, LEASE).await.unwrap();
        assert_eq!(held.len(), 50, "after {death} deaths");
        assert!(held.iter().all(|lease| lease.attempt == 1 && !lease.alone), "nobody is charged");
        // Two are through with the engine and about to post.
        for lease in &held[..2] {
            queue.engage(lease.lease).await.unwrap();
            let intent =
                Intent { started_at: NOW, channel: "3".parse().unwrap(), parts: 1, posted: Vec::new() };
            queue.intend(lease.lease, intent).await.unwrap();
        }
        let Some(next) = killed(house, queue, &clock).await else { return };
        queue = next;
    }
    let view = queue.show(JobId(1)).await.unwrap().unwrap();
    assert_eq!((view.suspicion, view.attempts), (0, 0));
    let numbers: Vec<u32> = view.history.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
}

pub(crate) async fn who_may_have_posted_comes_before_others_of_the_delivery(house: &impl House) {
    let (queue, clock) = opened(house);
    // One waited behind another, and was stored first.
    let request = Request { link: job(2).request.link, ..job(1).request };
    let behind = queue.enqueue_behind(NewJob { request, ..job(1) }).await.unwrap();
    assert!(matches!(behind, Enqueued::New(JobId(1))), "{behind:?}");
    enqueue(&queue, [job(2)]).await;
    let lease = claim(&queue).await.unwrap();
    assert_eq!(lease.lease.job, JobId(2));
    let intent = Intent { started_at: NOW, channel: "3".parse().unwrap(), parts: 1, posted: Vec::new() };
    queue.intend(lease.lease, intent.clone()).await.unwrap();
    let Some(queue) = killed(house, queue, &clock).await else { return };
    let leases = queue.claim(9, LEASE).await.unwrap();
    let [lease] = &leases[..] else { panic!("{leases:?}") };
    assert_eq!((lease.lease.job, lease.intent.as_ref()), (JobId(2), Some(&intent)));
    queue.complete(lease.lease, delivered(9, NOW)).await.unwrap();
    // And that is known to the one behind, also in the next process.
    let Some(queue) = killed(house, queue, &clock).await else { return };
    let lease = claim(&queue).await.unwrap();
    assert_eq!(lease.lease.job, JobId(1));
    assert_eq!(queue.delivered(&DeliveryKey::of(&lease.request)).await, Ok(Some(delivered(9, NOW))));
    assert_eq!(queue.delivered(&DeliveryKey::of(&job(3).request)).await, Ok(None));
}

pub(crate) async fn a_restart_in_good_order_suspects_nobody(house: &impl House) {
    let (queue, clock) = opened(house);
    enqueue(&queue, (1..=3).map(job)).await;
    let lease = claim(&queue).await.unwrap();
    queue.release(lease.lease, Duration::ZERO).await.unwrap();
    queue.close().await;
    let Some(queue) = killed(house, queue, &clock).await else { return };
    let leases = queue.claim(9, LEASE).await.unwrap();
    assert_eq!(leases.len(), 3);
    assert!(leases.iter().all(|lease| lease.attempt == 1 && !lease.alone));
}

pub(crate) async fn tokens_and_numbers_go_on_after_a_restart(house: &impl House) {
    let (mut queue, clock) = opened(house);
    let (mut ids, mut tokens) = (Vec::new(), Vec::new());
    for number in 1..=3 {
        enqueue(&queue, [job(number)]).await;
        let lease = claim(&queue).await.unwrap().lease;
        ids.push(lease.job);
        tokens.push(lease.token);
        queue.complete(lease, delivered(9, NOW)).await.unwrap();
        let Some(next) = killed(house, queue, &clock).await else { return };
        queue = next;
    }
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
}

pub(crate) async fn an_input_that_kills_the_process_costs_its_bystanders_nothing(house: &impl House) {
    let (mut queue, clock) = opened(house);
    enqueue(&queue, (1..=31).map(|number| job_of(number, number % 4 + 1, number))).await;
    let poison = key(13);
    let (mut deaths, mut done) = (0, 0);
    loop {
        let leases = queue.claim(8, LEASE).await.unwrap();
        if leases.is_empty() {
            break;
        }
        for lease in &leases {
            queue.engage(lease.lease).await.unwrap();
        }
        if leases.iter().any(|lease| lease.request.id == poison) {
            deaths += 1;
            let Some(next) = killed(house, queue, &clock).await else { return };
            queue = next;
            continue;
        }
        for lease in leases {
            assert_eq!(lease.attempt, 1, "a bystander was charged");
            assert_eq!(queue.complete(lease.lease, delivered(9, NOW)).await, Ok(Completed::Done));
            done += 1;
        }
    }
    assert_eq!((deaths, done), (3, 30), "once beside others and twice alone");
    let left = queue.list(Filter::default()).await.unwrap();
    assert_eq!(left.iter().map(|view| view.request.id).collect::<Vec<_>>(), [poison]);
    assert_eq!(left[0].state, dead(DeadReason::Poison, NOW).unwrap());
}
