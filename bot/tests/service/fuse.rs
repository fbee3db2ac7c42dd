//! The process ends at every single step of a request's way, and the next one takes over.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use azalea_bot::app::Rooms;
use azalea_bot::clock::{Clock, WallTime};
use azalea_bot::dedup::Delivered;
use azalea_bot::domain::{
    DeliveryKey, Destination, Failure, LimitClass, MessageId, Request, RequestId, Stage, Telling,
};
use azalea_bot::guard::audience::Place;
use azalea_bot::guard::rate::{RateLimiter, RateSettings};
use azalea_bot::intake::{Intake, Outcome};
use azalea_bot::pipeline::activity::Sight;
use azalea_bot::pipeline::delivery::{Delivery, Notice, Parcel};
use azalea_bot::pipeline::posting::Posting;
use azalea_bot::queue::{
    Answer, BookSettings, Completed, DeadReason, Durability, EmbeddedQueue, EmbeddedSettings, Enqueued,
    Filter, Held, Intent, JobId, JobResult, JobView, Lease, LeaseRef, NewJob, Queue, Reason, Retried, Stats,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::films;
use crate::house::{House, LIMIT, LINK, POST};
use crate::support::reply::Reply;

/// A step, and the how manieth time it is come to.
type Moment = (&'static str, usize);

/// Notes the steps of a run. From the moment on at which the fuse is, nothing happens any more.
#[derive(Debug)]
struct Fuse {
    at: Option<Moment>,
    seen: Mutex<Vec<&'static str>>,
    blown: watch::Sender<bool>,
}

impl Fuse {
    fn new(at: Option<Moment>) -> Arc<Self> {
        Arc::new(Self { at, seen: Mutex::default(), blown: watch::Sender::new(false) })
    }

    async fn step(&self, label: &'static str) {
        let moment = {
            let mut seen = self.seen.lock().unwrap();
            seen.push(label);
            (label, seen.iter().filter(|seen| **seen == label).count())
        };
        if self.at == Some(moment) {
            self.blown.send_replace(true);
        }
        if *self.blown.borrow() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether something was begun whose end was not come to.
    fn is_in_a_step(&self) -> bool {
        let seen = self.seen.lock().unwrap();
        let begun = seen.iter().filter(|label| label.starts_with("before")).count();
        begun * 2 != seen.len()
    }

    /// Each moment that was come to.
    fn moments(&self) -> Vec<Moment> {
        let seen = self.seen.lock().unwrap();
        let nth = |place: usize, label| seen.iter().take(place + 1).filter(|seen| **seen == label).count();
        seen.iter().enumerate().map(|(place, label)| (*label, nth(place, *label))).collect()
    }
}

/// A queue with a fuse before and behind each change.
#[derive(Debug)]
struct Fused {
    queue: Arc<EmbeddedQueue>,
    fuse: Arc<Fuse>,
}

/// Each change with the fuse around it.
macro_rules! fused {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)+) => {
        $(
            fn $name(&self, $($argument: $kind),*) -> Answer<'_, $answer> {
                async move {
                    self.fuse.step(concat!("before ", stringify!($name))).await;
                    let answer = self.queue.$name($($argument),*).await;
                    self.fuse.step(concat!("after ", stringify!($name))).await;
                    answer
                }
                .boxed()
            }
        )+
    };
}

impl Queue for Fused {
    fused! {
        enqueue(job: NewJob) -> Enqueued;
        enqueue_behind(job: NewJob) -> Enqueued;
        claim(most: usize, visibility: Duration) -> Vec<Lease>;
        engage(lease: LeaseRef) -> Held;
        intend(lease: LeaseRef, intent: Intent) -> Held;
        complete(lease: LeaseRef, result: JobResult) -> Completed;
        retry(lease: LeaseRef, after: Duration, reason: Reason) -> Retried;
        bury(lease: LeaseRef, reason: Reason, why: DeadReason) -> Held;
        release(lease: LeaseRef, after: Duration) -> Held;
        answered(id: JobId) -> bool;
        forget(id: JobId) -> bool;
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        self.queue.ready()
    }

