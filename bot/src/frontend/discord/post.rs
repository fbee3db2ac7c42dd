//! Posts results: in as few messages as the limits allow, each of them once.

use std::time::Duration;

use serenity::model::channel::Message;
use tracing::{info, warn};

use crate::clock::WallTime;
use crate::dedup::Delivered;
use crate::domain::{Destination, Failure, FrontEnd, MessageId, Request, Stage};
use crate::frontend::discord::Discord;
use crate::frontend::discord::buttons;
use crate::frontend::discord::caption::caption;
use crate::frontend::discord::ids::{from_channel, from_message};
use crate::frontend::discord::rest::{Outgoing, OutgoingFile, Posted, Refused};
use crate::pipeline::delivery::{Parcel, ParcelFile};
use crate::pipeline::posting::Posting;

/// The most files of one message.
const FILES: usize = 10;
/// Discord recognises what was posted before for some minutes. Beyond this, it is looked for.
const RECOGNISED: Duration = Duration::from_secs(60);
/// Messages that are asked for at once, the most that Discord gives; and how often, in a channel where much is said.
const PAGE: u8 = 100;
const PAGES: usize = 10;

impl Discord {
    /// Posts the files of a parcel.
    pub(super) async fn post(
        &self,
        request: &Request,
        parcel: Parcel,
        posting: &Posting,
    ) -> Result<Delivered, Failure> {
        if self.is_withdrawn(request) {
            return Err(Failure::Cancelled);
        }
        let destination = &request.destination;
        let caption = caption(&parcel);
        let mut batch = Batch { most: self.request_limit(destination), files: parcel.files, done: 0 };
        let mut posted = self.posted_before(request, &batch.files, posting).await?;
        for message in &posted {
            batch.done = batch.done.saturating_add(message.files.max(1));
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
                components: if last { buttons::delete(request) } else { Vec::new() },
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
                self.remove(destination.channel, posted.iter().map(|message| message.id)).await;
                return Err(Failure::Cancelled);
            }
        }
        self.suppress(destination).await;
        let messages = posted.into_iter().map(|message| message.id).collect();
        let (front_end, at) = (FrontEnd::Discord, self.clock.now());
        Ok(Delivered { front_end, channel: destination.channel, messages, at })
    }

    /// Sends a message; without its reference where that cannot be given.
    pub(super) async fn create(
        &self,
        destination: &Destination,
        mut message: Outgoing,
    ) -> Result<Posted, Refused> {
        match self.rest.create(destination.channel, &message).await {
            Err(Refused::NoHistory) if message.reply_to.is_some() => {
                message.reply_to = None;
                self.rest.create(destination.channel, &message).await
            }
            other => other,
        }
    }

    /// The message that is answered, where the bot can do that.
    pub(super) fn answers(&self, destination: &Destination) -> Option<MessageId> {
        let rights = self.knowledge.rights(destination.guild, destination.channel);
        destination.reply_to.filter(|_| rights.is_none_or(|rights| rights.may_answer()))
    }

    /// What earlier attempts have posted: what they noted, and what stands there without a note.
    async fn posted_before(
        &self,
        request: &Request,
        files: &[ParcelFile],
        posting: &Posting,
    ) -> Result<Vec<Posted>, Failure> {
        let Some(earlier) = posting.earlier() else { return Ok(Vec::new()) };
        let channel = request.destination.channel;
        let mut posted = Vec::new();
        for id in &earlier.posted {
            match self.rest.message(channel, *id).await {
                Ok(message) => posted.push(as_posted(&message)),
                // Unknown means removed by somebody: what was there is not posted again.
                Err(refused) => return Err(failure_of(&refused, self.clock.now())),
            }
        }
        if self.clock.now().since(earlier.started_at) < RECOGNISED {
            return Ok(posted);
        }
        // What was posted came after the message, or the command, that asked for it.
        let mut after = earlier.posted.last().copied().unwrap_or(request.id.origin());
        for _ in 0..PAGES {
            let mut page = match self.rest.messages_after(channel, after, PAGE).await {
                Ok(page) => page,
                Err(refused) => {
                    warn!(request = %request.id, error = %refused, "cannot look for what an earlier attempt has posted");
                    break;
                }
            };
            page.sort_by_key(|message| message.id);
            let Some(last) = page.last() else { break };
            after = from_message(last.id);
            let found = page.iter().filter(|message| self.is_part(message, request, files));
            let found: Vec<Posted> = found.map(as_posted).collect();
            if !found.is_empty() {
                info!(request = %request.id, "found what an earlier attempt has posted");
            }
            posted.extend(found);
            if page.len() < usize::from(PAGE) {
                break;
            }
        }
        Ok(posted)
    }

    /// Whether a message is part of the answer to a request.
    fn is_part(&self, message: &Message, request: &Request, files: &[ParcelFile]) -> bool {
        let reference = message.message_reference.as_ref().and_then(|reference| reference.message_id);
        let answers = reference.map(from_message) == request.destination.reply_to || reference.is_none();
        let ours = |name: &str| files.iter().any(|file| name.trim_start_matches("SPOILER_") == file.name);
        message.author.id == self.identity.user
            && answers
            && !message.attachments.is_empty()
            && message.attachments.iter().all(|file| ours(&file.filename))
    }

    /// What a refusal means for the request. A limit that was wrong is put right, and then it is tried again.
    fn refused(&self, request: &Request, files: &[ParcelFile], refused: &Refused) -> Failure {
        if matches!(refused, Refused::TooLarge)
            && let Some(largest) = files.iter().map(bytes).max()
        {
            self.limits.refused(&request.destination, largest);
            let what = "the file was larger than what Discord takes there".to_owned();
            return Failure::Transient { what, retry_after: None };
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
struct Batch {
    files: Vec<ParcelFile>,
    done: usize,
    most: u64,
}

impl Batch {
    /// The files of the next message: as many as fit, and at least one.
    fn next(&self) -> &[ParcelFile] {
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

fn as_posted(message: &Message) -> Posted {
    Posted {
        id: from_message(message.id),
        channel: from_channel(message.channel_id),
        files: message.attachments.len(),
    }
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
        Refused::Limited { retry_after, .. } => Failure::Transient {
            what: "Discord asks for a pause".to_owned(),
            retry_after: Some(*retry_after),
        },
        Refused::Paused { until } => Failure::Transient {
            what: "Discord refused too much, so nothing is sent for a while".to_owned(),
            retry_after: Some(until.since(now)),
        },
        Refused::Later { .. } => Failure::transient(refused.to_string()),
        Refused::Form { .. } | Refused::Unauthorized | Refused::Blocked | Refused::Other { .. } => {
            Failure::ours(refused.to_string())
        }
        Refused::Ours { what } => Failure::ours(what.clone()),
    }
}
