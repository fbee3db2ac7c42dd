//! What is meant: the typed command line with every value checked and every default filled in.
//!
//! This is the only place that reads the environment.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use azalea_bot::config::{Config, Environment};
use azalea_bot::domain::{LimitClass, Link, RequestId, parse_time};
use azalea_bot::queue::{Filter, JobId, StateKind};
use azalea_engine::{ByteSize, Fit, Preset, Wanted};
use clap_complete::Shell;
use tracing_subscriber::filter::LevelFilter;

use crate::cli::{
    Cli, Command, ConfigCommand, FitArgs, Format, GetArgs, QueueChangeArgs, QueueCommand, QueueFilterArgs,
};
use crate::exit::UsageError;

/// One run of the program.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) task: Task,
    pub(crate) log: LevelFilter,
}

/// What to do.
#[derive(Debug)]
pub(crate) enum Task {
    Fit(FitSettings),
    Probe(ProbeSettings),
    Get(GetSettings),
    Run(RunSettings),
    Console(ConsoleSettings),
    Demo(DemoSettings),
    Queue(QueueSettings),
    Doctor(Format, Option<PathBuf>, Environment),
    Config(ConfigTask),
    Completions(Shell),
}

/// Which files to make fit, into what, and where to put them.
#[derive(Debug)]
pub(crate) struct FitSettings {
    /// At least one; standard input at most once.
    pub(crate) inputs: Vec<Input>,
    pub(crate) destination: Destination,
    pub(crate) fit: Fit,
    pub(crate) format: Format,
}

/// Which file to look at.
#[derive(Debug)]
pub(crate) struct ProbeSettings {
    pub(crate) input: Input,
    pub(crate) format: Format,
}

/// What to do with the bot's configuration.
#[derive(Debug)]
pub(crate) enum ConfigTask {
    /// Read it, from this file if one is named, and tell what came of it.
    Check(Option<PathBuf>, Environment),
    /// Print the example.
    Example,
}

/// What to fetch, and where to put it.
#[derive(Debug)]
pub(crate) struct GetSettings {
    pub(crate) wish: Wish,
    pub(crate) output: PathBuf,
    pub(crate) limit: LimitClass,
    pub(crate) config: Config,
    pub(crate) format: Format,
}

/// What is fetched.
#[derive(Debug)]
pub(crate) enum Wish {
    /// A post, and the link as it was typed.
    Link(Link, String),
    File(PathBuf),
}

/// How the bot is run.
#[derive(Debug)]
pub(crate) struct RunSettings {
    pub(crate) config: Config,
}

/// How the console is run.
#[derive(Debug)]
pub(crate) struct ConsoleSettings {
    pub(crate) output: PathBuf,
    pub(crate) limit: LimitClass,
    pub(crate) config: Config,
}

/// What to do with the queue.
#[derive(Debug)]
pub(crate) struct QueueSettings {
    pub(crate) deed: QueueDeed,
    pub(crate) config: Config,
    pub(crate) format: Format,
}

/// What is done with jobs.
#[derive(Debug)]
pub(crate) enum QueueDeed {
    List(Filter),
    Show(Named),
    Change(Change, Which),
}

/// Which job is meant: by its own number, or by the name of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Job(JobId),
    Request(RequestId),
}

/// What jobs go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Dead ones run again.
    Retry,
    /// They are forgotten.
    Drop,
}

/// Which jobs are meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// These.
    Named(Vec<JobId>),
    /// All of these, or so many as `most` says, if it is not 0.
    Matching(Filter),
}

/// What the demo shows.
#[derive(Debug)]
pub(crate) struct DemoSettings {
    /// Where the files are kept; `None`: they are not.
    pub(crate) output: Option<PathBuf>,
    /// Length of the clip.
    pub(crate) seconds: u32,
}

/// Where bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Stdin,
    File(PathBuf),
}

