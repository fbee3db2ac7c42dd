//! `console`: messages on standard input, answers on standard output.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use crate::support::{Place, Run};
use crate::x::X;

/// A session of these lines.
fn session(x: &X, place: &Place, lines: &[&str]) -> Run {
    let mut command = x.command(place, &["console", "-o", "answers"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    drop(input);
    child.wait_with_output().unwrap().into()
}

fn with_clip() -> (Place, X) {
    let (place, x) = (Place::new(), X::start());
    place.clip("clip.mp4");
    x.file("/v.mp4", &place.read("clip.mp4"));
    x.post(&json!([x.medium("video", "/v.mp4")]));
    (place, x)
}

/// The one answer to this person, without its head.
#[track_caller]
fn answer<'a>(text: &'a str, channel: &str, user: &str) -> &'a str {
    let head = format!("#{channel} azalea → @{user}: ");
    let mut answers = text.lines().filter_map(|line| line.strip_prefix(&head));
    let answer = answers.next().unwrap_or_else(|| panic!("{head:?} in {text}"));
    assert_eq!(answers.next(), None, "{text}");
    answer
}

#[test]
fn each_channel_gets_the_files_once_and_then_pointers() {
    let (place, x) = with_clip();
    let text = session(
        &x,
        &place,
        &[
            "#general @ann: look at this: https://x.com/ann/status/20",
            "#general @bob: @azalea https://vxtwitter.com/ann/status/20?s=20",
            "",
            "#cats @carol: https://x.com/i/status/20",
            "#cats @dave: no link in here",
        ],
    )
    .succeeds()
    .text();
    let first = answer(&text, "general", "ann");
    let number = first.strip_prefix("answer ").unwrap().split(',').next().unwrap();
    assert!(first.ends_with(", 1 file of @ann"), "{text}");
    assert_eq!(answer(&text, "general", "bob"), format!("already here: answer {number} in #general"));
    assert!(answer(&text, "cats", "carol").ends_with(", 1 file of @ann"), "{text}");
    assert_eq!(answer(&text, "cats", "dave"), "there is no link to a post in that message");
    // What does not begin an answer is the path of a file below one.
    let paths: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).map(str::trim).collect();
    assert_eq!(paths.len(), 2, "{text}");
    assert_eq!(place.read(paths[0]), place.read(paths[1]));
    assert_eq!((place.names_in("answers/general").len(), place.names_in("answers/cats").len()), (1, 1));
    assert_eq!((x.hits("/i/status/20"), x.hits("/v.mp4")), (1, 1));
}

#[test]
fn the_next_session_knows_what_was_answered() {
    let (place, x) = with_clip();
    let line = "#general @ann: https://x.com/ann/status/20";
    let first = session(&x, &place, &[line]).succeeds().text();
    assert!(answer(&first, "general", "ann").starts_with("answer 1, 1 file"), "{first}");
    let second = session(&x, &place, &[line]).succeeds().text();
    assert_eq!(second, "#general azalea → @ann: already here: answer 1 in #general\n");
    let third = session(&x, &place, &["#cats @bob: https://x.com/ann/status/20"]).succeeds().text();
    assert!(answer(&third, "cats", "bob").starts_with("answer 2, 1 file"), "counted on: {third}");
    assert_eq!(place.read("store/console-names"), b"ann\ngeneral\nbob\ncats\n");
    assert_eq!((x.hits("/i/status/20"), x.hits("/v.mp4")), (1, 1));
}

#[test]
fn failures_and_other_lines_are_answered_plainly() {
    let (place, x) = with_clip();
    x.post(&json!([]));
    let lines =
        ["#general @ann: https://x.com/ann/status/20", "hello", "#general @bob: https://example.com/"];
    let text = session(&x, &place, &lines).succeeds().text();
    assert_eq!(answer(&text, "general", "ann"), "no media: the post has no photo, video or GIF");
    assert_eq!(answer(&text, "general", "bob"), "there is no link to a post in that message");
    assert!(text.contains("write it like this: #general @ann: "), "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(!place.names().contains(&"answers".to_owned()));
}

#[test]
fn too_many_requests_are_told_when_to_come_back() {
    let (place, x) = with_clip();
    let mut command = x.command(&place, &["console", "-o", "answers"]);
    place.write("lines", "#a @ann: https://x.com/ann/status/20\n".repeat(3).as_bytes());
    let input = std::fs::File::open(place.path("lines")).unwrap();
    command.env("AZALEA_RATE_LIMIT__MAX_REQUESTS", "2").stdin(input);
    let run: Run = command.output().unwrap().into();
    let text = run.succeeds().text();
    let limited = text.lines().filter(|line| line.contains("too many requests")).count();
    assert_eq!((limited, text.lines().filter(|line| line.starts_with("#a azalea → @ann: ")).count()), (1, 3));
}
