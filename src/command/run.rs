//! `azalea run`: the bot in Discord.

use std::sync::Arc;
use std::time::Duration;

use azalea_bot::app::{App, Rooms};
use azalea_bot::clock::Clock;
use azalea_bot::config::{Config, QueueBackend, Secret};
use azalea_bot::frontend::discord::{Discord, Ended, GatewayFailure, Session};
use azalea_bot::source::{YtDlpFacts, YtDlpSettings};
use azalea_engine::ByteSize;
use tokio_util::sync::CancellationToken;

use crate::command::service::{asked, runtime};
use crate::exit::{Exit, UsageError};
use crate::facts;
use crate::interrupt::Interrupt;
use crate::settings::RunSettings;
use crate::terminal::{Screen, escape};

/// The first pause after Discord could not be reached, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

pub(crate) fn run(settings: &RunSettings, screen: &Screen, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let config = &settings.config;
    let token = config.discord_token()?.ok_or_else(no_token)?;
    let runtime = runtime()?;
    let working = interrupt.work();
    let done = runtime.block_on(async {
        let clock = Clock::system();
        say(screen, &format!("azalea {} revision {}", facts::VERSION, facts::REVISION));
        say(screen, &format!("libav: {}", azalea_engine::build_facts().ffmpeg));
        say(screen, &format!("yt-dlp: {}", yt_dlp(config, &clock).await));
        let rooms = Rooms::new(config, clock.clone())?;
        let connected = tokio::select! {
            connected = connect(config, &token, &rooms, &clock, screen) => Some(connected?),
            () = asked(interrupt) => None,
        };
        let Some((discord, session)) = connected else {
            rooms.store.close().await;
            return Ok(());
        };
        describe(config, &discord, screen);
        let app = App::start_in(rooms, config, Arc::clone(&discord) as _).await?;
        let open = app.unfinished().await;
        let path = config.store.path.display();
        say(screen, &format!("store: {path}, {open} requests of an earlier run go on"));
        let stop = CancellationToken::new();
        let serve = session.run(
            app.intake.clone(),
            app.rooms.processed.clone(),
            Arc::clone(&app.queue),
            stop.clone(),
        );
        let ending = async {
            asked(interrupt).await;
            // No new message is taken from here on; what is under way is handed back or ended by the service.
            stop.cancel();
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            ended = serve => ended,
            () = ending => Ended::Asked,
        };
        let left = app.unfinished().await;
        if left > 0 && config.queue.backend == QueueBackend::Embedded {
            say(screen, &format!("{left} requests go on at the next start"));
        }
        app.stop().await;
        match ended {
            Ended::Asked => Ok(()),
            Ended::Gateway(failure) => Err(anyhow::Error::from(failure)),
        }
    });
    runtime.shutdown_timeout(Duration::from_millis(200));
    drop(working);
    done.map(|()| Exit::Done)
}

/// Says something on standard output, whoever reads it: a terminal, a journal, nobody.
fn say(screen: &Screen, line: &str) {
    drop(screen.print(&escape(line)));
}

fn no_token() -> UsageError {
    UsageError(
        "there is no token; put one from https://discord.com/developers/applications into discord.token, \
         discord.token_file or AZALEA_DISCORD__TOKEN"
            .to_owned(),
    )
}

/// Connects; when Discord cannot be reached, until it can.
async fn connect(
    config: &Config,
    token: &Secret,
    rooms: &Rooms,
    clock: &Clock,
    screen: &Screen,
) -> Result<(Arc<Discord>, Session), GatewayFailure> {
    let (mut pause, longest) = PAUSES;
    loop {
        match Discord::connect(config, token, rooms.store.clone(), rooms.withdrawals.clone(), clock.clone())
            .await
        {
            Err(failure) if failure.may_pass() => {
                tracing::warn!(%failure, ?pause, "tried again later");
                say(screen, &format!("{failure}; tried again in {} s", pause.as_secs()));
                tokio::time::sleep(pause).await;
                pause = pause.saturating_mul(2).min(longest);
            }
            other => return other,
        }
    }
}

async fn yt_dlp(config: &Config, clock: &Clock) -> String {
    let settings =
        YtDlpSettings { program: config.sources.ytdlp_program.clone(), ..YtDlpSettings::default() };
    match YtDlpFacts::look(&settings, clock).await {
        Ok(facts) => facts.version,
        Err(failure) => format!("{failure}; posts that no other source shows cannot be fetched"),
    }
}

/// One line for each thing that was found.
fn describe(config: &Config, discord: &Discord, screen: &Screen) {
    let found = discord.found();
    let servers = if found.guilds == 1 { "1 server".to_owned() } else { format!("{} servers", found.guilds) };
    say(screen, &format!("Discord: {} in {servers}", found.name));
    if found.guilds == 0 {
        say(screen, &format!("invite it: {}", found.invitation));
    }
    let limit = ByteSize::new(config.upload.default_limit);
    say(screen, &format!("files: up to {limit}, more where a server's boosts give more"));
    for lack in found.lacks {
        say(screen, &lack);
    }
}
