//! Files and variables as operators write them, right and wrong.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use azalea_bot::config::{
    Config, ConfigError, Environment, Loaded, Origin, RateAlgorithm, Secret, SourceChoice,
};
use tempfile::TempDir;

/// A folder with this text as `azalea.toml`, read with these variables.
fn load(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
    let folder = TempDir::with_prefix("azalea-config-").unwrap();
    fs::write(folder.path().join("azalea.toml"), text).unwrap();
    Config::load(None, &environment(folder.path(), variables))
}

fn environment(folder: &Path, variables: &[(&str, &str)]) -> Environment {
    Environment::new(variables.iter().map(|(name, value)| (name.into(), value.into())), folder.to_owned())
}

/// Asserts that nothing but these mistakes is told, each containing its text.
#[track_caller]
fn refused(text: &str, variables: &[(&str, &str)], wanted: &[&str]) {
    let error = load(text, variables).unwrap_err();
    assert_eq!(error.problems().len(), wanted.len(), "{error}");
    for (problem, wanted) in error.problems().iter().zip(wanted) {
        // The folder's name is another each time.
        let name = problem.find("azalea.toml");
        let folder = name.and_then(|to| Some((problem[..to].rfind('(')?, to)));
        let bare = folder.map(|(from, to)| format!("{}({}", &problem[..from], &problem[to..]));
        let problem = bare.as_ref().unwrap_or(problem);
        assert!(problem.contains(wanted), "{wanted:?} in {problem:?}");
    }
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
}

#[track_caller]
fn origin(loaded: &Loaded, key: &str) -> String {
    let entry = loaded.entries.iter().find(|entry| entry.key == key).unwrap();
    match &entry.origin {
        Origin::File { path, line } => {
            format!("{}:{}", path.file_name().unwrap().to_string_lossy(), line.unwrap_or(0))
        }
        other => other.to_string(),
    }
}

#[track_caller]
fn shown<'a>(loaded: &'a Loaded, key: &str) -> &'a str {
    &loaded.entries.iter().find(|entry| entry.key == key).unwrap().value
}

#[test]
fn the_example_in_the_repository_is_the_one_the_program_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../azalea.example.toml");
    let text = fs::read_to_string(path).unwrap();
    assert!(text == Config::example(), "make it anew: azalea config example > azalea.example.toml");
}

#[test]
fn the_example_changes_nothing() {
    let plain = load("", &[("HOME", "/h")]).unwrap();
    let example = load(&Config::example(), &[("HOME", "/h")]).unwrap();
    assert_eq!(plain.config, example.config);
    for (plain, example) in plain.entries.iter().zip(&example.entries) {
        assert_eq!((plain.key, &plain.value), (example.key, &example.value));
        assert_eq!(plain.origin, Origin::Default, "{}", plain.key);
        assert!(matches!(example.origin, Origin::File { line: Some(_), .. }), "{}", example.key);
    }
}

#[test]
fn the_defaults_are_within_their_own_bounds_and_explained() {
    let example = Config::example();
    let loaded = load("", &[]).unwrap();
    assert_eq!(loaded.config.upload.default_limit, 10 * 1024 * 1024);
    assert_eq!(loaded.config.cache.negative_ttl, Duration::from_secs(300));
    assert_eq!(loaded.config.web.bind, "127.0.0.1:8686".parse().ok());
    assert!(!loaded.config.download.allow_private);
    for entry in &loaded.entries {
        let (_, rest) = entry.key.split_once('.').unwrap();
        assert!(example.contains(&format!("\n{rest} = ")), "{}", entry.key);
        let variable = format!("AZALEA_{}", entry.key.replace('.', "__").to_uppercase());
        assert!(example.contains(&variable), "{variable}");
    }
}

