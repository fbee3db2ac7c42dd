//! The words of the service as plain types: links, posts, requests, keys.
//!
//! This room never knows I/O, time, configuration or another room. Its invariants:
//!
//! - A value that exists is valid: ids are never zero, trims are never empty. Checks stand in the constructors.
//! - The text of an id or key is stable. It is stored, so a change of its meaning needs a new version in the text.
//! - Nothing here panics or takes more than linear time, whatever text a stranger sends.

mod failure;
mod id;
mod keys;
mod link;
mod nonce;
mod post;
mod request;
mod telling;
mod time;

pub use failure::{Disposition, Failure, GoneReason, Stage};
pub use id::{ChannelId, FrontEnd, GuildId, MessageId, ParseIdError, PostId, RequestId, Site, UserId};
pub use keys::{ArtifactKey, DeliveryKey, LimitClass, MediumIndex, ProfileVersion};
pub use link::{FoundLinks, Link, MAX_LINKS_PER_MESSAGE, MediaChoice, ParseLinkError, find_links};
pub use nonce::nonce;
pub use post::{Author, Codec, Container, Medium, MediumKind, PixelSize, Post, Quoted, Variant};
pub use request::{Destination, Edits, EmptyTrim, Form, Options, Request, Trim};
pub use telling::Telling;
pub use time::parse_time;