/// Where results go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Beside each input, under a name made from the input's.
    Beside,
    /// To exactly this file; for one input only.
    File(PathBuf),
    /// Into this folder, which may have to be made, under names made from the inputs'.
    Folder(PathBuf),
    /// To standard output; for one input only.
    Stdout,
}

impl Settings {
    /// Gives the typed words their meaning.
    ///
    /// # Errors
    /// [`UsageError`] for values that mean nothing and for wishes that contradict each other.
    pub(crate) fn new(typed: Cli) -> anyhow::Result<Self> {
        let log = log_level(typed.verbose, std::env::var("AZALEA_LOG").ok().as_deref())?;
        let format = typed.format();
        let task = match typed.command {
            Command::Fit(args) => Task::Fit(fit(args, format)?),
            Command::Probe(args) => Task::Probe(ProbeSettings { input: Input::new(args.input), format }),
            Command::Doctor(args) => Task::Doctor(format, args.config, Environment::of_process()),
            Command::Get(args) => Task::Get(get(args, format)?),
            Command::Run(args) => Task::Run(RunSettings { config: config(args.config.as_deref())? }),
            Command::Console(args) => {
                let config = config(args.config.as_deref())?;
                let limit = limit_class(config.upload.default_limit)?;
                Task::Console(ConsoleSettings { output: args.output, limit, config })
            }
            Command::Demo(args) => Task::Demo(DemoSettings { output: args.output, seconds: args.seconds }),
            Command::Queue(command) => Task::Queue(queue(command, format)?),
            Command::Config(ConfigCommand::Check(args)) => {
                Task::Config(ConfigTask::Check(args.config, Environment::of_process()))
            }
            Command::Config(ConfigCommand::Example) => Task::Config(ConfigTask::Example),
            Command::Completions(args) => Task::Completions(args.shell),
        };
        Ok(Self { task, log })
    }
}

impl Input {
    fn new(typed: PathBuf) -> Self {
        if typed.as_os_str() == STANDARD_STREAM { Self::Stdin } else { Self::File(typed) }
    }
}

fn fit(args: FitArgs, format: Format) -> anyhow::Result<FitSettings> {
    let limit: ByteSize = args.limit.parse().map_err(|error| UsageError(format!("--limit: {error}")))?;
    let wanted = match (args.audio_only, args.gif) {
        (true, _) => Wanted::AudioOnly,
        (_, true) => Wanted::Gif,
        (false, false) => Wanted::Natural,
    };
    let mut fit = Fit::within(limit).wanted(wanted);
    if let Some(preset) = args.preset {
        let preset: Preset = preset.parse().map_err(|error| UsageError(format!("--preset: {error}")))?;
        fit = fit.preset(preset);
    }
    if let Some(height) = args.height {
        fit = fit.max_height(height);
    }
    let start = args.start.map(|text| moment("--start", &text)).transpose()?;
    let end = args.end.map(|text| moment("--end", &text)).transpose()?;
    if let Some(end) = end {
        if end <= start.unwrap_or_default() {
            return Err(UsageError("--end must be later than the start".to_owned()).into());
        }
        fit = fit.end(end);
    }
    if let Some(start) = start {
        fit = fit.start(start);
    }
    let inputs: Vec<Input> = args.inputs.into_iter().map(Input::new).collect();
    if inputs.iter().filter(|input| **input == Input::Stdin).count() > 1 {
        return Err(UsageError("standard input can be read only once".to_owned()).into());
    }
    let destination = destination(args.output, &inputs)?;
    if destination == Destination::Stdout && format == Format::Json {
        return Err(UsageError(
            "the report of --json and the file of -o - both want standard output".to_owned(),
        )
        .into());
    }
    Ok(FitSettings { inputs, destination, fit, format })
}

