//! A process that is killed at any moment loses nothing that it said was taken, and does nothing twice that it said was
//! done.

use std::collections::{HashMap, HashSet};
use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use azalea_bot::clock::Clock;
use azalea_bot::domain::RequestId;
use azalea_bot::queue::{EmbeddedQueue, Enqueued, Queue, Reason, Retried, State};

use crate::house::{MINUTE, done, drain, job, jobs, key, my_part, part, settings, wait_for_word};

/// Rounds when `AZALEA_TEST_KILLS` says nothing else.
const ROUNDS: u64 = 5;

/// A job is tried this often; the queue's default.
const MOST_ATTEMPTS: u32 = 5;

/// Adds a line to what happened, in one write, so that a kill does not cut it.
fn note(folder: &Path, line: &str) {
    let mut log = OpenOptions::new().create(true).append(true).open(folder.join("log")).unwrap();
    log.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Eight that add jobs and eight that work, until it is killed.
#[test]
fn busy_process() {
    let Some(folder) = my_part() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let queue = Arc::new(EmbeddedQueue::open(settings(&folder), Clock::system()).unwrap());
        // No key of an earlier process: those are counted by its time of start.
        let next = Arc::new(AtomicU64::new(Clock::system().now().as_millis() * 10_000));
        println!("\nopen");
        std::io::stdout().flush().unwrap();
        let mut tasks = Vec::new();
        for _ in 0..8 {
            tasks.push(tokio::spawn(add(Arc::clone(&queue), Arc::clone(&next), folder.clone())));
            tasks.push(tokio::spawn(work(Arc::clone(&queue), folder.clone())));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
}

async fn add(queue: Arc<EmbeddedQueue>, next: Arc<AtomicU64>, log: PathBuf) {
    loop {
        let id = next.fetch_add(1, Ordering::Relaxed);
        if let Ok(Enqueued::New(_)) = queue.enqueue(job(id, Clock::system().now())).await {
            note(&log, &format!("added {id}"));
        }
    }
}

async fn work(queue: Arc<EmbeddedQueue>, log: PathBuf) {
    loop {
        queue.ready().await;
        for lease in queue.claim(1, MINUTE).await.unwrap() {
            let id = lease.request.id.origin();
            note(&log, &format!("begun {id} {}", lease.attempt));
            // Each tenth is tried once more.
            if id.get() % 10 == 0 && lease.attempt == 1 {
                let reason = Reason { stage: None, code: "again".into(), chain: vec![] };
                let retried = queue.retry(lease.lease, Duration::ZERO, reason).await.unwrap();
                assert!(matches!(retried, Retried::At(_)), "{retried:?}");
            } else {
                queue.complete(lease.lease, done(&lease)).await.unwrap();
                note(&log, &format!("done {id}"));
            }
        }
    }
}

/// What a log says.
#[derive(Default)]
struct Log {
    added: Vec<RequestId>,
    begun: HashMap<RequestId, u32>,
    done: HashSet<RequestId>,
    /// Begun after it was said to be done.
    twice: Vec<RequestId>,
}

impl Log {
    fn read(folder: &Path) -> Self {
        let mut log = Self::default();
        let text = fs::read_to_string(folder.join("log")).unwrap_or_default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let id = key(words[1].parse().unwrap());
            match words[0] {
                "added" => log.added.push(id),
                "begun" => {
                    if log.done.contains(&id) {
                        log.twice.push(id);
                    }
                    let attempt: u32 = words[2].parse().unwrap();
                    let highest = log.begun.entry(id).or_default();
                    *highest = attempt.max(*highest);
                }
                _ => drop(log.done.insert(id)),
            }
        }
        log
    }
}

#[test]
fn nothing_is_lost_or_done_twice_however_often_the_process_is_killed() {
    let rounds = env::var("AZALEA_TEST_KILLS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut orphans = 0;
    for round in 0..rounds {
        let mut child = part("crash::busy_process", folder.path()).spawn().unwrap();
        wait_for_word(&mut child, "open");
        std::thread::sleep(Duration::from_millis(fastrand::u64(20..420)));
        child.kill().unwrap();
        child.wait().unwrap();
        orphans += runtime.block_on(look(folder.path(), round));
    }
    let log = Log::read(folder.path());
    let dead = runtime.block_on(finish(folder.path(), &log));
    println!(
        "{rounds} kills: {} added, {} done, {orphans} held when their process died, {dead} dead of it",
        log.added.len(),
        log.done.len()
    );
    assert!(!log.added.is_empty());
}

/// Looks at what one killed process left, and says how many jobs it held.
async fn look(folder: &Path, round: u64) -> usize {
    let log = Log::read(folder);
    let queue = EmbeddedQueue::open(settings(folder), Clock::system()).unwrap();
    let health = queue.health();
    assert_eq!((health.moved_aside, health.file_was_missing, health.broken_records), (None, false, 0));
    let waiting = jobs(&queue).await;
    for id in &log.added {
        let is_there = waiting.contains_key(id) || queue.result(*id).await.unwrap().is_some();
        assert!(is_there, "round {round} lost {id}");
    }
    for id in &log.done {
        assert!(queue.result(*id).await.unwrap().is_some(), "round {round} forgot how {id} ended");
        assert!(!waiting.contains_key(id), "round {round} has {id} again");
    }
    assert_eq!(log.twice, [], "begun again after they were done");
    assert!(log.begun.values().all(|attempt| *attempt <= MOST_ATTEMPTS));
    let stats = queue.stats().await.unwrap();
    let sum = stats.ready + stats.delayed + stats.leased + stats.dead;
    assert_eq!(sum, u64::try_from(waiting.len()).unwrap(), "each job is in one state");
    let held = waiting.values().filter(|view| matches!(view.state, State::Suspect { .. })).count();
    queue.close().await;
    held
}

/// Works off what is left, and says how many died of the kills.
async fn finish(folder: &Path, log: &Log) -> usize {
    let queue = EmbeddedQueue::open(settings(folder), Clock::system()).unwrap();
    drain(&queue).await;
    let left = jobs(&queue).await;
    assert!(left.values().all(|view| matches!(view.state, State::Dead { .. })), "all is worked off");
    for id in &log.added {
        assert!(left.contains_key(id) || queue.result(*id).await.unwrap().is_some(), "lost {id}");
    }
    left.len()
}
