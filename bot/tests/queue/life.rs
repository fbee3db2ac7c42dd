//! The life of one job.

use std::time::Duration;

use azalea_bot::queue::{
    Completed, DeadReason, Enqueued, Held, Intent, JobId, NewJob, Retried, State, StateKind,
};

use super::*;

pub(crate) async fn a_lease_that_runs_out_returns_the_job(house: &impl House) {
    let (queue, clock) = opened(house);
    enqueue(&queue, [job(1)]).await;
    let first = claim(&queue).await.unwrap();
    assert_eq!((first.attempt, first.until, first.alone), (1, NOW.plus(LEASE), false));
    assert_eq!(first.request, job(1).request);
    assert_eq!(claim(&queue).await, None);
    pass(&clock, LEASE - Duration::from_millis(1));
    assert_eq!(claim(&queue).await, None, "it is held until the end");
    pass(&clock, Duration::from_millis(1));
    let second = claim(&queue).await.unwrap();
    assert_eq!((second.lease.job, second.attempt), (first.lease.job, 2));
    assert!(second.lease.token > first.lease.token);
    let history = queue.show(first.lease.job).await.unwrap().unwrap().history;
    assert_eq!((history.len(), history[0].number, &*history[0].code), (1, 1, "expired"));
    assert_eq!(history[0].at, first.until);
}

pub(crate) async fn a_heartbeat_holds_a_job(house: &impl House) {
    let (queue, clock) = opened(house);
    enqueue(&queue, [job(1)]).await;
    let lease = claim(&queue).await.unwrap();
    for _ in 0..8 {
        let now = pass(&clock, LEASE / 2);
        assert_eq!(queue.extend(lease.lease, LEASE).await, Ok(Held::Until(now.plus(LEASE))));
        assert_eq!(claim(&queue).await, None);
    }
    let now = pass(&clock, LEASE / 2);
    assert_eq!(queue.complete(lease.lease, delivered(9, now)).await, Ok(Completed::Done));
}

pub(crate) async fn a_retry_is_never_early(house: &impl House) {
    let (queue, clock) = opened(house);
    for (number, delay) in [(1, 500), (2, 3_000), (3, 8_000)] {
        let delay = Duration::from_millis(delay);
        enqueue(&queue, [job(number)]).await;
        let lease = claim(&queue).await.unwrap();
        let at = clock.now().plus(delay);
        assert_eq!(queue.retry(lease.lease, delay, failed()).await, Ok(Retried::At(at)));
        pass(&clock, delay - Duration::from_millis(1));
        assert_eq!(claim(&queue).await, None);
        assert_eq!(queue.stats().await.unwrap().delayed, 1);
        pass(&clock, Duration::from_millis(1));
        let again = claim(&queue).await.unwrap();
        assert_eq!((again.lease.job, again.attempt), (lease.lease.job, 2));
        queue.complete(again.lease, delivered(9, clock.now())).await.unwrap();
    }
}

pub(crate) async fn a_job_is_dead_after_exactly_its_attempts(house: &impl House) {
    let (queue, clock) = opened(house);
    enqueue(&queue, [job(1), job(2)]).await;
    let mut runs = [0, 0];
    let mut last = None;
    while let Some(lease) = claim(&queue).await {
        if lease.request.id == key(1) {
            runs[0] += 1;
            let answer = queue.retry(lease.lease, Duration::ZERO, failed()).await.unwrap();
            assert_eq!(matches!(answer, Retried::Dead(DeadReason::Attempts)), runs[0] == 3, "{answer:?}");
        } else {
            // The other one's worker is never heard of again.
            runs[1] += 1;
            pass(&clock, LEASE);
        }
        last = Some(clock.now());
    }
    assert_eq!(runs, [3, 3]);
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.delayed, stats.leased, stats.dead), (0, 0, 0, 2));
    let views = queue.list(Filter { state: Some(StateKind::Dead), ..Filter::default() }).await.unwrap();
    let codes: Vec<Vec<&str>> =
        views.iter().map(|view| view.history.iter().map(|attempt| &*attempt.code).collect()).collect();
    assert_eq!(codes, [["transient"; 3], ["expired"; 3]]);
    assert_eq!(views[0].history[2].chain, ["the server did not answer"]);
    assert_eq!(views[0].history[2].stage, Some(Stage::Download));
    assert_eq!(views[1].state, dead(DeadReason::Attempts, last.unwrap()).unwrap());
    assert_eq!(queue.enqueue(job(1)).await, Ok(Enqueued::Duplicate(views[0].id, StateKind::Dead)));
}

