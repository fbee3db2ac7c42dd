//! Channels in which Discord lets nothing be written just now: the bot is timed out, a thread is locked, and nothing that is
//! known beforehand says so.
//!
//! Each refusal counts against the address, so one server could stop the bot for all. A channel that refused is left alone
//! for a while.

use std::time::Duration;

use dashmap::DashMap;

use crate::clock::Instant;
use crate::clock::instant;
use crate::domain::ChannelId;

/// How long a channel is left alone.
const ALONE: Duration = Duration::from_secs(60);
/// Channels that are remembered at most; those beyond it are found out anew.
const MOST: usize = 10_000;

/// The channels that refused lately, with Discord's number of the reason.
#[derive(Debug, Default)]
pub(super) struct Shut(DashMap<ChannelId, (u32, Instant)>);

impl Shut {
    /// A channel refused for this reason.
    pub(super) fn note(&self, channel: ChannelId, code: u32) {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        if let Some(until) = instant().checked_add(ALONE) {
            self.0.insert(channel, (code, until));
        }
    }

    /// Why a channel is left alone; `None` when it is not.
    pub(super) fn why(&self, channel: ChannelId) -> Option<u32> {
        let (code, until) = *self.0.get(&channel)?;
        if until > instant() {
            return Some(code);
        }
        self.0.remove_if(&channel, |_, (_, until)| *until <= instant());
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_channel_is_left_alone_for_a_while() {
        let shut = Shut::default();
        let (one, other): (ChannelId, ChannelId) = ("1".parse().unwrap(), "2".parse().unwrap());
        shut.note(one, 50_013);
        assert_eq!((shut.why(one), shut.why(other)), (Some(50_013), None));
        tokio::time::advance(ALONE).await;
        assert_eq!(shut.why(one), None);
    }
}
