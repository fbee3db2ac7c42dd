//! Does the work of one request after the other: resolve, download and optimize, deliver, record.

use std::num::NonZeroU8;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::clock::instant;
use crate::config::SensitivePolicy;
use crate::dedup::{Delivered, DeliveryOwnership, Desk, Ended, Processed};
use crate::domain::{
    ArtifactKey, DeliveryKey, Disposition, Edits, Failure, LimitClass, MediaChoice, Medium, MediumKind, Post,
    Request, Stage,
};
use crate::guard::audience::{self, Audience};
use crate::metrics::{Counter, Tracker};
use crate::pipeline::delivery::{Delivery, Notice, Parcel, ParcelFile};
use crate::pipeline::optimize::{Made, Optimizer, Order, PROFILE};
use crate::queue::{Job, MemoryQueue};
use crate::source::Resolver;

/// How workers work.
#[derive(Clone, Copy, Debug)]
pub struct WorkerSettings {
    /// How long a post may take to be resolved.
    pub resolve_timeout: Duration,
    /// How long a delivery may take.
    pub upload_timeout: Duration,
    /// How often a request is tried.
    pub max_attempts: u32,
    /// The pause before the second attempt; each further one is twice as long, up to five minutes.
    pub backoff: Duration,
    /// Media of one post that are made at once.
    pub at_once: usize,
    /// Jobs that are held at once.
    pub in_hand: usize,
    /// What happens to sensitive media in places that are not known to be age-restricted.
    pub sensitive: SensitivePolicy,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            resolve_timeout: Duration::from_secs(60),
            upload_timeout: Duration::from_secs(120),
            max_attempts: 5,
            backoff: Duration::from_secs(2),
            at_once: 4,
            in_hand: 1024,
            sensitive: SensitivePolicy::Spoiler,
        }
    }
}

/// What a worker works with. Clones share everything.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Where its jobs come from.
    pub queue: MemoryQueue,
    /// The claims on deliveries.
    pub desk: Desk,
    /// What was delivered, and where.
    pub processed: Processed,
    /// Turns a link into media.
    pub resolver: Resolver,
    /// Turns media into files.
    pub optimizer: Optimizer,
    /// Where the files go.
    pub delivery: Arc<dyn Delivery>,
    /// Counts.
    pub tracker: Tracker,
    /// How it works.
    pub settings: WorkerSettings,
}

