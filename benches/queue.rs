//! What the queue on disk does per second, whether a long one is slower than a short one, and how long its file is.
#![forbid(unsafe_code)]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a bench that cannot run has no other answer")]

use std::fs;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use azalea_bot::clock::{Clock, WallTime};
use azalea_bot::domain::{
    ChannelId, Destination, FrontEnd, GuildId, Link, MessageId, Options, PostId, Request, RequestId, UserId,
};
use azalea_bot::queue::{
    BookSettings, EmbeddedQueue, EmbeddedSettings, Enqueued, JobResult, NewJob, Priority, Queue,
};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// How much of everything is measured.
#[derive(Clone, Copy)]
struct Size {
    /// Jobs in the long queue.
    queued: u64,
    /// How long each rate is measured.
    each: Duration,
    /// Jobs that run through a backlog.
    soak: u64,
}

/// What one measurement found.
struct Rate {
    per_second: f64,
    p50: Duration,
    p99: Duration,
}

const VISIBILITY: Duration = Duration::from_secs(600);
const BACKLOG: u64 = 1_000;

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let size = if is_test {
        Size { queued: 1_000, each: Duration::from_millis(100), soak: 2_000 }
    } else {
        Size { queued: 100_000, each: Duration::from_secs(4), soak: 50_000 }
    };
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        rates(size).await;
        soak(size).await;
    });
}

/// Adding, and leasing and completing, in a short and in a long queue.
async fn rates(size: Size) {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::system();
    let next = Arc::new(AtomicU64::new(1));
    let short = open(&folder.path().join("short"), &clock);
    let long = open(&folder.path().join("long"), &clock);
    let begun = Instant::now();
    add(&long, &next, size.queued, 512).await;
    println!("queue: {} added in {:?}, {} MiB", size.queued, begun.elapsed(), long.health().file_bytes >> 20);

    for flight in [1, 16, 256] {
        let empty = added(&short, &next, flight, size.each).await;
        empty_it(&short).await;
        let full = added(&long, &next, flight, size.each).await;
        say(&format!("enqueue, {flight} in flight"), &empty, &full, size);
    }
    for workers in [1, 32] {
        // Enough for the time, and no more: what is measured is a short queue.
        add(&short, &next, 20_000.min(size.queued), 512).await;
        let empty = worked(&short, workers, size.each).await;
        empty_it(&short).await;
        let full = worked(&long, workers, size.each).await;
        say(&format!("claim + complete, {workers} workers"), &empty, &full, size);
    }

    let stats = long.stats().await.unwrap();
    long.close().await;
    let begun = Instant::now();
    let long = open(&folder.path().join("long"), &clock);
    println!("queue: opened with {} jobs in {:?}, all of the file checked", stats.ready, begun.elapsed());
    long.close().await;
    short.close().await;
}

/// Many jobs through a short backlog, and an idle minute behind them.
async fn soak(size: Size) {
    let folder = tempfile::tempdir().unwrap();
    let now = WallTime::from_millis(1_800_000_000_000);
    let clock = Clock::manual(now);
    let queue = open(folder.path(), &clock);
    let next = Arc::new(AtomicU64::new(1));
    let (begun, mut longest) = (Instant::now(), 0);
    add(&queue, &next, BACKLOG, 250).await;
    for _ in 0..size.soak / 250 {
        add(&queue, &next, 250, 250).await;
        let mut workers = JoinSet::new();
        for _ in 0..25 {
            workers.spawn(work(Arc::clone(&queue), 10));
        }
        workers.join_all().await;
        longest = longest.max(queue.health().file_bytes);
    }
    println!(
        "queue/file: {} jobs through a backlog of {BACKLOG} in {:?}: {:.2} MiB at most",
        size.soak,
        begun.elapsed(),
        mebibytes(longest)
    );
    empty_it(&queue).await;
    clock.set(now.plus(Duration::from_secs(61)));
    let begun = Instant::now();
    let before = queue.health().file_bytes;
    while queue.health().file_bytes >= before && begun.elapsed() < Duration::from_secs(10) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    queue.close().await;
    let after = fs::metadata(folder.path().join("queue.redb")).unwrap().len();
    println!("queue/file: drained and a minute idle: {:.2} MiB", mebibytes(after));
}

fn open(folder: &Path, clock: &Clock) -> Arc<EmbeddedQueue> {
    let book = BookSettings { capacity: 10_000_000, ..BookSettings::default() };
    let settings = EmbeddedSettings { book, ..EmbeddedSettings::new(folder.to_owned()) };
    Arc::new(EmbeddedQueue::open(settings, clock.clone()).unwrap())
}

