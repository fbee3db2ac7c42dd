//! Whether somebody was told what they should be told.

use std::time::Duration;

/// What came of telling somebody something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "who was not told has to be told later"]
pub enum Telling {
    /// They were told, or there is nowhere where they can be: nothing is left to do.
    Settled,
    /// It may work later, not before this long from now when the other side said so.
    Later(Option<Duration>),
}
