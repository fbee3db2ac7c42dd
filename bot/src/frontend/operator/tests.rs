//! Operators, and others, at the socket of a service.

use std::num::NonZeroU64;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::server::LONGEST_ASK;
use super::wire::{Ask, NoWords};
use super::{Clerk, Fate, MOST_JOBS, Operator, Outcome, SOCKET, Waiting, line, serve};
use crate::clock::{Clock, WallTime};
use crate::dedup::{Delivered, Desk, InFlightSettings};
use crate::domain::{
    Destination, Failure, FrontEnd, GuildId, LimitClass, MessageId, Options, Request, RequestId, Stage,
    Telling,
};
use crate::guard::audience;
use crate::pipeline::activity::Sight;
use crate::pipeline::delivery::{Delivery, Notice, Parcel};
use crate::pipeline::posting::Posting;
use crate::queue::{
    BookSettings, DeadReason, Enqueued, Filter, JobId, MemoryQueue, NewJob, Priority, Queue, Reason,
    StateKind, Stats,
};

const LEASE: Duration = Duration::from_secs(60);

/// A front end that only hears whom it has to tell what.
#[derive(Debug, Default)]
struct Ear(Mutex<Vec<(RequestId, Notice)>>);

impl Delivery for Ear {
    fn limit(&self, _: &Destination) -> LimitClass {
        LimitClass::new(NonZeroU64::MIN)
    }

    fn place(&self, _: &Destination) -> audience::Place {
        audience::Place::Unknown
    }

    fn progress(&self, _: &Request, _: Stage, _: Sight) {}

    fn deliver<'a>(
        &'a self,
        _: &'a Request,
        _: Parcel,
        _: &'a Posting,
    ) -> BoxFuture<'a, Result<Delivered, Failure>> {
        Box::pin(async { Err(Failure::ours("nothing is delivered here")) })
    }

    fn tell<'a>(&'a self, request: &'a Request, notice: Notice) -> BoxFuture<'a, Telling> {
        Box::pin(async move {
            self.0.lock().unwrap().push((request.id, notice));
            Telling::Settled
        })
    }
}

/// A service that is nothing but its queue and its socket.
struct House {
    folder: TempDir,
    queue: Arc<MemoryQueue>,
    clock: Clock,
    ear: Arc<Ear>,
    cancel: CancellationToken,
    serving: JoinHandle<()>,
}

impl House {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::open_in(folder).await
    }

    async fn open_in(folder: TempDir) -> Self {
        let clock = Clock::manual(WallTime::from_millis(1_000_000));
        let queue = Arc::new(MemoryQueue::new(BookSettings::default(), clock.clone()));
        let ear = Arc::new(Ear::default());
        let waiting =
            Waiting { desk: Desk::new(InFlightSettings::default()), delivery: Arc::clone(&ear) as _ };
        let clerk = Clerk { queue: Arc::clone(&queue) as _, clock: clock.clone(), waiting: Some(waiting) };
        let cancel = CancellationToken::new();
        let serving = {
            let (folder, cancel) = (folder.path().to_owned(), cancel.clone());
            tokio::spawn(async move { serve(&folder, clerk, cancel).await })
        };
        let house = Self { folder, queue, clock, ear, cancel, serving };
        while UnixStream::connect(house.socket()).await.is_err() {
            tokio::task::yield_now().await;
        }
        house
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join(SOCKET)
    }

    async fn operator(&self) -> Operator {
        Operator::connect(self.folder.path()).await.unwrap().unwrap()
    }

    /// Queues a job.
    async fn job(&self, number: u64, guild: Option<GuildId>) -> JobId {
        let now = self.clock.now();
        let job = NewJob {
            request: request(number, guild),
            priority: Priority::Interactive,
            not_before: now,
            deadline: now.plus(LEASE * 100),
        };
        match self.queue.enqueue(job).await.unwrap() {
            Enqueued::New(id) => id,
            other @ Enqueued::Duplicate(..) => panic!("{other:?}"),
        }
    }

    /// Queues a job that fails for good.
    async fn dead(&self, number: u64, chain: &[String]) -> JobId {
        let id = self.job(number, None).await;
        let leases = self.queue.claim(1, LEASE).await.unwrap();
        assert_eq!(leases[0].lease.job, id);
        let reason =
            Reason { stage: Some(Stage::Resolve), code: "transient".to_owned(), chain: chain.to_vec() };
        self.queue.bury(leases[0].lease, reason, DeadReason::Attempts).await.unwrap();
        id
    }

    /// Says these bytes and nothing more, and hears all that is answered.
    async fn say(&self, bytes: &[u8]) -> Vec<Value> {
        let mut stream = UnixStream::connect(self.socket()).await.unwrap();
        // The other side may have stopped to listen.
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let mut heard = Vec::new();
        // What was said and not heard ends the connection with an error, behind the answer.
        let _ = stream.read_to_end(&mut heard).await;
        let lines = heard.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    async fn close(self) -> TempDir {
        self.cancel.cancel();
        self.serving.await.unwrap();
        self.folder
    }
}

