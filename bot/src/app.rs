//! Builds the rooms, wires them, runs them and stops them in order. No logic.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::clock::{Clock, WallTime};
use crate::config::{Config, QueueBackend, SourceChoice};
use crate::dedup::{Desk, InFlightSettings, Processed, ProcessedSettings, WorkTimes};
use crate::domain::{Failure, RequestId};
use crate::frontend::operator::{self, Clerk, Waiting};
use crate::guard::egress::{Egress, EgressSettings};
use crate::guard::rate::{RateLimiter, RateSettings};
use crate::http::{Http, HttpSettings};
use crate::intake::Intake;
use crate::metrics::{Gauge, Tracker};
use crate::pipeline::delivery::Delivery;
use crate::pipeline::download::DownloadLimits;
use crate::pipeline::egress_rule;
use crate::pipeline::optimize::{OptimizeSettings, Optimizer};
use crate::pipeline::withdrawals::Withdrawals;
use crate::pipeline::worker::{Worker, WorkerSettings};
use crate::queue::{
    BookSettings, EmbeddedQueue, EmbeddedSettings, FailOpen, Filter, MemoryQueue, OpenError, Queue, State,
    Stats,
};
use crate::source::{
    Resolver, ResolverSettings, SourceName, SourceSettings, WebSourceSettings, YtDlpSettings,
};
use crate::store::{ArtifactSettings, Artifacts, Shelf, Store, StoreSettings};

/// How long metrics are kept.
const METRICS_TTL: Duration = Duration::from_secs(90 * 86_400);
/// How long workers have to end what they are doing once they are told to stop.
const STOPPING: Duration = Duration::from_secs(10);

/// The rooms that do not depend on a front end.
#[derive(Clone, Debug)]
pub struct Rooms {
    /// Turns a link into media.
    pub resolver: Resolver,
    /// Turns media into files.
    pub optimizer: Optimizer,
    /// What was delivered, and where.
    pub processed: Processed,
    /// Counts.
    pub tracker: Tracker,
    /// What outlives the process.
    pub store: Store,
    /// What was taken back by those who asked for it.
    pub withdrawals: Withdrawals,
    clock: Clock,
}

impl Rooms {
    /// Builds them from a configuration. Nothing is asked, read or written yet.
    ///
    /// # Errors
    /// `Ours` when a setting cannot be used or the engine does not start.
    pub fn new(config: &Config, clock: Clock) -> Result<Self, Failure> {
        let wrong = |error: &dyn std::fmt::Display| Failure::ours(error.to_string());
        let tracker = Tracker::new(config.metrics.enabled);
        let store = Store::open(
            StoreSettings {
                path: Some(config.store.path.clone()),
                batch_size: to_usize(config.store.batch_size),
                flush_interval: config.store.flush_interval,
                ..StoreSettings::default()
            },
            clock.clone(),
            tracker.clone(),
        );
        let artifacts = Artifacts::open(
            ArtifactSettings {
                dir: Some(config.store.path.join("artifacts")),
                max_bytes: config.cache.artifact_bytes,
                max_age: config.cache.artifact_ttl,
            },
            clock.clone(),
        );
        let sources = source_settings(config);
        let always = base_urls(config).map_err(|error| wrong(&error))?;
        let client = |always: Vec<Url>| {
            let egress = Egress::new(&EgressSettings {
                allow_private: config.download.allow_private,
                allow_hosts: config.download.allow_hosts.clone(),
                always,
            })
            .map_err(|error| wrong(&error))?;
            Http::new(HttpSettings { clock: clock.clone(), ..HttpSettings::new(egress_rule(egress)) })
                .map_err(|error| wrong(&error))
        };
        // Where a source stands is the operator's word; where media stand is the source's, which counts for less.
        let (http, media_http) = (client(always)?, client(Vec::new())?);
        let resolver = Resolver::new(&sources, &http, store.clone(), clock.clone(), tracker.clone())
            .map_err(|error| wrong(&error))?;
        let optimizer = Optimizer::new(optimize_settings(config), media_http, artifacts, tracker.clone())?;
        let processed = Processed::new(
            ProcessedSettings {
                ttl: config.dedup.processed_ttl,
                capacity: u64::from(config.dedup.capacity),
                ..ProcessedSettings::default()
            },
            store.clone(),
            clock.clone(),
        );
        let withdrawals = Withdrawals::default();
        Ok(Self { resolver, optimizer, processed, tracker, store, withdrawals, clock })
    }

    /// A worker that delivers through `delivery`.
    pub fn worker(&self, config: &Config, queue: Arc<dyn Queue>, delivery: Arc<dyn Delivery>) -> Worker {
        Worker {
            queue,
            desk: Desk::new(claims(config)),
            processed: self.processed.clone(),
            resolver: self.resolver.clone(),
            optimizer: self.optimizer.clone(),
            delivery,
            withdrawals: self.withdrawals.clone(),
            tracker: self.tracker.clone(),
            clock: self.clock.clone(),
            settings: WorkerSettings {
                upload_timeout: config.upload.timeout,
                lease: config.queue.lease,
                sensitive: config.audience.sensitive,
                ..WorkerSettings::default()
            },
        }
    }

