//! Ctrl-C and SIGTERM: the exit code, one line, nothing left behind.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command};

use crate::support::Place;

fn send(signal: &str, child: &Child) {
    // The shell's own command: a bare machine has no program of this name.
    let sent = Command::new("sh").args(["-c", &format!("kill {signal} {}", child.id())]).status().unwrap();
    assert!(sent.success());
}

/// Starts a fit that would take minutes, and sends the signal as soon as the job is under way.
#[track_caller]
fn check_cancelled_at_work(signal: &str) {
    let place = Place::new();
    place.old_clip("in.avi");
    place.repeat("in.avi", "long.mkv");
    place.write("out.mp4", b"old");
    let mut child = place.start(["fit", "long.mkv", "-o", "out.mp4", "--preset", "best", "-vv", "--json"]);
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("submitted") {
        line.clear();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "the log tells when a job is submitted");
    }
    send(signal, &child);
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{rest}");
    assert_eq!(rest.lines().last(), Some("error: cancelled"), "{rest}");
    assert_eq!(rest.matches("error: ").count(), 1, "{rest}");
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["error"]["kind"], "cancelled");
    assert_eq!(place.read("out.mp4"), b"old");
    assert_eq!(place.names(), ["in.avi", "long.mkv", "out.mp4"]);
}

#[test]
fn an_interrupt_cancels_the_work() {
    check_cancelled_at_work("-INT");
}

#[test]
fn a_termination_cancels_the_work() {
    check_cancelled_at_work("-TERM");
}

#[test]
fn an_interrupt_while_input_is_awaited_ends_the_program() {
    let place = Place::new();
    let mut child = place.start(["fit", "-", "-o", "out.mp4"]);
    // More than a pipe holds: when all of it is written, the program is reading and has taken over the signals.
    let mut media = vec![0; 4 << 20];
    media[..6].copy_from_slice(b"GIF89a");
    child.stdin.as_mut().unwrap().write_all(&media).unwrap();
    send("-INT", &child);
    // Standard input is left open until the program has ended, which `wait_with_output` would not do.
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: cancelled\n");
    assert!(place.names().is_empty());
}
