//! Finds what an earlier attempt has posted of an answer, so that nothing is posted twice.

use std::num::NonZeroU64;
use std::time::Duration;

use serenity::model::channel::Message;
use tracing::{info, warn};

use crate::clock::WallTime;
use crate::dedup::Delivered;
use crate::domain::{Disposition, Failure, MessageId, Request, RequestId};
use crate::frontend::discord::Discord;
use crate::frontend::discord::buttons::{self, Deed};
use crate::frontend::discord::ids::{from_channel, from_message};
use crate::frontend::discord::post::{Batch, failure_of};
use crate::frontend::discord::rest::{Posted, Refused};
use crate::pipeline::posting::Posting;
use crate::queue::Intent;

/// Discord recognises what was posted before for some minutes. Beyond this, it is looked for.
const RECOGNISED: Duration = Duration::from_secs(60);
/// Messages that are asked for at once, the most that Discord gives; and how often, in a channel where much is said.
const PAGE: u8 = 100;
const PAGES: usize = 10;
/// How far the clocks of Discord and this machine may be apart.
const SKEW: Duration = Duration::from_secs(600);
/// Where the time in Discord's ids begins: 2015-01-01, in milliseconds (Discord's reference, "Snowflakes").
const EPOCH: u64 = 1_420_070_400_000;

impl Discord {
    /// Whether what was delivered still stands there. When nobody can say, it does.
    pub(super) async fn still_stands(&self, delivered: &Delivered) -> bool {
        let Some(first) = delivered.messages.first() else { return false };
        let message = self.rest.message(delivered.channel, *first).await;
        !matches!(message, Err(Refused::UnknownMessage))
    }

    /// Removes what earlier attempts have posted, noted or not.
    pub(super) async fn remove_begun(&self, request: &Request, posting: &Posting) {
        let Some(earlier) = posting.earlier() else { return };
        let channel = request.destination.channel;
        let mut messages = earlier.posted.clone();
        match self.unnoted(request, earlier).await {
            Ok(found) => messages.extend(found.into_iter().map(|message| message.id)),
            Err(failure) => {
                warn!(request = %request.id, %failure, "nobody can look for what was posted of a request that was taken back");
            }
        }
        self.remove(channel, messages).await;
    }

    /// Puts what earlier attempts have posted into `posted`, and counts it in `batch`: what they noted, and what stands
    /// there without a note.
    pub(super) async fn posted_before(
        &self,
        request: &Request,
        posting: &Posting,
        batch: &mut Batch,
        posted: &mut Vec<Posted>,
    ) -> Result<(), Failure> {
        let Some(earlier) = posting.earlier() else { return Ok(()) };
        let channel = request.destination.channel;
        let mut gone = None;
        for id in &earlier.posted {
            let found = match self.rest.message(channel, *id).await {
                Ok(message) => as_posted(&message),
                // It was posted, and cannot be looked at: it has what would be posted next.
                Err(Refused::NoAccess { .. } | Refused::NoHistory) => {
                    Posted { id: *id, channel, files: batch.next().len() }
                }
                // Unknown means removed by somebody: what was there is not posted again.
                Err(refused) => {
                    gone = Some(failure_of(&refused, self.clock.now()));
                    continue;
                }
            };
            batch.done = batch.done.saturating_add(found.files.max(1));
            posted.push(found);
        }
        if let Some(failure) = gone {
            return Err(failure);
        }
        if self.clock.now().since(earlier.started_at) < RECOGNISED {
            return Ok(());
        }
        for found in self.unnoted(request, earlier).await? {
            batch.done = batch.done.saturating_add(found.files.max(1));
            posted.push(found);
        }
        Ok(())
    }

    /// What stands there of an earlier attempt without a note.
    async fn unnoted(&self, request: &Request, earlier: &Intent) -> Result<Vec<Posted>, Failure> {
        let channel = request.destination.channel;
        let mut found = Vec::new();
        // What was posted came after the message, or the command, that asked for it, and not before it was begun.
        let least = earlier.posted.last().copied().unwrap_or(request.id.origin());
        let mut after = first_of(earlier.started_at).map_or(least, |begun| begun.max(least));
        for _ in 0..PAGES {
            let mut page = match self.rest.messages_after(channel, after, PAGE).await {
                Ok(page) => page,
                Err(refused) => {
                    let failure = failure_of(&refused, self.clock.now());
                    // It is not posted a second time only since nobody could look.
                    if matches!(failure.disposition(), Disposition::Retry(_)) {
                        return Err(failure);
                    }
                    warn!(request = %request.id, error = %refused, "cannot look for what an earlier attempt has posted");
                    break;
                }
            };
            page.sort_by_key(|message| message.id);
            let Some(last) = page.last() else {
                // Nothing at all since: then this machine's clock may be ahead of Discord's by more than that.
                if after == least || !found.is_empty() {
                    break;
                }
                after = least;
                continue;
            };
            after = from_message(last.id);
            for message in page.iter().filter(|message| self.is_part(message, request.id)) {
                info!(request = %request.id, "found what an earlier attempt has posted");
                found.push(as_posted(message));
            }
            if page.len() < usize::from(PAGE) {
                break;
            }
        }
        Ok(found)
    }

    /// Whether a message is part of the answer to a request: its button says so.
    fn is_part(&self, message: &Message, request: RequestId) -> bool {
        message.author.id == self.identity.user
            && buttons::below(message).any(|button| button.deed == Deed::Delete && button.request == request)
    }
}

/// The first id that Discord can have given after this moment, less what clocks may be apart.
fn first_of(moment: WallTime) -> Option<MessageId> {
    let skew = u64::try_from(SKEW.as_millis()).unwrap_or(u64::MAX);
    let since = moment.as_millis().saturating_sub(EPOCH).saturating_sub(skew);
    NonZeroU64::new(since.saturating_mul(1 << 22)).map(MessageId::new)
}

fn as_posted(message: &Message) -> Posted {
    Posted {
        id: from_message(message.id),
        channel: from_channel(message.channel_id),
        files: message.attachments.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_when_they_were_given() {
        // Discord's own example: 175928847299117063 was given at 2016-04-30 11:18:25.796 UTC.
        let moment = WallTime::from_millis(1_462_015_105_796).plus(SKEW);
        assert_eq!(first_of(moment).unwrap().get(), 175_928_847_299_117_063 >> 22 << 22);
        assert_eq!(first_of(WallTime::from_millis(0)), None);
    }
}