    fn extend(&self, lease: LeaseRef, visibility: Duration) -> Answer<'_, Held> {
        self.queue.extend(lease, visibility)
    }

    fn unanswered(&self, most: usize) -> Answer<'_, Vec<JobView>> {
        self.queue.unanswered(most)
    }

    fn result(&self, key: RequestId) -> Answer<'_, Option<JobResult>> {
        self.queue.result(key)
    }

    fn delivered(&self, key: &DeliveryKey) -> Answer<'_, Option<JobResult>> {
        self.queue.delivered(key)
    }

    fn let_go(&self, job: JobId) {
        self.queue.let_go(job);
    }

    fn list(&self, filter: Filter) -> Answer<'_, Vec<JobView>> {
        self.queue.list(filter)
    }

    fn show(&self, id: JobId) -> Answer<'_, Option<JobView>> {
        self.queue.show(id)
    }

    fn revive(&self, id: JobId, deadline: WallTime) -> Answer<'_, bool> {
        self.queue.revive(id, deadline)
    }

    fn drain(&self) -> Answer<'_, Vec<JobView>> {
        self.queue.drain()
    }

    fn stats(&self) -> Answer<'_, Stats> {
        self.queue.stats()
    }

    fn durability(&self) -> Durability {
        self.queue.durability()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.queue.close()
    }
}

/// What people see: it knows a nonce again, as Discord does, and outlives every process.
#[derive(Debug, Default)]
struct Board {
    posted: Mutex<HashMap<String, MessageId>>,
    told: Mutex<HashSet<RequestId>>,
}

impl Board {
    fn answers(&self) -> usize {
        self.posted.lock().unwrap().len() + self.told.lock().unwrap().len()
    }
}

/// A front end of one process in front of that board.
#[derive(Debug)]
struct Front {
    board: Arc<Board>,
    fuse: Arc<Fuse>,
    clock: Clock,
}

impl Delivery for Front {
    fn limit(&self, _: &Destination) -> LimitClass {
        LimitClass::new(NonZeroU64::new(LIMIT).unwrap())
    }

    fn place(&self, _: &Destination) -> Place {
        Place::Ordinary
    }

    fn progress(&self, _: &Request, _: Stage, _: Sight) {}

    fn deliver<'a>(
        &'a self,
        request: &'a Request,
        _: Parcel,
        posting: &'a Posting,
    ) -> BoxFuture<'a, Result<Delivered, Failure>> {
        async move {
            let Destination { front_end, channel, .. } = request.destination;
            posting.begin(channel, 1, Vec::new()).await?;
            self.fuse.step("before posting").await;
            let message = {
                let mut posted = self.board.posted.lock().unwrap();
                let next = u64::try_from(posted.len()).unwrap() + 1;
                let next = MessageId::new(NonZeroU64::new(next).unwrap());
                *posted.entry(posting.nonce(request, 0)).or_insert(next)
            };
            self.fuse.step("after posting").await;
            Ok(Delivered { front_end, channel, messages: vec![message], at: self.clock.now() })
        }
        .boxed()
    }

    fn tell<'a>(&'a self, request: &'a Request, _: Notice) -> BoxFuture<'a, Telling> {
        async move {
            self.fuse.step("before telling").await;
            self.board.told.lock().unwrap().insert(request.id);
            self.fuse.step("after telling").await;
            Telling::Settled
        }
        .boxed()
    }
}

/// One process: its rooms, and the worker that runs until it is dropped.
struct Process {
    intake: Intake,
    queue: Arc<EmbeddedQueue>,
    running: tokio::task::JoinHandle<()>,
    _rooms: Rooms,
}

impl Process {
    /// Starts on the queue in a folder; with a store of its own, so that only the queue tells what was before.
    fn start(house: &House, queue: &Path, store: &Path, board: &Arc<Board>, fuse: &Arc<Fuse>) -> Self {
        let mut config = house.config.clone();
        config.store.path = store.to_owned();
        let rooms = Rooms::new(&config, house.clock.clone()).unwrap();
        let book = BookSettings { max_attempts: 2, ..BookSettings::default() };
        let settings = EmbeddedSettings { book, ballast_bytes: 0, ..EmbeddedSettings::new(queue.to_owned()) };
        let queue = Arc::new(EmbeddedQueue::open(settings, house.clock.clone()).unwrap());
        let fused: Arc<dyn Queue> = Arc::new(Fused { queue: Arc::clone(&queue), fuse: Arc::clone(fuse) });
        let front = Front { board: Arc::clone(board), fuse: Arc::clone(fuse), clock: house.clock.clone() };
        let mut worker = rooms.worker(&config, Arc::clone(&fused), Arc::new(front));
        worker.settings.backoff = Duration::from_millis(1);
        let intake = Intake::new(
            RateLimiter::new(&RateSettings { max_requests: 0, ..RateSettings::default() }),
            worker.desk.clone(),
            worker.processed.clone(),
            fused,
            worker.tracker.clone(),
            house.clock.clone(),
        );
        let running = tokio::spawn(worker.run(CancellationToken::new()));
        Self { intake, queue, running, _rooms: rooms }
    }