fn get(args: GetArgs, format: Format) -> anyhow::Result<GetSettings> {
    let config = config(args.config.as_deref())?;
    let bytes = match &args.limit {
        Some(text) => {
            let limit: ByteSize = text.parse().map_err(|error| UsageError(format!("--limit: {error}")))?;
            limit.get()
        }
        None => config.upload.default_limit,
    };
    let limit = limit_class(bytes)?;
    let file = PathBuf::from(&args.what);
    let text = args.what.to_str().unwrap_or_default();
    let wish = match text.parse::<Link>() {
        Ok(link) => Wish::Link(link, text.to_owned()),
        // What looks like an address is not taken for a file that is missing.
        Err(error) if text.contains("://") => return Err(UsageError(format!("{text}: {error}")).into()),
        Err(_) => Wish::File(file),
    };
    let output = args.output.unwrap_or_else(|| PathBuf::from("."));
    Ok(GetSettings { wish, output, limit, config, format })
}

fn queue(command: QueueCommand, format: Format) -> anyhow::Result<QueueSettings> {
    let config = config(command.way().config.as_deref())?;
    let deed = match command {
        QueueCommand::List(args) => QueueDeed::List(filter(args.filter, Some(args.most))?),
        QueueCommand::Show(args) => QueueDeed::Show(named(&args.id)?),
        QueueCommand::Retry(args) => QueueDeed::Change(Change::Retry, which(args, Change::Retry)?),
        QueueCommand::Drop(args) => QueueDeed::Change(Change::Drop, which(args, Change::Drop)?),
    };
    Ok(QueueSettings { deed, config, format })
}

fn named(text: &str) -> Result<Named, UsageError> {
    if let Ok(id) = text.parse() {
        return Ok(Named::Job(JobId(id)));
    }
    let wrong = |_| UsageError(format!("{text}: neither the number of a job nor the name of a request"));
    text.parse().map(Named::Request).map_err(wrong)
}

fn filter(args: QueueFilterArgs, most: Option<u32>) -> Result<Filter, UsageError> {
    let state = args.state.and_then(|name| StateKind::ALL.into_iter().find(|kind| kind.name() == name));
    if state == Some(StateKind::Done) {
        let why = "what is done is not listed: only how it ended is kept, so that it is not done again";
        return Err(UsageError(why.to_owned()));
    }
    let older_than = args.older_than.map(|text| age("--older-than", &text)).transpose()?;
    let most = usize::try_from(most.unwrap_or_default()).unwrap_or(usize::MAX);
    let QueueFilterArgs { guild, user, reason, .. } = args;
    Ok(Filter { state, guild, user, request: None, older_than, reason, most })
}

fn which(args: QueueChangeArgs, change: Change) -> Result<Which, UsageError> {
    let mut filter = filter(args.filter, args.most)?;
    let any = Filter { most: filter.most, ..Filter::default() } != filter;
    let refuse = |what: &str| Err(UsageError(what.to_owned()));
    if !args.ids.is_empty() {
        return if any || filter.most != 0 {
            refuse("name jobs by their numbers or by options, not by both")
        } else {
            // One that is named twice is meant once.
            let mut seen = std::collections::HashSet::new();
            Ok(Which::Named(args.ids.into_iter().filter(|id| seen.insert(*id)).map(JobId).collect()))
        };
    }
    match change {
        Change::Retry if filter.state.is_some_and(|state| state != StateKind::Dead) => {
            return refuse("only dead jobs can be had to run again");
        }
        Change::Retry if !any => {
            return refuse("which jobs? Name their numbers, or --state dead for all of them");
        }
        Change::Retry => filter.state = Some(StateKind::Dead),
        Change::Drop if !any => {
            return refuse("which jobs? Name their numbers, or an option that means them, like --state dead");
        }
        Change::Drop => {}
    }
    Ok(Which::Matching(filter))
}

/// A time that may have days, as jobs have.
fn age(option: &str, text: &str) -> Result<Duration, UsageError> {
    let days = text.trim().strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    days.map(|days| Duration::from_secs(u64::from(days) * 86_400)).or_else(|| parse_time(text)).ok_or_else(
        || UsageError(format!("{option}: \"{text}\" is not a time; write it like 90s, 1h30m or 7d")),
    )
}

fn config(file: Option<&Path>) -> anyhow::Result<Config> {
    Ok(Config::load(file, &Environment::of_process())?.config)
}

