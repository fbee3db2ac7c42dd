//! Posts results: in as few messages as the limits allow, each of them once.

use std::time::Duration;

use tokio::time::timeout;

use crate::clock::WallTime;
use crate::dedup::Delivered;
use crate::domain::{Destination, Disposition, Failure, FrontEnd, MessageId, Request, Stage};
use crate::frontend::discord::Discord;
use crate::frontend::discord::buttons;
use crate::frontend::discord::caption::caption;
use crate::frontend::discord::rest::{Outgoing, OutgoingFile, Posted, Refused};
use crate::pipeline::delivery::{Parcel, ParcelFile};
use crate::pipeline::posting::Posting;

/// How long it may take to take a preview away.
const COVERING: Duration = Duration::from_secs(3);
/// The most files of one message.
const FILES: usize = 10;
impl Discord {
    /// Posts the files of a parcel. What was posted of it goes again when there will be no more of it.
    pub(super) async fn post(
        &self,
        request: &Request,
        parcel: Parcel,
        posting: &Posting,
    ) -> Result<Delivered, Failure> {
        let mut posted = Vec::new();
        let ended = self.post_parts(request, parcel, posting, &mut posted).await;
        let messages: Vec<MessageId> = posted.into_iter().map(|message| message.id).collect();
        let channel = request.destination.channel;
        match ended {
            Ok(()) => {
                // An extra, which must not make a failure of what stands there.
                let _ = timeout(COVERING, self.suppress(request)).await;
                let (front_end, at) = (FrontEnd::Discord, self.clock.now());
                Ok(Delivered { front_end, channel, messages, at })
            }
            Err(failure) => {
                if failure.disposition() == Disposition::GiveUp {
                    self.remove(channel, messages).await;
                }
                Err(failure)
            }
        }
    }

    /// Posts the files of a parcel one message after the other; `posted` are those that stand there.
    async fn post_parts(
        &self,
        request: &Request,
        parcel: Parcel,
        posting: &Posting,
        posted: &mut Vec<Posted>,
    ) -> Result<(), Failure> {
        let destination = &request.destination;
        let bare = self.settings.of(destination.guild).await.bare;
        let caption = caption(&parcel, bare);
        let mut batch = Batch { most: self.request_limit(destination), files: parcel.files, done: 0 };
        self.posted_before(request, posting, &mut batch, posted).await?;
        // Looked at after what an earlier process has posted is known, so that it goes.
        if self.was_withdrawn(request).await {
            return Err(Failure::Cancelled);
        }
        while batch.done < batch.files.len() {
            let part = u8::try_from(posted.len()).unwrap_or(u8::MAX);
            let files = batch.next();
            let last = batch.done.saturating_add(files.len()) >= batch.files.len();
            let parts = part.saturating_add(if last { 1 } else { 2 });
            posting
                .begin(destination.channel, parts, posted.iter().map(|message| message.id).collect())
                .await?;
            let message = Outgoing {
                content: if part == 0 { caption.clone() } else { String::new() },
                reply_to: self.answers(destination),
                nonce: Some(posting.nonce(request, part)),
                files: files.iter().map(|file| outgoing(file, parcel.spoiler)).collect(),
                // Below each part: it says whose it is, also where a later one is refused.
                components: buttons::delete(request),
                suppress_embeds: false,
            };
            match self.create(destination, message).await {
                Ok(message) => {
                    batch.done = batch.done.saturating_add(message.files.clamp(1, FILES));
                    posted.push(message);
                }
                // Too much at once, rather than too large: fewer files go with each message.
                Err(Refused::TooLarge) if files.len() > 1 => {
                    batch.most = files.iter().map(bytes).sum::<u64>() / 2;
                }
                Err(refused) => return Err(self.refused(request, files, &refused)),
            }
            if self.is_withdrawn(request) {
                return Err(Failure::Cancelled);
            }
        }
        Ok(())
    }