/// Adds this many jobs, so many at once.
async fn add(queue: &Arc<EmbeddedQueue>, next: &Arc<AtomicU64>, jobs: u64, flight: u64) {
    let mut tasks = JoinSet::new();
    for task in 0..flight {
        let (queue, next) = (Arc::clone(queue), Arc::clone(next));
        let mine = jobs / flight + u64::from(task < jobs % flight);
        tasks.spawn(async move {
            for _ in 0..mine {
                let added = queue.enqueue(job(next.fetch_add(1, Ordering::Relaxed))).await;
                assert!(matches!(added, Ok(Enqueued::New(_))), "{added:?}");
            }
        });
    }
    tasks.join_all().await;
}

/// Adds jobs for some time, so many at once.
async fn added(queue: &Arc<EmbeddedQueue>, next: &Arc<AtomicU64>, flight: usize, each: Duration) -> Rate {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..flight {
        let (queue, next) = (Arc::clone(queue), Arc::clone(next));
        tasks.spawn(async move {
            let mut times = Vec::new();
            while begun.elapsed() < each {
                let call = Instant::now();
                let added = queue.enqueue(job(next.fetch_add(1, Ordering::Relaxed))).await;
                times.push(call.elapsed());
                assert!(matches!(added, Ok(Enqueued::New(_))), "{added:?}");
            }
            times
        });
    }
    rate(tasks.join_all().await.into_iter().flatten().collect(), begun)
}

/// Leases and completes one job after another for some time, with so many workers. The times are those of the leases.
async fn worked(queue: &Arc<EmbeddedQueue>, workers: usize, each: Duration) -> Rate {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..workers {
        let queue = Arc::clone(queue);
        tasks.spawn(async move {
            let mut times = Vec::new();
            while begun.elapsed() < each {
                let call = Instant::now();
                if !one(&queue).await {
                    break;
                }
                times.push(call.elapsed());
            }
            times
        });
    }
    rate(tasks.join_all().await.into_iter().flatten().collect(), begun)
}

async fn work(queue: Arc<EmbeddedQueue>, jobs: usize) {
    for _ in 0..jobs {
        one(&queue).await;
    }
}

/// Leases and completes a job; `false` when there is none.
async fn one(queue: &EmbeddedQueue) -> bool {
    let leases = queue.claim(1, VISIBILITY).await.unwrap();
    for lease in &leases {
        queue.complete(lease.lease, result()).await.unwrap();
    }
    !leases.is_empty()
}

/// Works everything off.
async fn empty_it(queue: &Arc<EmbeddedQueue>) {
    loop {
        let leases = queue.claim(512, VISIBILITY).await.unwrap();
        if leases.is_empty() {
            return;
        }
        let mut tasks = JoinSet::new();
        for lease in leases {
            let queue = Arc::clone(queue);
            tasks.spawn(async move { queue.complete(lease.lease, result()).await.unwrap() });
        }
        tasks.join_all().await;
    }
}

fn rate(mut times: Vec<Duration>, begun: Instant) -> Rate {
    let seconds = begun.elapsed().as_secs_f64();
    times.sort();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    let count = u32::try_from(times.len()).unwrap();
    Rate { per_second: f64::from(count) / seconds, p50: at(50), p99: at(99) }
}

fn say(what: &str, empty: &Rate, full: &Rate, size: Size) {
    for (queued, rate) in [(0, empty), (size.queued, full)] {
        println!(
            "queue/{what}, {queued} queued: {:.0} per s, each {:?} (half), {:?} (99 of 100)",
            rate.per_second, rate.p50, rate.p99
        );
    }
    println!("queue/{what}: cost of a long queue {:.2}×", empty.per_second / full.per_second);
}

fn mebibytes(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes >> 10).unwrap()) / 1024.0
}

fn number(value: u64) -> NonZeroU64 {
    NonZeroU64::new(value).unwrap()
}

/// A job like those of Discord, of one of a thousand people on one of a hundred servers.
fn job(id: u64) -> NewJob {
    let message = 1_300_000_000_000_000_000 + id;
    let request = Request {
        id: RequestId::new(FrontEnd::Discord, MessageId::new(number(message)), 0),
        requester: UserId::new(number(1_000_000_000_000_000_000 + id % 1_000)),
        link: Link {
            post: PostId::x(&(1_800_000_000_000_000_000 + id).to_string()).unwrap(),
            choice: None,
            spoiler: false,
        },
        destination: Destination {
            front_end: FrontEnd::Discord,
            guild: Some(GuildId::new(number(1_100_000_000_000_000_000 + id % 100))),
            channel: ChannelId::new(number(1_200_000_000_000_000_000 + id % 300)),
            reply_to: Some(MessageId::new(number(message))),
        },
        options: Options::default(),
    };
    let far = WallTime::from_millis(u64::MAX / 2);
    NewJob { request, priority: Priority::Interactive, not_before: WallTime::default(), deadline: far }
}

fn result() -> JobResult {
    JobResult::Delivered {
        front_end: FrontEnd::Discord,
        channel: ChannelId::new(number(1_200_000_000_000_000_000)),
        messages: vec![MessageId::new(number(1_400_000_000_000_000_000))],
        at: WallTime::from_millis(1_800_000_000_000),
    }
}