fn limit_class(bytes: u64) -> anyhow::Result<LimitClass> {
    let bytes = NonZeroU64::new(bytes).ok_or_else(|| UsageError("nothing fits into 0 bytes".to_owned()))?;
    Ok(LimitClass::new(bytes))
}

fn moment(option: &str, text: &str) -> Result<Duration, UsageError> {
    parse_time(text).ok_or_else(|| {
        UsageError(format!("{option}: \"{text}\" is not a time; write it like 90, 1:30, 1m30s or 250ms"))
    })
}

fn destination(typed: Option<PathBuf>, inputs: &[Input]) -> Result<Destination, UsageError> {
    let several = inputs.len() > 1;
    let Some(path) = typed else {
        // There is no name to derive one from, and a fixed one would replace the previous clip's result.
        return if inputs.contains(&Input::Stdin) {
            Err(UsageError("standard input has no name: say with -o where the result goes".to_owned()))
        } else {
            Ok(Destination::Beside)
        };
    };
    if path.as_os_str() == STANDARD_STREAM {
        if several {
            Err(UsageError("several results cannot share standard output".to_owned()))
        } else {
            Ok(Destination::Stdout)
        }
    } else if path.is_dir() || names_a_folder(&path) {
        Ok(Destination::Folder(path))
    } else if !several {
        Ok(Destination::File(path))
    } else if path.exists() {
        Err(UsageError(format!("several inputs need a folder, but {} is a file", path.display())))
    } else {
        Ok(Destination::Folder(path))
    }
}

/// Whether the path can mean nothing but a folder, though there may be none yet.
fn names_a_folder(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().last().is_some_and(|byte| std::path::is_separator(char::from(*byte)))
}

fn log_level(verbose: u8, variable: Option<&str>) -> Result<LevelFilter, UsageError> {
    match verbose {
        // Silent unless asked: an error is told once, in one line, and not by the log as well.
        0 => variable.filter(|text| !text.is_empty()).map_or(Ok(LevelFilter::OFF), |text| {
            text.parse().map_err(|_| {
                UsageError(format!(
                    "AZALEA_LOG: \"{text}\" is not a level; choose off, error, warn, info, debug or trace"
                ))
            })
        }),
        1 => Ok(LevelFilter::WARN),
        2 => Ok(LevelFilter::INFO),
        3 => Ok(LevelFilter::DEBUG),
        _ => Ok(LevelFilter::TRACE),
    }
}

