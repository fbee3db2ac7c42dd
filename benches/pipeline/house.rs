//! The service as it runs, with a post on loopback in front of it and a folder behind it.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use azalea_bot::app::App;
use azalea_bot::clock::Clock;
use azalea_bot::config::{Config, EnginePreset, SourceChoice};
use azalea_bot::dedup::Delivered;
use azalea_bot::domain::{
    ChannelId, Destination, Failure, FrontEnd, LimitClass, MessageId, Options, Request, Stage, Telling,
    UserId,
};
use azalea_bot::frontend::demo::server::{DemoServer, ServerSettings};
use azalea_bot::guard::audience::Place;
use azalea_bot::intake::{Incoming, Intake, Outcome};
use azalea_bot::pipeline::activity::Sight;
use azalea_bot::pipeline::delivery::{Delivery, Notice, Parcel};
use azalea_bot::pipeline::optimize::{Facts, Times};
use azalea_bot::pipeline::posting::Posting;
use azalea_engine::Bytes;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::clip::Recipe;

/// The post that is asked for.
const LINK: &str = "https://x.com/ann/status/20";
/// What a request may take on a slow machine; it passes only when something hangs.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// A server of posts and media that gives this clip at this speed.
pub(crate) async fn server(clip: &Path, recipe: Recipe, bytes_per_second: u64) -> DemoServer {
    let settings = ServerSettings {
        bytes_per_second,
        clip_length: recipe.length(),
        clip_size: recipe.size,
        ..ServerSettings::default()
    };
    DemoServer::start(Bytes::from(std::fs::read(clip).unwrap()), settings).await.unwrap()
}

/// A folder for what is made and left: in memory where the system has a place for that. What a disk adds is the same
/// for both sides.
pub(crate) fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory } else { Path::new(env!("CARGO_TARGET_TMPDIR")) };
    tempfile::Builder::new().prefix("azalea-bench-").tempdir_in(base).unwrap()
}

/// A service that knows nothing yet.
pub(crate) struct House {
    pub(crate) app: App,
    /// What was posted, or what was said instead.
    posted: mpsc::UnboundedReceiver<Result<Posted, Notice>>,
    _folder: TempDir,
}

impl House {
    /// Starts it in front of this server. Its sources are the server alone, so neither yt-dlp nor the network is asked.
    pub(crate) async fn start(server: &DemoServer, limit: u64) -> Self {
        let folder = folder();
        let results = folder.path().join("results");
        std::fs::create_dir(&results).unwrap();
        let mut config = Config::default();
        config.store.path = folder.path().join("store");
        config.sources.order = vec![SourceChoice::Vxtwitter];
        server.base_url().clone_into(&mut config.sources.vxtwitter_base_url);
        config.download.allow_private = true;
        config.download.allow_hosts = vec!["127.0.0.1".to_owned()];
        config.engine.preset = EnginePreset::Balanced;
        config.rate_limit.max_requests = 0;
        // A slow machine is no reason for another attempt.
        config.engine.timeout = PATIENCE;
        let (send, posted) = mpsc::unbounded_channel();
        let clock = Clock::system();
        let recorder = Recorder {
            limit: LimitClass::new(NonZeroU64::new(limit).unwrap()),
            results,
            clock: clock.clone(),
            messages: AtomicU64::new(0),
            posted: send,
        };
        let app = App::start(&config, clock, Arc::new(recorder)).await.unwrap();
        Self { app, posted, _folder: folder }
    }

    /// The next result that is posted.
    pub(crate) async fn posted(&mut self) -> Posted {
        let next = tokio::time::timeout(PATIENCE, self.posted.recv()).await;
        let next =
            next.expect("a request took too long").expect("the front end lives as long as the service");
        next.unwrap_or_else(|notice| panic!("there is no video but {notice:?}"))
    }

    /// The next results, by channel.
    pub(crate) async fn all_posted(&mut self, count: u64) -> HashMap<ChannelId, Posted> {
        let mut all = HashMap::new();
        for _ in 0..count {
            let posted = self.posted().await;
            all.insert(posted.delivered.channel, posted);
        }
        all
    }

    /// Stops it, and says how much was posted or told besides what was taken from here.
    pub(crate) async fn stop(self) -> u64 {
        // The folder is there until the service has ended.
        let Self { app, mut posted, _folder } = self;
        app.stop().await;
        std::iter::from_fn(|| posted.try_recv().ok()).fold(0, |count, _| count + 1)
    }
}

/// Somebody asks for the post in a channel.
pub(crate) async fn ask(intake: &Intake, number: u64, channel: u64) -> Outcome {
    let id = |number: u64| NonZeroU64::new(number + 1).unwrap();
    let incoming = Incoming {
        front_end: FrontEnd::Console,
        guild: None,
        channel: ChannelId::new(id(channel)),
        author: UserId::new(id(number)),
        message: MessageId::new(id(number)),
        text: LINK,
        options: Options::default(),
    };
    intake.take(&incoming).await.outcomes.pop().unwrap()
}

/// What was posted, and where and when.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) delivered: Delivered,
    /// The file in its place.
    pub(crate) path: PathBuf,
    pub(crate) facts: Facts,
    pub(crate) times: Times,
    pub(crate) at: Instant,
}

/// A front end whose channels are files in a folder.
#[derive(Debug)]
struct Recorder {
    limit: LimitClass,
    results: PathBuf,
    clock: Clock,
    messages: AtomicU64,
    posted: mpsc::UnboundedSender<Result<Posted, Notice>>,
}

impl Recorder {
    async fn post(&self, request: &Request, parcel: Parcel) -> Result<Delivered, Failure> {
        let channel = request.destination.channel;
        let [file] = &parcel.files[..] else { return Err(Failure::ours("the post has one video")) };
        let message = self.messages.fetch_add(1, Ordering::Relaxed);
        // Named by message, so that one which is posted twice is seen.
        let path = self.results.join(format!("{channel}-{message}.mp4"));
        file.made.write_to(&path).await?;
        let at = Instant::now();
        let delivered = Delivered {
            front_end: request.destination.front_end,
            channel,
            messages: vec![MessageId::new(NonZeroU64::MIN.saturating_add(message))],
            at: self.clock.now(),
        };
        let (facts, times) = (file.made.facts.clone(), file.made.times);
        // Nobody listens any more when the bench is at its end.
        drop(self.posted.send(Ok(Posted { delivered: delivered.clone(), path, facts, times, at })));
        Ok(delivered)
    }
}

impl Delivery for Recorder {
    fn limit(&self, _: &Destination) -> LimitClass {
        self.limit
    }

    fn place(&self, _: &Destination) -> Place {
        Place::Ordinary
    }

    fn progress(&self, _: &Request, _: Stage, _: Sight) {}

    fn deliver<'a>(
        &'a self,
        request: &'a Request,
        parcel: Parcel,
        _: &'a Posting,
    ) -> Pin<Box<dyn Future<Output = Result<Delivered, Failure>> + Send + 'a>> {
        Box::pin(self.post(request, parcel))
    }

    fn tell<'a>(
        &'a self,
        _: &'a Request,
        notice: Notice,
    ) -> Pin<Box<dyn Future<Output = Telling> + Send + 'a>> {
        drop(self.posted.send(Err(notice)));
        Box::pin(std::future::ready(Telling::Settled))
    }
}