impl Worker {
    /// Works until `cancel` is called; jobs that are under way or wait then end as cancelled. At most
    /// [`in_hand`](WorkerSettings::in_hand) jobs are held at once: most of them wait, for others that make the same
    /// file or for the network.
    pub async fn run(self, cancel: CancellationToken) {
        let in_hand = Arc::new(Semaphore::new(self.settings.in_hand.max(1)));
        let mut jobs = JoinSet::new();
        loop {
            let next = async {
                let place = Arc::clone(&in_hand).acquire_owned().await;
                (place, self.queue.lease().await)
            };
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                Some(ended) = jobs.join_next(), if !jobs.is_empty() => log_fault(ended),
                (place, job) = next => {
                    let (worker, cancel) = (self.clone(), cancel.clone());
                    jobs.spawn(async move {
                        worker.handle(job, &cancel).await;
                        drop(place);
                    });
                }
            }
        }
        while let Some(ended) = jobs.join_next().await {
            log_fault(ended);
        }
        // This queue ends with the process, so those that wait for their turn end here and are told so.
        for job in self.queue.drain() {
            let ownership = self.desk.take(job.request.id);
            self.end(&job.request, ownership, Err(Failure::Cancelled)).await;
        }
    }

    /// Works on one job to its end, or puts it back to be tried again.
    async fn handle(&self, job: Job, cancel: &CancellationToken) {
        let ownership = self.desk.take(job.request.id);
        if let Some(ownership) = &ownership {
            ownership.begin_work(instant());
        }
        // A claim that expired while the request waited may have been fulfilled for somebody else meanwhile.
        if let Some(delivered) = self.processed.get(&DeliveryKey::of(&job.request)).await {
            let delivered = Delivered::clone(&delivered);
            self.tracker.count(Counter::Pointers, 1);
            self.delivery.tell(&job.request, Notice::Pointer(delivered.clone())).await;
            if let Some(ownership) = ownership {
                ownership.complete(Ok(delivered));
            }
            return;
        }
        let result = self.fulfil(&job.request, cancel).await;
        if let Err(failure) = &result
            && let Disposition::Retry(after) = failure.disposition()
            && job.attempt < self.settings.max_attempts
        {
            let pause = self.pause(job.attempt, after);
            tracing::info!(request = %job.request.id, attempt = job.attempt, %failure, ?pause, "tried again later");
            self.tracker.count(Counter::Retries, 1);
            if let Some(ownership) = ownership {
                self.desk.put_back(job.request.id, ownership);
            }
            self.queue.retry(job, pause);
            return;
        }
        self.end(&job.request, ownership, result).await;
    }

    /// The pause before the attempt after `attempt`: at least what the upstream asked for, with full jitter.
    fn pause(&self, attempt: u32, asked: Option<Duration>) -> Duration {
        let doubled = self.settings.backoff.saturating_mul(1 << attempt.saturating_sub(1).min(12));
        let most = doubled.min(LONGEST_PAUSE);
        let jittered = most.mul_f64(0.5 + 0.5 * fastrand::f64());
        jittered.max(asked.unwrap_or_default())
    }

    /// Records how a request ended and says it to all who wait.
    async fn end(&self, request: &Request, ownership: Option<DeliveryOwnership>, result: Ended) {
        match &result {
            Ok(delivered) => {
                self.tracker.count(Counter::Delivered, 1);
                self.processed.record(&DeliveryKey::of(request), delivered.clone());
            }
            Err(failure) => {
                tracing::info!(request = %request.id, code = failure.code(), %failure, "ended without media");
                self.tracker.count(Counter::Failed, 1);
                self.delivery.tell(request, Notice::Failed(failure.clone())).await;
            }
        }
        if let Some(ownership) = ownership {
            ownership.complete(result);
        }
    }

    /// From a request to a delivery, once, without claims and without another attempt.
    ///
    /// # Errors
    /// What a stage failed with.
    pub async fn fulfil(&self, request: &Request, cancel: &CancellationToken) -> Ended {
        let work = async {
            self.delivery.progress(request, Stage::Resolve);
            let post = self.resolve(request).await?;
            let parcel = self.prepare(request, &post, cancel).await?;
            self.delivery.progress(request, Stage::Upload);
            self.deliver(request, parcel).await
        };
        // What a job works with is its own, or whole after each of its steps: nothing half done is seen by others.
        let work = AssertUnwindSafe(work).catch_unwind();
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::Cancelled),
            ended = work => ended.unwrap_or_else(|_| {
                tracing::error!(request = %request.id, "a fault in the program ended the work on a request");
                Err(Failure::ours("a fault in the program ended the work on it"))
            }),
        }
    }

    async fn resolve(&self, request: &Request) -> Result<Arc<Post>, Failure> {
        let begun = instant();
        let resolved = timeout(self.settings.resolve_timeout, self.resolver.resolve(request.post())).await;
        let result = resolved.unwrap_or(Err(Failure::TimedOut { stage: Stage::Resolve }));
        match &result {
            Ok(_) => self.tracker.stage(Stage::Resolve, instant().saturating_duration_since(begun)),
            Err(failure) => self.tracker.failure(Stage::Resolve, failure.code()),
        }
        result
    }

    /// Makes the files that are wanted; those of the post that cannot be had are named.
    async fn prepare(
        &self,
        request: &Request,
        post: &Post,
        cancel: &CancellationToken,
    ) -> Result<Parcel, Failure> {
        let wanted = wanted(post, request.choice());
        if wanted.is_empty() {
            return Err(Failure::NoMedia);
        }
        let content = audience::Content { sensitive: post.sensitive, spoiler_wished: request.spoiler() };
        let place = self.delivery.place(&request.destination);
        let spoiler = match audience::judge(self.settings.sensitive, content, place) {
            Audience::Deliver { spoiler } => spoiler,
            Audience::Refuse(_) => return Err(Failure::Sensitive),
        };
        self.delivery.progress(request, Stage::Download);
        let limit = self.delivery.limit(&request.destination);
        let making: Vec<_> =
            wanted.iter().map(|medium| self.make(medium, request.options.edits, limit, cancel)).collect();
        let made: Vec<Result<Arc<Made>, Failure>> =
            stream::iter(making).buffered(self.settings.at_once.max(1)).collect().await;
        let (mut files, mut missing) = (Vec::new(), Vec::new());
        for (medium, made) in wanted.iter().zip(made) {
            match made {
                Ok(made) => files.push(ParcelFile {
                    name: file_name(post, medium, &made),
                    kind: medium.kind,
                    alt: medium.alt.clone(),
                    made,
                }),
                // One that may work later is worth another attempt; those that are made by then are kept.
                Err(failure) if matches!(failure.disposition(), Disposition::Retry(_)) => {
                    return Err(failure);
                }
                Err(Failure::Cancelled) => return Err(Failure::Cancelled),
                Err(failure) => missing.push(failure),
            }
        }
        if files.is_empty() {
            return Err(missing.into_iter().next().unwrap_or(Failure::NoMedia));
        }
        let (author, text) = (post.author.clone(), post.text.clone());
        Ok(Parcel { post: post.id, author, text, spoiler, files, missing })
    }

    fn make<'a>(
        &'a self,
        medium: &'a Medium,
        edits: Edits,
        limit: LimitClass,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Arc<Made>, Failure>> {
        let edits = edits_for(medium.kind, edits);
        let key = ArtifactKey { post: medium.post, medium: medium.index, edits, limit, profile: PROFILE };
        async move { self.optimizer.make(&Order { key, medium }, cancel).await }.boxed()
    }

    async fn deliver(&self, request: &Request, parcel: Parcel) -> Result<Delivered, Failure> {
        let bytes = parcel.files.iter().map(|file| file.made.facts.bytes).sum();
        let begun = instant();
        let delivered = timeout(self.settings.upload_timeout, self.delivery.deliver(request, parcel)).await;
        let result = delivered.unwrap_or(Err(Failure::TimedOut { stage: Stage::Upload }));
        match &result {
            Ok(_) => {
                self.tracker.stage(Stage::Upload, instant().saturating_duration_since(begun));
                self.tracker.count(Counter::UploadBytes, bytes);
            }
            Err(failure) => self.tracker.failure(Stage::Upload, failure.code()),
        }
        result
    }
}