    /// Shows how the queue stands in the metrics.
    pub fn show(&self, stats: &Stats) {
        let oldest = stats.oldest_ready.map_or(Duration::ZERO, |at| self.clock.now().since(at));
        let gauges = [
            (Gauge::QueueReady, stats.ready),
            (Gauge::QueueDelayed, stats.delayed),
            (Gauge::QueueLeased, stats.leased),
            (Gauge::QueueDead, stats.dead),
            (Gauge::QueueOldestSeconds, oldest.as_secs()),
            (Gauge::QueueInTrouble, u64::from(stats.trouble.is_some())),
        ];
        for (gauge, value) in gauges {
            self.tracker.gauge(gauge, value);
        }
    }

    /// Writes what was counted since the last time to the store.
    pub fn flush_metrics(&self) {
        let now = self.clock.now();
        self.tracker.flush(now, |interval| {
            let expires: WallTime = now.plus(METRICS_TTL);
            self.store.put(Shelf::Metrics, interval.key(), interval.encode(), expires);
        });
    }
}

/// A running service. Stopped in this order: no new requests, workers, queue, metrics, store.
#[derive(Debug)]
pub struct App {
    /// Where messages go in.
    pub intake: Intake,
    /// What the rest is built of.
    pub rooms: Rooms,
    /// What was accepted, and how it ended.
    pub queue: Arc<dyn Queue>,
    workers: JoinSet<()>,
    cancel: CancellationToken,
}

impl App {
    /// Opens the queue and starts the workers. Jobs of an earlier run go on at once.
    ///
    /// # Errors
    /// As [`Rooms::new`]; and `Ours` when another process has the queue.
    pub async fn start(config: &Config, clock: Clock, delivery: Arc<dyn Delivery>) -> Result<Self, Failure> {
        Self::start_in(Rooms::new(config, clock)?, config, delivery).await
    }

    /// The same in rooms that are there already.
    ///
    /// # Errors
    /// `Ours` when another process has the queue.
    pub async fn start_in(
        rooms: Rooms,
        config: &Config,
        delivery: Arc<dyn Delivery>,
    ) -> Result<Self, Failure> {
        let clock = rooms.clock.clone();
        let queue = open_queue(config, &clock, &rooms.tracker).await?;
        let worker = rooms.worker(config, Arc::clone(&queue), Arc::clone(&delivery));
        let limiter = RateLimiter::new(&RateSettings {
            max_requests: config.rate_limit.max_requests,
            window: config.rate_limit.window,
            algorithm: config.rate_limit.algorithm,
            channel_multiple: config.rate_limit.channel_multiple,
            guild_multiple: config.rate_limit.guild_multiple,
            ..RateSettings::default()
        });
        let intake = Intake::new(
            limiter,
            worker.desk.clone(),
            worker.processed.clone(),
            Arc::clone(&queue),
            worker.tracker.clone(),
            clock.clone(),
        );
        let cancel = CancellationToken::new();
        let mut workers = JoinSet::new();
        let waiting = Some(Waiting { desk: worker.desk.clone(), delivery });
        let clerk = Clerk { queue: Arc::clone(&queue), clock, waiting };
        let (folder, stop) = (config.store.path.clone(), cancel.clone());
        workers.spawn(async move { operator::serve(&folder, clerk, stop).await });
        workers.spawn(worker.run(cancel.clone()));
        if config.metrics.enabled {
            let (rooms, cancel, interval) = (rooms.clone(), cancel.clone(), config.metrics.flush_interval);
            let queue = Arc::clone(&queue);
            workers.spawn(async move {
                while tokio::time::timeout(interval, cancel.cancelled()).await.is_err() {
                    if let Ok(stats) = queue.stats().await {
                        rooms.show(&stats);
                    }
                    rooms.flush_metrics();
                }
            });
        }
        Ok(Self { intake, rooms, queue, workers, cancel })
    }

    /// Requests of earlier runs, and of this one, that were not answered yet.
    pub async fn unfinished(&self) -> usize {
        let stats = self.queue.stats().await.unwrap_or_default();
        let count = stats.ready.saturating_add(stats.delayed).saturating_add(stats.leased);
        let untold = self.queue.unanswered(usize::MAX).await.map_or(0, |dead| dead.len());
        usize::try_from(count).unwrap_or(usize::MAX).saturating_add(untold)
    }

    /// Which these are.
    pub async fn open(&self) -> Vec<RequestId> {
        let everything = Filter { most: usize::MAX, ..Filter::default() };
        let jobs = self.queue.list(everything).await.unwrap_or_default();
        let dead = self.queue.unanswered(usize::MAX).await.unwrap_or_default();
        let open = jobs.into_iter().filter(|job| !matches!(job.state, State::Dead { .. }));
        open.chain(dead).map(|job| job.request.id).collect()
    }

