//! `queue`: what an operator sees and does, while the service runs and when it was killed.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};

use serde_json::{Value, json};

use crate::support::{Place, Run};
use crate::x::{X, command};

/// A console that runs until it is killed.
struct Service {
    child: Child,
    input: ChildStdin,
    log: BufReader<std::process::ChildStderr>,
}

impl Service {
    /// Starts it, with jobs that are tried once.
    fn start(place: &Place, x: &X) -> Self {
        let mut command = x.command(place, &["console", "-o", "answers", "-vv"]);
        command.env("AZALEA_QUEUE__MAX_ATTEMPTS", "1");
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        Self { child, input, log }
    }

    fn say(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The next line of the log with these words in it.
    fn logs(&mut self, words: &str) -> String {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            assert_ne!(self.log.read_line(&mut line).unwrap(), 0, "{words:?} is logged");
        }
        line
    }

    /// What is answered next.
    fn answer(&mut self) -> String {
        let mut text = String::new();
        BufReader::with_capacity(1, self.child.stdout.as_mut().unwrap()).read_line(&mut text).unwrap();
        text
    }

    /// Ends it as a crash does.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn queue(place: &Place, words: &[&str]) -> Run {
    command(place, &[&["queue"], words].concat()).output().unwrap().into()
}

/// The jobs that these words list.
#[track_caller]
fn list(place: &Place, words: &[&str]) -> Vec<Value> {
    queue(place, &[&["list", "--json"], words].concat()).succeeds().objects()
}

/// A place with one job that is dead, and one that is worked on: its download stands still.
fn busy() -> (Place, X, Service) {
    let (place, x) = (Place::new(), X::start());
    place.clip("clip.mp4");
    x.stalling_file("/v.mp4", &place.read("clip.mp4"));
    x.post(&json!([x.medium("video", "/v.mp4")]));
    x.status("/i/status/21", 500);
    let mut service = Service::start(&place, &x);
    service.say("#cats @bob: https://x.com/ann/status/21");
    let told = service.answer();
    assert!(told.starts_with("#cats azalea → @bob: no media: "), "{told}");
    service.say("#general @ann: https://x.com/ann/status/20");
    x.wait_for("/v.mp4");
    (place, x, service)
}

#[test]
fn a_running_service_is_looked_into() {
    let (place, _x, mut service) = busy();
    let jobs = list(&place, &[]);
    let states: Vec<&Value> = jobs.iter().map(|job| &job["state"]).collect();
    assert_eq!(states, ["dead", "leased"]);
    let (dead, leased) = (jobs[0]["id"].to_string(), jobs[1]["id"].to_string());
    assert_eq!(jobs[0]["request"]["link"], "https://x.com/i/status/21");
    assert_eq!(jobs[0]["history"][0]["stage"], "resolve");
    assert_eq!(jobs[0]["dead_reason"], "attempts");
    assert_eq!(list(&place, &["--state", "dead", "--older-than", "0s", "--reason", "transient"]).len(), 1);
    assert_eq!(list(&place, &["--older-than", "1h"]), [Value::Null; 0]);
    assert_eq!(list(&place, &["--user", "1"]), [Value::Null; 0]);
    assert!(service.logs("a dead letter").contains(&format!("`azalea queue show {dead}`")));

    let text = queue(&place, &["list"]).succeeds().text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines[0].starts_with("id  state   age"), "{text}");
    for (line, words) in
        [(1, [dead.as_str(), "dead", "x:21", "#cats"]), (2, [&leased, "leased", "x:20", "#general"])]
    {
        let columns: Vec<&str> =
            lines[line].split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
        assert!(words.iter().all(|word| columns.contains(word)), "{text}");
        assert_eq!(columns[3], "1", "attempts: {text}");
    }
    assert!(lines[1].contains("transient at resolve: "), "{text}");
    assert_eq!(lines[3], "0 ready, 0 delayed, 1 leased, 1 dead");

    let shown = queue(&place, &["show", &dead]).succeeds().text();
    for part in [
        "dead (attempts)",
        "https://x.com/i/status/21",
        "@bob",
        "#cats on console",
        "attempt 1, ",
        "at resolve: transient\n    ",
    ] {
        assert!(shown.contains(part), "{part:?} in {shown}");
    }
    queue(&place, &["show", "999"]).fails(3, "there is no job 999");
    // By the name that people are told.
    let request = list(&place, &["--state", "dead"])[0]["request"]["id"].as_str().unwrap().to_owned();
    assert_eq!(queue(&place, &["show", &request]).succeeds().text(), shown);
    queue(&place, &["show", "console-99-0"]).fails(3, "nothing is known of request console-99-0");
    queue(&place, &["show", "x"]).fails(2, "neither the number of a job nor the name of a request");
    queue(&place, &["drop", &leased]).fails(3, "is leased; a worker holds it");
    queue(&place, &["retry", &leased]).fails(3, "only dead ones can be had to run again");
    assert_eq!(list(&place, &[]).len(), 2);
    service.kill();
}

#[test]
fn a_dead_job_runs_again_in_the_running_service() {
    let (place, x, mut service) = busy();
    let id = list(&place, &["--state", "dead"])[0]["id"].to_string();
    x.json(
        "/i/status/21",
        &json!({ "tweetID": "21", "user_screen_name": "ann", "text": "", "media_extended": [] }),
    );
    assert_eq!(queue(&place, &["retry", &id]).succeeds().text(), format!("{id} runs again\n"));
    // It is answered anew, and is no dead letter any more.
    assert_eq!(service.answer(), "#cats azalea → @bob: no media: the post has no photo, video or GIF\n");
    assert_eq!(list(&place, &["--state", "dead"]), [Value::Null; 0]);
    service.kill();
}

