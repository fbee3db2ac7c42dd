//! The program `azalea`: reads the command line, asks the engine, tells people what came of it.
//!
//! `cli` holds what was typed, `settings` what is meant, `command` does it, and `exit` alone turns the outcome
//! into an exit code.
#![forbid(unsafe_code)]

mod cli;
mod command;
mod exit;
mod facts;
mod interrupt;
mod logging;
mod output;
mod settings;
mod terminal;

use std::process::ExitCode;

use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::settings::{Settings, Task};
use crate::terminal::Screen;

fn main() -> ExitCode {
    let typed = match cli::parse() {
        Ok(typed) => typed,
        Err(exit) => return exit.into(),
    };
    let format = typed.format();
    let screen = Screen::new();
    let outcome = Settings::new(typed).and_then(|settings| run(settings, &screen));
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) => exit::report(&error, format, &screen).into(),
    }
}

fn run(settings: Settings, screen: &Screen) -> anyhow::Result<Exit> {
    logging::start(settings.log);
    match settings.task {
        Task::Fit(fit) => {
            let interrupt = Interrupt::watch()?;
            command::fit::run(&fit, screen, &interrupt)
        }
        Task::Probe(probe) => {
            let _interrupt = Interrupt::watch()?;
            command::probe::run(&probe, screen)
        }
        Task::Get(get) => {
            let interrupt = Interrupt::watch()?;
            command::get::run(&get, screen, &interrupt)
        }
        Task::Run(run) => {
            let interrupt = Interrupt::watch()?;
            command::run::run(&run, screen, &interrupt)
        }
        Task::Console(console) => {
            let interrupt = Interrupt::watch()?;
            command::console::run(&console, screen, &interrupt)
        }
        Task::Demo(demo) => {
            let interrupt = Interrupt::watch()?;
            command::demo::run(&demo, screen, &interrupt)
        }
        Task::Queue(queue) => command::queue::run(&queue, screen),
        Task::Doctor(format, file, environment) => {
            command::doctor::run(format, file.as_deref(), &environment, screen)
        }
        Task::Config(task) => command::config::run(&task, screen),
        Task::Completions(shell) => command::completions::run(shell, screen),
    }
}
