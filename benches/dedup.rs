//! What it costs to ask whether somebody works on it already, and to start over a full store.
#![forbid(unsafe_code)]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a bench that cannot run has no other answer")]
#![allow(missing_docs, reason = "criterion's macros make public functions without documentation")]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use azalea_bot::clock::{Clock, instant};
use azalea_bot::dedup::{Claim, InFlight, InFlightSettings, Ownership, WaitOutcome, Waiter};
use azalea_bot::metrics::Tracker;
use azalea_bot::store::{Shelf, Store, StoreSettings};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tokio::runtime::Runtime;

type Flights = InFlight<u64, u64>;

/// Enough room that no claim is pushed out.
fn flights() -> Flights {
    InFlight::new(InFlightSettings { capacity: 10_000_000, ..InFlightSettings::default() })
}

fn owned(claim: Claim<u64, u64>) -> Ownership<u64, u64> {
    match claim {
        Claim::Owner(ownership) => ownership,
        Claim::Waiter(_) => panic!("the key is taken"),
    }
}

fn waiting(claim: Claim<u64, u64>) -> Waiter<u64> {
    match claim {
        Claim::Waiter(waiter) => waiter,
        Claim::Owner(_) => panic!("the key is free"),
    }
}

/// Claims per second: on a key that is taken, on a key that is free, and by all cores on one key.
fn claims(c: &mut Criterion) {
    let mut group = c.benchmark_group("claim");
    group.throughput(Throughput::Elements(1));

    let flights = flights();
    let now = instant();
    let held = owned(flights.claim(&1, now));
    group.bench_function("one key, taken", |b| b.iter(|| waiting(flights.claim(&1, now))));

    let mut next = 1_u64;
    group.bench_function("many keys, free, then released", |b| {
        b.iter(|| {
            next += 1;
            owned(flights.claim(&next, now))
        });
    });

    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    group.bench_function(format!("one key, taken, {threads} threads"), |b| {
        b.iter_custom(|rounds| {
            let each = rounds.div_ceil(u64::try_from(threads).unwrap());
            let begun = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for _ in 0..each {
                            drop(black_box(waiting(flights.claim(&1, now))));
                        }
                    });
                }
            });
            begun.elapsed()
        });
    });
    drop(held);
    group.finish();
}

/// 10,000 asks for one post in 100 channels, each a task, until all have its result.
fn crowd(c: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let mut group = c.benchmark_group("crowd");
    group.sample_size(20).throughput(Throughput::Elements(10_000));
    group.bench_function("10,000 asks over 100 keys", |b| {
        b.iter_batched(flights, |flights| runtime.block_on(ask_all(flights)), BatchSize::PerIteration);
    });
    group.finish();
}

async fn ask_all(flights: Flights) {
    let now = instant();
    let mut owners = Vec::new();
    let mut tasks = Vec::new();
    for ask in 0..10_000_u64 {
        match flights.claim(&(ask % 100), now) {
            Claim::Owner(ownership) => owners.push(ownership),
            Claim::Waiter(waiter) => tasks.push(tokio::spawn(async move { waiter.wait().await })),
        }
    }
    assert_eq!((owners.len(), tasks.len()), (100, 9_900));
    for owner in owners {
        owner.complete(7);
    }
    for task in tasks {
        assert_eq!(task.await.unwrap(), WaitOutcome::Done(7));
    }
}

/// Bytes per claim in flight and per waiter. Counted, not timed.
fn memory(_: &mut Criterion) {
    const MANY: u64 = 100_000;
    let now = instant();
    let flights = flights();
    let mut owners = Vec::with_capacity(100_000);
    let claimed = measure(|| owners.extend((0..MANY).map(|key| owned(flights.claim(&key, now)))));
    let each = claimed.bytes_current / i64::try_from(MANY).unwrap();
    println!(
        "claim/memory: {each} bytes on the heap per claim in flight, {} its handle",
        size_of_val(&owners[0])
    );

    let mut waiters = Vec::with_capacity(100_000);
    let waited = measure(|| waiters.extend((0..MANY).map(|_| waiting(flights.claim(&7, now)))));
    println!(
        "claim/memory: {} bytes and {} allocations on the heap for {MANY} waiters, {} the handle, {} the future of each",
        waited.bytes_current,
        waited.count_total,
        size_of_val(&waiters[0]),
        size_of_val(&waiters[0].wait()),
    );
    assert!(waited.count_total < MANY / 100, "a waiter allocates");
}

fn store(folder: &Path) -> Store {
    let settings = StoreSettings {
        path: Some(folder.to_owned()),
        batch_size: 50_000,
        close_within: Duration::from_secs(300),
        ..StoreSettings::default()
    };
    Store::open(settings, Clock::system(), Tracker::new(false))
}

/// Puts records from one number to another, as large as a delivery's.
async fn fill(folder: &Path, from: u64, to: u64) {
    let expires = Clock::system().now().plus(Duration::from_secs(86_400));
    let store = store(folder);
    for key in from..to {
        store.put(Shelf::Processed, key_text(key), vec![7; 100], expires);
    }
    store.close().await;
    assert_eq!(store.health().dropped, 0, "{:?}", store.health());
}

/// Spread as post ids are.
fn key_text(key: u64) -> String {
    format!("delivery/1/discord/{}/x:{key}/all/as-is/whole/open", key.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// What a start takes: until the store is there, until its first answer, and until it is closed again.
async fn start(folder: &Path, key: &str) -> [Duration; 3] {
    let begun = Instant::now();
    let store = store(folder);
    let there = begun.elapsed();
    black_box(store.get(Shelf::Processed, key).await);
    let answered = begun.elapsed();
    store.close().await;
    [there, answered, begun.elapsed()]
}

/// Start-up with nothing stored and with a million records, in turn.
fn startup(_: &mut Criterion) {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    const ROUNDS: usize = 100;
    let runtime = Runtime::new().unwrap();
    let (empty, full) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    runtime.block_on(async {
        // One, so that both are files that were written.
        fill(empty.path(), 0, 1).await;
        for part in 0..20 {
            fill(full.path(), part * 50_000, (part + 1) * 50_000).await;
        }
        let bytes = std::fs::metadata(full.path().join("azalea.redb")).unwrap().len();
        println!("startup: 1,000,000 records, {} MiB", bytes >> 20);
        let mut times = [[const { Vec::new() }; 3], [const { Vec::new() }; 3]];
        for round in 0..ROUNDS {
            let key = key_text(u64::try_from(round).unwrap() * 9_001);
            // Each goes first as often as the other.
            for turn in [round % 2, (round + 1) % 2] {
                let folder = if turn == 0 { empty.path() } else { full.path() };
                let started = start(folder, &key).await;
                for (time, times) in started.into_iter().zip(&mut times[turn]) {
                    times.push(time);
                }
            }
        }
        let [none, million] = times.map(|times| times.map(median));
        let names = ["the store is there", "the first answer", "closed again"];
        for (name, (none, million)) in names.into_iter().zip(none.into_iter().zip(million)) {
            let ratio = million.as_secs_f64() / none.as_secs_f64();
            println!("startup: until {name}: empty {none:?}, a million {million:?}, {ratio:.2}×");
        }
    });
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

criterion_group!(dedup, claims, crowd, memory, startup);
criterion_main!(dedup);