pub(crate) async fn a_dead_job_runs_again_when_a_person_wants_it(house: &impl House) {
    let (queue, clock) = opened(house);
    enqueue(&queue, [job(1)]).await;
    let lease = claim(&queue).await.unwrap();
    let id = lease.lease.job;
    let deadline = NOW.plus(seconds(7_200));
    assert_eq!(queue.revive(id, deadline).await, Ok(false), "it is held");
    queue.bury(lease.lease, failed(), DeadReason::Permanent).await.unwrap();
    pass(&clock, seconds(3_600));
    assert_eq!(queue.revive(id, deadline).await, Ok(true));
    assert_eq!(queue.revive(id, deadline).await, Ok(false), "it is not dead any more");
    let again = claim(&queue).await.unwrap();
    assert_eq!((again.lease.job, again.attempt, again.generation), (id, 1, 1));
    assert_eq!(queue.show(id).await.unwrap().unwrap().deadline, deadline);
    for attempt in 1..=3 {
        let answer = queue.retry(queue_lease(&queue, &again, attempt).await, Duration::ZERO, failed()).await;
        assert_eq!(matches!(answer, Ok(Retried::Dead(DeadReason::Attempts))), attempt == 3, "{answer:?}");
    }
    assert_eq!(queue.revive(JobId(9_999), deadline).await, Ok(false));
}

/// The first lease, or the next one.
async fn queue_lease(queue: &Arc<dyn Queue>, first: &Lease, attempt: u32) -> azalea_bot::queue::LeaseRef {
    if attempt == 1 { first.lease } else { claim(queue).await.unwrap().lease }
}

pub(crate) async fn a_finished_job_stays_finished(house: &impl House) {
    let (queue, clock) = opened(house);
    enqueue(&queue, [job(1)]).await;
    assert_eq!(queue.result(key(1)).await, Ok(None));
    let lease = claim(&queue).await.unwrap().lease;
    let result = delivered(77, NOW);
    assert_eq!(queue.complete(lease, result.clone()).await, Ok(Completed::Done));
    // Its answer may have been lost, so it is asked again, and maybe not with the same words.
    assert_eq!(queue.complete(lease, delivered(78, NOW)).await, Ok(Completed::Already(result.clone())));
    assert_eq!(queue.retry(lease, Duration::ZERO, failed()).await, Ok(Retried::Lost));
    assert_eq!(queue.release(lease, Duration::ZERO).await, Ok(Held::Lost));
    for time in [Duration::ZERO, LEASE, 6 * 24 * seconds(3_600)] {
        pass(&clock, time);
        assert_eq!(claim(&queue).await, None);
        assert_eq!(queue.result(key(1)).await, Ok(Some(result.clone())));
        assert_eq!(queue.enqueue(job(1)).await, Ok(Enqueued::Duplicate(lease.job, StateKind::Done)));
    }
    assert_eq!(queue.forget(lease.job).await, Ok(false), "or it would be posted again");
    pass(&clock, 24 * seconds(3_600));
    assert_eq!(queue.result(key(1)).await, Ok(None), "after a week");
}

pub(crate) async fn a_buried_job_is_not_tried_again(house: &impl House) {
    let (queue, clock) = opened(house);
    enqueue(&queue, [job(1)]).await;
    let lease = claim(&queue).await.unwrap().lease;
    assert_eq!(queue.bury(lease, failed(), DeadReason::Permanent).await, Ok(Held::Until(NOW)));
    assert_eq!(queue.bury(lease, failed(), DeadReason::Permanent).await, Ok(Held::Lost));
    assert_eq!(state(&queue, lease.job).await, dead(DeadReason::Permanent, NOW));
    pass(&clock, seconds(600));
    assert_eq!(claim(&queue).await, None);
    pass(&clock, 90 * 24 * seconds(3_600));
    assert_eq!(state(&queue, lease.job).await, None, "after three months it is dropped");
}

