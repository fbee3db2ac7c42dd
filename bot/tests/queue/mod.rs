//! The contract of a queue: every test takes a [`House`] that makes the queue, and knows nothing else of it.
//!
//! The time of day is a clock that the tests set. Nothing waits for real time but for a writer to answer.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod crash;
pub(crate) mod fence;
pub(crate) mod life;
pub(crate) mod people;

use std::sync::Arc;
use std::time::Duration;

use azalea_bot::clock::{Clock, WallTime};
use azalea_bot::domain::{Destination, FrontEnd, Options, Request, RequestId, Stage};
use azalea_bot::queue::{
    BookSettings, DeadReason, Enqueued, Filter, JobId, JobResult, Lease, NewJob, Priority, Queue, Reason,
    State,
};
use futures_util::future::join_all;

/// Makes queues of one kind that keep what they keep in one place.
pub(crate) trait House {
    /// Opens the queue. Nothing else has it open.
    fn open(&self, settings: BookSettings, clock: &Clock) -> Arc<dyn Queue>;

    /// Opens it again after its process died without a chance to do anything.
    fn kill_and_open(&self, killed: Arc<dyn Queue>, settings: BookSettings, clock: &Clock) -> Arc<dyn Queue>;
}

/// All tests of the contract, for the queues of a house: `every_queue!(name, house)`. The house is made for each test.
macro_rules! every_queue {
    ($name:ident, $house:expr) => {
        mod $name {
            use super::*;

            every_queue!(@tests $house, life:
                a_lease_that_runs_out_returns_the_job,
                a_heartbeat_holds_a_job,
                a_retry_is_never_early,
                a_job_is_dead_after_exactly_its_attempts,
                a_dead_job_runs_again_when_a_person_wants_it,
                a_finished_job_stays_finished,
                a_buried_job_is_not_tried_again,
                a_released_job_was_not_tried,
                a_job_past_its_deadline_is_dead,
                a_job_is_not_run_before_its_time,
                an_intent_is_there_at_the_next_attempt,
                a_clock_that_is_put_back_makes_nothing_early_and_stops_nothing,
            );
            every_queue!(@tests $house, people:
                a_request_is_queued_once,
                a_full_queue_says_so,
                two_thousand_that_wait_hold_nobody_back,
                no_server_waits_for_a_busy_one,
                whoever_waits_is_woken,
                a_closed_queue_takes_no_calls,
                an_operator_lists_shows_and_forgets,
                of_one_delivery_one_is_worked_on_at_a_time,
                whom_somebody_answers_is_not_worked_on_before_it_is_let_go,
            );
            every_queue!(@tests $house, fence:
                the_calls_of_an_expired_holder_are_lost,
                one_of_many_claimers_gets_a_job,
                one_of_many_enqueues_of_a_request_is_new,
            );
            every_queue!(@tests $house, crash:
                what_was_accepted_outlives_the_process,
                what_was_held_comes_back_at_once,
                who_was_not_at_the_engine_goes_on_beside_others,
                who_may_have_posted_comes_before_others_of_the_delivery,
                a_restart_in_good_order_suspects_nobody,
                tokens_and_numbers_go_on_after_a_restart,
                an_input_that_kills_the_process_costs_its_bystanders_nothing,
            );
        }
    };
    (@tests $house:expr, $room:ident: $($test:ident),+ $(,)?) => {
        $(
            // Two threads, so that callers and the queue are really at work at the same time.
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                crate::contract::$room::$test(&$house).await;
            }
        )+
    };
}
pub(crate) use every_queue;

pub(crate) const NOW: WallTime = WallTime::from_millis(1_800_000_000_000);
/// How long a lease is.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// A queue that was just opened, and its clock.
pub(crate) fn opened(house: &impl House) -> (Arc<dyn Queue>, Clock) {
    let clock = Clock::manual(NOW);
    (house.open(settings(), &clock), clock)
}

pub(crate) fn settings() -> BookSettings {
    BookSettings { max_attempts: 3, ..BookSettings::default() }
}

/// Puts the clock forward.
pub(crate) fn pass(clock: &Clock, time: Duration) -> WallTime {
    clock.set(clock.now().plus(time));
    clock.now()
}

pub(crate) const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(crate) fn key(number: u64) -> RequestId {
    RequestId::new(FrontEnd::Console, number.to_string().parse().unwrap(), 0)
}

/// A job that may run at once and has an hour.
pub(crate) fn job(number: u64) -> NewJob {
    job_of(number, 1, 1)
}

/// The same, asked for by this person in this server.
pub(crate) fn job_of(number: u64, guild: u64, user: u64) -> NewJob {
    let request = Request {
        id: key(number),
        requester: user.to_string().parse().unwrap(),
        link: format!("https://x.com/ann/status/{}", number + 20).parse().unwrap(),
        destination: Destination {
            front_end: FrontEnd::Console,
            guild: Some(guild.to_string().parse().unwrap()),
            channel: "3".parse().unwrap(),
            reply_to: Some(number.to_string().parse().unwrap()),
        },
        options: Options::default(),
    };
    NewJob { request, priority: Priority::Interactive, not_before: NOW, deadline: NOW.plus(seconds(3_600)) }
}

/// Enqueues all at once. Each must be new.
pub(crate) async fn enqueue(queue: &Arc<dyn Queue>, jobs: impl IntoIterator<Item = NewJob>) {
    for answer in join_all(jobs.into_iter().map(|job| queue.enqueue(job))).await {
        assert!(matches!(answer, Ok(Enqueued::New(_))), "{answer:?}");
    }
}

/// Claims at most one job.
pub(crate) async fn claim(queue: &Arc<dyn Queue>) -> Option<Lease> {
    queue.claim(1, LEASE).await.unwrap().pop()
}

/// The state of a job that is not done.
#[track_caller]
pub(crate) fn state(queue: &Arc<dyn Queue>, id: JobId) -> impl Future<Output = Option<State>> {
    let queue = Arc::clone(queue);
    async move { queue.show(id).await.unwrap().map(|view| view.state) }
}

pub(crate) fn delivered(message: u64, at: WallTime) -> JobResult {
    JobResult::Delivered {
        front_end: FrontEnd::Console,
        channel: "3".parse().unwrap(),
        messages: vec![message.to_string().parse().unwrap()],
        at,
    }
}

pub(crate) fn failed() -> Reason {
    Reason {
        stage: Some(Stage::Download),
        code: "transient".to_owned(),
        chain: vec!["the server did not answer".to_owned()],
    }
}

pub(crate) const fn dead(reason: DeadReason, at: WallTime) -> Option<State> {
    Some(State::Dead { reason, at })
}
