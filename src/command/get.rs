//! `azalea get`: the whole way from a link, or a file, to files that fit, without Discord.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use azalea_bot::app::Rooms;
use azalea_bot::clock::Clock;
use azalea_bot::domain::{
    Destination, Edits, Failure, FrontEnd, Link, MediumKind, Options, Request, RequestId, Stage,
};
use azalea_bot::frontend::names::Names;
use azalea_bot::frontend::terminal::{Arrival, Event, Layout, Terminal};
use azalea_bot::pipeline::activity::Activity;
use azalea_bot::pipeline::optimize::{Facts, Times};
use azalea_bot::pipeline::posting::Posting;
use azalea_bot::queue::{BookSettings, MemoryQueue};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::cli::Format;
use crate::command::service::{message, runtime, until_asked};
use crate::exit::{Exit, OutputError};
use crate::interrupt::Interrupt;
use crate::settings::{GetSettings, Wish};
use crate::terminal::{self, Screen, path};

pub(crate) fn run(settings: &GetSettings, screen: &Screen, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let runtime = runtime()?;
    let working = interrupt.work();
    let cancel = CancellationToken::new();
    let done = runtime.block_on(async {
        let got = async {
            match &settings.wish {
                Wish::Link(link, text) => get_link(settings, *link, text, screen, &cancel).await,
                Wish::File(file) => get_file(settings, file, screen, &cancel).await,
            }
        };
        tokio::select! {
            got = got => got,
            () = until_asked(interrupt, &cancel) => Err(Failure::Cancelled.into()),
        }
    });
    // Threads of the engine that are deep in a picture would hold up the end.
    runtime.shutdown_timeout(Duration::from_millis(200));
    drop(working);
    let report = done?;
    if settings.format == Format::Json {
        screen.print(&report.to_string()).map_err(|cause| OutputError::stdout(&cause))?;
    }
    Ok(Exit::Done)
}

async fn get_link(
    settings: &GetSettings,
    link: Link,
    text: &str,
    screen: &Screen,
    cancel: &CancellationToken,
) -> anyhow::Result<Value> {
    let config = &settings.config;
    let clock = Clock::system();
    let (terminal, events) = Terminal::new(
        settings.output.clone(),
        Layout::Flat,
        settings.limit,
        clock.clone(),
        Names::in_memory(),
    );
    let terminal = Arc::new(terminal);
    let request = Request {
        id: RequestId::new(FrontEnd::Console, message(1), 0),
        requester: terminal.person("you").await,
        link,
        destination: Destination {
            front_end: FrontEnd::Console,
            guild: None,
            channel: terminal.channel("here").await,
            reply_to: None,
        },
        options: Options::default(),
    };
    let rooms = Rooms::new(config, clock.clone())?;
    let queue = Arc::new(MemoryQueue::new(BookSettings::default(), clock.clone()));
    let posting = Posting::once(clock);
    let worker = rooms.worker(config, queue, terminal);
    let told = tell(events, settings.format, screen);
    let work = async {
        let ended = worker.fulfil(&request, &posting, &Activity::default(), cancel, cancel).await;
        // The events end with the last one who could send some.
        drop(worker);
        ended
    };
    let (ended, told) = tokio::join!(work, told);
    rooms.flush_metrics();
    rooms.store.close().await;
    ended?;
    let Told { arrival, stages, printed } = told;
    printed.map_err(|cause| OutputError::stdout(&cause))?;
    let arrival = arrival.ok_or_else(|| Failure::ours("the files did not arrive"))?;
    Ok(report(text, &arrival, &stages))
}

/// What was heard while the work was done.
struct Told {
    arrival: Option<Box<Arrival>>,
    /// When each stage began, and the end.
    stages: Vec<(Option<Stage>, Instant)>,
    /// Why a line of it could not be printed, if so.
    printed: io::Result<()>,
}

/// Prints each stage as it begins, and the files.
async fn tell(mut events: mpsc::Receiver<Event>, format: Format, screen: &Screen) -> Told {
    let mut told = Told { arrival: None, stages: Vec::new(), printed: Ok(()) };
    let begun = Instant::now();
    while let Some(event) = events.recv().await {
        match event {
            Event::Stage(_, stage) => {
                told.stages.push((Some(stage), Instant::now()));
                if format == Format::Text {
                    let words = match stage {
                        Stage::Resolve => "asking for the post",
                        Stage::Download => "downloading, and making it fit meanwhile",
                        Stage::Optimize => "making it fit",
                        Stage::Upload => "writing the files",
                    };
                    screen.note(&format!("{:6.1} s  {words}", begun.elapsed().as_secs_f64()));
                }
            }
            Event::Delivered(arrival) => {
                told.stages.push((None, Instant::now()));
                if format == Format::Text {
                    // What comes after it is heard all the same: the files are there, whoever can read of them.
                    told.printed = arrival
                        .files
                        .iter()
                        .try_for_each(|file| screen.print(&line(&file.path, file.kind, &file.facts)));
                    for (file, warning) in arrival
                        .files
                        .iter()
                        .flat_map(|file| file.facts.warnings.iter().map(move |warning| (file, warning)))
                    {
                        warn(screen, &file.path, warning);
                    }
                    for failure in &arrival.missing {
                        let failure = terminal::escape(&failure.to_string());
                        screen.complain("warning", &format!("one medium is missing: {failure}"));
                    }
                }
                told.arrival = Some(arrival);
            }
            Event::Told(..) => {}
        }
    }
    told
}