    /// Waits until nothing is left to be done.
    async fn idle(&self) {
        let all_done = async {
            loop {
                let stats = self.queue.stats().await.unwrap();
                let left = stats.ready + stats.delayed + stats.leased;
                if left == 0 && self.queue.unanswered(1).await.unwrap().is_empty() {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), all_done).await.expect("it comes to an end");
    }
}

/// Lets a process end at each moment of one request's way; what those moments are.
async fn every_step(house: &House) -> Vec<Moment> {
    let moments = run(house, None).await;
    for moment in &moments {
        run(house, Some(*moment)).await;
    }
    moments
}

/// One request, by a process that ends at this moment and the one that comes after it. Gives the moments of the first.
async fn run(house: &House, at: Option<Moment>) -> Vec<Moment> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (board, fuse) = (Arc::<Board>::default(), Fuse::new(at));
    let process = Process::start(house, &path("queue"), &path("store"), &board, &fuse);
    let mut blown = fuse.blown.subscribe();
    let accepted = tokio::select! {
        biased;
        outcome = house.ask(&process.intake, 1, LINK) => matches!(outcome, Outcome::Accepted(_)),
        _ = blown.wait_for(|blown| *blown) => false,
    };
    let settled = async {
        process.idle().await;
        // What the queue has answered last is heard.
        while fuse.is_in_a_step() {
            tokio::task::yield_now().await;
        }
    };
    let over = tokio::select! {
        biased;
        _ = blown.wait_for(|blown| *blown) => false,
        () = settled => true,
    };
    process.running.abort();
    if over {
        // There are fewer moments in some runs than in others: a worker may find two things at once.
        assert_eq!(board.answers(), 1, "{at:?} was not come to");
        return fuse.moments();
    }
    // What stands on the disk now is what the next process finds. The one that ended would still give back what it
    // held, which one that is killed does not.
    std::fs::create_dir(path("later")).unwrap();
    for file in ["queue.redb", "queue.marker"] {
        if path("queue").join(file).exists() {
            std::fs::copy(path("queue").join(file), path("later").join(file)).unwrap();
        }
    }
    let process = Process::start(house, &path("later"), &path("other store"), &board, &Fuse::new(None));
    process.idle().await;
    process.running.abort();
    let answers = board.answers();
    assert!(answers == 1 || (answers == 0 && !accepted), "{at:?}: {answers} answers, accepted: {accepted}");
    fuse.moments()
}

/// Expects that both sides of these steps are among the moments.
#[track_caller]
fn check_steps(moments: &[Moment], steps: &[&str]) {
    for step in steps {
        for side in ["before", "after"] {
            let label = format!("{side} {step}");
            assert!(moments.iter().any(|(known, _)| *known == label), "{label} in {moments:?}");
        }
    }
}

#[tokio::test]
async fn a_process_that_ends_at_any_step_leaves_one_delivery() {
    let house = House::with_video(films::ready()).await;
    check_steps(&every_step(&house).await, &["enqueue", "claim", "engage", "intend", "posting", "complete"]);
}

#[tokio::test]
async fn a_process_that_ends_at_any_step_leaves_one_plain_answer() {
    let house = House::new().await;
    house.post(&json!([]));
    check_steps(&every_step(&house).await, &["enqueue", "claim", "telling", "complete"]);
}

#[tokio::test]
async fn a_process_that_ends_at_any_step_leaves_one_dead_letter_that_is_told() {
    let house = House::new().await;
    house.x.on(POST, [Reply::status(503)]);
    check_steps(&every_step(&house).await, &["enqueue", "claim", "retry", "telling", "answered"]);
}