    /// Stops: work under way is given back to a queue that is kept, and ends as cancelled in one that is not; what is
    /// to be stored is stored.
    pub async fn stop(mut self) {
        self.intake.close();
        self.cancel.cancel();
        let ended = async { while self.workers.join_next().await.is_some() {} };
        if tokio::time::timeout(STOPPING, ended).await.is_err() {
            tracing::warn!("workers did not end in time and are broken off");
            self.workers.shutdown().await;
        }
        self.queue.close().await;
        self.rooms.flush_metrics();
        self.rooms.store.close().await;
    }
}

/// The queue that the configuration names. One that cannot be opened is no reason not to serve: then jobs are kept in
/// memory, and that is said. One that another process has open is: two would do the same work.
async fn open_queue(config: &Config, clock: &Clock, tracker: &Tracker) -> Result<Arc<dyn Queue>, Failure> {
    let book = BookSettings { max_attempts: config.queue.max_attempts, ..BookSettings::default() };
    if config.queue.backend == QueueBackend::Memory {
        return Ok(Arc::new(MemoryQueue::new(book, clock.clone())));
    }
    let settings = EmbeddedSettings { book, ..EmbeddedSettings::new(config.store.path.clone()) };
    let opening = {
        let clock = clock.clone();
        tokio::task::spawn_blocking(move || EmbeddedQueue::open(settings, clock))
    };
    match opening.await {
        Ok(Ok(queue)) => Ok(Arc::new(FailOpen::new(Arc::new(queue), book, clock.clone(), tracker.clone()))),
        Ok(Err(error @ OpenError::InUse { .. })) => Err(Failure::ours(error.to_string())),
        Ok(Err(error)) => {
            tracing::error!(%error, "the queue cannot be opened; what is accepted is kept in memory only");
            Ok(Arc::new(MemoryQueue::instead(error.to_string(), book, clock.clone())))
        }
        Err(error) => Err(Failure::ours(format!("the queue cannot be opened: {error}"))),
    }
}

fn claims(config: &Config) -> InFlightSettings {
    let work = WorkTimes {
        download: config.download.timeout,
        transcode: config.engine.timeout,
        upload: config.upload.timeout,
    };
    InFlightSettings { work: work.sum(), ..InFlightSettings::default() }
}

fn optimize_settings(config: &Config) -> OptimizeSettings {
    OptimizeSettings {
        threads: (config.engine.threads > 0).then(|| to_usize(config.engine.threads)),
        queue_depth: to_usize(config.engine.queue_depth),
        preset: config.engine.preset.name().to_owned(),
        max_pixels: u64::from(config.engine.max_pixels),
        max_duration: config.engine.max_duration,
        timeout: config.engine.timeout,
        download: DownloadLimits {
            max_bytes: config.download.max_bytes,
            timeout: config.download.timeout,
            idle: config.download.idle_timeout,
            ..DownloadLimits::default()
        },
        workers: to_usize(config.queue.workers),
        claims: claims(config),
    }
}

fn source_settings(config: &Config) -> SourceSettings {
    let from = &config.sources;
    let web =
        |base_url: &str, timeout: Duration| WebSourceSettings { timeout, ..WebSourceSettings::at(base_url) };
    SourceSettings {
        order: from.order.iter().map(|choice| source_name(*choice)).collect(),
        hedge_delay: from.hedge_delay,
        vxtwitter: web(&from.vxtwitter_base_url, from.vxtwitter_timeout),
        fxtwitter: web(&from.fxtwitter_base_url, from.fxtwitter_timeout),
        syndication: web(&from.syndication_base_url, from.syndication_timeout),
        ytdlp: YtDlpSettings {
            program: from.ytdlp_program.clone(),
            timeout: from.ytdlp_timeout,
            ..YtDlpSettings::default()
        },
        resolver: ResolverSettings {
            post_ttl: config.cache.resolver_ttl,
            gone_ttl: config.cache.negative_ttl,
            login_ttl: config.cache.negative_ttl,
            ..ResolverSettings::default()
        },
        ..SourceSettings::default()
    }
}

const fn source_name(choice: SourceChoice) -> SourceName {
    match choice {
        SourceChoice::Vxtwitter => SourceName::VxTwitter,
        SourceChoice::Fxtwitter => SourceName::FxTwitter,
        SourceChoice::Syndication => SourceName::Syndication,
        SourceChoice::Ytdlp => SourceName::YtDlp,
    }
}

/// Servers that an operator named are asked wherever they are.
fn base_urls(config: &Config) -> Result<Vec<Url>, url::ParseError> {
    let sources = &config.sources;
    [&sources.vxtwitter_base_url, &sources.fxtwitter_base_url, &sources.syndication_base_url]
        .into_iter()
        .map(|text| Url::parse(text))
        .collect()
}

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
