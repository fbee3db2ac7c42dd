//! `azalea console`: the bot's front end in a terminal.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use azalea_bot::app::App;
use azalea_bot::clock::Clock;
use azalea_bot::domain::Failure;
use azalea_bot::frontend::console::Console;
use azalea_bot::frontend::names::Names;
use azalea_bot::frontend::terminal::{Layout, Terminal};
use tokio::io::BufReader;
use tokio_util::sync::CancellationToken;

use crate::command::service::{runtime, until_asked};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::settings::ConsoleSettings;
use crate::terminal::Screen;

pub(crate) fn run(
    settings: &ConsoleSettings,
    screen: &Screen,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let runtime = runtime()?;
    let working = interrupt.work();
    let cancel = CancellationToken::new();
    let done = runtime.block_on(async {
        let clock = Clock::system();
        let names = Names::kept_in(settings.config.store.path.join("console-names")).await;
        let (terminal, events) =
            Terminal::new(settings.output.clone(), Layout::ByChannel, settings.limit, clock.clone(), names);
        let terminal = Arc::new(terminal);
        let app = App::start(&settings.config, clock.clone(), Arc::clone(&terminal) as _)?;
        let (console, mut lines) = Console::new(app.intake.clone(), terminal, clock);
        if std::io::stdin().is_terminal() {
            screen.note(
                "Type messages like  #general @ann: https://x.com/NAME/status/NUMBER  and end with Ctrl-D.",
            );
        }
        let session = console.run(BufReader::new(tokio::io::stdin()), events);
        let print = async {
            while let Some(line) = lines.recv().await {
                screen.print(&crate::terminal::escape(&line))?;
            }
            anyhow::Ok(())
        };
        let result = tokio::select! {
            (session, printed) = async { tokio::join!(session, print) } => {
                session.map_err(|error| Failure::ours(format!("cannot read standard input: {error}")))?;
                printed
            }
            () = until_asked(interrupt, &cancel) => Err(Failure::Cancelled.into()),
        };
        app.stop().await;
        result
    });
    // Reading standard input blocks a thread that nothing can wake.
    runtime.shutdown_timeout(Duration::from_millis(200));
    drop(working);
    done.map(|()| Exit::Done)
}
