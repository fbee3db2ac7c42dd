//! A word on how it goes, for whoever waits long: a message that says the stage, and is gone when the media are there.
//!
//! Most requests end before there is one. It is edited seldom, since Discord counts edits, and nobody waits for it: neither
//! another status nor a delivery. Which message it is outlives the process, unless that dies within the store's interval.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::clock::instant;
use crate::dedup::Recent;
use crate::domain::{ChannelId, MessageId, Request, RequestId, nonce};
use crate::frontend::discord::rest::Outgoing;
use crate::frontend::discord::said::remove;
use crate::frontend::discord::{Discord, buttons, caption};
use crate::pipeline::activity::Sight;
use crate::queue::Queue;
use crate::store::Shelf;

/// Who has waited this long is told how it goes.
const PATIENCE: Duration = Duration::from_secs(4);
/// Between two looks; a message is edited at most once in two of them.
const LOOK: Duration = Duration::from_secs(1);
const BETWEEN_EDITS: Duration = Duration::from_secs(2);
/// Requests that are looked after at most. Those beyond it have no status, and their answer all the same.
const MOST: usize = 4096;
/// Statuses that are sent at once; the others are looked at the next time.
const AT_ONCE: usize = 32;
/// The part of a request's messages that its status is.
const PART: u8 = 250;
/// How long it is remembered which message it is: longer than a request lives.
const REMEMBERED: Duration = Duration::from_secs(2 * 86_400);

/// The requests that are under way.
#[derive(Debug)]
pub(super) struct Statuses {
    open: DashMap<RequestId, Arc<Status>>,
    /// Those that ended lately: what is said of them later comes too late.
    ended: Recent<RequestId>,
    /// Those that are being taken away.
    going: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct Status {
    request: Request,
    since: Instant,
    /// How far it is; `None` before its turn.
    sight: Mutex<Option<Sight>>,
    ended: AtomicBool,
    /// Held while it is sent.
    shown: tokio::sync::Mutex<Option<Shown>>,
}

#[derive(Debug)]
struct Shown {
    message: MessageId,
    text: String,
    at: Instant,
}

impl Statuses {
    pub(super) fn new(remembered: usize) -> Self {
        Self { open: DashMap::new(), ended: Recent::new(remembered), going: Mutex::default() }
    }

    /// A request is under way, and how far it is can be seen, unless it waits for its turn. Waits for nobody.
    pub(super) fn note(&self, request: &Request, sight: Option<Sight>) {
        let full = self.open.len() >= MOST;
        match self.open.entry(request.id) {
            Entry::Occupied(status) => *status.get().sight() = sight,
            // Looked at while the place is held, so that an end that comes now finds what is put there.
            Entry::Vacant(place) if !full && !self.ended.contains(&request.id) => {
                place.insert(Arc::new(Status {
                    request: request.clone(),
                    since: instant(),
                    sight: Mutex::new(sight),
                    ended: AtomicBool::new(false),
                    shown: tokio::sync::Mutex::default(),
                }));
            }
            Entry::Vacant(_) => {}
        }
    }

    /// The request of this id, if it is under way.
    pub(super) fn request(&self, id: RequestId) -> Option<Request> {
        self.open.get(&id).map(|status| status.request.clone())
    }
}

impl Status {
    fn sight(&self) -> std::sync::MutexGuard<'_, Option<Sight>> {
        // A value that is replaced whole: a panic elsewhere has not harmed it.
        self.sight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_due(&self) -> bool {
        !self.ended.load(Ordering::Acquire) && instant().saturating_duration_since(self.since) >= PATIENCE
    }
}

impl Discord {
    /// Keeps the statuses up to date until it is dropped.
    pub(super) async fn show_statuses(self: Arc<Self>, queue: Arc<dyn Queue>) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sending = JoinSet::new();
        loop {
            look.tick().await;
            while sending.try_join_next().is_some() {}
            let due = self.statuses.open.iter().filter(|entry| entry.value().is_due());
            let due: Vec<_> = due.map(|entry| Arc::clone(entry.value())).collect();
            let waits = due.iter().any(|status| status.sight().is_none());
            let ready = if waits { queue.stats().await.ok().map(|stats| stats.ready) } else { None };
            for status in due {
                // One that is just being sent is looked at the next time.
                if sending.len() < AT_ONCE && status.shown.try_lock().is_ok() {
                    let discord = Arc::clone(&self);
                    sending.spawn(async move { discord.show(&status, ready).await });
                }
            }
        }
    }