#[test]
fn variables_beat_the_file_and_the_file_beats_defaults() {
    let text = "[download]\ntimeout = \"1m\"\n\nmax_bytes = 4096\n[rate_limit]\nalgorithm = \"gcra\"";
    let loaded =
        load(text, &[("AZALEA_DOWNLOAD__TIMEOUT", "90s"), ("AZALEA_SOURCES__ORDER", "ytdlp,fxtwitter")])
            .unwrap();
    let config = &loaded.config;
    assert_eq!(config.download.timeout, Duration::from_secs(90));
    assert_eq!(origin(&loaded, "download.timeout"), "AZALEA_DOWNLOAD__TIMEOUT");
    assert_eq!(config.download.max_bytes, 4096);
    assert_eq!(origin(&loaded, "download.max_bytes"), "azalea.toml:4");
    assert_eq!(config.sources.order, [SourceChoice::Ytdlp, SourceChoice::Fxtwitter]);
    assert_eq!(config.rate_limit.algorithm, RateAlgorithm::Gcra);
    assert_eq!(config.rate_limit.max_requests, 30);
    assert_eq!(origin(&loaded, "rate_limit.max_requests"), "default");
}

#[test]
fn tables_can_be_written_in_every_way_of_toml() {
    for text in [
        "[sources.vxtwitter]\nbase_url = \"http://127.0.0.1:9/\"",
        "sources.vxtwitter.base_url = \"http://127.0.0.1:9\"",
        "sources = { vxtwitter = { base_url = \"http://127.0.0.1:9\" } }",
    ] {
        let loaded = load(text, &[]).unwrap();
        assert_eq!(loaded.config.sources.vxtwitter_base_url, "http://127.0.0.1:9", "{text}");
        assert_eq!(
            origin(&loaded, "sources.vxtwitter.base_url"),
            format!("azalea.toml:{}", text.lines().count())
        );
    }
}

#[test]
fn the_file_is_the_first_of_flag_variable_folder_and_home() {
    let folder = TempDir::with_prefix("azalea-config-").unwrap();
    let path = |name: &str| folder.path().join(name);
    let home = path("home");
    fs::create_dir_all(home.join(".config/azalea")).unwrap();
    let workers = |n: u32| format!("queue.workers = {n}");
    let named = path("named.toml");
    let variables = [("HOME", home.to_str().unwrap())];
    let with_name = [variables[0], ("AZALEA_CONFIG", named.to_str().unwrap())];
    let found = |explicit: Option<&Path>, variables: &[(&str, &str)]| {
        let loaded = Config::load(explicit, &environment(folder.path(), variables)).unwrap();
        (loaded.config.queue.workers, loaded.file)
    };
    assert_eq!(found(None, &variables), (4, None));
    let usual = home.join(".config/azalea/azalea.toml");
    fs::write(&usual, workers(5)).unwrap();
    assert_eq!(found(None, &variables), (5, Some(usual)));
    fs::write(path("azalea.toml"), workers(6)).unwrap();
    assert_eq!(found(None, &variables), (6, Some(path("azalea.toml"))));
    fs::write(&named, workers(7)).unwrap();
    assert_eq!(found(None, &with_name), (7, Some(named.clone())));
    fs::write(path("said.toml"), workers(8)).unwrap();
    assert_eq!(found(Some(&path("said.toml")), &with_name), (8, Some(path("said.toml"))));
}

#[test]
fn a_named_file_must_be_there_and_be_text() {
    let folder = TempDir::with_prefix("azalea-config-").unwrap();
    let missing = folder.path().join("missing.toml");
    let error = Config::load(Some(&missing), &environment(folder.path(), &[])).unwrap_err();
    assert!(
        error.to_string().contains("--config") && error.to_string().contains("cannot be read"),
        "{error}"
    );
    let variable = [("AZALEA_CONFIG", missing.to_str().unwrap())];
    let error = Config::load(None, &environment(folder.path(), &variable)).unwrap_err();
    assert!(error.to_string().contains("AZALEA_CONFIG"), "{error}");
    fs::write(&missing, b"\xff\xfe").unwrap();
    let error = Config::load(Some(&missing), &environment(folder.path(), &[])).unwrap_err();
    assert!(error.to_string().contains("is no UTF-8 text"), "{error}");
    fs::write(&missing, " ".repeat((1 << 20) + 1)).unwrap();
    let error = Config::load(Some(&missing), &environment(folder.path(), &[])).unwrap_err();
    assert!(error.to_string().contains("is longer than"), "{error}");
}

