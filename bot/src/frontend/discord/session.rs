//! A running session: takes what happens, and gives each thing to whoever deals with it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serenity::model::application::Interaction;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::dedup::Processed;
use crate::domain::FrontEnd;
use crate::frontend::discord::Discord;
use crate::frontend::discord::gateway::{Gateway, GatewayFailure, Happening, Patience};
use crate::intake::Intake;
use crate::queue::{Filter, Queue};

/// Things of one kind that are dealt with at once. More wait for a place.
const AT_ONCE: usize = 256;
/// Words that are on their way at once.
const WORDS_AT_ONCE: usize = 4096;
/// How long what was said before the end may take to be dealt with.
const GRACE: Duration = Duration::from_secs(5);
/// Jobs of an earlier run whose messages are known; a longer backlog is rare, and what is lost is a cancellation.
const RECALLED: usize = 10_000;

/// The pause before a connection is made anew, and the longest of those that follow.
const PAUSES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// Why a session ended.
#[derive(Debug)]
pub enum Ended {
    /// It was asked to.
    Asked,
    /// Discord does not let the bot go on.
    Gateway(GatewayFailure),
}

/// What is left to say about something that was dealt with; and what is left to wait for then, if anything.
pub(super) type Words = BoxFuture<'static, Option<BoxFuture<'static, ()>>>;

/// The events of one connection.
#[derive(Debug)]
pub struct Session {
    discord: Arc<Discord>,
    gateway: Gateway,
}

/// What deals with events needs beside Discord.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) discord: Arc<Discord>,
    pub(super) intake: Intake,
    pub(super) processed: Processed,
    pub(super) queue: Arc<dyn Queue>,
}

/// Places for those who are dealt with. Whoever gives a command has to be answered within three seconds, and waits for no
/// message; and a message is taken whether or not words to others come through.
#[derive(Debug)]
struct Places {
    messages: Arc<Semaphore>,
    commands: Arc<Semaphore>,
    /// So many that a channel which takes its time holds up no other.
    words: Arc<Semaphore>,
    /// What was begun and is not dealt with yet.
    begun: Arc<watch::Sender<usize>>,
}

/// Something that was begun; dropping it says that it was dealt with.
#[derive(Debug)]
struct Begun(Arc<watch::Sender<usize>>);

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.send_modify(|begun| *begun = begun.saturating_sub(1));
    }
}

impl Default for Places {
    fn default() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        let begun = Arc::new(watch::Sender::new(0));
        Self { messages: places(AT_ONCE), commands: places(AT_ONCE), words: places(WORDS_AT_ONCE), begun }
    }
}

impl Places {
    fn of(&self, happening: &Happening) -> Arc<Semaphore> {
        match happening {
            Happening::Asked(_) => Arc::clone(&self.commands),
            Happening::Written(_) | Happening::Previewed(..) | Happening::Deleted(..) => {
                Arc::clone(&self.messages)
            }
        }
    }

    /// Notes that something is begun.
    fn begin(&self) -> Begun {
        self.begun.send_modify(|begun| *begun = begun.saturating_add(1));
        Begun(Arc::clone(&self.begun))
    }

    /// Waits until all that was begun is dealt with.
    async fn all(&self) {
        let mut begun = self.begun.subscribe();
        drop(begun.wait_for(|begun| *begun == 0).await);
    }
}

impl Session {
    pub(super) const fn new(discord: Arc<Discord>, gateway: Gateway) -> Self {
        Self { discord, gateway }
    }

    /// Has the connection made anew when some part of it is `away`, or answers no heartbeat, for this long; three minutes
    /// unless it is said.
    #[must_use]
    pub const fn patience(mut self, away: Duration, silent: Duration) -> Self {
        self.gateway.patience = Patience { away, silent };
        self
    }

