//! Command lines that make no sense, and places where no result could be put.

use crate::support::Place;

#[track_caller]
fn check_one_line(arguments: &[&str], reason: &str) {
    let place = Place::new();
    place.write("in.mp4", b"never looked at");
    let run = place.run(["fit", "in.mp4"].iter().chain(arguments)).fails(2, reason);
    assert_eq!(run.text(), "");
    assert_eq!(place.names(), ["in.mp4"]);
}

#[test]
fn a_value_that_means_nothing_is_told_in_one_line() {
    check_one_line(&["--limit", "8 parsecs"], "\"8 parsecs\" is not a size");
    check_one_line(&["--limit", ""], "is not a size");
    check_one_line(&["--start", "soon"], "\"soon\" is not a time");
    check_one_line(&["--end", "1:75"], "\"1:75\" is not a time");
    check_one_line(&["--start", "5", "--end", "3"], "--end must be later");
}

#[test]
fn wishes_that_clap_refuses_keep_its_words_in_one_line() {
    let place = Place::new();
    for (arguments, reason) in [
        (&["fit"][..], "required"),
        (&["fit", "a", "--preset", "ludicrous"], "[possible values: fast, balanced, best]"),
        (&["fit", "a", "--audio-only", "--gif"], "cannot be used with"),
        (&["fit", "a", "--height", "0"], "--height"),
        (&["fit", "a", "--limits", "1"], "unexpected argument"),
        (&["completions", "tcsh"], "invalid value"),
        (&["no-such-command"], "unrecognized subcommand"),
    ] {
        let run = place.run(arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}");
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains(reason), "{}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        assert_eq!(run.text(), "");
    }
}

#[test]
fn with_json_a_usage_error_is_an_object_too() {
    let place = Place::new();
    for arguments in
        [&["fit", "a", "--json", "--limit", "x"][..], &["fit", "a", "--json", "--no-such-option"]]
    {
        let error = place.run(arguments).object()["error"].clone();
        assert_eq!(error["kind"], "usage");
        assert!(error["message"].as_str().is_some_and(|text| text.contains(&arguments[3][2..])), "{error}");
    }
}

#[test]
fn control_characters_in_a_message_are_escaped() {
    let run = Place::new().run(["fit", "a", "--limit", "1\n\x1b[2J"]).fails(2, "is not a size");
    assert!(run.stderr.contains("1\\n\\u{1b}[2J"), "{}", run.stderr);
}

#[test]
fn a_missing_output_folder_is_told_before_the_work() {
    let place = Place::new();
    place.clip("in.mp4");
    place.run(["fit", "in.mp4", "-o", "nowhere/out.mp4"]).fails(1, "no such folder");
    assert_eq!(place.names(), ["in.mp4"]);
}

#[test]
fn several_inputs_need_a_folder_and_not_a_file() {
    let place = Place::new();
    place.write("out.mp4", b"old");
    place.run(["fit", "a", "b", "-o", "out.mp4"]).fails(2, "out.mp4 is a file");
    place.run(["fit", "a", "b", "-o", "-"]).fails(2, "standard output");
    place.run(["fit", "a", "-o", "-", "--json"]).fails(2, "standard output");
    assert_eq!(place.read("out.mp4"), b"old");
}

#[test]
fn standard_input_needs_a_name_for_its_result() {
    Place::new().run(["fit", "-"]).fails(2, "-o");
    Place::new().run(["fit", "-", "-", "-o", "d"]).fails(2, "only once");
}
