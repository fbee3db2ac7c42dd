//! Doubles of X and its media server, a folder, and a configuration that leads to them.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use azalea_bot::app::{App, Rooms};
use azalea_bot::clock::{Clock, WallTime};
use azalea_bot::config::{Config, EnginePreset, QueueBackend, SourceChoice};
use azalea_bot::dedup::Ended;
use azalea_bot::domain::{ChannelId, FrontEnd, MessageId, Options, Request, UserId};
use azalea_bot::guard::rate::{RateLimiter, RateSettings};
use azalea_bot::intake::{Incoming, Intake, Outcome, Taken, Waiting};
use azalea_bot::queue::{BookSettings, MemoryQueue};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::films::Film;
use crate::recorder::Recorder;
use crate::support::reply::Reply;
use crate::support::server::Server;

/// The post that is asked for.
pub(crate) const LINK: &str = "https://x.com/ann/status/20";
/// Where VxTwitter's double has it.
pub(crate) const POST: &str = "/i/status/20";
/// The limit of every channel.
pub(crate) const LIMIT: u64 = 10 << 20;

/// What a service lives in; it can be started again and again.
pub(crate) struct House {
    pub(crate) x: Server,
    pub(crate) cdn: Server,
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) folder: TempDir,
    messages: AtomicU64,
}

impl House {
    /// Nothing is there yet.
    pub(crate) async fn new() -> Self {
        let (x, cdn) = (Server::start().await, Server::start().await);
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.store.path = folder.path().join("store");
        config.sources.order = vec![SourceChoice::Vxtwitter];
        config.sources.vxtwitter_base_url = x.base().to_string();
        config.sources.fxtwitter_base_url = x.base().to_string();
        config.download.allow_private = true;
        config.download.allow_hosts = vec!["127.0.0.1".to_owned()];
        config.queue.backend = QueueBackend::Memory;
        config.engine.preset = EnginePreset::Fast;
        config.engine.threads = 2;
        config.rate_limit.max_requests = 0;
        let clock = Clock::running(WallTime::from_millis(1_800_000_000_000));
        Self { x, cdn, config, clock, folder, messages: AtomicU64::new(1) }
    }

    /// A post with one video, which is this file.
    pub(crate) async fn with_video(film: Film) -> Self {
        let house = Self::new().await;
        house.cdn.on("/v.mp4", [Reply::file(film)]);
        house.post(&json!([house.video("/v.mp4")]));
        house
    }

    /// The post has these media.
    pub(crate) fn post(&self, media: &Value) {
        self.x.on(POST, [page(&tweet(20, media))]);
    }

    pub(crate) fn video(&self, path: &str) -> Value {
        json!({
            "type": "video",
            "url": self.cdn.url(path).as_str(),
            "altText": format!("the film {path}"),
            "duration_millis": 1000,
            "size": { "width": 160, "height": 90 },
        })
    }

    pub(crate) fn photo(&self, path: &str) -> Value {
        json!({
            "type": "image",
            "url": self.cdn.url(path).as_str(),
            "altText": format!("the picture {path}"),
            "size": { "width": 64, "height": 48 },
        })
    }

    pub(crate) fn recorder(&self) -> Arc<Recorder> {
        Recorder::new(LIMIT, self.clock.clone())
    }

    pub(crate) async fn start(&self, recorder: &Arc<Recorder>) -> App {
        App::start(&self.config, self.clock.clone(), Arc::clone(recorder) as _).await.unwrap()
    }

    /// A service whose pauses between attempts are short. The rest is as in [`App`].
    pub(crate) fn impatient(&self, recorder: &Arc<Recorder>) -> Impatient {
        let rooms = Rooms::new(&self.config, self.clock.clone()).unwrap();
        let rules = BookSettings { max_attempts: self.config.queue.max_attempts, ..BookSettings::default() };
        let queue = Arc::new(MemoryQueue::new(rules, self.clock.clone()));
        let mut worker = rooms.worker(&self.config, queue, Arc::clone(recorder) as _);
        worker.settings.backoff = Duration::from_millis(1);
        let intake = Intake::new(
            RateLimiter::new(&RateSettings { max_requests: 0, ..RateSettings::default() }),
            worker.desk.clone(),
            worker.processed.clone(),
            Arc::clone(&worker.queue),
            worker.tracker.clone(),
            self.clock.clone(),
        );
        let cancel = CancellationToken::new();
        let running = tokio::spawn(worker.run(cancel.clone()));
        Impatient { intake, rooms, cancel, running }
    }

    /// Somebody writes this in a channel.
    pub(crate) async fn write(&self, intake: &Intake, room: u64, text: &str) -> Taken {
        let message = self.messages.fetch_add(1, Ordering::Relaxed);
        let incoming = Incoming {
            front_end: FrontEnd::Console,
            guild: None,
            channel: channel(room),
            author: UserId::new(NonZeroU64::new(room).unwrap()),
            message: MessageId::new(NonZeroU64::new(message).unwrap()),
            text,
            options: Options::default(),
        };
        intake.take(&incoming).await
    }

    /// Somebody writes one link in a channel.
    pub(crate) async fn ask(&self, intake: &Intake, room: u64, link: &str) -> Outcome {
        let mut taken = self.write(intake, room, link).await;
        assert_eq!((taken.outcomes.len(), taken.dropped), (1, 0), "{taken:?}");
        taken.outcomes.remove(0)
    }
}

/// A service with short pauses.
pub(crate) struct Impatient {
    pub(crate) intake: Intake,
    pub(crate) rooms: Rooms,
    cancel: CancellationToken,
    running: JoinHandle<()>,
}

impl Impatient {
    pub(crate) async fn stop(self) {
        self.cancel.cancel();
        self.running.await.unwrap();
        self.rooms.store.close().await;
    }
}

pub(crate) fn channel(room: u64) -> ChannelId {
    ChannelId::new(NonZeroU64::new(room).unwrap())
}

/// A post as VxTwitter describes it.
pub(crate) fn tweet(number: u64, media: &Value) -> Value {
    json!({
        "tweetID": number.to_string(),
        "user_name": "Ann",
        "user_screen_name": "ann",
        "text": "look",
        "possibly_sensitive": false,
        "media_extended": media,
        "qrt": null,
    })
}

pub(crate) fn page(json: &Value) -> Reply {
    Reply::ok(json.to_string().into_bytes()).header("Content-Type", "application/json")
}

#[track_caller]
pub(crate) fn accepted(outcome: Outcome) -> Request {
    match outcome {
        Outcome::Accepted(request) => request,
        other => panic!("it is not on its way: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn joined(outcome: Outcome) -> Waiting {
    match outcome {
        Outcome::Joined { waiting, .. } => waiting,
        other => panic!("it did not join: {other:?}"),
    }
}

/// How the request ended that was joined.
#[track_caller]
pub(crate) fn end(ended: Option<Ended>) -> Ended {
    ended.expect("it was not given up")
}

/// Files below a folder that are still being written, or were left so.
pub(crate) fn half_written(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(half_written(&path));
        } else if name.contains(".part") || name.contains("tmp") || name.contains("temp") {
            found.push(path.display().to_string());
        }
    }
    found
}