#[test]
fn what_a_killed_service_left_is_looked_after() {
    let (place, x, service) = busy();
    let ids: Vec<String> = list(&place, &[]).iter().map(|job| job["id"].to_string()).collect();
    let [dead, held] = &ids[..] else { panic!("{ids:?}") };
    service.kill();
    assert!(place.names_in("store").contains(&"queue.sock".to_owned()), "nobody cleaned up");

    // The one that was held may be what the process died of.
    let jobs = list(&place, &[]);
    assert_eq!((&jobs[0]["state"], &jobs[1]["state"]), (&json!("dead"), &json!("suspect")));
    let shown = queue(&place, &["show", held, "--json"]).succeeds().object();
    assert_eq!(shown["suspicion"], 1);
    assert_eq!(shown["request"]["front_end"], "console");

    let run = queue(&place, &["retry", dead, held, "999", "--json"]);
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    assert_eq!(
        run.objects(),
        [
            json!({ "id": number(dead), "outcome": "done" }),
            json!({ "id": number(held), "outcome": "refused", "state": "suspect" }),
            json!({ "id": 999, "outcome": "absent" }),
        ]
    );
    assert_eq!(run.stderr.lines().count(), 2, "{}", run.stderr);
    assert_eq!(list(&place, &["--state", "dead"]), [Value::Null; 0]);
    assert_eq!(queue(&place, &["retry", "--state", "dead"]).succeeds().text(), "no job is meant\n");

    assert_eq!(queue(&place, &["drop", held]).succeeds().text(), format!("{held} is dropped\n"));
    queue(&place, &["show", held]).fails(3, "there is no job");
    assert_eq!(
        queue(&place, &["drop", "--older-than", "0s"]).succeeds().text(),
        format!("{dead} is dropped\n")
    );
    assert_eq!(queue(&place, &["list"]).succeeds().text(), "0 ready, 0 delayed, 0 leased, 0 dead\n");

    // A service that starts then replaces what was left.
    let service = Service::start(&place, &x);
    while queue(&place, &["list"]).code != Some(0) {}
    service.kill();
}

fn number(id: &str) -> u64 {
    id.parse().unwrap()
}

#[test]
fn a_queue_that_was_never_begun_is_empty_and_stays_so() {
    let place = Place::new();
    assert_eq!(queue(&place, &["list"]).succeeds().text(), "0 ready, 0 delayed, 0 leased, 0 dead\n");
    assert_eq!(list(&place, &[]), [Value::Null; 0]);
    let run = queue(&place, &["show", "1", "--json"]).fails(3, "there is no job 1");
    assert_eq!(run.object()["error"]["kind"], "absent");
    assert_eq!(place.names(), [""; 0]);
}

/// The log is silent unless it is asked for, and a queue without its jobs looks like one that has none.
#[test]
fn what_is_wrong_with_the_file_is_told() {
    let place = Place::new();
    std::fs::create_dir(place.path("store")).unwrap();
    place.write("store/queue.redb", &[0x5a; 40_000]);
    let run = queue(&place, &["list", "--json"]);
    assert_eq!((run.code, run.text().as_str()), (Some(0), ""));
    assert!(run.stderr.starts_with("warning: the queue's file was damaged"), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    let aside = |name: &String| name.starts_with("queue.redb.broken-");
    assert!(place.names_in("store").iter().any(aside), "{}", run.stderr);
    assert_eq!(list(&place, &[]), [Value::Null; 0]);
}

#[test]
fn a_queue_in_memory_is_said_to_keep_nothing() {
    let place = Place::new();
    let queue = |words: &[&str]| -> Run {
        let mut command = command(&place, words);
        command.env("AZALEA_QUEUE__BACKEND", "memory").output().unwrap().into()
    };
    let said = "nothing is kept: queue.backend is memory, and no service runs\n";
    assert_eq!(queue(&["queue", "list"]).succeeds().text(), said);
    let run = queue(&["queue", "list", "--json"]);
    assert_eq!((run.code, run.text().as_str(), run.stderr), (Some(0), "", format!("note: {said}")));
    queue(&["queue", "show", "1"]).fails(1, "nothing is kept");
    queue(&["queue", "retry", "--state", "dead"]).fails(1, "nothing is kept");
    assert_eq!(
        queue(&["queue", "drop", "1", "--json"]).fails(1, "nothing is kept").object()["error"]["kind"],
        "queue"
    );
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn a_wish_for_no_job_in_particular_is_a_usage_error() {
    let place = Place::new();
    queue(&place, &["retry"]).fails(2, "which jobs?");
    queue(&place, &["drop", "--most", "3"]).fails(2, "which jobs?");
    queue(&place, &["drop", "1", "--state", "dead"]).fails(2, "not by both");
    queue(&place, &["retry", "--state", "leased"]).fails(2, "only dead jobs");
    queue(&place, &["list", "--state", "lost"])
        .fails(2, "possible values: ready, delayed, leased, suspect, done, dead");
    // Once, a code that nothing ever has meant an empty list.
    queue(&place, &["list", "--reason", "transiant"]).fails(2, "transient");
    queue(&place, &["list", "--state", "done"]).fails(2, "what is done is not listed");
    queue(&place, &["list", "--guild", "x"]).fails(2, "not a guild id");
}

/// Somebody has the queue and says nothing, as a process that hangs.
#[test]
fn a_queue_that_another_process_has_is_told_in_one_line() {
    let (place, _x, service) = busy();
    std::fs::remove_file(place.path("store/queue.sock")).unwrap();
    let run = queue(&place, &["list"]).fails(1, "is in use, and nobody answers at its socket");
    assert_eq!(run.text(), "");
    service.kill();
}
