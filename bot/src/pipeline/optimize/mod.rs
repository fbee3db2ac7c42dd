//! Makes files that can be delivered: the one door to the engine.
//!
//! A file is looked for among the finished ones first; of all who want the same one at once, one makes it, and the
//! others wait without holding a worker. The engine works while the download is still running.

use std::convert::Infallible;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use azalea_engine::{ByteSize, Engine, Error, Fit, Fitted, Limits, Preset, Report, Source, Wanted, Warning};
use dashmap::DashMap;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::clock::instant;
use crate::dedup::{Claim, InFlight, InFlightSettings, WaitOutcome};
use crate::domain::{ArtifactKey, Disposition, Edits, Failure, Form, Medium, ProfileVersion, Stage, Variant};
use crate::http::Http;
use crate::metrics::{Counter, Tracker};
use crate::pipeline::activity::Activity;
use crate::pipeline::choose::{Bounds, another_may_do, choose};
use crate::pipeline::download::{DownloadError, DownloadLimits, Downloaded, download};
use crate::store::Artifacts;

mod growing;
mod made;

use growing::Feed;
pub use made::{Content, Facts, Made, Times};

/// Grows when the engine would make another file from the same input.
pub const PROFILE: ProfileVersion = ProfileVersion::new(NonZeroU32::MIN);

/// How files are made.
#[derive(Clone, Debug)]
pub struct OptimizeSettings {
    /// The engine's threads; `None`: one for each core.
    pub threads: Option<usize>,
    /// Jobs that wait for a thread. Beyond that a job waits before its download begins.
    pub queue_depth: usize,
    /// Effort: `fast`, `balanced` or `best`. Another word means `balanced`.
    pub preset: String,
    /// Pixels of one picture at most.
    pub max_pixels: u64,
    /// Length of what is asked for at most.
    pub max_duration: Duration,
    /// How long the engine may work after the last byte has come.
    pub timeout: Duration,
    /// Files that are fetched and made at once.
    pub workers: usize,
    /// The bounds of a download.
    pub download: DownloadLimits,
    /// How long a claim on a file lasts.
    pub claims: InFlightSettings,
}

impl Default for OptimizeSettings {
    fn default() -> Self {
        Self {
            threads: None,
            queue_depth: 64,
            preset: "balanced".to_owned(),
            max_pixels: Limits::default().frame_pixels,
            max_duration: Duration::from_secs(3600),
            timeout: Duration::from_secs(600),
            workers: 4,
            download: DownloadLimits::default(),
            claims: InFlightSettings::default(),
        }
    }
}

/// What is wanted, and under which key it is kept.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    /// What must not be made twice.
    pub key: ArtifactKey,
    /// What it is made from.
    pub medium: &'a Medium,
    /// Moves while the file is being made, by whomever.
    pub activity: Activity,
}

/// Makes files. Clones share the engine and all claims.
#[derive(Clone, Debug)]
pub struct Optimizer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    engine: Engine,
    http: Http,
    artifacts: Artifacts,
    making: InFlight<ArtifactKey, Result<Arc<Made>, Failure>>,
    /// Signs of those who make files, for those who wait for them.
    signs: DashMap<ArtifactKey, Activity>,
    /// One for each file that is fetched and made; who waits for somebody else's has none.
    places: Semaphore,
    tracker: Tracker,
    settings: OptimizeSettings,
}

impl Optimizer {
    /// Starts the engine.
    ///
    /// # Errors
    /// `Ours` when its threads cannot be started.
    pub fn new(
        settings: OptimizeSettings,
        http: Http,
        artifacts: Artifacts,
        tracker: Tracker,
    ) -> Result<Self, Failure> {
        let mut builder = Engine::builder().queue_depth(settings.queue_depth);
        if let Some(threads) = settings.threads {
            builder = builder.threads(threads);
        }
        let engine =
            builder.build().map_err(|error| Failure::ours(format!("the engine does not start: {error}")))?;
        let making = InFlight::new(settings.claims);
        let places = Semaphore::new(settings.workers.max(1));
        let signs = DashMap::new();
        Ok(Self(Arc::new(Inner { engine, http, artifacts, making, signs, places, tracker, settings })))
    }

