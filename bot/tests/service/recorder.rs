//! A front end that only remembers, and does what a test wants where a test wants it.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use azalea_bot::clock::Clock;
use azalea_bot::dedup::Delivered;
use azalea_bot::domain::{
    ChannelId, Destination, Failure, LimitClass, MediumKind, MessageId, Request, Stage, Telling,
};
use azalea_bot::guard::audience::Place;
use azalea_bot::pipeline::activity::Sight;
use azalea_bot::pipeline::delivery::{Delivery, Notice, Parcel};
use azalea_bot::pipeline::posting::Posting;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

/// What was posted.
#[derive(Clone, Debug)]
pub(crate) struct Posted {
    pub(crate) request: Request,
    pub(crate) spoiler: bool,
    pub(crate) files: Vec<PostedFile>,
    pub(crate) missing: Vec<Failure>,
}

/// One file of it.
#[derive(Clone, Debug)]
pub(crate) struct PostedFile {
    pub(crate) name: String,
    pub(crate) kind: MediumKind,
    pub(crate) alt: Option<String>,
    pub(crate) action: String,
    pub(crate) bytes: Bytes,
}

/// What happened so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) posted: Vec<Posted>,
    pub(crate) told: Vec<(Request, Notice)>,
    /// How often somebody could not be told something.
    pub(crate) unheard: usize,
    /// Each stage that a request came to.
    pub(crate) stages: Vec<(ChannelId, Stage)>,
}

/// How it answers a channel.
#[derive(Clone, Debug)]
pub(crate) enum Manner {
    /// It never ends.
    Hangs,
    /// It fails like this.
    Fails(Failure),
    /// It has a fault of its own.
    Panics,
    /// It takes files, and words to it never end.
    IsSilent,
}

#[derive(Debug)]
pub(crate) struct Recorder {
    limit: LimitClass,
    clock: Clock,
    seen: Mutex<Seen>,
    /// Grows with everything that happens, for those who wait for it.
    changed: watch::Sender<u64>,
    manners: Mutex<HashMap<ChannelId, Manner>>,
    /// How often from now on nobody can be told anything.
    deaf: AtomicUsize,
    /// Whether results may be posted now.
    open: watch::Sender<bool>,
}

impl Recorder {
    pub(crate) fn new(limit: u64, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            limit: LimitClass::new(NonZeroU64::new(limit).unwrap()),
            clock,
            seen: Mutex::default(),
            changed: watch::Sender::new(0),
            manners: Mutex::default(),
            deaf: AtomicUsize::new(0),
            open: watch::Sender::new(true),
        })
    }

    /// From now on posting to this channel goes like this.
    pub(crate) fn manner(&self, channel: ChannelId, manner: Manner) {
        self.manners.lock().unwrap().insert(channel, manner);
    }

    /// Nobody can be told anything the next `times` times.
    pub(crate) fn is_deaf(&self, times: usize) {
        self.deaf.store(times, Ordering::SeqCst);
    }

    /// Nothing is posted until [`Recorder::release`].
    pub(crate) fn hold(&self) {
        self.open.send_replace(false);
    }

    pub(crate) fn release(&self) {
        self.open.send_replace(true);
    }

    /// What this is of all that happened.
    pub(crate) fn of<T>(&self, part: impl FnOnce(&Seen) -> T) -> T {
        part(&self.seen.lock().unwrap())
    }

    /// Waits until this is so.
    pub(crate) async fn until(&self, is_so: impl Fn(&Seen) -> bool) {
        let mut changed = self.changed.subscribe();
        let waiting = changed.wait_for(|_| self.of(&is_so));
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            panic!("that did not happen: {:?}", self.of(|seen| (seen.posted.len(), seen.told.clone())));
        }
    }

    /// Waits until so many results are posted.
    pub(crate) async fn posted(&self, count: usize) -> Vec<Posted> {
        self.until(|seen| seen.posted.len() >= count).await;
        self.of(|seen| seen.posted.clone())
    }

    /// Waits until so much is told.
    pub(crate) async fn told(&self, count: usize) -> Vec<(Request, Notice)> {
        self.until(|seen| seen.told.len() >= count).await;
        self.of(|seen| seen.told.clone())
    }

    fn note(&self, what: impl FnOnce(&mut Seen)) {
        what(&mut self.seen.lock().unwrap());
        self.changed.send_modify(|changes| *changes += 1);
    }

    async fn post(&self, request: &Request, parcel: Parcel) -> Result<Delivered, Failure> {
        let channel = request.destination.channel;
        let mut open = self.open.subscribe();
        open.wait_for(|open| *open).await.unwrap();
        let manner = self.manners.lock().unwrap().get(&channel).cloned();
        match manner {
            Some(Manner::Hangs) => std::future::pending().await,
            Some(Manner::Fails(failure)) => return Err(failure),
            Some(Manner::Panics) => panic!("a fault of the front end"),
            Some(Manner::IsSilent) | None => {}
        }
        let mut files = Vec::new();
        for file in parcel.files {
            let bytes = file.made.bytes().await?;
            let action = file.made.facts.action.clone();
            files.push(PostedFile { name: file.name, kind: file.kind, alt: file.alt, action, bytes });
        }
        let (spoiler, missing) = (parcel.spoiler, parcel.missing);
        self.note(|seen| seen.posted.push(Posted { request: request.clone(), spoiler, files, missing }));
        let number = self.of(|seen| u64::try_from(seen.posted.len()).unwrap());
        Ok(Delivered {
            front_end: request.destination.front_end,
            channel,
            messages: vec![MessageId::new(NonZeroU64::new(number).unwrap())],
            at: self.clock.now(),
        })
    }
}

impl Delivery for Recorder {
    fn limit(&self, _: &Destination) -> LimitClass {
        self.limit
    }

    fn place(&self, _: &Destination) -> Place {
        Place::Ordinary
    }

    fn progress(&self, request: &Request, stage: Stage, _: Sight) {
        self.note(|seen| seen.stages.push((request.destination.channel, stage)));
    }

    fn deliver<'a>(
        &'a self,
        request: &'a Request,
        parcel: Parcel,
        _: &'a Posting,
    ) -> BoxFuture<'a, Result<Delivered, Failure>> {
        self.post(request, parcel).boxed()
    }

    fn tell<'a>(&'a self, request: &'a Request, notice: Notice) -> BoxFuture<'a, Telling> {
        let deaf = self.deaf.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if matches!(self.manners.lock().unwrap().get(&request.destination.channel), Some(Manner::IsSilent)) {
            return std::future::pending().boxed();
        }
        if deaf.is_ok() {
            self.note(|seen| seen.unheard += 1);
            return std::future::ready(Telling::Later(None)).boxed();
        }
        self.note(|seen| seen.told.push((request.clone(), notice)));
        std::future::ready(Telling::Settled).boxed()
    }
}

/// Longer than anything here takes on a busy machine; it passes only when a test fails.
const PATIENCE: Duration = Duration::from_secs(60);
