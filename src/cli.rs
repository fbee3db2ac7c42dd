//! What was typed: the command line as clap reads it, values still as text.
//!
//! Values that have a grammar of their own (sizes, times) stay text here; `settings` gives them their meaning.

use std::path::PathBuf;

use azalea_bot::domain::{GuildId, UserId};
use azalea_bot::queue::{Filter, StateKind};
use azalea_engine::Preset;
use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

use crate::exit::{self, Exit, UsageError};
use crate::facts;
use crate::terminal::Screen;

/// Makes any video fit under a size limit and play where it is posted.
#[derive(Debug, Parser)]
#[command(name = "azalea", version, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Log to standard error: -v warnings, -vv information, -vvv debugging, -vvvv everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make files fit under a size limit
    Fit(FitArgs),
    /// Tell what a media file is
    Probe(ProbeArgs),
    /// Fetch a post's media, or take a file, and make them fit
    Get(GetArgs),
    /// Run the bot in Discord
    Run(RunArgs),
    /// Run the bot's front end in this terminal: type messages, see the answers
    Console(ConsoleArgs),
    /// See the bot at work: one post, ten people who want it, no account and no network
    Demo(DemoArgs),
    /// Look after the requests that wait, are worked on, or have failed
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Check what this build can do and what it lacks
    Doctor(DoctorArgs),
    /// Check the bot's configuration, or print an example of it
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the completion script for a shell
    Completions(CompletionsArgs),
}

#[derive(Args, Debug)]
pub(crate) struct GetArgs {
    /// A link to a post, or a media file
    #[arg(value_name = "LINK|FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) what: std::ffi::OsString,

    /// The most bytes that a file may have, like 8MiB, 10MB or 10485760 [default: upload.default_limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) limit: Option<String>,

    /// The folder that the files go to [default: the current one]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,

    /// The configuration [default: $AZALEA_CONFIG, ./azalea.toml, or the one in your configuration folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,

    /// Report on standard output as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The configuration [default: $AZALEA_CONFIG, ./azalea.toml, or the one in your configuration folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ConsoleArgs {
    /// The folder that the files go to
    #[arg(short, long, value_name = "DIR", default_value = "azalea-console", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,

    /// The configuration [default: $AZALEA_CONFIG, ./azalea.toml, or the one in your configuration folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Keep the delivered files in this folder
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,

    /// Length of the clip that is drawn
    #[arg(long, value_name = "SECONDS", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) seconds: u32,
}

#[derive(Args, Debug)]
pub(crate) struct FitArgs {
    /// Files to make fit; `-` reads standard input
    #[arg(required = true, value_name = "INPUT", value_hint = ValueHint::FilePath)]
    pub(crate) inputs: Vec<PathBuf>,

    /// The most bytes that a result may have, like 8MiB, 10MB or 10485760
    #[arg(long, value_name = "SIZE", default_value = "10MiB")]
    pub(crate) limit: String,

    /// Where the result goes: a file, a folder, or `-` for standard output [default: NAME.fit.EXT beside the input]
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::AnyPath)]
    pub(crate) output: Option<PathBuf>,

    /// Leave out everything before this time, like 90, 1:30, 1m30s or 250ms
    #[arg(long, value_name = "TIME")]
    pub(crate) start: Option<String>,

    /// Leave out everything from this time on
    #[arg(long, value_name = "TIME")]
    pub(crate) end: Option<String>,

    /// Keep the sound alone, as m4a
    #[arg(long, conflicts_with = "gif")]
    pub(crate) audio_only: bool,

    /// Make a looping GIF without sound
    #[arg(long)]
    pub(crate) gif: bool,

    /// How much effort the encoder spends
    #[arg(long, value_parser = PossibleValuesParser::new(Preset::ALL.map(Preset::name)))]
    pub(crate) preset: Option<String>,

    /// Make the picture at most this many pixels high; it is never enlarged
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(16..=16_384))]
    pub(crate) height: Option<u32>,

    /// Report on standard output as JSON, one object per input and line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ProbeArgs {
    /// The file to look at; `-` reads standard input
    #[arg(value_name = "INPUT", value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,

    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List jobs, the oldest first
    List(QueueListArgs),
    /// Tell everything that is known about a job, each attempt among it
    Show(QueueShowArgs),
    /// Have dead jobs run again
    Retry(QueueChangeArgs),
    /// Forget jobs that no worker holds; their requesters are told, if the service runs
    Drop(QueueChangeArgs),
}

#[derive(Args, Debug)]
pub(crate) struct QueueListArgs {
    #[command(flatten)]
    pub(crate) filter: QueueFilterArgs,

    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) most: u32,

    #[command(flatten)]
    pub(crate) way: QueueWayArgs,
}

#[derive(Args, Debug)]
pub(crate) struct QueueShowArgs {
    /// The job's number, or the name of its request as people are told it (discord-1234-0)
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    #[command(flatten)]
    pub(crate) way: QueueWayArgs,
}