    /// The file for an order: kept, made by somebody else just now, or made here.
    ///
    /// Cancelling, or dropping the call, stops the work unless somebody else began it; then only the waiting ends.
    ///
    /// # Errors
    /// What the download or the engine failed with; the same for all who waited for it.
    pub async fn make(&self, order: &Order<'_>, cancel: &CancellationToken) -> Result<Arc<Made>, Failure> {
        let inner = &*self.0;
        loop {
            if let Some(made) = inner.kept(&order.key).await {
                inner.tracker.count(Counter::ArtifactHits, 1);
                return Ok(Arc::new(made));
            }
            match inner.making.claim(&order.key, instant()) {
                Claim::Owner(ownership) => {
                    let place = tokio::select! {
                        biased;
                        () = cancel.cancelled() => return Err(Failure::Cancelled),
                        place = inner.places.acquire() => place,
                        never = keep_moving(&order.activity) => match never {},
                    };
                    ownership.begin_work(instant());
                    // Whoever held the claim until now may have put the file away since it was looked for.
                    if let Some(made) = inner.kept(&order.key).await {
                        inner.tracker.count(Counter::ArtifactHits, 1);
                        let made = Arc::new(made);
                        ownership.complete(Ok(Arc::clone(&made)));
                        return Ok(made);
                    }
                    inner.tracker.count(Counter::ArtifactMisses, 1);
                    let shown = Shown::new(&inner.signs, order);
                    let result = inner.work(order, cancel).await;
                    drop(shown);
                    drop(place);
                    // That its owner gave up says nothing to the others: one of them takes over.
                    if !matches!(result, Err(Failure::Cancelled)) {
                        ownership.complete(result.clone());
                    }
                    return result;
                }
                Claim::Waiter(waiter) => {
                    let outcome = tokio::select! {
                        biased;
                        () = cancel.cancelled() => return Err(Failure::Cancelled),
                        outcome = waiter.wait() => outcome,
                        never = inner.follow(order) => match never {},
                    };
                    if let WaitOutcome::Done(result) = outcome {
                        inner.tracker.count(Counter::Deduplicated, 1);
                        return result;
                    }
                }
            }
        }
    }

    /// Makes a file on disk fit, without any cache.
    ///
    /// # Errors
    /// What the engine failed with.
    pub async fn make_from_file(
        &self,
        path: PathBuf,
        limit: u64,
        edits: Edits,
        cancel: &CancellationToken,
    ) -> Result<Made, Failure> {
        let inner = &*self.0;
        let begun = instant();
        let fit = inner.settings.fit(limit, edits);
        let activity = Activity::default();
        let fitted = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Failure::Cancelled),
            fitted = inner.engine_fit(Source::path(path), fit, &activity) => fitted,
        };
        let fitted = fitted.map_err(|error| match &error {
            // Nobody else is to blame for a file of one's own, and waiting does not mend it.
            Error::Io { .. } => Failure::Unsupported { what: error.to_string() },
            other => failure(other),
        })?;
        let times = Times { optimize: instant().saturating_duration_since(begun), ..Times::default() };
        inner.tracker.stage(Stage::Optimize, times.optimize);
        let (bytes, report) = fitted.into_parts();
        Ok(Made { content: Content::Memory(bytes), facts: facts(&report), times })
    }
}

impl Inner {
    /// A finished file of an earlier time.
    async fn kept(&self, key: &ArtifactKey) -> Option<Made> {
        let artifact = self.artifacts.get(key).await?;
        // Facts that another version wrote are no reason to fail: the file is made anew.
        let facts = serde_json::from_slice(&artifact.facts).ok()?;
        Some(Made { content: Content::Disk(artifact), facts, times: Times::default() })
    }

