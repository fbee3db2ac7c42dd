//! Between Azalea's ids and those of the Discord library. Both are numbers that are never zero.

use std::num::NonZeroU64;

use serenity::model::id as theirs;

use crate::domain::{ChannelId, GuildId, MessageId, UserId};

/// Defines the way there and the way back for some kinds of ids.
macro_rules! ways {
    ($($ours:ident, $($to:ident)?, $from:ident;)+) => {$(
        $(pub(super) fn $to(id: $ours) -> theirs::$ours {
            theirs::$ours::new(id.get())
        })?

        pub(super) fn $from(id: theirs::$ours) -> $ours {
            // The library's ids are never zero either; the least one stands for what cannot be.
            $ours::new(NonZeroU64::new(id.get()).unwrap_or(NonZeroU64::MIN))
        }
    )+};
}

ways! {
    UserId, , from_user;
    GuildId, to_guild, from_guild;
    ChannelId, to_channel, from_channel;
    MessageId, , from_message;
}
