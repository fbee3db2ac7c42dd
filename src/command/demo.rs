//! `azalea demo`: what the service does, on loopback, without an account or a network.
//!
//! A post with a clip that was drawn for it, a server of posts and a slow one of media, and ten people in five
//! channels who all want it at once.

mod view;

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use azalea_bot::app::{App, Rooms};
use azalea_bot::clock::Clock;
use azalea_bot::config::{Config, SourceChoice};
use azalea_bot::dedup::{Delivered, Ended};
use azalea_bot::domain::{ChannelId, Edits, Failure, FrontEnd, LimitClass, Options, RequestId, Stage};
use azalea_bot::frontend::demo::clip;
use azalea_bot::frontend::demo::server::{DemoServer, ServerSettings};
use azalea_bot::frontend::demo::table::{Row, State, Table, Totals};
use azalea_bot::frontend::names::Names;
use azalea_bot::frontend::terminal::{Event, Layout, Terminal};
use azalea_bot::frontend::words;
use azalea_bot::intake::{Incoming, Outcome};
use azalea_bot::metrics::Counter;
use azalea_bot::pipeline::delivery::Notice;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::view::View;
use crate::command::service::{message, runtime, until_asked};
use crate::exit::{Exit, OutputError};
use crate::interrupt::Interrupt;
use crate::settings::DemoSettings;
use crate::terminal::Screen;

/// Who asks, and where.
const ASKERS: [(&str, &str); 10] = [
    ("general", "ann"),
    ("general", "bob"),
    ("cats", "carol"),
    ("cats", "dave"),
    ("music", "erin"),
    ("music", "frank"),
    ("garden", "grace"),
    ("garden", "heidi"),
    ("late-night", "ivan"),
    ("late-night", "judy"),
];
const LINK: &str = "https://x.com/azalea/status/1234567890123456789";
/// Bytes of the post's video at most, before anything is made of it.
const SOURCE_LIMIT: u64 = 8 << 20;
/// How large a file may be in the demo's channels at most.
const LIMIT: u64 = 2 << 20;
/// The slow server's speed.
const BYTES_PER_SECOND: u64 = 1 << 20;
/// Between two pictures of the table.
const REDRAW: Duration = Duration::from_millis(150);

pub(crate) fn run(settings: &DemoSettings, screen: &Screen, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let runtime = runtime()?;
    let working = interrupt.work();
    let cancel = CancellationToken::new();
    let folder =
        tempfile::Builder::new().prefix("azalea-demo-").tempdir().context("cannot create a folder")?;
    let done = runtime.block_on(async {
        tokio::select! {
            shown = show(settings, folder.path(), screen) => shown,
            () = until_asked(interrupt, &cancel) => Err(Failure::Cancelled.into()),
        }
    });
    runtime.shutdown_timeout(Duration::from_millis(200));
    drop(working);
    done
}

async fn show(settings: &DemoSettings, folder: &Path, screen: &Screen) -> anyhow::Result<Exit> {
    print(screen, &format!("drawing a clip of {} s, as it could be in a post ...", settings.seconds))?;
    let seconds = settings.seconds;
    let length = Duration::from_secs(u64::from(seconds));
    let config = config(folder);
    let clip = post_clip(&config, folder, seconds).await?;
    let size = azalea_engine::ByteSize::of(&clip);
    // Smaller than the video, however short that is, so that there is something to do.
    let class = limit_class(LIMIT.min(size.get() / 2));
    let server_settings = ServerSettings {
        bytes_per_second: BYTES_PER_SECOND,
        clip_length: length,
        ..ServerSettings::default()
    };
    let server = DemoServer::start(clip, server_settings).await.context("cannot listen on loopback")?;
    let config = Config {
        sources: azalea_bot::config::Sources {
            order: vec![SourceChoice::Vxtwitter],
            vxtwitter_base_url: server.base_url().to_owned(),
            ..config.sources.clone()
        },
        ..config
    };
    let (speed, limit) =
        (azalea_engine::ByteSize::new(BYTES_PER_SECOND), azalea_engine::ByteSize::new(class.get()));
    print(
        screen,
        &format!(
            "a post with {size} of video, a server that gives {speed} a second, channels that take {limit}"
        ),
    )?;
    print(screen, &format!("ten people in five channels write: @azalea {LINK}"))?;
    print(screen, "")?;
    let output = settings.output.clone().unwrap_or_else(|| folder.join("delivered"));
    let clock = Clock::system();
    let (terminal, events) =
        Terminal::new(output, Layout::ByChannel, class, clock.clone(), Names::in_memory());
    let terminal = Arc::new(terminal);
    let app = App::start(&config, clock, Arc::clone(&terminal) as _).await?;
    let scene = Scene::new(&app, &terminal, &server);
    let all_served = scene.play(events, screen).await;
    app.stop().await;
    let counts = server.stop().await;
    let served = all_served?;
    print(screen, "")?;
    print(
        screen,
        &format!(
            "asked for the post {}×, downloaded {}×; the video was made to fit while it was still arriving",
            counts.api_requests, counts.media_requests
        ),
    )?;
    match &settings.output {
        Some(output) => print(screen, &format!("the files are in {}", crate::terminal::path(output)))?,
        None => print(screen, "to keep the files: azalea demo -o DIR")?,
    }
    Ok(if served { Exit::Done } else { Exit::Fault })
}

