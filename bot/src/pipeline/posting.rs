//! What a front end needs so that it posts the same thing once, whatever happens in between.

use std::sync::Arc;

use crate::clock::Clock;
use crate::domain::{ChannelId, Failure, MessageId, Request, nonce};
use crate::queue::{Held, Intent, Lease, LeaseRef, Queue};

/// One attempt at posting a result.
///
/// A front end first looks at what an [earlier](Posting::earlier) attempt was about to post, then says what it is
/// [about to post](Posting::begin), then posts it under the [nonces](Posting::nonce).
#[derive(Clone, Debug)]
pub struct Posting {
    held: Option<(Arc<dyn Queue>, LeaseRef)>,
    earlier: Option<Intent>,
    attempt: u32,
    generation: u32,
    clock: Clock,
}

impl Posting {
    /// For a job that is held by this lease.
    pub fn new(queue: Arc<dyn Queue>, lease: &Lease, clock: Clock) -> Self {
        Self {
            held: Some((queue, lease.lease)),
            earlier: lease.intent.clone(),
            attempt: lease.attempt,
            generation: lease.generation,
            clock,
        }
    }

    /// For something that is tried once and kept nowhere.
    pub const fn once(clock: Clock) -> Self {
        Self { held: None, earlier: None, attempt: u32::MAX, generation: 0, clock }
    }

    /// What an earlier attempt was about to post, and may have posted.
    pub const fn earlier(&self) -> Option<&Intent> {
        self.earlier.as_ref()
    }

    /// Which attempt it is, from 1; the last there can be when it is tried once.
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// What names message number `part` (from zero) of the result: the same in every attempt.
    pub fn nonce(&self, request: &Request, part: u8) -> String {
        let Request { id, destination, .. } = request;
        nonce(*id, destination.channel, destination.reply_to, part, self.generation)
    }

    /// Stores what is about to be posted, and what of it stands there by now, before the first byte is sent. When that
    /// cannot be stored, it is posted all the same.
    ///
    /// # Errors
    /// When somebody else has the job by now: nothing may be posted.
    pub async fn begin(&self, channel: ChannelId, parts: u8, posted: Vec<MessageId>) -> Result<(), Failure> {
        let Some((queue, lease)) = &self.held else { return Ok(()) };
        let started_at = self.earlier.as_ref().map_or_else(|| self.clock.now(), |intent| intent.started_at);
        match queue.intend(*lease, Intent { started_at, channel, parts, posted }).await {
            Ok(Held::Until(_)) => Ok(()),
            Ok(Held::Lost) => Err(Failure::transient("somebody else works on it by now")),
            Err(error) => {
                tracing::warn!(%error, job = %lease.job, "posted without a note of it: after a crash it may be posted again");
                Ok(())
            }
        }
    }
}