fn request(number: u64, guild: Option<GuildId>) -> Request {
    let message = MessageId::new(NonZeroU64::new(number).unwrap());
    Request {
        id: RequestId::new(FrontEnd::Discord, message, 0),
        requester: "7".parse().unwrap(),
        link: format!("https://x.com/ann/status/{}/photo/2", number + 11).parse().unwrap(),
        destination: Destination {
            front_end: FrontEnd::Discord,
            guild,
            channel: "5".parse().unwrap(),
            reply_to: None,
        },
        options: Options::default(),
    }
}

#[tokio::test]
async fn jobs_are_told_in_words_that_stay() {
    let house = House::open().await;
    let chain = ["vxtwitter does not answer".to_owned(), "connection refused".to_owned()];
    let id = house.dead(9, &chain).await;
    let expected = json!({"ok": {
        "id": id, "state": "dead", "priority": "interactive",
        "request": {
            "id": "discord-9-0", "front_end": "discord", "link": "https://x.com/i/status/20/photo/2",
            "post": "x:20", "guild": null, "channel": "5", "requester": "7", "message": "9",
            "form": "as-is", "start_ms": 0, "end_ms": null, "spoiler": false,
        },
        "enqueued_at": 1_000_000, "deadline": 7_000_000, "run_at": null, "waits": false, "behind": null,
        "leased_until": null, "alone": false,
        "dead_reason": "attempts", "dead_since": 1_000_000, "attempts": 1, "suspicion": 0, "generation": 0,
        "history": [{
            "number": 1, "at": 1_000_000, "stage": "resolve", "code": "transient", "chain": chain,
        }],
        "result": null,
    }});
    assert_eq!(house.say(format!("{{\"show\": {id}}}\n").as_bytes()).await, [expected]);
    assert_eq!(
        house.say(b"{\"stats\": {}}").await,
        [json!({"ok": {"ready": 0, "delayed": 0, "leased": 0, "dead": 1, "oldest_ready": null}})]
    );
    // What the operator's side makes of it is the same again.
    let mut operator = house.operator().await;
    let shown = operator.show(id).await.unwrap().unwrap();
    assert_eq!(serde_json::to_value(&shown).unwrap(), house.say(b"{\"show\": 1}").await[0]["ok"]);
    assert_eq!(operator.list(Filter::default()).await.unwrap(), [shown]);
}

#[tokio::test]
async fn a_filter_reaches_the_queue_whole() {
    let house = House::open().await;
    let guild: GuildId = "3".parse().unwrap();
    let old = house.job(1, Some(guild)).await;
    house.job(2, None).await;
    house.clock.set(house.clock.now().plus(LEASE));
    house.job(3, Some(guild)).await;
    let mut operator = house.operator().await;
    let filter = Filter {
        state: Some(StateKind::Ready),
        guild: Some(guild),
        request: None,
        user: Some("7".parse().unwrap()),
        older_than: Some(LEASE),
        reason: None,
        most: 5,
    };
    let ids = |jobs: Vec<super::Job>| jobs.iter().map(|job| job.id).collect::<Vec<_>>();
    assert_eq!(ids(operator.list(filter.clone()).await.unwrap()), [old]);
    let never = Filter { reason: Some("transient".to_owned()), ..filter };
    assert_eq!(ids(operator.list(never).await.unwrap()), []);
    let two = Filter { most: 2, ..Filter::default() };
    assert_eq!(operator.list(two).await.unwrap().len(), 2);
}

#[tokio::test]
async fn each_job_has_its_own_fate() {
    let house = House::open().await;
    let dead = house.dead(1, &[]).await;
    let leased = house.job(2, None).await;
    house.queue.claim(1, LEASE).await.unwrap();
    let waits = house.job(3, None).await;
    let absent = JobId(99);
    let mut operator = house.operator().await;
    let fate = |id, outcome| Fate { id, outcome };
    let refused = |state| Outcome::Refused { state };
    assert_eq!(
        operator.retry(&[dead, leased, waits, absent]).await.unwrap(),
        [
            fate(dead, Outcome::Done),
            fate(leased, refused(StateKind::Leased)),
            fate(waits, refused(StateKind::Ready)),
            fate(absent, Outcome::Absent),
        ]
    );
    let again = operator.show(dead).await.unwrap().unwrap();
    assert_eq!((again.state, again.generation, again.attempts), (StateKind::Ready, 1, 0));
    assert_eq!(again.deadline, house.clock.now().plus(crate::intake::LIFE));
    assert_eq!(
        operator.drop_jobs(&[leased, waits, absent]).await.unwrap(),
        [fate(leased, refused(StateKind::Leased)), fate(waits, Outcome::Done), fate(absent, Outcome::Absent)]
    );
    assert_eq!(
        house.say(b"{\"drop\": [98, 2]}").await,
        [json!({"ok": [
            {"id": 98, "outcome": "absent"}, {"id": 2, "outcome": "refused", "state": "leased"},
        ]})]
    );
}

