//! One person's wish.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::id::{ChannelId, FrontEnd, GuildId, MessageId, PostId, RequestId, UserId};
use crate::domain::link::{Link, MediaChoice};

/// One person's wish: this post, there, so.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Request {
    /// Which request it is; the same again when the same message arrives twice.
    pub id: RequestId,
    /// Who asks.
    pub requester: UserId,
    /// What is asked for, as it was written.
    pub link: Link,
    /// Where the result goes.
    pub destination: Destination,
    /// How it is wanted, as far as it was said in words or command options.
    pub options: Options,
}

impl Request {
    /// The post that is wanted.
    pub const fn post(&self) -> PostId {
        self.link.post
    }

    /// The one medium that is wanted; `None` means all of the post's media. What was said beats what the link says.
    pub fn choice(&self) -> Option<MediaChoice> {
        self.options.choice.or(self.link.choice)
    }

    /// Whether the result is hidden behind a spoiler: by wish, or since the link was.
    pub const fn spoiler(&self) -> bool {
        self.options.spoiler || self.link.spoiler
    }
}

/// Where a result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Destination {
    /// Which front end posts it.
    pub front_end: FrontEnd,
    /// The server that the channel belongs to; `None` for a direct message.
    pub guild: Option<GuildId>,
    /// The channel or thread that it is posted in.
    pub channel: ChannelId,
    /// The message that it answers; `None` when there is nothing to answer.
    pub reply_to: Option<MessageId>,
}

/// How a result is wanted. The default is what a bare link means: every medium, whole, as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The one medium that is wanted; `None` means what the link says.
    pub choice: Option<MediaChoice>,
    /// What changes the bytes of the file.
    pub edits: Edits,
    /// Hide the result behind a spoiler.
    pub spoiler: bool,
    /// The media of the post that it quotes too, where it has media of its own. Left out where it is not wished: so it is
    /// in records of earlier versions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quoted: bool,
    /// Nobody asked: a link was written where links are answered by themselves. Then nothing but media is an answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
}

/// The options that change the bytes of the file.
///
/// Both keys take this struct whole: an option that changes bytes belongs here, and then no key can forget it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Edits {
    /// What kind of file is wanted.
    pub form: Form,
    /// Which part of it.
    pub trim: Trim,
}

/// What kind of file is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The medium as what it is: a video stays a video, a photo a photo.
    #[default]
    AsIs,
    /// The sound alone.
    #[serde(rename = "audio")]
    AudioOnly,
    /// A GIF picture.
    Gif,
}

impl Form {
    /// A short stable code for keys, logs and metrics.
    pub const fn code(self) -> &'static str {
        match self {
            Self::AsIs => "as-is",
            Self::AudioOnly => "audio",
            Self::Gif => "gif",
        }
    }
}

/// A part of a medium in time, in whole milliseconds. The default is all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "StoredTrim", try_from = "StoredTrim")]
pub struct Trim {
    start: Duration,
    end: Option<Duration>,
}

impl Trim {
    /// From `start` until `end`, both counted from the medium's beginning and rounded down to milliseconds.
    /// No `start` means the beginning, no `end` means until it is over.
    ///
    /// # Errors
    /// When nothing lies between the two.
    pub fn new(start: Option<Duration>, end: Option<Duration>) -> Result<Self, EmptyTrim> {
        // Rounded here, once, so that equal wishes are equal values and share their key.
        let start = start.map(whole_millis).unwrap_or_default();
        let end = end.map(whole_millis);
        if end.is_some_and(|end| end <= start) { Err(EmptyTrim) } else { Ok(Self { start, end }) }
    }

    /// Where the part begins; zero is the medium's beginning.
    pub const fn start(self) -> Duration {
        self.start
    }

    /// Where the part ends; `None` means with the medium.
    pub const fn end(self) -> Option<Duration> {
        self.end
    }
}

/// A trim that would leave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the end is not after the start")]
pub struct EmptyTrim;

/// A part as it is stored, in milliseconds. Only [`Trim::new`] makes a part of it again.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredTrim {
    start: u64,
    end: Option<u64>,
}

