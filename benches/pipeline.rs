//! From a link to a delivered file: the whole pipeline beside its steps done one after the other, and under a crowd.
//!
//! `cargo bench --bench pipeline -- crowd` or `-- overlap` runs one of the two. With `AZALEA_BENCH_QUICK=1` both are
//! small, and how long something takes is not judged.
#![forbid(unsafe_code)]
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a bench that cannot run has no other answer"
)]

#[path = "pipeline/beside.rs"]
mod beside;
#[path = "pipeline/clip.rs"]
mod clip;
#[path = "pipeline/crowd.rs"]
mod crowd;
#[path = "pipeline/house.rs"]
mod house;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use azalea_bot::frontend::demo::server::DemoServer;
use azalea_bot::intake::Outcome;
use azalea_engine::ByteSize;
use tokio::runtime::{Builder, Runtime};

use beside::{Steps, Told};
use clip::{POST, Recipe, SMALL};
use house::{House, Posted, ask, folder, server};

/// 20 Mbit/s, for us and for those beside us.
const BYTES_PER_SECOND: u64 = 2_500_000;
/// What the pipeline may take of the time of its steps one after the other.
const MOST_RATIO: f64 = 0.65;
/// How often both sides run, in turn.
const ROUNDS: usize = 3;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let quick = std::env::var_os("AZALEA_BENCH_QUICK").is_some_and(|value| !value.is_empty() && value != "0");
    // As many threads as the program has: they only wait.
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // The crowd comes first: the peak of memory never falls, and a long clip needs more than ten thousand who wait.
    let crowd = !wanted("crowd") || runtime.block_on(crowd::run(quick));
    let overlap = !wanted("overlap") || overlap(&runtime, quick);
    if crowd && overlap { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What both sides are given.
struct Case {
    name: &'static str,
    clip: PathBuf,
    recipe: Recipe,
    /// Bytes of a result at most.
    limit: u64,
    /// How often both sides run.
    rounds: usize,
}

/// The pipeline beside download, two passes and copy; whether it takes as little as it must.
fn overlap(runtime: &Runtime, quick: bool) -> bool {
    let (recipe, limit, rounds) = if quick { (SMALL, 512 << 10, 1) } else { (POST, 10 << 20, ROUNDS) };
    let case = |name, clip| Case { name, clip, recipe, limit, rounds };
    let first = compare(runtime, &case("index first", recipe.index_first()));
    // With its index at the end a file cannot be read while it arrives, so there is less to win. It is told, not judged.
    let last = compare(runtime, &case("index last", recipe.index_last()));
    println!("overlap: index last {last:.2}×, not judged");
    if quick {
        println!("overlap: index first {first:.2}×, not judged: a quick run says nothing about time");
        return true;
    }
    let holds = first <= MOST_RATIO;
    let verdict = if holds { "holds" } else { "TOO MUCH" };
    println!("overlap: index first {first:.2}×, and it may be {MOST_RATIO:.2}×: {verdict}");
    holds
}

/// Both sides in turn, on the same clip at the same pace; the ratio of their medians.
fn compare(runtime: &Runtime, case: &Case) -> f64 {
    let Case { name, clip, recipe, limit, rounds } = case;
    let server = runtime.block_on(server(clip, *recipe, BYTES_PER_SECOND));
    let url = beside::media_url(server.base_url());
    let source = ByteSize::new(std::fs::metadata(clip).unwrap().len());
    println!(
        "overlap: {name}: {source} into {}, at {BYTES_PER_SECOND} bytes a second",
        ByteSize::new(*limit)
    );
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 1..=*rounds {
        let (took, told) = runtime.block_on(pipeline(&server, clip, *limit, round));
        let steps = steps(&server, &url, &told, round);
        println!("overlap: {name}, round {round}: {:.2}×", took.as_secs_f64() / steps.sum().as_secs_f64());
        ours.push(took);
        theirs.push(steps.sum());
    }
    runtime.block_on(server.stop());
    let (ours, theirs) = (median(ours), median(theirs));
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("overlap: {name}: medians of {rounds}: azalea {ours:.2?}, the steps {theirs:.2?}, {ratio:.2}×");
    ratio
}

/// From a link to a file in its place, by a service that runs and knows nothing of the post; and what it made of it.
/// The source's time to think, 150 ms, is ours alone: those beside us are given the video's address.
async fn pipeline(server: &DemoServer, clip: &Path, limit: u64, round: usize) -> (Duration, Told) {
    let before = server.counts();
    let mut house = House::start(server, limit).await;
    let begun = Instant::now();
    let outcome = ask(&house.app.intake, 0, 0).await;
    assert!(matches!(outcome, Outcome::Accepted(_)), "it is not on its way: {outcome:?}");
    let Posted { path, facts, times, at, .. } = house.posted().await;
    let took = at.duration_since(begun);
    assert_eq!(facts.action, "transcode");
    assert!(facts.bytes <= limit, "{} bytes are above the limit", facts.bytes);
    let after = server.counts();
    assert_eq!(after.media_requests - before.media_requests, 1, "the video was not fetched once");
    assert_eq!(after.api_requests - before.api_requests, 1, "the post was not asked for once");
    let told = Told::of(clip, &path);
    println!(
        "overlap: round {round}: azalea {took:.2?}: download {:.2?}, finished {:.2?} after its begin; {}, {}",
        times.download,
        times.optimize,
        ByteSize::new(facts.bytes),
        told.words
    );
    house.stop().await;
    (took, told)
}

/// The same by hand.
fn steps(server: &DemoServer, url: &str, told: &Told, round: usize) -> Steps {
    let before = server.counts();
    let folder = folder();
    let steps = beside::run(url, told, folder.path());
    assert_eq!(server.counts().media_requests - before.media_requests, 1, "the video was not fetched once");
    println!(
        "overlap: round {round}: the steps {:.2?}: download {:.2?}, two passes {:.2?}, copy {:.2?}; {}",
        steps.sum(),
        steps.download,
        steps.passes,
        steps.copy,
        ByteSize::new(steps.bytes)
    );
    steps
}

/// The middle one, or the mean of the two in the middle.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    let middle = times.len() / 2;
    if times.len() % 2 == 1 { times[middle] } else { (times[middle - 1] + times[middle]) / 2 }
}
