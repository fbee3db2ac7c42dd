//! What is known about the limit of one channel. Pure: it is told the time.

use super::signals::Signals;
use crate::clock::Instant;

/// What is known about the limit of one channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    limit: Limit,
    /// How many may still be sent before it resets.
    left: u32,
    /// When it resets; `None` until an answer of this window says so.
    resets: Option<Instant>,
    /// The name that Discord has for the limit.
    bucket: Option<String>,
    /// Nothing may be sent before then, whatever else is known.
    blocked: Option<Instant>,
    /// How many were sent whose answer is still to come.
    open: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Limit {
    /// Nothing is known: one is sent, and its answer tells.
    #[default]
    Unknown,
    /// Answers say nothing of limits.
    None,
    /// So many for each window; at least one.
    Most(u32),
}

/// When the next message may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    Now,
    At(Instant),
    /// When one of those on their way was answered, or will not be.
    AfterAnswer,
}

impl Window {
    pub(super) fn ready(&self, now: Instant) -> Ready {
        if let Some(blocked) = self.blocked.filter(|blocked| *blocked > now) {
            return Ready::At(blocked);
        }
        match (self.limit, self.resets) {
            (Limit::None, _) => Ready::Now,
            (Limit::Unknown, _) if self.open == 0 => Ready::Now,
            (Limit::Unknown, _) => Ready::AfterAnswer,
            (Limit::Most(_), Some(resets)) if resets <= now => Ready::Now,
            (Limit::Most(_), _) if self.left > 0 => Ready::Now,
            (Limit::Most(_), Some(resets)) => Ready::At(resets),
            // None of those that were sent is going to tell any more, so the next one has to.
            (Limit::Most(_), None) if self.open == 0 => Ready::Now,
            (Limit::Most(_), None) => Ready::AfterAnswer,
        }
    }

    /// One message is sent.
    pub(super) fn take(&mut self, now: Instant) {
        if let (Limit::Most(most), Some(resets)) = (self.limit, self.resets)
            && resets <= now
        {
            self.left = most;
            self.resets = None;
        }
        self.left = self.left.saturating_sub(1);
        self.open = self.open.saturating_add(1);
    }

    /// One of those on their way was answered, or will not be.
    pub(super) fn settle(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// An answer says this about the limit. It is still counted among those on their way.
    pub(super) fn answered(&mut self, signals: &Signals, now: Instant) {
        let Some(told) = &signals.limit else {
            // A service without limits does not speak of them. An answer of another kind says nothing either way.
            if self.limit == Limit::Unknown && signals.success {
                self.limit = Limit::None;
            }
            return;
        };
        let resets = now.checked_add(told.reset_after);
        let others = self.open.saturating_sub(1);
        let later = match (self.resets, resets) {
            (Some(known), Some(resets)) => resets.saturating_duration_since(known) > SAME_WINDOW,
            _ => false,
        };
        let another = self.bucket.is_some() && self.bucket != signals.bucket;
        if matches!(self.limit, Limit::Most(_)) && !later && !another {
            // Answers come in any order; the least that one of them leaves is the truth.
            self.left = self.left.min(told.remaining);
        } else {
            // What the others took may be counted in this already, or not.
            self.left = told.remaining.saturating_sub(others);
        }
        self.limit = Limit::Most(told.most.max(1));
        self.resets = resets;
        if signals.bucket.is_some() {
            self.bucket.clone_from(&signals.bucket);
        }
    }

    /// One was too many: nothing until then, and after that one by one until an answer tells the limit.
    pub(super) fn blocked(&mut self, until: Instant) {
        self.blocked = Some(self.blocked.map_or(until, |other| other.max(until)));
        self.limit = Limit::Unknown;
        self.resets = None;
    }

    /// Whether something is lost when it is forgotten.
    pub(super) fn matters(&self, now: Instant) -> bool {
        let later = |moment: Option<Instant>| moment.is_some_and(|moment| moment > now);
        later(self.blocked) || (later(self.resets) && self.left == 0)
    }
}

/// Moments that two answers give for the end of one window differ by how long the answers took.
const SAME_WINDOW: std::time::Duration = std::time::Duration::from_millis(500);

#[cfg(test)]
mod tests;
