//! `azalea doctor`: what this build can do, what it lacks, and what follows from it.

use std::path::Path;
use std::thread;

use azalea_bot::clock::Clock;
use azalea_bot::config::{Config, Environment, Secret};
use azalea_bot::frontend::discord::invitation_of;
use azalea_bot::frontend::operator::{Operator, OperatorError};
use azalea_bot::queue::Stats;
use azalea_bot::source::{YtDlpFacts, YtDlpSettings};
use azalea_engine::{BuildFacts, Confinement};
use serde_json::{Value, json};

use crate::cli::Format;
use crate::command::service::runtime;
use crate::exit::{Exit, OutputError};
use crate::facts;
use crate::output;
use crate::terminal::Screen;

pub(crate) fn run(
    format: Format,
    file: Option<&Path>,
    environment: &Environment,
    screen: &Screen,
) -> anyhow::Result<Exit> {
    let build = azalea_engine::build_facts();
    let mut rows = rows(&build);
    rows.extend(service(file, environment));
    let healthy = rows.iter().all(|row| row.state != State::Fail);
    let answer = match format {
        Format::Json => object(&build, &rows, healthy).to_string(),
        Format::Text => lines(&rows),
    };
    screen.print(&answer).map_err(|cause| OutputError::stdout(&cause))?;
    Ok(if healthy { Exit::Done } else { Exit::Fault })
}

/// One thing that was looked at.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    state: State,
    subject: &'static str,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ok,
    /// Something works less well.
    Warn,
    /// The program's main job does not work.
    Fail,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl Row {
    fn new(state: State, subject: &'static str, text: impl Into<String>) -> Self {
        Self { state, subject, text: text.into() }
    }

    /// What is there, or that nothing is, which nothing works without.
    fn list(subject: &'static str, names: &[&str]) -> Self {
        if names.is_empty() {
            return Self::new(State::Fail, subject, "none");
        }
        Self::new(State::Ok, subject, format!("{}: {}", names.len(), names.join(" ")))
    }
}

fn rows(build: &BuildFacts) -> Vec<Row> {
    let mut rows = vec![
        Row::new(State::Ok, "azalea", format!("{} revision {}", facts::VERSION, facts::REVISION)),
        Row::new(State::Ok, "compiler", format!("{} for {}", facts::RUSTC, facts::TARGET)),
        Row::new(State::Ok, "ffmpeg", build.ffmpeg.clone()),
    ];
    let libraries = build.libraries.iter().map(|(name, version)| Row::new(State::Ok, name, version.clone()));
    rows.extend(libraries);
    rows.push(license(&build.license));
    rows.push(Row::list("demuxers", &build.demuxers));
    rows.push(Row::list("decoders", &build.decoders));
    rows.push(Row::list("encoders", &build.encoders));
    rows.extend(build.missing_encoders.iter().map(|name| missing_encoder(name)));
    rows.extend(build.missing_filters.iter().map(|name| missing_filter(name)));
    rows.push(match thread::available_parallelism() {
        Ok(threads) => Row::new(State::Ok, "threads", threads.to_string()),
        Err(cause) => Row::new(State::Warn, "threads", format!("unknown ({cause}), so one is used")),
    });
    rows.push(confinement(azalea_engine::confinement()));
    let folder = std::env::temp_dir();
    rows.push(match output::check_writable(&folder) {
        Ok(()) => Row::new(State::Ok, "temp dir", format!("{} can be written", folder.display())),
        Err(cause) => {
            Row::new(State::Warn, "temp dir", format!("cannot write into {}: {cause}", folder.display()))
        }
    });
    rows
}

/// What threads that read strangers' bytes can still open.
fn confinement(can: Confinement) -> Row {
    const CONFINED: &str = "confinement";
    let text = match can {
        Confinement { files: true, connections: true } => {
            return Row::new(
                State::Ok,
                CONFINED,
                "engine threads can open neither files nor TCP connections",
            );
        }
        Confinement { files: true, connections: false } => {
            "engine threads can open no files; to deny them TCP connections takes Linux 6.7 or newer"
        }
        Confinement { files: false, .. } => {
            "engine threads are denied nothing: that takes Linux 5.13 or newer, with Landlock enabled"
        }
    };
    Row::new(State::Warn, CONFINED, text)
}