/// The defaults, with everything in `folder` and nothing outside of loopback.
fn config(folder: &Path) -> Config {
    let mut config = Config::default();
    config.store.path = folder.join("store");
    config.download.allow_private = true;
    config.download.allow_hosts = vec!["127.0.0.1".to_owned()];
    config.rate_limit.max_requests = 0;
    config
}

fn limit_class(bytes: u64) -> LimitClass {
    LimitClass::new(NonZeroU64::new(bytes).unwrap_or(NonZeroU64::MIN))
}

/// The video of the post: drawn, then encoded as a site would.
async fn post_clip(config: &Config, folder: &Path, seconds: u32) -> anyhow::Result<azalea_engine::Bytes> {
    let raw = folder.join("clip.avi");
    let to = raw.clone();
    tokio::task::spawn_blocking(move || std::fs::write(to, clip::draw(seconds)))
        .await
        .context("the clip was not drawn")?
        .context("cannot write the clip")?;
    let rooms = Rooms::new(config, Clock::system())?;
    let never = CancellationToken::new();
    let made = rooms.optimizer.make_from_file(raw.clone(), SOURCE_LIMIT, Edits::default(), &never).await?;
    // The demo's folder goes as a whole; a large file goes sooner.
    drop(tokio::fs::remove_file(raw).await);
    rooms.store.close().await;
    Ok(made.bytes().await?)
}

/// The people and what they see.
struct Scene<'a> {
    app: &'a App,
    terminal: &'a Arc<Terminal>,
    server: &'a DemoServer,
    rows: Vec<Asker>,
    begun: Instant,
    file_bytes: u64,
}

struct Asker {
    row: Row,
    asked: Instant,
}

/// Something that changes what an asker sees.
type Answer = (usize, Option<Ended>);

impl<'a> Scene<'a> {
    fn new(app: &'a App, terminal: &'a Arc<Terminal>, server: &'a DemoServer) -> Self {
        let begun = Instant::now();
        let rows = ASKERS.map(|(channel, name)| Asker {
            row: Row {
                channel: format!("#{channel}"),
                user: format!("@{name}"),
                state: State::Waiting,
                sees: "asking".to_owned(),
                detail: None,
                took: Duration::ZERO,
            },
            asked: begun,
        });
        Self { app, terminal, server, rows: rows.into(), begun, file_bytes: 0 }
    }