    /// Makes it from the first variant that can be had and used.
    async fn work(&self, order: &Order<'_>, cancel: &CancellationToken) -> Result<Arc<Made>, Failure> {
        let edits = order.key.edits;
        let limit = order.key.limit.get();
        let bounds =
            Bounds { limit, most: self.settings.download.max_bytes, edited: edits != Edits::default() };
        let mut why: Option<Failure> = None;
        for variant in choose(order.medium, bounds)?.into_iter().take(MOST_VARIANTS) {
            let made = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Failure::Cancelled),
                made = self.fetch_and_fit(variant, limit, order, cancel) => made,
            };
            match made {
                Ok((fitted, times)) => return Ok(Arc::new(self.keep(order, fitted, times).await)),
                Err(error) => {
                    let failure = Failure::from(error);
                    if !another_may_do(&failure) {
                        return Err(failure);
                    }
                    tracing::info!(%failure, "another variant is tried");
                    // What may be better later is worth more than to know why another one is not.
                    let later = |failure: &Failure| matches!(failure.disposition(), Disposition::Retry(_));
                    if why.as_ref().is_none_or(|known| !later(known) && later(&failure)) {
                        why = Some(failure);
                    }
                }
            }
        }
        Err(why.unwrap_or_else(|| Failure::ours("there was no variant to try")))
    }

    /// Lets the engine work on a download while it arrives.
    async fn fetch_and_fit(
        &self,
        variant: &Variant,
        limit: u64,
        order: &Order<'_>,
        cancel: &CancellationToken,
    ) -> Result<(Fitted, Times), DownloadError> {
        let url = Url::parse(&variant.url)
            .map_err(|error| Failure::Forbidden { what: format!("an address that is none ({error})") })?;
        let limits = self.settings.download;
        let fit = self.settings.fit(limit, order.key.edits);
        let (mut feed, sources, over) = Feed::new(ByteSize::new(limits.max_bytes), order.activity.clone());
        let begun = instant();
        let downloading = async {
            let downloaded = download(&self.http, &url, limits, &mut feed, cancel).await;
            let took = instant().saturating_duration_since(begun);
            if downloaded.is_ok() {
                feed.finish();
            }
            (downloaded, took)
        };
        let fitting = self.fit_last(sources, fit, &order.activity);
        tokio::pin!(downloading, fitting);
        let mut times = Times::default();
        let mut announced = true;
        let fitted = tokio::select! {
            // The engine has what it needs, or cannot use what comes.
            fitted = &mut fitting => fitted,
            (downloaded, took) = &mut downloading => {
                times.download = took;
                self.note_download(downloaded.as_ref(), took, &over)?;
                announced = downloaded.is_ok_and(|downloaded| downloaded.announced);
                match timeout(self.settings.timeout, &mut fitting).await {
                    Ok(fitted) => fitted,
                    Err(_) => Err(Failure::TimedOut { stage: Stage::Optimize }),
                }
            }
        };
        times.optimize = instant().saturating_duration_since(begun);
        match &fitted {
            Ok(_) => self.tracker.stage(Stage::Optimize, times.optimize),
            Err(failure) => self.tracker.failure(Stage::Optimize, failure.code()),
        }
        let fitted = fitted?;
        // Its end may have been that of the connection: then there is more of it another time.
        if !announced && is_cut_short(fitted.report()) {
            let what = "the download ended before the file did".to_owned();
            return Err(Failure::Transient { what, retry_after: None }.into());
        }
        Ok((fitted, times))
    }

    /// Counts a download that is over, and says whether it is a reason to give up.
    fn note_download(
        &self,
        downloaded: Result<&Downloaded, &DownloadError>,
        took: Duration,
        over: &AtomicBool,
    ) -> Result<(), DownloadError> {
        match downloaded {
            Ok(downloaded) => {
                self.tracker.stage(Stage::Download, took);
                self.tracker.count(Counter::DownloadBytes, downloaded.bytes);
                Ok(())
            }
            // It was stopped since the engine is done with it.
            Err(_) if over.load(Ordering::Acquire) => Ok(()),
            Err(error) => {
                let code = match error {
                    DownloadError::Missing { .. } => "missing",
                    DownloadError::Denied { .. } => "denied",
                    DownloadError::Failed(failure) => failure.code(),
                };
                self.tracker.failure(Stage::Download, code);
                Err(error.clone())
            }
        }
    }

    /// Fits the last source that comes: one that comes later takes the place of the one before.
    async fn fit_last(
        &self,
        mut sources: mpsc::Receiver<Source>,
        fit: Fit,
        activity: &Activity,
    ) -> Result<Fitted, Failure> {
        let Some(mut source) = sources.recv().await else {
            // The download ended before its first byte, and is the one that says why.
            return std::future::pending().await;
        };
        loop {
            let fitting = self.fit(source, fit, activity);
            tokio::pin!(fitting);
            tokio::select! {
                biased;
                Some(next) = sources.recv() => source = next,
                fitted = &mut fitting => return fitted,
            }
        }
    }

    async fn fit(&self, source: Source, fit: Fit, activity: &Activity) -> Result<Fitted, Failure> {
        activity.engage().await?;
        self.engine_fit(source, fit, activity).await.map_err(|error| failure(&error))
    }

    async fn engine_fit(&self, source: Source, fit: Fit, activity: &Activity) -> Result<Fitted, Error> {
        let mut job = self.engine.submit(source, fit).await?;
        let mut looks = looks();
        let mut before = job.progress();
        loop {
            tokio::select! {
                biased;
                fitted = &mut job => return fitted,
                _ = looks.tick() => {}
            }
            let now = job.progress();
            activity.made(now.fraction);
            // One that waits for a thread hangs on nothing but its turn.
            if now != before || now.stage == azalea_engine::Stage::Queued {
                activity.moved();
            }
            before = now;
        }
    }

    /// Passes on the signs of whoever makes the file. Never ends.
    async fn follow(&self, order: &Order<'_>) -> Infallible {
        let mut looks = looks();
        let mut before = None;
        loop {
            looks.tick().await;
            let now = self.signs.get(&order.key).map(|activity| {
                order.activity.made(activity.fraction());
                activity.seen()
            });
            // One who made nothing yet waits for a place, which says so by itself.
            if now != before || now.is_none() {
                order.activity.moved();
            }
            before = now;
        }
    }

    /// Keeps what was made for the next one who wants it. Where that fails, it is there for this one all the same.
    async fn keep(&self, order: &Order<'_>, fitted: Fitted, times: Times) -> Made {
        let (bytes, report) = fitted.into_parts();
        let facts = facts(&report);
        if facts.action == "transcode" {
            self.tracker.count(Counter::Transcodes, 1);
        }
        let kept = match serde_json::to_vec(&facts) {
            // Who asks later may find all of it.
            Ok(text) if !is_cut_short(&report) => self.artifacts.put(&order.key, bytes.clone(), text).await,
            Ok(_) | Err(_) => None,
        };
        let content = kept.map_or(Content::Memory(bytes), Content::Disk);
        Made { content, facts, times }
    }
}