/// What the bot needs besides the engine.
fn service(file: Option<&Path>, environment: &Environment) -> Vec<Row> {
    let config = match Config::load(file, environment) {
        Ok(loaded) => loaded.config,
        Err(error) => return vec![Row::new(State::Warn, "config", error.to_string().replace('\n', "; "))],
    };
    let discord = discord(config.discord_token().map_err(|error| error.to_string()));
    let settings = YtDlpSettings { program: config.sources.ytdlp_program, ..YtDlpSettings::default() };
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return vec![Row::new(State::Fail, "threads", error.to_string())],
    };
    let facts = runtime
        .block_on(YtDlpFacts::look(&settings, &Clock::system()))
        .map_err(|failure| failure.to_string());
    // Only a running service is asked: to open the queue would be a start.
    let stats = runtime.block_on(async {
        match Operator::connect(&config.store.path).await? {
            Some(mut operator) => operator.stats().await.map(Some),
            None => Ok(None),
        }
    });
    vec![Row::new(State::Ok, "config", "can be used"), discord, yt_dlp(facts), queue(stats)]
}

/// Where the bot is invited. The token is not tried: that would cost one of its identifications.
fn discord(token: Result<Option<Secret>, String>) -> Row {
    const DISCORD: &str = "discord";
    match token {
        Ok(None) => {
            Row::new(State::Ok, DISCORD, "no token, so `azalea run` cannot start; nothing else needs one")
        }
        Ok(Some(token)) => match invitation_of(&token) {
            Some(invitation) => Row::new(State::Ok, DISCORD, format!("invite it: {invitation}")),
            None => Row::new(State::Warn, DISCORD, "the token does not look like one of Discord's"),
        },
        Err(error) => Row::new(State::Warn, DISCORD, error),
    }
}

fn queue(stats: Result<Option<Stats>, OperatorError>) -> Row {
    let stats = match stats {
        Ok(Some(stats)) => stats,
        Ok(None) => return Row::new(State::Ok, QUEUE, "no service runs that has one"),
        Err(error) => return Row::new(State::Warn, QUEUE, error.to_string()),
    };
    let Stats { ready, delayed, leased, dead, trouble, .. } = stats;
    if let Some(trouble) = trouble {
        let text = format!("{trouble}; what is accepted now is lost if the service ends before it is done");
        return Row::new(State::Warn, QUEUE, text);
    }
    let text = format!("{ready} ready, {delayed} delayed, {leased} leased, {dead} dead");
    if dead == 0 {
        return Row::new(State::Ok, QUEUE, text);
    }
    Row::new(State::Warn, QUEUE, format!("{text}; `azalea queue list --state dead` shows why"))
}

const QUEUE: &str = "queue";

fn yt_dlp(facts: Result<YtDlpFacts, String>) -> Row {
    let (version, age) = match facts {
        Ok(facts) => (facts.version, facts.age_days),
        Err(why) => {
            let text = format!("{why}; posts that no other source shows cannot be fetched");
            return Row::new(State::Warn, YT_DLP, text);
        }
    };
    match age {
        Some(days) if days > OLD_DAYS => {
            let text = format!("{version} is {days} days old; X changes often, so a new one finds more");
            Row::new(State::Warn, YT_DLP, text)
        }
        Some(days) => Row::new(State::Ok, YT_DLP, format!("{version}, {days} days old")),
        None => Row::new(State::Ok, YT_DLP, version),
    }
}

const YT_DLP: &str = "yt-dlp";
/// A yt-dlp older than this has often stopped to understand X.
const OLD_DAYS: u64 = 90;

fn license(license: &str) -> Row {
    let lower = license.to_ascii_lowercase();
    if lower.contains("nonfree") || lower.contains("unredistributable") {
        let text = format!("{license}: this binary must not be passed on to anybody");
        return Row::new(State::Warn, LICENSE, text);
    }
    let meaning = if lower.contains("lgpl") {
        "this binary may be passed on if its libav can be exchanged by who gets it"
    } else if lower.contains("gpl") {
        "this binary may be passed on under the GPL only, with all its sources; the project's own sources stay MIT OR Apache-2.0"
    } else {
        return Row::new(
            State::Warn,
            LICENSE,
            format!("{license}: not a licence this program knows, so read it before passing the binary on"),
        );
    };
    Row::new(State::Ok, LICENSE, format!("{license}: {meaning}"))
}

fn missing_encoder(name: &str) -> Row {
    let (state, consequence) = match name {
        "libx264" => (State::Fail, "no video can be made, only passed or put into another container"),
        "aac" => (State::Fail, "no sound can be made, only kept"),
        "gif" => (State::Warn, "--gif does not work"),
        "mjpeg" | "png" | "apng" | "libwebp" | "libwebp_anim" | "webp" => (
            State::Warn,
            "pictures of this format that are too large cannot be made smaller in their own format",
        ),
        _ => (State::Warn, "results that need it cannot be made"),
    };
    Row::new(state, "encoder", format!("{name} is missing: {consequence}"))
}

