//! Inputs that are no good: the exit code, one line that says why, and nothing left behind.

use std::fs;

use crate::support::Place;

#[track_caller]
fn check_refused(name: &str, bytes: &[u8], reason: &str) {
    let place = Place::new();
    place.write(name, bytes);
    let run = place.run(["fit", name, "-o", "out.mp4"]).fails(3, reason);
    assert_eq!(run.text(), "");
    assert_eq!(place.names(), [name]);
    place.run(["probe", name]).fails(3, reason);
}

#[test]
fn an_unusable_input_is_named_for_what_it_is() {
    check_refused("empty.mp4", b"", "empty");
    check_refused("page.mp4", b"<!DOCTYPE html>\n<html><body>403</body></html>\n", "html");
    check_refused("list.mp4", b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "playlist");
}

#[test]
fn a_missing_input_is_unusable() {
    let place = Place::new();
    place.run(["fit", "nowhere.mp4"]).fails(3, "nowhere.mp4");
    place.run(["probe", "nowhere.mp4"]).fails(3, "nowhere.mp4");
    assert!(place.names().is_empty());
}

#[test]
fn a_folder_is_no_input() {
    let place = Place::new();
    fs::create_dir(place.path("folder.mp4")).unwrap();
    place.run(["fit", "folder.mp4"]).fails(3, "folder");
    assert_eq!(place.names(), ["folder.mp4"]);
}

#[test]
fn an_existing_output_outlives_a_failed_run() {
    let place = Place::new();
    place.write("page.mp4", b"<html></html>");
    place.write("out.mp4", b"old");
    place.run(["fit", "page.mp4", "-o", "out.mp4"]).fails(3, "html");
    assert_eq!(place.read("out.mp4"), b"old");
    assert_eq!(place.names(), ["out.mp4", "page.mp4"]);
}

#[test]
fn a_folder_made_for_results_goes_when_there_are_none() {
    let place = Place::new();
    place.write("page.mp4", b"<html></html>");
    place.run(["fit", "page.mp4", "-o", "new/"]).fails(3, "html");
    assert_eq!(place.names(), ["page.mp4"]);
}

#[test]
fn with_json_an_error_is_an_object_that_names_its_input() {
    let place = Place::new();
    place.write("page.mp4", b"<html></html>");
    let run = place.run(["fit", "page.mp4", "--json"]).fails(3, "html");
    let object = run.object();
    assert_eq!(object["input"], "page.mp4");
    assert_eq!(object["error"]["kind"], "unsupported");
    assert_eq!(run.stderr, format!("error: {}\n", object["error"]["message"].as_str().unwrap()));
    let object = place.run(["probe", "page.mp4", "--json"]).fails(3, "html").object();
    assert_eq!(object["error"]["kind"], "unsupported");
}

#[test]
fn a_limit_too_small_is_its_own_exit_code_and_names_one_that_would_do() {
    let place = Place::new();
    place.old_clip("in.avi");
    let run = place.run(["fit", "in.avi", "--limit", "2KiB", "--json"]).fails(4, "smallest limit");
    assert_eq!(run.object()["error"]["kind"], "cannot_fit");
    assert_eq!(place.names(), ["in.avi"]);
}

#[test]
fn every_input_is_tried_and_the_first_failure_names_the_exit_code() {
    let place = Place::new();
    place.write("page.mp4", b"<html></html>");
    place.clip("good.mp4");
    let run = place.run(["fit", "page.mp4", "good.mp4", "nowhere.mp4", "-o", "out"]);
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", run.stderr);
    assert!(lines[0].starts_with("error: page.mp4: "), "{}", run.stderr);
    assert!(lines[1].starts_with("error: nowhere.mp4: "), "{}", run.stderr);
    assert_eq!(place.names_in("out"), ["good.mp4"]);
}