#[tokio::test]
async fn who_waits_for_a_dropped_job_is_told() {
    let house = House::open().await;
    let (dead, untold) = (house.dead(1, &[]).await, house.dead(3, &[]).await);
    assert_eq!(house.queue.answered(dead).await, Ok(true));
    let waits = house.job(2, None).await;
    let fates = house.operator().await.drop_jobs(&[dead, waits, untold]).await.unwrap();
    assert!(fates.iter().all(|fate| fate.outcome == Outcome::Done), "{fates:?}");
    // Whose job is dead was told when it died, or is told now: once that was taken for granted.
    let mut told: Vec<_> = house.ear.0.lock().unwrap().iter().map(|(request, _)| *request).collect();
    told.sort_unstable();
    assert_eq!(told, [request(2, None).id, request(3, None).id]);
}

#[tokio::test]
async fn lines_that_mean_nothing_are_answered_and_change_nothing() {
    let house = House::open().await;
    house.job(1, None).await;
    for (line, reason) in [
        ("", "not understood"),
        ("hello", "not understood"),
        ("{", "not understood"),
        ("[]", "not understood"),
        ("null", "not understood"),
        ("\"list\"", "not understood"),
        ("{\"forget\": [1]}", "unknown variant `forget`"),
        ("{\"drop\": 1}", "not understood"),
        ("{\"drop\": [-1]}", "not understood"),
        ("{\"drop\": [1], \"retry\": [1]}", "not understood"),
        ("{\"list\": {\"guilt\": \"3\"}}", "unknown field `guilt`"),
        ("{\"list\": {\"guild\": \"x\"}}", "not a guild id"),
        ("{\"stats\": {\"a\": 1}}", "unknown field `a`"),
        ("\u{0}\u{1}\u{fffd}", "not understood"),
    ] {
        let answers = house.say(format!("{line}\n").as_bytes()).await;
        assert_eq!(answers.len(), 1, "{line}: {answers:?}");
        assert!(answers[0]["error"].as_str().unwrap().contains(reason), "{line}: {answers:?}");
    }
    assert_eq!(
        house.say(b"\xff\xfe\n{\"show\": 9}\n").await[1],
        json!({"ok": null}),
        "the next line is heard"
    );
    let deep = "[".repeat(LONGEST_ASK - 1);
    assert!(house.say(deep.as_bytes()).await[0]["error"].is_string());
    let many: Vec<u64> = (0..=1000).collect();
    let answers = house.say(json!({"drop": many}).to_string().as_bytes()).await;
    assert_eq!(answers, [json!({"error": format!("at most {MOST_JOBS} jobs can be named at once")})]);
    assert_eq!(house.queue.stats().await.unwrap().ready, 1);
}

#[tokio::test]
async fn a_line_without_end_is_cut_off() {
    let house = House::open().await;
    let answers = house.say(&vec![b'x'; 1 << 20]).await;
    // The system may throw the answer away with what was not heard.
    for answer in answers {
        assert_eq!(answer, json!({"error": format!("a line is longer than {LONGEST_ASK} bytes")}));
    }
    assert_eq!(house.say(b"{\"show\": 9}\n").await, [json!({"ok": null})]);
}

#[tokio::test]
async fn the_longest_line_is_heard_and_one_byte_more_is_not() {
    let line = |bytes: usize| [vec![b'x'; bytes], vec![b'\n']].concat();
    assert_eq!(line::read(&mut &line(10)[..], 10).await.unwrap(), Some(vec![b'x'; 10]));
    assert_eq!(
        line::read(&mut &b"xx"[..], 10).await.unwrap(),
        Some(vec![b'x'; 2]),
        "the last one needs no end"
    );
    assert_eq!(line::read(&mut &b""[..], 10).await.unwrap(), None);
    assert_eq!(line::read(&mut &b"\n"[..], 10).await.unwrap(), Some(Vec::new()));
    assert!(line::read(&mut &line(11)[..], 10).await.is_err());
    assert!(line::read(&mut &[b'x'; 11][..], 10).await.is_err());
}

/// Without the time-out, eight silent ones would shut everybody else out.
#[tokio::test(start_paused = true)]
async fn silent_operators_make_room_for_others() {
    let house = House::open().await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(UnixStream::connect(house.socket()).await.unwrap());
    }
    assert_eq!(house.say(b"{\"show\": 9}\n").await, [json!({"ok": null})]);
}