impl From<Trim> for StoredTrim {
    fn from(trim: Trim) -> Self {
        // Half a thousand million years; what is beyond that is stored as the last moment there is.
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self { start: millis(trim.start), end: trim.end.map(millis) }
    }
}

impl TryFrom<StoredTrim> for Trim {
    type Error = EmptyTrim;

    fn try_from(stored: StoredTrim) -> Result<Self, EmptyTrim> {
        Self::new(Some(Duration::from_millis(stored.start)), stored.end.map(Duration::from_millis))
    }
}

/// `time` without what is finer than a millisecond.
fn whole_millis(time: Duration) -> Duration {
    Duration::new(time.as_secs(), time.subsec_millis().saturating_mul(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(link: &str, options: Options) -> Request {
        let channel = "5".parse().unwrap();
        Request {
            id: RequestId::new(FrontEnd::Discord, "9".parse().unwrap(), 0),
            requester: "7".parse().unwrap(),
            link: link.parse().unwrap(),
            destination: Destination { front_end: FrontEnd::Discord, guild: None, channel, reply_to: None },
            options,
        }
    }

    #[test]
    fn what_was_said_beats_what_the_link_says() {
        let said = Options { choice: MediaChoice::video("1"), ..Options::default() };
        let link = "https://x.com/a/status/20/photo/2";
        assert_eq!(request(link, Options::default()).choice(), MediaChoice::photo("2"));
        assert_eq!(request(link, said).choice(), MediaChoice::video("1"));
    }

    #[test]
    fn a_spoiler_is_never_lost() {
        let mut request = request("https://x.com/a/status/20", Options::default());
        assert!(!request.spoiler());
        request.link.spoiler = true;
        assert!(request.spoiler());
        request.link.spoiler = false;
        request.options.spoiler = true;
        assert!(request.spoiler());
    }

    #[test]
    fn a_trim_leaves_something() {
        let ms = |count| Some(Duration::from_millis(count));
        assert_eq!(Trim::new(ms(5), ms(5)), Err(EmptyTrim));
        assert_eq!(Trim::new(None, ms(0)), Err(EmptyTrim));
        assert_eq!(
            Trim::new(Some(Duration::from_micros(5_100)), Some(Duration::from_micros(5_900))),
            Err(EmptyTrim)
        );
        assert!(Trim::new(ms(5), ms(6)).is_ok());
        assert!(Trim::new(Some(Duration::MAX), None).is_ok());
    }

    #[test]
    fn what_is_wanted_survives_being_stored() {
        let mut wish = request("https://x.com/a/status/20/photo/2", Options::default());
        assert_eq!(
            serde_json::to_string(&wish).unwrap(),
            "{\"id\":\"discord-9-0\",\"requester\":\"7\",\
             \"link\":{\"post\":\"x:20\",\"choice\":{\"photo\":2},\"spoiler\":false},\
             \"destination\":{\"front_end\":\"discord\",\"guild\":null,\"channel\":\"5\",\"reply_to\":null},\
             \"options\":{\"choice\":null,\"edits\":{\"form\":\"as-is\",\"trim\":{\"start\":0,\"end\":null}},\
             \"spoiler\":false}}"
        );
        wish.options.edits = Edits {
            form: Form::AudioOnly,
            trim: Trim::new(Some(Duration::from_secs(1)), Some(Duration::from_secs(2))).unwrap(),
        };
        let text = serde_json::to_string(&wish).unwrap();
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), wish);
    }

    #[test]
    fn an_empty_part_is_not_read_back() {
        assert!(serde_json::from_str::<Trim>(r#"{"start":5,"end":5}"#).is_err());
        assert_eq!(serde_json::from_str::<Trim>("{}").unwrap(), Trim::default());
    }

    #[test]
    fn equal_parts_are_equal_values() {
        assert_eq!(Trim::new(Some(Duration::ZERO), None), Ok(Trim::default()));
        assert_eq!(
            Trim::new(Some(Duration::from_micros(1_999)), None),
            Trim::new(Some(Duration::from_millis(1)), None)
        );
    }
}