/// How people write "standard input" or "standard output" where a path is expected.
const STANDARD_STREAM: &str = "-";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[track_caller]
    fn settings(words: &[&str]) -> anyhow::Result<FitSettings> {
        let words = ["azalea", "fit"].iter().chain(words);
        match Settings::new(Cli::try_parse_from(words).unwrap())?.task {
            Task::Fit(fit) => Ok(fit),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn refused(words: &[&str], reason: &str) {
        let error = settings(words).unwrap_err();
        assert!(error.downcast_ref::<UsageError>().is_some(), "{error:?}");
        assert!(error.to_string().contains(reason), "{error}");
    }

    #[test]
    fn defaults_are_ten_mebibytes_beside_the_input() {
        let fit = settings(&["a.mp4"]).unwrap();
        assert_eq!(fit.fit, Fit::within(ByteSize::mebibytes(10)));
        assert_eq!(fit.destination, Destination::Beside);
        assert_eq!(fit.inputs, [Input::File("a.mp4".into())]);
    }

    #[test]
    fn every_wish_reaches_the_request() {
        let words = "a.mp4 --limit 8MiB --start 1:00 --end 1m30s --preset best --height 480 --gif";
        let fit = settings(&words.split(' ').collect::<Vec<_>>()).unwrap().fit;
        let wanted = Fit::within(ByteSize::mebibytes(8))
            .start(Duration::from_secs(60))
            .end(Duration::from_secs(90))
            .preset(Preset::Best)
            .max_height(480)
            .wanted(Wanted::Gif);
        assert_eq!(fit, wanted);
    }

    #[test]
    fn a_dash_is_a_standard_stream() {
        let fit = settings(&["-", "-o", "-"]).unwrap();
        assert_eq!((fit.inputs, fit.destination), (vec![Input::Stdin], Destination::Stdout));
    }

    #[test]
    fn several_inputs_make_the_output_a_folder() {
        let fit = settings(&["a.mp4", "b.mp4", "-o", "no such folder"]).unwrap();
        assert_eq!(fit.destination, Destination::Folder("no such folder".into()));
        let fit = settings(&["a.mp4", "-o", "no such folder"]).unwrap();
        assert_eq!(fit.destination, Destination::File("no such folder".into()));
        let fit = settings(&["a.mp4", "-o", "no such folder/"]).unwrap();
        assert_eq!(fit.destination, Destination::Folder("no such folder/".into()));
    }

    #[test]
    fn contradictions_and_nonsense_are_usage_errors() {
        refused(&["a", "--limit", "8 parsecs"], "--limit: \"8 parsecs\" is not a size");
        refused(&["a", "--start", "soon"], "--start: \"soon\" is not a time");
        refused(&["a", "--end", "0"], "--end must be later");
        refused(&["a", "--start", "5", "--end", "5"], "--end must be later");
        refused(&["-", "-", "-o", "d"], "only once");
        refused(&["-"], "-o");
        refused(&["a", "-o", "-", "--json"], "standard output");
        refused(&["a", "b", "-o", "-"], "standard output");
        refused(&["a", "b", "-o", "Cargo.toml"], "is a file");
    }

    #[track_caller]
    fn which_jobs(words: &str) -> anyhow::Result<Which> {
        let words = ["azalea", "queue"].into_iter().chain(words.split(' '));
        let Command::Queue(command) = Cli::try_parse_from(words).unwrap().command else { unreachable!() };
        match command {
            QueueCommand::Retry(args) => Ok(which(args, Change::Retry)?),
            QueueCommand::Drop(args) => Ok(which(args, Change::Drop)?),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn jobs_are_named_or_meant_by_at_least_one_option() {
        let dead = Filter { state: Some(StateKind::Dead), ..Filter::default() };
        for (words, expected) in [
            ("retry 3 4 3", Which::Named(vec![JobId(3), JobId(4)])),
            ("drop 3", Which::Named(vec![JobId(3)])),
            ("retry --state dead", Which::Matching(dead.clone())),
            ("retry --reason transient", {
                Which::Matching(Filter { reason: Some("transient".to_owned()), ..dead })
            }),
            ("drop --older-than 7d --most 5", {
                let week = Some(Duration::from_secs(7 * 86_400));
                Which::Matching(Filter { older_than: week, most: 5, ..Filter::default() })
            }),
        ] {
            assert_eq!(which_jobs(words).unwrap(), expected, "{words}");
        }
        for (words, reason) in [
            ("retry", "which jobs?"),
            ("drop", "which jobs?"),
            ("drop --most 5", "which jobs?"),
            ("retry --state ready", "only dead jobs"),
            ("drop 3 --state dead", "not by both"),
            ("drop --state done", "what is done is not listed"),
            ("drop --older-than soon", "--older-than: \"soon\" is not a time"),
        ] {
            let error = which_jobs(words).unwrap_err();
            assert!(
                error.downcast_ref::<UsageError>().is_some() && error.to_string().contains(reason),
                "{error}"
            );
        }
    }

    #[test]
    fn logging_is_off_unless_asked_for() {
        assert_eq!(log_level(0, None), Ok(LevelFilter::OFF));
        assert_eq!(log_level(0, Some("")), Ok(LevelFilter::OFF));
        assert_eq!(log_level(0, Some("debug")), Ok(LevelFilter::DEBUG));
        assert_eq!(log_level(1, Some("debug")), Ok(LevelFilter::WARN));
        assert!(log_level(0, Some("loud")).is_err());
    }
}
