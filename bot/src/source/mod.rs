//! Asks the sources of posts for a post, and remembers what they said.
//!
//! A [`Resolver`] answers from its cache, else asks a quorum of sources (VxTwitter, FxTwitter, X's syndication,
//! yt-dlp) and weighs their words. This room never knows who asked, what becomes of the media, or a byte of them.
//! Its invariants:
//!
//! - However many ask for one post at once, the sources are asked once.
//! - What may be otherwise later is never remembered. That a post is gone is believed on the word of an authority or
//!   of two sources that do not know each other.
//! - Everything a source says is hostile: it is bounded, and its addresses are http or https or dropped.
//! - A source in trouble is left alone for a while, but the last one is asked whatever its state.

mod address;
mod breaker;
mod draft;
mod failure;
mod fxtwitter;
mod quorum;
mod record;
mod resolver;
mod settings;
mod syndication;
mod verdict;
mod vxtwitter;
mod web;
mod wire;
mod ytdlp;

use std::fmt;

use futures_util::future::BoxFuture;

use crate::domain::{Post, PostId};

pub(crate) use failure::SourceFailure;
pub use resolver::Resolver;
pub use settings::{
    BreakerSettings, ResolverSettings, SourceName, SourceSettings, SourceSettingsError, WebSourceSettings,
    YtDlpSettings,
};
pub use ytdlp::YtDlpFacts;

/// One place to ask for a post.
pub(crate) trait Source: fmt::Debug + Send + Sync {
    /// Which one it is.
    fn name(&self) -> SourceName;

    /// The post with all of its media. It ends within the source's own time-out. Cancel-safe: dropping the future
    /// ends the request, and the process if there is one.
    ///
    /// # Errors
    /// With what the source said, or what kept it from saying anything.
    fn fetch(&self, post: PostId) -> BoxFuture<'_, Result<Post, SourceFailure>>;
}