pub(crate) async fn a_released_job_was_not_tried(house: &impl House) {
    let (queue, _) = opened(house);
    enqueue(&queue, [job(1), job(2)]).await;
    for _ in 0..10 {
        let lease = claim(&queue).await.unwrap();
        assert_eq!((lease.request.id, lease.attempt), (key(1), 1));
        assert_eq!(queue.release(lease.lease, Duration::ZERO).await, Ok(Held::Until(NOW)));
    }
    assert_eq!(queue.list(Filter::default()).await.unwrap()[0].history, []);
}

pub(crate) async fn a_job_past_its_deadline_is_dead(house: &impl House) {
    let (queue, clock) = opened(house);
    let deadline = NOW.plus(seconds(100));
    enqueue(&queue, (1..=3).map(|number| NewJob { deadline, ..job(number) })).await;
    let late = claim(&queue).await.unwrap();
    assert_eq!(
        queue.retry(late.lease, seconds(100), failed()).await,
        Ok(Retried::Dead(DeadReason::Deadline)),
        "it would come too late"
    );
    let held = queue.claim(1, seconds(500)).await.unwrap().remove(0);
    let now = pass(&clock, seconds(100));
    assert_eq!(claim(&queue).await, None);
    assert_eq!(state(&queue, JobId(held.lease.job.0 + 1)).await, dead(DeadReason::Deadline, now));
    // Whoever holds one may finish, but not try again.
    assert_eq!(queue.extend(held.lease, LEASE).await, Ok(Held::Until(now.plus(LEASE))));
    assert_eq!(
        queue.retry(held.lease, Duration::ZERO, failed()).await,
        Ok(Retried::Dead(DeadReason::Deadline))
    );
    assert_eq!(queue.stats().await.unwrap().dead, 3);
}

pub(crate) async fn a_job_is_not_run_before_its_time(house: &impl House) {
    let (queue, clock) = opened(house);
    enqueue(&queue, [NewJob { not_before: NOW.plus(seconds(10)), ..job(1) }]).await;
    pass(&clock, Duration::from_millis(9_999));
    assert_eq!(claim(&queue).await, None);
    assert_eq!(queue.stats().await.unwrap().oldest_ready, None);
    let now = pass(&clock, Duration::from_millis(1));
    assert_eq!(queue.stats().await.unwrap().oldest_ready, Some(now));
    assert!(claim(&queue).await.is_some());
}

pub(crate) async fn an_intent_is_there_at_the_next_attempt(house: &impl House) {
    let (queue, clock) = opened(house);
    enqueue(&queue, [job(1)]).await;
    let lease = claim(&queue).await.unwrap();
    assert_eq!(lease.intent, None);
    let mut intent = Intent { started_at: NOW, channel: "3".parse().unwrap(), parts: 2, posted: Vec::new() };
    assert_eq!(queue.intend(lease.lease, intent.clone()).await, Ok(Held::Until(lease.until)));
    intent.posted.push("55".parse().unwrap());
    assert_eq!(queue.intend(lease.lease, intent.clone()).await, Ok(Held::Until(lease.until)));
    pass(&clock, LEASE);
    assert_eq!(queue.intend(lease.lease, Intent { parts: 3, ..intent.clone() }).await, Ok(Held::Lost));
    assert_eq!(claim(&queue).await.unwrap().intent, Some(intent));
}

pub(crate) async fn a_clock_that_is_put_back_makes_nothing_early_and_stops_nothing(house: &impl House) {
    let (queue, clock) = opened(house);
    enqueue(&queue, [job(1)]).await;
    let lease = claim(&queue).await.unwrap();
    queue.retry(lease.lease, seconds(10), failed()).await.unwrap();
    let days = 30 * 24 * 3_600_000;
    clock.set(WallTime::from_millis(NOW.as_millis() - days));
    assert_eq!(claim(&queue).await, None);
    pass(&clock, Duration::from_millis(9_999));
    assert_eq!(claim(&queue).await, None);
    let now = pass(&clock, Duration::from_millis(1));
    let lease = claim(&queue).await.unwrap();
    assert_eq!(lease.until, now.plus(LEASE));
    let until = lease.until;
    assert!(
        matches!(state(&queue, lease.lease.job).await, Some(State::Leased { until: held, .. }) if held == until)
    );
}