    /// Takes messages until it is told to stop, or Discord closes the connection for good.
    pub async fn run(
        mut self,
        intake: Intake,
        processed: Processed,
        queue: Arc<dyn Queue>,
        stop: CancellationToken,
    ) -> Ended {
        let desk = Arc::new(Desk { discord: Arc::clone(&self.discord), intake, processed, queue });
        desk.recall().await;
        let places = Places::default();
        let mut tasks: JoinSet<()> = JoinSet::new();
        let discord = Arc::clone(&self.discord);
        let showing = Arc::clone(&self.discord);
        let waiting = Arc::clone(&desk.queue);
        tasks.spawn(async move { showing.show_statuses(waiting).await });
        let offering = Arc::clone(&self.discord);
        tasks.spawn(async move { offering.offer_commands().await });
        let ended = loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break Ended::Asked,
                failure = self.discord.rest.over() => break Ended::Gateway(failure),
                happening = self.gateway.next() => match happening {
                    Ok(happening) => desk.begin(happening, &places, &mut tasks),
                    Err(failure) => match self.renew(failure, &stop).await {
                        Ok(mut before) => {
                            while let Some(happening) = before.recv().await {
                                desk.begin(happening, &places, &mut tasks);
                            }
                        }
                        Err(ended) => break ended,
                    },
                },
            }
            while tasks.try_join_next().is_some() {}
        };
        let mut events = self.gateway.close().await;
        // Discord will not say again what it has said: it is dealt with, and what is asked is put into the queue.
        let rest = async {
            while let Some(happening) = events.recv().await {
                desk.begin(happening, &places, &mut tasks);
            }
            places.all().await;
            discord.statuses_gone().await;
        };
        if timeout(GRACE, rest).await.is_err() {
            tracing::warn!("some of what was said in the last moment was not dealt with");
        }
        // Who waits for somebody else's request has a place in the queue.
        tasks.shutdown().await;
        ended
    }

    /// Makes the connection anew after it failed, as often as that may help; what had happened before.
    async fn renew(
        &mut self,
        failure: GatewayFailure,
        stop: &CancellationToken,
    ) -> Result<mpsc::Receiver<Happening>, Ended> {
        if !failure.may_pass() {
            return Err(Ended::Gateway(failure));
        }
        tracing::warn!(%failure, "the connection to Discord is lost; it is made anew");
        self.gateway.give_up().await;
        let (mut pause, longest) = PAUSES;
        loop {
            let again = async {
                sleep(pause).await;
                self.gateway.reconnect().await
            };
            let failure = tokio::select! {
                biased;
                () = stop.cancelled() => return Err(Ended::Asked),
                failure = self.discord.rest.over() => return Err(Ended::Gateway(failure)),
                renewed = again => match renewed {
                    Ok(before) => {
                        tracing::info!("the connection to Discord is there again");
                        return Ok(before);
                    }
                    Err(failure) => failure,
                },
            };
            if !failure.may_pass() {
                return Err(Ended::Gateway(failure));
            }
            tracing::warn!(%failure, ?pause, "the connection to Discord is tried again");
            pause = pause.saturating_mul(2).min(longest);
        }
    }
}

impl Desk {
    /// Learns which messages asked for what is not done yet: when they are deleted, it is not to be done any more.
    async fn recall(&self) {
        let filter = Filter { most: RECALLED, ..Filter::default() };
        match self.queue.list(filter).await {
            Ok(jobs) => {
                for job in jobs.iter().filter(|job| job.request.id.front_end() == FrontEnd::Discord) {
                    self.discord.seen.insert(job.request.id.origin());
                }
            }
            Err(error) => {
                tracing::warn!(%error, "messages of an earlier run are not known; deleting them ends nothing");
            }
        }
    }

    /// Begins to deal with one thing, holding a place as long as that takes.
    fn begin(self: &Arc<Self>, happening: Happening, places: &Places, tasks: &mut JoinSet<()>) {
        let begun = places.begin();
        let (desk, words, places) = (Arc::clone(self), Arc::clone(&places.words), places.of(&happening));
        tasks.spawn(async move {
            let place = places.acquire_owned().await;
            let Some(words_of) = desk.deal_with(happening).await else { return };
            let word = words.acquire_owned().await;
            drop(place);
            let waiting = words_of.await;
            // Whoever waits for somebody else's request holds no place.
            drop((word, begun));
            if let Some(waiting) = waiting {
                waiting.await;
            }
        });
    }

    /// Deals with one thing; and what is left to say.
    async fn deal_with(self: &Arc<Self>, happening: Happening) -> Option<Words> {
        match happening {
            Happening::Written(message) => return self.written(*message).await,
            Happening::Previewed(channel, message) => self.discord.cover_again(channel, message).await,
            Happening::Deleted(channel, messages) => {
                let desk = Arc::clone(self);
                let removing = async move {
                    for message in messages {
                        desk.deleted(channel, message).await;
                    }
                    None
                };
                return Some(removing.boxed());
            }
            Happening::Asked(interaction) => match *interaction {
                Interaction::Component(pressed) => return self.pressed(pressed).await,
                Interaction::Command(command) => return self.commanded(command).await,
                other => tracing::debug!(kind = ?other.kind(), "an interaction that nobody deals with"),
            },
        }
        None
    }
}
