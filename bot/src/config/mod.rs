//! What an operator can set: defaults, under a file, under the environment.
//!
//! This room never knows what a setting is used for: the rooms above have settings of their own, and whoever builds
//! them translates. Its invariants:
//!
//! - Every key stands once, in `keys`, with its kind, default and reason; the example, the checks and the list of
//!   effective values are made from that.
//! - Whatever is not understood is an error that names the key, where it was written, and what was meant instead.
//!   All mistakes are told at once.
//! - A secret is never shown, not even when it is wrong.

mod choice;
mod environment;
mod error;
mod example;
mod keys;
mod kind;
mod layers;
mod secret;

pub use choice::{EnginePreset, QueueBackend, RateAlgorithm, SensitivePolicy, SourceChoice};
pub use environment::Environment;
pub use error::ConfigError;
pub use example::example;
pub use keys::{
    Audience, Cache, Config, Dedup, Discord, Download, Engine, Metrics, Queue, RateLimit, Sources, Store,
    Upload, Web,
};
pub use layers::{Entry, Origin};
pub use secret::Secret;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::kind::{AnyPath, Kind, Time};
use crate::config::layers::Layers;

/// A configuration, and how it came about.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Every value.
    pub config: Config,
    /// The file that was read; `None` when there is none.
    pub file: Option<PathBuf>,
    /// Every key with its value as it is shown, and where that comes from; in the order of the example.
    pub entries: Vec<Entry>,
}

impl Config {
    /// Reads the configuration: defaults, under the file, under the variables `AZALEA_SECTION__KEY`.
    ///
    /// The file is `explicit`, or what `AZALEA_CONFIG` names, or `azalea.toml` in the current folder, or
    /// `azalea/azalea.toml` in the user's configuration folder; without any of them the defaults hold. Blocks for as
    /// long as reading a small file takes.
    ///
    /// # Errors
    /// [`ConfigError`] with every mistake that was found: a named file that cannot be read, text that is no TOML,
    /// unknown keys and variables, values that are not allowed, values that contradict each other.
    pub fn load(explicit: Option<&Path>, environment: &Environment) -> Result<Loaded, ConfigError> {
        let file = find(explicit, environment)?;
        let mut layers =
            Layers::new(file.as_ref().map(|(path, text)| (path.as_path(), text.as_str())), environment)?;
        let mut config = Self::read(&mut layers);
        config.complete(&mut layers, environment);
        config.check(&mut layers);
        let entries = layers.finish()?;
        Ok(Loaded { config, file: file.map(|(path, _)| path), entries })
    }

    /// Every key with its default, its reason and what is allowed, as a file that can be read again.
    pub fn example() -> String {
        example()
    }

    /// Gives a value to defaults that depend on other things.
    fn complete(&mut self, layers: &mut Layers<'_>, environment: &Environment) {
        if self.store.path.as_os_str().is_empty() {
            self.store.path = environment.data_folder();
            layers.amend("store.path", AnyPath::show(&self.store.path));
        }
        let shortest = self.slowest_stage().1.saturating_add(LEASE_MARGIN);
        if layers.is_default("queue.lease") && self.queue.lease < shortest {
            self.queue.lease = shortest;
            layers.amend("queue.lease", Time::<0, 0>::show(&shortest));
        }
    }

    /// Finds values that are right each for itself and wrong together.
    fn check(&self, layers: &mut Layers<'_>) {
        if self.discord.token.is_some() && self.discord.token_file.is_some() {
            layers.contradiction(
                "discord.token",
                "discord.token_file is set too, and only one of them can be meant",
            );
        }
        let (slowest, time) = self.slowest_stage();
        if self.queue.lease <= time {
            let time = Time::<0, 0>::show(&time);
            let what = format!("a lease must be longer than the slowest stage, and {slowest} is {time}");
            layers.contradiction("queue.lease", &what);
        }
        if self.queue.url.is_some() {
            layers.contradiction("queue.url", "neither of the backends that there are has a use for it");
        }
    }

    /// The stage that may take longest: its key and its time.
    fn slowest_stage(&self) -> (&'static str, Duration) {
        let stages = [
            ("sources.vxtwitter.timeout", self.sources.vxtwitter_timeout),
            ("sources.fxtwitter.timeout", self.sources.fxtwitter_timeout),
            ("sources.syndication.timeout", self.sources.syndication_timeout),
            ("sources.ytdlp.timeout", self.sources.ytdlp_timeout),
            ("download.timeout", self.download.timeout),
            ("engine.timeout", self.engine.timeout),
            ("upload.timeout", self.upload.timeout),
        ];
        stages.into_iter().max_by_key(|(_, time)| *time).unwrap_or_default()
    }

    /// The bot's token, from wherever it was set; `None` when it was not. Blocks to read a small file.
    ///
    /// # Errors
    /// [`ConfigError`] when the token's file cannot be read or holds nothing.
    pub fn discord_token(&self) -> Result<Option<Secret>, ConfigError> {
        let Some(path) = &self.discord.token_file else { return Ok(self.discord.token.clone()) };
        let wrong = |what: String| ConfigError::one(format!("discord.token_file {}: {what}", path.display()));
        let text = read_capped(path, MAX_TOKEN_BYTES).map_err(wrong)?;
        let token = text.trim();
        if token.is_empty() || token.contains(char::is_whitespace) {
            return Err(wrong("it does not hold one token and nothing else".to_owned()));
        }
        Ok(Some(Secret::new(token.to_owned())))
    }
}

/// The file to read and its text.
fn find(
    explicit: Option<&Path>,
    environment: &Environment,
) -> Result<Option<(PathBuf, String)>, ConfigError> {
    let named = explicit
        .map(|path| (path.to_owned(), "--config"))
        .or_else(|| environment.named_file().map(|path| (path, "AZALEA_CONFIG")));
    if let Some((path, by)) = named {
        let text = read_capped(&path, MAX_FILE_BYTES)
            .map_err(|what| ConfigError::one(format!("{by} {}: {what}", path.display())))?;
        return Ok(Some((path, text)));
    }
    // A folder of that name is no configuration, and neither is what cannot be looked at.
    let Some(path) = environment.usual_files().into_iter().find(|path| path.is_file()) else {
        return Ok(None);
    };
    let text = read_capped(&path, MAX_FILE_BYTES)
        .map_err(|what| ConfigError::one(format!("{}: {what}", path.display())))?;
    Ok(Some((path, text)))
}

fn read_capped(path: &Path, most: u64) -> Result<String, String> {
    let cannot = |cause: std::io::Error| format!("cannot be read: {cause}");
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(cannot)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most {
        return Err(format!("is longer than {most} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "is no UTF-8 text".to_owned())
}

/// A configuration has about four kilobytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Tokens have about seventy bytes.
const MAX_TOKEN_BYTES: u64 = 4096;

/// How much longer than the slowest stage a lease is unless it is set: time for the heartbeats to say that a stage
/// has ended.
const LEASE_MARGIN: Duration = Duration::from_secs(60);
