//! `azalea console`: the bot's front end in a terminal.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use azalea_bot::app::App;
use azalea_bot::clock::Clock;
use azalea_bot::config::QueueBackend;
use azalea_bot::domain::Failure;
use azalea_bot::frontend::console::Console;
use azalea_bot::frontend::names::Names;
use azalea_bot::frontend::terminal::{Layout, Terminal};
use tokio::io::BufReader;

use crate::command::service::{asked, runtime};
use crate::exit::{Exit, OutputError};
use crate::interrupt::Interrupt;
use crate::settings::ConsoleSettings;
use crate::terminal::Screen;

/// How long answers that were given at the end have to be printed.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// How long, at the end, the last requests have to be stored as done, and how often it is looked.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);
const SETTLING: Duration = Duration::from_millis(10);

pub(crate) fn run(
    settings: &ConsoleSettings,
    screen: &Screen,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let runtime = runtime()?;
    let working = interrupt.work();
    let done = runtime.block_on(async {
        let clock = Clock::system();
        let names = Names::kept_in(settings.config.store.path.join("console-names")).await;
        let (terminal, events) =
            Terminal::new(settings.output.clone(), Layout::ByChannel, settings.limit, clock.clone(), names);
        let terminal = Arc::new(terminal.patient());
        let app = App::start(&settings.config, clock.clone(), Arc::clone(&terminal) as _).await?;
        let (console, mut lines) =
            Console::new(app.intake.clone(), terminal, app.rooms.processed.clone(), clock);
        if std::io::stdin().is_terminal() {
            screen.note(
                "Type messages like  #general @ann: https://x.com/NAME/status/NUMBER  and end with Ctrl-D.",
            );
        }
        let open = app.open().await;
        if !open.is_empty() {
            screen.note(&format!("{} requests of an earlier session go on", open.len()));
        }
        let session = console.run(BufReader::new(tokio::io::stdin()), events, open);
        let print = async {
            while let Some(line) = lines.recv().await {
                screen
                    .print(&crate::terminal::escape(&line.text))
                    .map_err(|cause| OutputError::stdout(&cause))?;
            }
            anyhow::Ok(())
        };
        let both = async {
            let (session, printed) = tokio::join!(session, print);
            session.map_err(|error| Failure::ours(format!("cannot read standard input: {error}")))?;
            printed
        };
        tokio::pin!(both);
        let stopped = tokio::select! {
            result = &mut both => {
                // All is printed; that the last one is done is perhaps still being stored.
                let settled = async {
                    while app.unfinished().await > 0 {
                        tokio::time::sleep(SETTLING).await;
                    }
                };
                drop(tokio::time::timeout(SETTLED_WITHIN, settled).await);
                app.stop().await;
                return result;
            }
            () = asked(interrupt) => {
                let left = app.unfinished().await;
                if left > 0 && settings.config.queue.backend == QueueBackend::Embedded {
                    screen.note(&format!("{left} requests go on at the next start"));
                }
                app.stop()
            }
        };
        // What is said while it stops is still printed.
        let stopped = async {
            stopped.await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        let printing = async {
            drop(both.await);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = printing => {}
            () = stopped => {}
        }
        Err(Failure::Cancelled.into())
    });
    // Reading standard input blocks a thread that nothing can wake.
    runtime.shutdown_timeout(Duration::from_millis(200));
    drop(working);
    done.map(|()| Exit::Done)
}