#[tokio::test]
async fn the_socket_is_its_users_alone_and_goes_with_the_service() {
    let house = House::open().await;
    let mode = std::fs::metadata(house.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let folder = house.close().await;
    assert_eq!(names(folder.path()), [""; 0]);
    assert!(Operator::connect(folder.path()).await.unwrap().is_none());
}

#[tokio::test]
async fn what_a_dead_process_left_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join(SOCKET);
    // Closing does not remove the file, as a killed process does not.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    std::fs::write(socket.with_extension("sock.new"), b"half made").unwrap();
    assert!(socket.exists());
    assert!(Operator::connect(folder.path()).await.unwrap().is_none());
    let house = House::open_in(folder).await;
    assert_eq!(house.operator().await.stats().await.unwrap().ready, 0);
    assert_eq!(names(house.folder.path()), [SOCKET]);
}

#[tokio::test]
async fn a_second_service_leaves_the_first_ones_socket_alone() {
    let house = House::open().await;
    house.job(1, None).await;
    let queue = Arc::new(MemoryQueue::new(BookSettings::default(), house.clock.clone()));
    let clerk = Clerk { queue, clock: house.clock.clone(), waiting: None };
    // It ends by itself, since it has nowhere to listen.
    serve(house.folder.path(), clerk, CancellationToken::new()).await;
    assert_eq!(house.operator().await.stats().await.unwrap().ready, 1);
}

/// Once, nobody could look into a service on a read-only disk, which keeps its jobs in memory.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn where_there_can_be_no_file_for_a_socket_there_is_another_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), b"").unwrap();
    for place in [folder.path().join("x".repeat(200)), folder.path().join("file"), "/proc/self/fdinfo".into()]
    {
        assert!(Operator::connect(&place).await.unwrap().is_none(), "{place:?}");
        let clerk = Clerk {
            queue: Arc::new(MemoryQueue::new(BookSettings::default(), Clock::system())),
            clock: Clock::system(),
            waiting: None,
        };
        let cancel = CancellationToken::new();
        let operating = async {
            let mut operator = loop {
                match Operator::connect(&place).await.unwrap() {
                    Some(operator) => break operator,
                    None => tokio::task::yield_now().await,
                }
            };
            assert_eq!(operator.stats().await.unwrap(), Stats::default());
            cancel.cancel();
        };
        tokio::join!(serve(&place, clerk, cancel.clone()), operating);
        assert!(Operator::connect(&place).await.unwrap().is_none(), "it ends with the service");
    }
}

/// A list of the longest histories has its bound too.
#[tokio::test]
async fn a_long_list_is_one_answer() {
    let house = House::open().await;
    let chain = vec!["\u{1}".repeat(500); 8];
    for number in 1..=1_100 {
        house.dead(number, &chain).await;
    }
    let mut operator = house.operator().await;
    let all = Filter { most: 5_000, ..Filter::default() };
    let jobs = operator.list(all).await.unwrap();
    assert_eq!(jobs.len(), MOST_JOBS);
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    let fates = operator.retry(&ids).await.unwrap();
    assert_eq!(fates.iter().filter(|fate| fate.outcome == Outcome::Done).count(), MOST_JOBS);
    assert_eq!(operator.stats().await.unwrap().dead, 100);
}

#[tokio::test]
async fn asks_are_the_lines_that_the_documentation_shows() {
    let ids = vec![JobId(12), JobId(13)];
    for (ask, expected) in [
        (Ask::Show(JobId(12)), json!({"show": 12})),
        (Ask::Result("discord-7-0".parse().unwrap()), json!({"result": "discord-7-0"})),
        (Ask::Retry(ids.clone()), json!({"retry": [12, 13]})),
        (Ask::Drop(ids), json!({"drop": [12, 13]})),
        (Ask::Stats(NoWords {}), json!({"stats": {}})),
    ] {
        let mut line = Vec::new();
        line::write(&mut line, &ask).await.unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&line).unwrap(), expected);
        let read = line::read(&mut BufReader::new(&line[..]), LONGEST_ASK).await.unwrap().unwrap();
        assert_eq!(serde_json::from_slice::<Ask>(&read).unwrap(), ask);
    }
    let text = r#"{"list":{"state":"dead","guild":"3","user":null,"older_than":7200000,"most":10}}"#;
    let filter = Filter {
        state: Some(StateKind::Dead),
        guild: Some("3".parse().unwrap()),
        older_than: Some(Duration::from_secs(7200)),
        most: 10,
        ..Filter::default()
    };
    assert_eq!(serde_json::from_str::<Ask>(text).unwrap(), Ask::List(filter));
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