    /// Lets all ask at once and shows what comes of it; whether everybody got an answer with media.
    async fn play(mut self, mut events: mpsc::Receiver<Event>, screen: &Screen) -> anyhow::Result<bool> {
        let mut requests: HashMap<RequestId, usize> = HashMap::new();
        let mut waiting: JoinSet<Answer> = JoinSet::new();
        for (place, (channel, name)) in ASKERS.iter().enumerate() {
            let number = u64::try_from(place).unwrap_or(0).saturating_add(1);
            let incoming = Incoming {
                front_end: FrontEnd::Console,
                guild: None,
                channel: self.terminal.channel(channel).await,
                author: self.terminal.person(name).await,
                message: message(number),
                text: LINK,
                options: Options::default(),
            };
            for outcome in self.app.intake.take(&incoming).await.outcomes {
                match outcome {
                    Outcome::Accepted(request) => {
                        requests.insert(request.id, place);
                    }
                    Outcome::Joined { waiting: other, .. } => {
                        self.see(place, State::Waiting, "waits for the other request here");
                        waiting.spawn(async move {
                            let end = other.end().await;
                            other.settle().await;
                            (place, end)
                        });
                    }
                    Outcome::AlreadyThere { delivered, .. } => self.answered(place, Some(Ok(delivered))),
                    Outcome::Again(_) | Outcome::Limited { .. } | Outcome::Full(_) | Outcome::Closed(_) => {
                        self.see(place, State::Failed, "turned away");
                    }
                }
            }
        }
        let mut view = View::new(self.table());
        let mut redraw = tokio::time::interval(REDRAW);
        loop {
            tokio::select! {
                Some(event) = events.recv() => self.hear(event, &requests),
                Some(Ok((place, ended))) = waiting.join_next(), if !waiting.is_empty() => self.answered(place, ended),
                _ = redraw.tick() => {}
            }
            let over = self.rows.iter().all(|asker| asker.row.state != State::Waiting);
            view.show(self.table(), over, screen)?;
            if over {
                return Ok(self.rows.iter().all(|asker| asker.row.state != State::Failed));
            }
        }
    }

    fn hear(&mut self, event: Event, requests: &HashMap<RequestId, usize>) {
        match event {
            Event::Stage(request, stage) => {
                if let Some(place) = requests.get(&request).copied() {
                    let words = match stage {
                        Stage::Resolve => "resolving the link",
                        Stage::Download => "downloading, and making it fit",
                        Stage::Optimize => "making it fit",
                        Stage::Upload => "delivering",
                    };
                    self.see(place, State::Waiting, words);
                }
            }
            Event::Delivered(arrival) => {
                self.file_bytes = arrival.files.iter().map(|file| file.facts.bytes).sum();
                if let Some(place) = requests.get(&arrival.request.id).copied() {
                    let number = number(&arrival.delivered);
                    self.see(place, State::Delivered, &format!("the video, as answer {number}"));
                }
            }
            Event::Told(request, notice, _) => {
                if let Some(place) = requests.get(&request.id).copied() {
                    self.answered(
                        place,
                        match notice {
                            Notice::Pointer(delivered) => Some(Ok(delivered)),
                            Notice::Failed(failure) => Some(Err(failure)),
                        },
                    );
                }
            }
        }
    }

    /// An asker has an answer that is no video of its own.
    fn answered(&mut self, place: usize, ended: Option<Ended>) {
        match ended {
            Some(Ok(delivered)) => {
                let where_ = self.channel(delivered.channel);
                self.see(
                    place,
                    State::Pointed,
                    &format!("a link to answer {} in {where_}", number(&delivered)),
                );
            }
            Some(Err(failure)) => self.see(place, State::Failed, &words(&failure)),
            None => self.see(place, State::Failed, "given up"),
        }
    }

    fn channel(&self, id: ChannelId) -> String {
        format!("#{}", self.terminal.channel_name(id))
    }

    fn see(&mut self, place: usize, state: State, sees: &str) {
        if let Some(asker) = self.rows.get_mut(place) {
            asker.row.state = state;
            sees.clone_into(&mut asker.row.sees);
            asker.row.took = asker.asked.elapsed();
        }
    }

    fn table(&self) -> Table {
        let counts = self.server.counts();
        let made = self.app.rooms.tracker.totals();
        let rows = self.rows.iter().map(|asker| {
            let mut row = asker.row.clone();
            if row.state == State::Waiting {
                row.took = asker.asked.elapsed();
            }
            row
        });
        Table {
            rows: rows.collect(),
            totals: Totals {
                resolved: counts.api_requests,
                downloaded: counts.media_requests,
                downloaded_bytes: counts.media_bytes,
                transcoded: made.counter(Counter::Transcodes),
                file_bytes: self.file_bytes,
                took: self.begun.elapsed(),
            },
        }
    }
}

fn number(delivered: &Delivered) -> String {
    delivered.messages.first().map_or_else(String::new, ToString::to_string)
}

fn print(screen: &Screen, line: &str) -> anyhow::Result<()> {
    screen.print(line).map_err(|cause| OutputError::stdout(&cause).into())
}
