//! Jobs, queues and child processes for these tests.

use std::collections::HashMap;
use std::env;
use std::io::{BufRead, BufReader};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use azalea_bot::clock::{Clock, WallTime};
use azalea_bot::domain::{
    ChannelId, Destination, FrontEnd, GuildId, Link, MessageId, Options, PostId, Request, RequestId, UserId,
};
use azalea_bot::queue::{
    BookSettings, EmbeddedQueue, EmbeddedSettings, Enqueued, Filter, JobResult, JobView, Lease, NewJob,
    Priority, Queue,
};

/// When these tests are, where the machine's clock does not matter.
pub(crate) const NOW: WallTime = WallTime::from_millis(1_800_000_000_000);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

fn number(value: u64) -> NonZeroU64 {
    NonZeroU64::new(value).unwrap()
}

pub(crate) fn key(id: u64) -> RequestId {
    RequestId::new(FrontEnd::Discord, MessageId::new(number(id)), 0)
}

/// A job whose key is this number, of one of ten people on one of three servers.
pub(crate) fn job(id: u64, now: WallTime) -> NewJob {
    let request = Request {
        id: key(id),
        requester: UserId::new(number(id % 10 + 1)),
        link: Link {
            post: PostId::x(&(1_800_000_000_000_000_000 + id).to_string()).unwrap(),
            choice: None,
            spoiler: false,
        },
        destination: Destination {
            front_end: FrontEnd::Discord,
            guild: Some(GuildId::new(number(id % 3 + 1_100_000_000_000_000_000))),
            channel: ChannelId::new(number(1_200_000_000_000_000_000)),
            reply_to: Some(MessageId::new(number(id))),
        },
        options: Options::default(),
    };
    NewJob { request, priority: Priority::Interactive, not_before: now, deadline: now.plus(DAY) }
}

/// The result of a job that depends on nothing but it.
pub(crate) fn done(lease: &Lease) -> JobResult {
    JobResult::Delivered {
        front_end: FrontEnd::Discord,
        channel: lease.request.destination.channel,
        messages: vec![MessageId::new(number(lease.request.id.origin().get() + 1))],
        at: NOW,
    }
}

pub(crate) fn settings(folder: &Path) -> EmbeddedSettings {
    let book = BookSettings { results_most: 1_000_000, ..BookSettings::default() };
    EmbeddedSettings { ballast_bytes: 1 << 20, book, ..EmbeddedSettings::new(folder.to_owned()) }
}

pub(crate) fn open(folder: &Path) -> EmbeddedQueue {
    EmbeddedQueue::open(settings(folder), Clock::manual(NOW)).unwrap()
}

pub(crate) async fn enqueue(queue: &EmbeddedQueue, id: u64) -> Enqueued {
    queue.enqueue(job(id, NOW)).await.unwrap()
}

/// Leases one job, which has to be there.
pub(crate) async fn claim(queue: &EmbeddedQueue) -> Lease {
    let mut leases = queue.claim(1, MINUTE).await.unwrap();
    assert_eq!(leases.len(), 1);
    leases.remove(0)
}

/// Works everything off that can be, and says how many it was.
pub(crate) async fn drain(queue: &EmbeddedQueue) -> usize {
    let mut worked = 0;
    loop {
        let leases = queue.claim(64, MINUTE).await.unwrap();
        if leases.is_empty() {
            return worked;
        }
        for lease in leases {
            queue.complete(lease.lease, done(&lease)).await.unwrap();
            worked += 1;
        }
    }
}

/// All jobs that are not done, by key.
pub(crate) async fn jobs(queue: &EmbeddedQueue) -> HashMap<RequestId, JobView> {
    let filter = Filter { most: usize::MAX, ..Filter::default() };
    let all = queue.list(filter).await.unwrap();
    all.into_iter().map(|view| (view.request.id, view)).collect()
}

/// Waits until something is so, at most some seconds. What it waits for is another thread, not a time.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within ten seconds: {what}");
}

/// Says to the test program, run once more, in which folder it is to do its part.
pub(crate) const PART: &str = "AZALEA_TEST_QUEUE_PART";

/// The folder in which this program is to do the part, when it is to do one.
pub(crate) fn my_part() -> Option<PathBuf> {
    env::var_os(PART).map(PathBuf::from)
}

/// Runs one test of this program as a process of its own, in this folder.
pub(crate) fn part(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(PART, folder);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Waits until a child has said this.
pub(crate) fn wait_for_word(child: &mut Child, word: &str) {
    let output = BufReader::new(child.stdout.take().unwrap());
    // The harness has begun the line itself.
    let found = output.lines().map_while(Result::ok).any(|line| line.ends_with(word));
    assert!(found, "the child ended without a word");
}