    /// Takes the status of a request away: there is an answer, or there will be none. Waits for no call.
    pub(super) async fn end_status(&self, request: &Request) {
        self.statuses.ended.insert(request.id);
        if let Some((_, status)) = self.statuses.open.remove(&request.id) {
            status.ended.store(true, Ordering::Release);
            // Whoever is just sending it takes it away.
            let Ok(mut shown) = status.shown.try_lock() else { return };
            if let Some(shown) = shown.take() {
                return self.take_away(request.id, request.destination.channel, shown.message);
            }
        }
        // An earlier process may have left one.
        if let Some(message) = self.status_before(request.id).await {
            self.take_away(request.id, request.destination.channel, message);
        }
    }

    fn take_away(&self, request: RequestId, channel: ChannelId, message: MessageId) {
        let (rest, store) = (self.rest.clone(), self.store.clone());
        let mut going = self.statuses.going.lock().unwrap_or_else(PoisonError::into_inner);
        while going.try_join_next().is_some() {}
        going.spawn(async move {
            // What stays is tried again when its request ends once more, as in the next process.
            if remove(&rest, channel, message).await {
                store.remove(Shelf::Discord, key(request));
            }
        });
    }

    /// Waits until all are away that are on their way.
    pub(super) async fn statuses_gone(&self) {
        let mut going =
            std::mem::take(&mut *self.statuses.going.lock().unwrap_or_else(PoisonError::into_inner));
        while going.join_next().await.is_some() {}
    }

    async fn show(&self, status: &Status, ready: Option<u64>) {
        let text = caption::stage(status.sight().as_ref(), ready);
        self.send(status, text).await;
        // It ended meanwhile, and whoever ended it left it to this one.
        if status.ended.load(Ordering::Acquire)
            && let Some(shown) = status.shown.lock().await.take()
        {
            self.take_away(status.request.id, status.request.destination.channel, shown.message);
        }
    }

    async fn send(&self, status: &Status, text: String) {
        let request = &status.request;
        let mut shown = status.shown.lock().await;
        if shown.is_none()
            && let Some(message) = self.status_before(request.id).await
        {
            *shown = Some(Shown { message, text: String::new(), at: instant() });
        }
        if shown.is_none() {
            let destination = &request.destination;
            let message = Outgoing {
                content: text.clone(),
                reply_to: self.answers(destination),
                nonce: Some(nonce(request.id, destination.channel, destination.reply_to, PART, 0)),
                files: Vec::new(),
                components: buttons::cancel(request),
                suppress_embeds: false,
            };
            match self.create(destination, message).await {
                Ok(posted) => {
                    let id = posted.id.get().to_le_bytes().to_vec();
                    self.store.put(Shelf::Discord, key(request.id), id, self.clock.now().plus(REMEMBERED));
                    *shown = Some(Shown { message: posted.id, text, at: instant() });
                }
                Err(refused) => {
                    tracing::debug!(request = %request.id, error = %refused, "no status is shown");
                    // It is an extra; nobody insists on it.
                    status.ended.store(true, Ordering::Release);
                }
            }
            return;
        }
        let Some(shown) = shown.as_mut() else { return };
        if shown.text == text || instant().saturating_duration_since(shown.at) < BETWEEN_EDITS {
            return;
        }
        let edit = json!({"content": text, "allowed_mentions": {"parse": []}});
        (shown.text, shown.at) = (text, instant());
        if let Err(refused) = self.rest.edit(request.destination.channel, shown.message, &edit).await {
            tracing::debug!(request = %request.id, error = %refused, "a status is not edited");
        }
    }

    async fn status_before(&self, request: RequestId) -> Option<MessageId> {
        let record = self.store.get(Shelf::Discord, &key(request)).await?;
        let number = u64::from_le_bytes(record.value.try_into().ok()?);
        NonZeroU64::new(number).map(MessageId::new)
    }
}

fn key(request: RequestId) -> String {
    format!("status/{request}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Destination, FrontEnd, Options};

    #[test]
    fn what_comes_after_the_end_opens_no_status() {
        let channel = "5".parse().unwrap();
        let request = Request {
            id: "discord-7-0".parse().unwrap(),
            requester: "3".parse().unwrap(),
            link: "https://x.com/i/status/20".parse().unwrap(),
            destination: Destination { front_end: FrontEnd::Discord, guild: None, channel, reply_to: None },
            options: Options::default(),
        };
        let statuses = Statuses::new(8);
        statuses.note(&request, Some(Sight::default()));
        assert_eq!(statuses.request(request.id), Some(request.clone()));
        statuses.ended.insert(request.id);
        statuses.open.remove(&request.id);
        statuses.note(&request, None);
        assert_eq!(statuses.request(request.id), None);
    }
}