#[test]
fn unknown_keys_are_told_with_their_line_and_what_was_meant() {
    refused(
        "[download]\ntimeot = \"1m\"",
        &[],
        &["unknown key download.timeot (azalea.toml, line 2); did you mean download.timeout?"],
    );
    refused(
        "[downlod]\ntimeout = \"1m\"",
        &[],
        &["unknown key downlod.timeout (azalea.toml, line 1); did you mean download.timeout?"],
    );
    refused("workers = 3", &[], &["unknown key workers (azalea.toml, line 1); did you mean queue.workers?"]);
    refused(
        "colour = 3",
        &[],
        &["unknown key colour (azalea.toml, line 1); `azalea config example` prints all keys"],
    );
    refused("download = 3", &[], &["download (azalea.toml, line 1) is a section"]);
    refused("[[download]]\ntimeout = 3", &[], &["download (azalea.toml, line 1) is a section"]);
    refused(
        "[download.timeout]\nx = 1",
        &[],
        &["download.timeout = a table (azalea.toml, line 1): it must be a time"],
    );
}

#[test]
fn unknown_variables_are_told_with_what_was_meant() {
    refused(
        "",
        &[("AZALEA_DOWNLOAD__TIMEOT", "1m")],
        &["unknown variable AZALEA_DOWNLOAD__TIMEOT; did you mean AZALEA_DOWNLOAD__TIMEOUT?"],
    );
    refused(
        "",
        &[("AZALEA_DOWNLOAD_TIMEOUT", "1m")],
        &["unknown variable AZALEA_DOWNLOAD_TIMEOUT; did you mean AZALEA_DOWNLOAD__TIMEOUT?"],
    );
    refused("", &[("AZALEA_download__timeout", "1m")], &["did you mean AZALEA_DOWNLOAD__TIMEOUT?"]);
    assert!(load("", &[("AZALEA_LOG", "x"), ("OTHER__KEY", "x"), ("AZALEA_CONFIG", "")]).is_ok());
}

#[test]
fn wrong_values_are_told_with_key_value_place_and_what_is_allowed() {
    refused(
        "[download]\n\nmax_bytes = \"lots\"",
        &[],
        &["download.max_bytes = \"lots\" (azalea.toml, line 3): it must be a size from 1 to 1TiB"],
    );
    refused(
        "",
        &[("AZALEA_RATE_LIMIT__ALGORITHM", "leaky")],
        &["rate_limit.algorithm = \"leaky\" (AZALEA_RATE_LIMIT__ALGORITHM): it must be fixed or gcra"],
    );
    refused(
        "[queue]\nworkers = -1",
        &[],
        &["queue.workers = -1 (azalea.toml, line 2): it must be a whole number from 1 to 1024"],
    );
    refused(
        "sources.fxtwitter.base_url = \"fx\"",
        &[],
        &["sources.fxtwitter.base_url = \"fx\" (azalea.toml, line 1): it must be an http or https URL"],
    );
    refused("web.bind = 5", &[], &["web.bind = 5 (azalea.toml, line 1): it must be an address with a port"]);
}

#[test]
fn all_mistakes_are_told_at_once() {
    refused(
        "[queue]\nworkers = 0\nworker = 1",
        &[("AZALEA_STORE__PATHS", "x")],
        &["unknown key queue.worker (", "unknown variable AZALEA_STORE__PATHS", "queue.workers = 0"],
    );
}

