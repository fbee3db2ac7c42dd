//! A full disk: what was taken is worked off, nothing new is taken, and it goes on by itself when there is room.

use std::env;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use azalea_bot::clock::Clock;
use azalea_bot::queue::{EmbeddedQueue, Enqueued, Queue, QueueError, QueueState};

use crate::house::{NOW, drain, job, jobs, key, settings, until};

/// Says to the test program, run once more, that it stands on a small disk, and which.
const SMALL_DISK: &str = "AZALEA_TEST_SMALL_DISK";

/// Runs the test below on a small tmpfs in a mount namespace of its own, or, where that is not allowed, with a bound
/// on the length of files, beyond which writing fails as it does on a full disk.
#[test]
fn what_was_taken_before_the_disk_was_full_is_worked_off_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = |program: &[&str], script: &str| {
        let (first, rest) = program.split_first().unwrap();
        let mut command = Command::new(first);
        command.args(rest).args(["-c", script, "sh"]).arg(folder.path()).arg(env::current_exe().unwrap());
        command.args(["--exact", "full::on_a_small_disk", "--nocapture"]).output()
    };
    let tmpfs = format!(
        "mount -t tmpfs -o size=8m none \"$1\" || exit; export {SMALL_DISK}=\"tmpfs $1\"; shift; exec \"$@\""
    );
    let limit = format!("trap '' XFSZ; ulimit -f 4096; export {SMALL_DISK}=\"limit $1\"; shift; exec \"$@\"");
    let output = match run(&["unshare", "--mount", "--map-root-user", "sh"], &tmpfs) {
        // Nothing was printed: the test did not even begin.
        Ok(output) if !output.stdout.is_empty() => output,
        _ => run(&["sh"], &limit).unwrap(),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
}

#[tokio::test]
async fn on_a_small_disk() {
    let Ok(disk) = env::var(SMALL_DISK) else { return };
    let (kind, folder) = disk.split_once(' ').unwrap();
    let (folder, filler) = (Path::new(folder).join("queue"), Path::new(folder).join("filler"));
    let queue = EmbeddedQueue::open(settings(&folder), Clock::manual(NOW)).unwrap();
    assert!(queue.health().ballast_held);

    let mut taken = 0_u64;
    let mut slowest = Duration::ZERO;
    let refusal = loop {
        let begun = Instant::now();
        let answer = queue.enqueue(job(taken + 1, NOW)).await;
        slowest = slowest.max(begun.elapsed());
        match answer {
            Ok(Enqueued::New(_)) => taken += 1,
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
        // So that there is not much to be filled by jobs.
        if taken == 200 && kind == "tmpfs" {
            fill(&filler);
        }
        assert!(taken < 100_000, "it never becomes full");
    };
    println!("a small disk by {kind}: {taken} taken, the slowest answer after {slowest:?}, then: {refusal}");
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    assert!(matches!(&refusal, QueueError::Unavailable(why) if why.contains("full")), "{refusal:?}");
    // All that was taken is there, and nothing else.
    assert_eq!(u64::try_from(jobs(&queue).await.len()).unwrap(), taken);
    if kind != "tmpfs" {
        // A bound on one file is not moved by removing another.
        queue.close().await;
        return;
    }
    assert_eq!((queue.health().state, queue.health().ballast_held), (QueueState::Full, false));
    assert!(queue.enqueue(job(taken + 2, NOW)).await.is_err(), "still full");
    assert_eq!(drain(&queue).await, usize::try_from(taken).unwrap(), "all of it is worked off");
    assert_eq!(queue.health().state, QueueState::Full, "there is no more room than before");
    for id in 1..=taken {
        assert!(queue.result(key(id)).await.unwrap().is_some(), "{id}");
    }

    fs::remove_file(&filler).unwrap();
    until("there is room again", || queue.health().state == QueueState::Working).await;
    assert!(queue.health().ballast_held);
    assert!(matches!(queue.enqueue(job(taken + 2, NOW)).await, Ok(Enqueued::New(_))));
    queue.close().await;
    let queue = EmbeddedQueue::open(settings(&folder), Clock::manual(NOW)).unwrap();
    assert_eq!(jobs(&queue).await.len(), 1);
    assert!(queue.result(key(1)).await.unwrap().is_some());
    assert_eq!(queue.health().moved_aside, None);
}

/// Takes all the room there is.
fn fill(filler: &Path) {
    let mut file = fs::File::create(filler).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
}