/// Whether the source ended too early.
fn is_cut_short(report: &Report) -> bool {
    report.warnings.contains(&Warning::CutShort)
}

/// Signs that are shown while a file is made.
struct Shown<'a> {
    signs: &'a DashMap<ArtifactKey, Activity>,
    key: ArtifactKey,
}

impl<'a> Shown<'a> {
    fn new(signs: &'a DashMap<ArtifactKey, Activity>, order: &Order<'_>) -> Self {
        signs.insert(order.key, order.activity.clone());
        Self { signs, key: order.key }
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.signs.remove(&self.key);
    }
}

/// How often somebody looks whether work goes on.
const LOOK: Duration = Duration::from_secs(1);

fn looks() -> Interval {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

/// Who waits for a place does not hang: those who have the places must end.
async fn keep_moving(activity: &Activity) -> Infallible {
    let mut looks = looks();
    loop {
        looks.tick().await;
        activity.moved();
    }
}

impl OptimizeSettings {
    fn fit(&self, limit: u64, edits: Edits) -> Fit {
        let wanted = match edits.form {
            Form::AsIs => Wanted::Natural,
            Form::AudioOnly => Wanted::AudioOnly,
            Form::Gif => Wanted::Gif,
        };
        let mut limits = Limits::default();
        limits.input_bytes = ByteSize::new(self.download.max_bytes);
        limits.frame_pixels = self.max_pixels;
        limits.duration = self.max_duration;
        limits.wall_time = self.timeout.saturating_add(self.download.timeout);
        let preset = self.preset.parse().unwrap_or(Preset::Balanced);
        let mut fit = Fit::within(ByteSize::new(limit)).wanted(wanted).preset(preset).limits(limits);
        if edits.trim.start() > Duration::ZERO {
            fit = fit.start(edits.trim.start());
        }
        edits.trim.end().map_or(fit, |end| fit.end(end))
    }
}

/// Variants that are tried one after the other.
const MOST_VARIANTS: usize = 4;

fn facts(report: &Report) -> Facts {
    Facts {
        action: report.action.name().to_owned(),
        extension: report.kind.extension().to_owned(),
        media_type: report.kind.media_type().to_owned(),
        bytes: report.bytes.get(),
        source_bytes: report.input_bytes.get(),
        width: report.dimensions.map_or(0, |size| size.width),
        height: report.dimensions.map_or(0, |size| size.height),
        duration: report.duration.as_secs_f64(),
        warnings: report.warnings.iter().map(ToString::to_string).collect(),
    }
}

/// The class of an engine's error.
fn failure(error: &Error) -> Failure {
    let what = error.to_string();
    match error {
        Error::Unsupported { .. } | Error::Corrupt { .. } => Failure::Unsupported { what },
        Error::TooLarge { .. } => Failure::TooLarge { what },
        Error::CannotFit { .. } => Failure::CannotFit { what },
        Error::Cancelled => Failure::Cancelled,
        Error::Deadline { .. } => Failure::TimedOut { stage: Stage::Optimize },
        Error::Busy { .. } | Error::Io { .. } => Failure::transient(what),
        _ => Failure::ours(what),
    }
}