#[test]
fn what_is_no_toml_is_told_with_its_line_and_without_its_text() {
    let error = load("[discord]\ntoken = \"hunter2", &[]).unwrap_err().to_string();
    assert!(error.contains("line 2") && !error.contains("hunter2"), "{error}");
    let error = load("a = 1\na = 2", &[]).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("duplicate"), "{error}");
}

#[test]
fn values_that_contradict_each_other_are_told() {
    refused(
        "[discord]\ntoken = \"a\"\ntoken_file = \"b\"",
        &[],
        &["discord.token = \"(set)\" (azalea.toml, line 2): discord.token_file is set too"],
    );
    refused(
        "queue.lease = \"1m\"\nupload.timeout = \"2m\"\nengine.timeout = \"3m\"\ndownload.timeout = \"1s\"",
        &[],
        &[
            "queue.lease = \"1m\" (azalea.toml, line 1): a lease must be longer than the slowest stage, and engine.timeout is \"3m\"",
        ],
    );
    refused(
        "queue.url = \"postgres://u:hunter2@db\"",
        &[],
        &["queue.url = \"(set)\" (azalea.toml, line 1): neither"],
    );
}

#[test]
fn a_lease_that_nobody_set_grows_with_the_time_outs() {
    let loaded = load("engine.timeout = \"1h\"", &[]).unwrap();
    assert_eq!(loaded.config.queue.lease, Duration::from_secs(3660));
    assert_eq!(shown(&loaded, "queue.lease"), "\"1h1m\"");
    assert_eq!(load("", &[]).unwrap().config.queue.lease, Duration::from_secs(900));
}

#[test]
fn secrets_are_never_shown() {
    let text = "discord.token = \"hunter2\"\nweb.token = \"hunter2\"";
    let loaded = load(text, &[]).unwrap();
    assert_eq!(loaded.config.discord.token.as_ref().map(Secret::expose), Some("hunter2"));
    assert!(!format!("{loaded:?}").contains("hunter2"));
    assert_eq!(shown(&loaded, "discord.token"), "\"(set)\"");
    for wrong in
        ["discord.token = [\"hunter2\"]", "web.token = \"hunter2\\n\"", "queue.url = { a = \"hunter2\" }"]
    {
        let error = load(wrong, &[]).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn a_token_can_stand_in_a_file_of_its_own() {
    let folder = TempDir::with_prefix("azalea-config-").unwrap();
    let path = folder.path().join("token");
    fs::write(&path, "hunter2\n").unwrap();
    let variables = [("AZALEA_DISCORD__TOKEN_FILE", path.to_str().unwrap())];
    let config = Config::load(None, &environment(folder.path(), &variables)).unwrap().config;
    assert_eq!(config.discord_token().unwrap().as_ref().map(Secret::expose), Some("hunter2"));
    for wrong in ["", " \n", "two words"] {
        fs::write(&path, wrong).unwrap();
        assert!(config.discord_token().unwrap_err().to_string().contains("does not hold one token"));
    }
    fs::remove_file(&path).unwrap();
    assert!(config.discord_token().unwrap_err().to_string().contains("cannot be read"));
    assert_eq!(Config::default().discord_token(), Ok(None));
}

#[test]
fn the_store_is_among_the_user_s_data_unless_it_is_set() {
    let loaded = load("", &[("HOME", "/h")]).unwrap();
    assert_eq!(loaded.config.store.path, Path::new("/h/.local/share/azalea"));
    assert_eq!(shown(&loaded, "store.path"), "\"/h/.local/share/azalea\"");
    assert_eq!(load("store.path = \"s\"", &[]).unwrap().config.store.path, Path::new("s"));
}

#[test]
fn a_text_that_looks_like_a_number_stays_a_text() {
    let variables = [("AZALEA_DISCORD__TOKEN", "0012"), ("AZALEA_STORE__PATH", "1e3")];
    let config = load("", &variables).unwrap().config;
    assert_eq!(config.discord.token.as_ref().map(Secret::expose), Some("0012"));
    assert_eq!(config.store.path, Path::new("1e3"));
}