/// Says that a job's task did not end by itself. Its claim was given up with it, so that whoever waits asks again.
fn log_fault(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a fault in the program ended a job");
    }
}

/// Pauses between attempts are never longer than this, unless an upstream asks for more.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The media that a choice means. A place that the post does not have means all of them: better too much than an
/// answer about numbers.
pub fn wanted(post: &Post, choice: Option<MediaChoice>) -> Vec<&Medium> {
    let all: Vec<&Medium> = post.answer().collect();
    let place = |place: NonZeroU8| usize::from(place.get()) - 1;
    let chosen = match choice {
        Some(MediaChoice::Photo(position) | MediaChoice::Video(position)) => all.get(place(position)),
        None => None,
    };
    chosen.map_or(all.clone(), |medium| vec![*medium])
}

/// What edits mean for a medium of this kind: a still picture has no part and no sound.
fn edits_for(kind: MediumKind, edits: Edits) -> Edits {
    match kind {
        MediumKind::Photo => Edits::default(),
        MediumKind::Video | MediumKind::Gif => edits,
    }
}

/// A name that says where the file is from: `handle-1234567890-1.mp4`.
pub fn file_name(post: &Post, medium: &Medium, made: &Made) -> String {
    let handle: String =
        post.author.handle.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(32).collect();
    let handle = if handle.is_empty() { "post".to_owned() } else { handle };
    format!("{handle}-{}-{}.{}", medium.post.number(), medium.index.get(), made.facts.extension)
}