async fn get_file(
    settings: &GetSettings,
    file: &Path,
    screen: &Screen,
    cancel: &CancellationToken,
) -> anyhow::Result<Value> {
    let rooms = Rooms::new(&settings.config, Clock::system())?;
    let made = rooms
        .optimizer
        .make_from_file(file.to_owned(), settings.limit.get(), Edits::default(), cancel)
        .await?;
    let stem = file.file_stem().map_or_else(|| "file".into(), |stem| stem.to_string_lossy().into_owned());
    let to = settings.output.join(format!("{stem}.{}", made.facts.extension));
    if to.canonicalize().is_ok_and(|to| file.canonicalize().is_ok_and(|from| from == to)) {
        return Err(
            crate::exit::UsageError(format!("the result would replace its input {}", path(file))).into()
        );
    }
    std::fs::create_dir_all(&settings.output)
        .map_err(|error| Failure::ours(format!("cannot create {}: {error}", settings.output.display())))?;
    made.write_to(&to).await?;
    rooms.flush_metrics();
    rooms.store.close().await;
    let kind = match made.facts.extension.as_str() {
        "mp4" | "m4a" => MediumKind::Video,
        "gif" => MediumKind::Gif,
        _ => MediumKind::Photo,
    };
    if settings.format == Format::Text {
        screen.print(&line(&to, kind, &made.facts)).map_err(|cause| OutputError::stdout(&cause))?;
        made.facts.warnings.iter().for_each(|warning| warn(screen, &to, warning));
    }
    Ok(json!({
        "link": null,
        "post": null,
        "input": file.display().to_string(),
        "action": made.facts.action,
        "files": [entry(&to, kind, None, &made.facts)],
        "stages": { "optimize": millis(made.times.optimize) },
    }))
}

fn report(text: &str, arrival: &Arrival, stages: &[(Option<Stage>, Instant)]) -> Value {
    let files: Vec<Value> = arrival
        .files
        .iter()
        .map(|file| {
            let mut entry = entry(&file.path, file.kind, file.alt.as_deref(), &file.facts);
            entry["quoted"] = file.quoted.into();
            entry
        })
        .collect();
    let actions = || arrival.files.iter().map(|file| file.facts.action.as_str());
    let action = ["transcode", "remux"].into_iter().find(|action| actions().any(|done| done == *action));
    let times = arrival.files.iter().map(|file| file.times);
    let longest =
        |part: fn(&Times) -> Duration| times.clone().map(|times| part(&times)).max().unwrap_or_default();
    let began = |stage| stages.iter().find(|(which, _)| *which == stage).map(|(_, when)| *when);
    let between = |from, to| began(from).zip(began(to)).map_or(Duration::ZERO, |(from, to)| to - from);
    json!({
        "link": text,
        "post": arrival.post.to_string(),
        "author": { "name": arrival.author.name, "handle": arrival.author.handle },
        "text": arrival.text,
        "spoiler": arrival.spoiler,
        "action": action.unwrap_or("pass"),
        "files": files,
        "missing": arrival.missing.iter().map(|failure| {
            json!({ "kind": failure.code(), "message": failure.to_string() })
        }).collect::<Vec<Value>>(),
        "stages": {
            "resolve": millis(between(Some(Stage::Resolve), Some(Stage::Download))),
            "download": millis(longest(|times| times.download)),
            "optimize": millis(longest(|times| times.optimize)),
            "upload": millis(between(Some(Stage::Upload), None)),
        },
    })
}

fn entry(path: &Path, kind: MediumKind, alt: Option<&str>, facts: &Facts) -> Value {
    json!({
        "path": path.display().to_string(),
        "bytes": facts.bytes,
        "kind": kind_word(kind),
        "action": facts.action,
        "width": facts.width,
        "height": facts.height,
        "duration": facts.duration,
        "alt": alt,
        "quoted": false,
        "source_bytes": facts.source_bytes,
        "warnings": facts.warnings,
    })
}

/// Tells what a person should know of a file although it worked.
fn warn(screen: &Screen, file: &Path, warning: &str) {
    screen.complain("warning", &format!("{}: {}", path(file), terminal::escape(warning)));
}

fn line(file: &Path, kind: MediumKind, facts: &Facts) -> String {
    let size = azalea_engine::ByteSize::new(facts.bytes);
    let length = if facts.duration > 0.0 { format!(", {:.1} s", facts.duration) } else { String::new() };
    let word = kind_word(kind);
    format!("{}: {word}, {}x{}{length}, {size}, {}", path(file), facts.width, facts.height, facts.action)
}

const fn kind_word(kind: MediumKind) -> &'static str {
    match kind {
        MediumKind::Photo => "photo",
        MediumKind::Video => "video",
        MediumKind::Gif => "gif",
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
