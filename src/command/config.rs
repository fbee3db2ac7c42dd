//! `azalea config`: what is set and by whom, or everything that can be set.

use azalea_bot::config::Config;

use crate::exit::{Exit, OutputError};
use crate::settings::ConfigTask;
use crate::terminal::{self, Screen};

pub(crate) fn run(task: &ConfigTask, screen: &Screen) -> anyhow::Result<Exit> {
    let answer = match task {
        ConfigTask::Example => Config::example().trim_end().to_owned(),
        ConfigTask::Check(file, environment) => {
            let loaded = Config::load(file.as_deref(), environment)?;
            // The token is looked at and not shown: a file of it that cannot be read is a mistake like others.
            loaded.config.discord_token()?;
            let lines = loaded.entries.iter().map(|entry| {
                terminal::escape(&format!("{} = {}  # {}", entry.key, entry.value, entry.origin))
            });
            std::iter::once("ok".to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
        }
    };
    screen.print(&answer).map_err(|cause| OutputError::stdout(&cause))?;
    Ok(Exit::Done)
}