#[derive(Args, Debug)]
pub(crate) struct QueueChangeArgs {
    /// The jobs' numbers; without any, those that the options mean
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<u64>,

    #[command(flatten)]
    pub(crate) filter: QueueFilterArgs,

    /// Take at most this many, the oldest first [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) most: Option<u32>,

    #[command(flatten)]
    pub(crate) way: QueueWayArgs,
}

#[derive(Args, Debug)]
pub(crate) struct QueueFilterArgs {
    /// Only those in this state
    #[arg(long, value_parser = PossibleValuesParser::new(StateKind::ALL.map(StateKind::name)))]
    pub(crate) state: Option<String>,

    /// Only those of this server
    #[arg(long, value_name = "NUMBER")]
    pub(crate) guild: Option<GuildId>,

    /// Only those that this person asked for
    #[arg(long, value_name = "NUMBER")]
    pub(crate) user: Option<UserId>,

    /// Only those queued at least this long ago, like 90s, 2h or 7d
    #[arg(long, value_name = "TIME")]
    pub(crate) older_than: Option<String>,

    /// Only those whose last attempt came to this, like transient, or that are dead for it, like attempts
    #[arg(long, value_name = "CODE", value_parser = PossibleValuesParser::new(Filter::reasons()))]
    pub(crate) reason: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct QueueWayArgs {
    /// The configuration [default: $AZALEA_CONFIG, ./azalea.toml, or the one in your configuration folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,

    /// Answer as JSON, one object per job and line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// The configuration [default: $AZALEA_CONFIG, ./azalea.toml, or the one in your configuration folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,

    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Tell which values are in effect and where they come from, or what is wrong with them
    Check(ConfigCheckArgs),
    /// Print every key with its default and the reason for it
    Example,
}

#[derive(Args, Debug)]
pub(crate) struct ConfigCheckArgs {
    /// The file to read [default: AZALEA_CONFIG, ./azalea.toml, or azalea.toml in your configuration folder]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell to complete in
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// How a command answers on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Lines for people.
    Text,
    /// JSON, one object per line.
    Json,
}

impl Format {
    fn json_if(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

impl QueueCommand {
    /// How the queue is reached, and how the answer is given.
    pub(crate) fn way(&self) -> &QueueWayArgs {
        match self {
            Self::List(args) => &args.way,
            Self::Show(args) => &args.way,
            Self::Retry(args) | Self::Drop(args) => &args.way,
        }
    }
}

impl Cli {
    /// How the command was asked to answer.
    pub(crate) fn format(&self) -> Format {
        match &self.command {
            Command::Fit(args) => Format::json_if(args.json),
            Command::Probe(args) => Format::json_if(args.json),
            Command::Doctor(args) => Format::json_if(args.json),
            Command::Get(args) => Format::json_if(args.json),
            Command::Queue(command) => Format::json_if(command.way().json),
            Command::Run(_)
            | Command::Console(_)
            | Command::Demo(_)
            | Command::Config(_)
            | Command::Completions(_) => Format::Text,
        }
    }
}

/// Reads the process's own arguments.
///
/// Help, version and mistakes are printed here, in clap's own words; the answer is then the exit code.
pub(crate) fn parse() -> Result<Cli, Exit> {
    let parsed = Cli::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let error = match parsed {
        Ok(typed) => return Ok(typed),
        // The long text asks libav for its versions, so it is made only when somebody wants to read it.
        Err(error) if error.kind() == ErrorKind::DisplayVersion => {
            let command = Cli::command().long_version(facts::long_version());
            match command.try_get_matches() {
                Ok(_) => return Err(Exit::Done),
                Err(error) => error,
            }
        }
        Err(error) => error,
    };
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // The reader of the pipe may be gone, and there is nobody left to tell.
        let _ = error.print();
        return Err(if error.use_stderr() { Exit::Usage } else { Exit::Done });
    }
    let format =
        if std::env::args_os().any(|argument| argument == "--json") { Format::Json } else { Format::Text };
    Err(exit::report(&UsageError(complaint(&error.to_string())).into(), format, &Screen::new()))
}

/// What clap complains of and proposes, in one line, without the usage that follows it.
fn complaint(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let text = text.split("\nUsage:").next().unwrap_or(text);
    let text = text.split("\nFor more information").next().unwrap_or(text);
    let paragraphs =
        text.split("\n\n").map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    let told: Vec<String> = paragraphs.filter(|paragraph| !paragraph.is_empty()).collect();
    format!("{}; see --help", told.join("; "))
}

const AFTER_HELP: &str = "\
Exit codes: 0 done, 2 usage, 3 input unusable, 4 cannot fit, 5 cancelled or out of time, 6 network, 1 our fault.
AZALEA_LOG=error|warn|info|debug|trace logs to standard error; -v does the same.";
