//! The bot's configuration as the program tells it.

use std::process::Command;

use crate::support::{Place, Run};

/// `azalea config` with these words, in a place whose user has no configuration.
fn config(place: &Place, words: &[&str]) -> Command {
    let mut command = place.command(["config"].iter().chain(words));
    let foreign = std::env::vars_os().map(|(name, _)| name);
    for name in foreign.filter(|name| name.to_string_lossy().starts_with("AZALEA_")) {
        command.env_remove(name);
    }
    command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME").env("HOME", place.path("home"));
    command
}

#[track_caller]
fn run(command: &mut Command) -> Run {
    command.output().unwrap().into()
}

#[test]
fn without_a_file_the_defaults_are_ok() {
    let place = Place::new();
    let text = run(&mut config(&place, &["check"])).succeeds().text();
    assert_eq!(text.lines().next(), Some("ok"));
    assert!(text.contains("\ndownload.allow_private = false  # default\n"), "{text}");
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn a_file_and_variables_are_told_as_where_values_come_from() {
    let place = Place::new();
    place.write("azalea.toml", b"[upload]\ndefault_limit = \"8MiB\"\n[discord]\ntoken = \"hunter2\"\n");
    let mut command = config(&place, &["check"]);
    let text = run(command.env("AZALEA_QUEUE__WORKERS", "2")).succeeds().text();
    assert!(text.contains("\nupload.default_limit = \"8MiB\"  # azalea.toml, line 2\n"), "{text}");
    assert!(text.contains("\nqueue.workers = 2  # AZALEA_QUEUE__WORKERS\n"), "{text}");
    assert!(text.contains("\ndiscord.token = \"(set)\"  # azalea.toml, line 4\n"), "{text}");
    assert!(!text.contains("hunter2"));
}

#[test]
fn mistakes_are_one_line_and_a_usage_error() {
    let place = Place::new();
    place.write("other.toml", b"[upload]\ndefault_limit = \"8 parsecs\"\ntimeot = 1\n");
    let fails = |command: &mut Command, reason: &str| run(command).fails(2, reason);
    let told = fails(&mut config(&place, &["check", "--config", "other.toml"]), "2 mistakes").stderr;
    assert!(told.contains("other.toml, line 3); did you mean upload.timeout?"), "{told}");
    assert!(told.contains("upload.default_limit = \"8 parsecs\" (other.toml, line 2)"), "{told}");
    fails(config(&place, &["check"]).env("AZALEA_CONFIG", "missing.toml"), "AZALEA_CONFIG missing.toml");
    fails(config(&place, &["check"]).env("AZALEA_DISCORD__TOKEN_FILE", "missing"), "discord.token_file");
    fails(config(&place, &["check"]).env("AZALEA_STORE__PTH", "x"), "did you mean AZALEA_STORE__PATH?");
}

#[test]
fn the_example_is_ok_and_changes_nothing() {
    let place = Place::new();
    let before = run(&mut config(&place, &["check"])).succeeds().text();
    let example = run(&mut config(&place, &["example"])).succeeds();
    place.write("azalea.toml", &example.stdout);
    let after = run(&mut config(&place, &["check"])).succeeds().text();
    let values = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split("  # ").next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(values(&before), values(&after));
    assert!(before.contains("# default") && !after.contains("# default"), "{after}");
}