fn missing_filter(name: &str) -> Row {
    let (state, consequence) = match name {
        "scale" | "format" | "buffer" | "buffersink" | "fps" => (State::Fail, "no video can be made"),
        "abuffer" | "abuffersink" | "aresample" | "aformat" => (State::Fail, "no sound can be made"),
        "zscale" | "tonemap" => {
            (State::Warn, "high dynamic range is not tone-mapped, so such videos look pale")
        }
        "yadif" | "bwdif" | "w3fdif" => (State::Warn, "interlaced video keeps its comb lines"),
        "transpose" | "hflip" | "vflip" | "rotate" => {
            (State::Warn, "turned or mirrored phone videos cannot be set upright")
        }
        "palettegen" | "paletteuse" | "split" => (State::Warn, "--gif does not work"),
        "overlay" | "color" | "premultiply" => {
            (State::Warn, "transparent parts of a picture may get a wrong colour")
        }
        _ => (State::Warn, "inputs that need it cannot be converted"),
    };
    Row::new(state, "filter", format!("{name} is missing: {consequence}"))
}

fn lines(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.subject.len()).max().unwrap_or(0);
    let lines =
        rows.iter().map(|row| format!("{:4}  {:width$}  {}", row.state.name(), row.subject, row.text));
    lines.collect::<Vec<_>>().join("\n")
}

fn object(build: &BuildFacts, rows: &[Row], healthy: bool) -> Value {
    let libraries: serde_json::Map<String, Value> =
        build.libraries.iter().map(|(name, version)| ((*name).to_owned(), json!(version))).collect();
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| json!({ "state": row.state.name(), "subject": row.subject, "text": row.text }))
        .collect();
    json!({
        "healthy": healthy,
        "version": facts::VERSION,
        "revision": facts::REVISION,
        "rustc": facts::RUSTC,
        "target": facts::TARGET,
        "ffmpeg": build.ffmpeg,
        "libraries": libraries,
        "license": build.license,
        "x264": facts::has_x264(build),
        "demuxers": build.demuxers,
        "decoders": build.decoders,
        "encoders": build.encoders,
        "missing_filters": build.missing_filters,
        "missing_encoders": build.missing_encoders,
        "checks": rows,
    })
}

const LICENSE: &str = "licence";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_yt_dlp_and_one_that_is_missing_are_warned_of() {
        let facts = |age_days| {
            Ok(YtDlpFacts { program: "yt-dlp".into(), version: "2026.10.26".to_owned(), age_days })
        };
        assert_eq!(yt_dlp(facts(Some(35))), Row::new(State::Ok, "yt-dlp", "2026.10.26, 35 days old"));
        assert_eq!(yt_dlp(facts(Some(91))).state, State::Warn);
        assert_eq!(yt_dlp(Err("not found".to_owned())).state, State::Warn);
    }

    #[test]
    fn a_token_gives_an_invitation_and_is_not_shown() {
        let row = discord(Ok(Some(Secret::new("MTIzNDU2Nzg5MDEyMzQ1Njc4.secret.part".to_owned()))));
        assert!(row.state == State::Ok && row.text.contains("client_id=123456789012345678"), "{row:?}");
        assert!(!row.text.contains("secret"));
        assert_eq!(discord(Ok(Some(Secret::new("x".to_owned())))).state, State::Warn);
        assert_eq!(discord(Ok(None)).state, State::Ok);
    }

    #[test]
    fn a_queue_in_trouble_and_dead_letters_are_warned_of() {
        let stats = |dead, trouble: Option<&str>| {
            Ok(Some(Stats { ready: 1, dead, trouble: trouble.map(str::to_owned), ..Stats::default() }))
        };
        let fine = queue(stats(0, None));
        assert_eq!(fine, Row::new(State::Ok, "queue", "1 ready, 0 delayed, 0 leased, 0 dead"));
        assert_eq!(queue(Ok(None)).state, State::Ok);
        let dead = queue(stats(2, None));
        assert!(dead.state == State::Warn && dead.text.contains("queue list --state dead"), "{dead:?}");
        let full = queue(stats(0, Some("its disk is full")));
        assert!(full.state == State::Warn && full.text.starts_with("its disk is full; "), "{full:?}");
    }

    #[test]
    fn a_licence_says_what_it_means_for_the_binary() {
        for (name, state, part) in [
            ("GPL version 2 or later", State::Ok, "under the GPL only"),
            ("LGPL version 2.1 or later", State::Ok, "can be exchanged"),
            ("nonfree and unredistributable", State::Warn, "must not be passed on"),
            ("", State::Warn, "not a licence"),
        ] {
            let row = license(name);
            assert_eq!(row.state, state, "{row:?}");
            assert!(row.text.contains(part), "{row:?}");
        }
    }

    #[test]
    fn only_what_the_main_job_needs_is_essential() {
        assert_eq!(missing_encoder("libx264").state, State::Fail);
        assert_eq!(missing_filter("scale").state, State::Fail);
        assert_eq!(missing_filter("zscale").state, State::Warn);
        assert_eq!(missing_filter("something new").state, State::Warn);
    }
}