    /// Sends a message; without its reference where that cannot be given.
    pub(super) async fn create(
        &self,
        destination: &Destination,
        mut message: Outgoing,
    ) -> Result<Posted, Refused> {
        if let Some(code) = self.shut.why(destination.channel) {
            return Err(Refused::NoAccess { code });
        }
        let created = match self.rest.create(destination.channel, &message).await {
            Err(Refused::NoHistory) if message.reply_to.is_some() => {
                message.reply_to = None;
                self.rest.create(destination.channel, &message).await
            }
            other => other,
        };
        // Only words say that the channel takes nothing: files can be refused for what they are.
        if let Err(Refused::NoAccess { code }) = &created
            && message.files.is_empty()
        {
            self.shut.note(destination.channel, *code);
        }
        created
    }

    /// The message that is answered, where the bot can do that.
    pub(super) fn answers(&self, destination: &Destination) -> Option<MessageId> {
        let rights = self.knowledge.rights(destination.guild, destination.channel);
        destination.reply_to.filter(|_| rights.is_none_or(|rights| rights.may_answer()))
    }

    /// What a refusal means for the request. A limit that was wrong is put right, and then it is tried again.
    fn refused(&self, request: &Request, files: &[ParcelFile], refused: &Refused) -> Failure {
        if matches!(refused, Refused::TooLarge)
            && let Some(largest) = files.iter().map(bytes).max()
        {
            self.limits.refused(&request.destination, largest);
            let what = "the file was larger than what Discord takes there".to_owned();
            return Failure::Undelivered { what, retry_after: None };
        }
        failure_of(refused, self.clock.now())
    }

    /// The most bytes of one message with all its files.
    fn request_limit(&self, destination: &Destination) -> u64 {
        let file = self.limits.of(destination, self.boosted(destination)).get();
        file.max(REQUEST)
    }
}

/// Discord's word for the most of one request. Where it takes larger files, it takes larger requests.
const REQUEST: u64 = 25 << 20;

/// Files on their way into messages.
pub(super) struct Batch {
    files: Vec<ParcelFile>,
    /// How many of them stand there.
    pub(super) done: usize,
    most: u64,
}

impl Batch {
    /// The files of the next message: as many as fit, and at least one.
    pub(super) fn next(&self) -> &[ParcelFile] {
        let left = self.files.get(self.done..).unwrap_or_default();
        let mut total = 0_u64;
        let fitting = left.iter().take(FILES).take_while(|file| {
            total = total.saturating_add(bytes(file));
            total <= self.most
        });
        let count = fitting.count().max(1);
        left.get(..count).unwrap_or(left)
    }
}

fn bytes(file: &ParcelFile) -> u64 {
    file.made.facts.bytes
}

fn outgoing(file: &ParcelFile, spoiler: bool) -> OutgoingFile {
    OutgoingFile { name: file.name.clone(), alt: file.alt.clone(), spoiler, made: file.made.clone() }
}

/// What a refusal of Discord means, in the service's words.
pub(super) fn failure_of(refused: &Refused, now: WallTime) -> Failure {
    match refused {
        Refused::TooLarge => Failure::TooLarge { what: "Discord does not take it".to_owned() },
        Refused::NoAccess { .. } | Refused::NoHistory => {
            Failure::Unsupported { what: "Discord does not let me post it there".to_owned() }
        }
        Refused::Content { .. } => {
            Failure::Unsupported { what: "Discord's filters, or those of this server, refuse it".to_owned() }
        }
        // Posted, and removed by somebody: it is not posted again.
        Refused::UnknownMessage => Failure::Cancelled,
        Refused::Unanswered => Failure::TimedOut { stage: Stage::Upload },
        Refused::Limited { retry_after, .. } => Failure::Undelivered {
            what: "Discord asks for a pause".to_owned(),
            retry_after: Some(*retry_after),
        },
        Refused::Paused { until } => Failure::Undelivered {
            what: "Discord refused too much, so nothing is sent for a while".to_owned(),
            retry_after: Some(until.since(now)),
        },
        Refused::Later { .. } => Failure::Undelivered { what: refused.to_string(), retry_after: None },
        Refused::Form { .. } | Refused::Unauthorized | Refused::Blocked | Refused::Other { .. } => {
            Failure::ours(refused.to_string())
        }
        Refused::Ours { what } => Failure::ours(what.clone()),
    }
}
