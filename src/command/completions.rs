//! `azalea completions`: the completion script for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::{Exit, OutputError};
use crate::terminal::Screen;

pub(crate) fn run(shell: Shell, screen: &Screen) -> anyhow::Result<Exit> {
    // The generator panics when it cannot write, so it writes into memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "azalea", &mut script);
    let script = String::from_utf8_lossy(&script);
    screen.print(script.trim_end()).map_err(|cause| OutputError::stdout(&cause))?;
    Ok(Exit::Done)
}
