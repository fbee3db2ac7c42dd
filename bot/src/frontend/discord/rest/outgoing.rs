//! A message to be sent, and the one place where it becomes JSON.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use super::cut::cut;
use crate::domain::MessageId;
use crate::pipeline::optimize::Made;

/// A message to be sent. Whatever it says, it mentions nobody.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outgoing {
    /// Its text; of a longer one than Discord takes the beginning is sent.
    pub(crate) content: String,
    /// The message that it answers. It is sent all the same when that one is deleted by then.
    pub(crate) reply_to: Option<MessageId>,
    /// At most 25 characters. Within a few minutes a second message with it is not made; the first is answered again.
    pub(crate) nonce: Option<String>,
    /// Its files, in their order.
    pub(crate) files: Vec<OutgoingFile>,
    /// Its buttons, as Discord writes them.
    pub(crate) components: Vec<serde_json::Value>,
    /// Shows no previews of the links in its text.
    pub(crate) suppress_embeds: bool,
}

/// A file of a message.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingFile {
    /// Its name with its extension, without a mark for spoilers.
    pub(crate) name: String,
    /// What it shows, for those who do not see it; of a longer one than Discord takes the beginning is sent.
    pub(crate) alt: Option<String>,
    /// Hides it until it is clicked.
    pub(crate) spoiler: bool,
    /// The file.
    pub(crate) made: Arc<Made>,
}

impl OutgoingFile {
    /// The name that it is sent by. Old clients know a spoiler by its name alone.
    pub(super) fn sent_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let name: String = self.name.chars().map(plain).collect();
        match (self.spoiler, name.starts_with(SPOILER)) {
            (true, false) => format!("{SPOILER}{name}"),
            (true, true) | (false, false) => name,
            // Or the name alone would hide it.
            (false, true) => format!("_{name}"),
        }
    }
}

/// Writes the message as Discord reads it; the files themselves go beside it.
///
/// # Errors
/// When it cannot be written, which no message is known for.
pub(super) fn payload(message: &Outgoing) -> Result<Bytes, serde_json::Error> {
    let attachments = message.files.iter().enumerate().map(|(id, file)| Attachment {
        id,
        filename: file.sent_name(),
        description: file.alt.as_deref().filter(|alt| !alt.is_empty()).map(|alt| cut(alt, MOST_ALT)),
        is_spoiler: file.spoiler,
    });
    let payload = Payload {
        content: cut(&message.content, MOST_CONTENT),
        allowed_mentions: AllowedMentions { parse: [] },
        message_reference: message
            .reply_to
            .map(|message_id| MessageReference { message_id, fail_if_not_exists: false }),
        nonce: message.nonce.as_deref(),
        enforce_nonce: message.nonce.is_some(),
        flags: if message.suppress_embeds { SUPPRESS_EMBEDS } else { 0 },
        attachments: attachments.collect(),
        components: &message.components,
    };
    serde_json::to_vec(&payload).map(Bytes::from)
}

#[derive(Serialize)]
struct Payload<'a> {
    content: Cow<'a, str>,
    allowed_mentions: AllowedMentions,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_reference: Option<MessageReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<&'a str>,
    /// Without it the nonce is only told to the clients.
    #[serde(skip_serializing_if = "is_false")]
    enforce_nonce: bool,
    #[serde(skip_serializing_if = "is_zero")]
    flags: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    components: &'a [serde_json::Value],
}

/// The kinds of mentions that the text may make: none, of which an array of length zero holds no other number.
#[derive(Serialize)]
struct AllowedMentions {
    parse: [&'static str; 0],
}

#[derive(Serialize)]
struct MessageReference {
    message_id: MessageId,
    fail_if_not_exists: bool,
}

#[derive(Serialize)]
struct Attachment<'a> {
    /// The number in the name of its part of the form.
    id: usize,
    filename: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    is_spoiler: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// Characters of a message's text.
const MOST_CONTENT: usize = 2_000;
/// Characters of what is said about an attachment.
const MOST_ALT: usize = 1_024;
const SUPPRESS_EMBEDS: u32 = 1 << 2;
const SPOILER: &str = "SPOILER_";

#[cfg(test)]
mod tests;
