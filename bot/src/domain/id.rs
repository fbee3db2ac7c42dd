//! Identifiers that know what they identify.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// Defines one kind of numeric id. They differ in type only, so that one is never taken for another.
macro_rules! numeric_id {
    ($(#[doc = $doc:literal])+ $name:ident, $kind:literal) => {
        $(#[doc = $doc])+
        ///
        /// Reads and prints as a decimal number without sign or leading zero.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU64);

        impl $name {
            /// The id with this number.
            pub const fn new(number: NonZeroU64) -> Self {
                Self(number)
            }

            /// The number.
            pub const fn get(self) -> u64 {
                self.0.get()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                decimal(text).map(Self).ok_or(ParseIdError { kind: $kind })
            }
        }
    };
}

numeric_id! {
    /// A person.
    UserId, "user"
}
numeric_id! {
    /// A server (Discord's word is guild).
    GuildId, "guild"
}
numeric_id! {
    /// A channel or thread: where results are posted.
    ChannelId, "channel"
}
numeric_id! {
    /// A message, or the interaction that stands for one.
    MessageId, "message"
}

/// Reads and writes these ids as their text.
macro_rules! serde_as_text {
    ($($name:ident),+) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

serde_as_text!(UserId, GuildId, ChannelId, MessageId, PostId, RequestId);

/// Where requests come from and results go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FrontEnd {
    /// Discord.
    Discord,
    /// The terminal.
    Console,
}

impl FrontEnd {
    const ALL: [Self; 2] = [Self::Discord, Self::Console];

    /// A short stable code for keys, logs and metrics.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Discord => "discord",
            Self::Console => "console",
        }
    }
}

/// A site that has posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Site {
    /// X, formerly Twitter, under all of its names and mirrors.
    X,
}

impl Site {
    const ALL: [Self; 1] = [Self::X];

    /// A short stable code for keys, logs and metrics.
    pub const fn code(self) -> &'static str {
        match self {
            Self::X => "x",
        }
    }
}

/// What a link names, however it is spelt.
///
/// Reads and prints as `x:1234567890`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PostId {
    site: Site,
    number: NonZeroU64,
}

impl PostId {
    /// The post of X with this status id: 1 to 19 digits, no sign, no leading zero.
    ///
    /// # Errors
    /// When `digits` is no such number. Status ids are signed 64-bit numbers at X, so larger ones name nothing.
    pub fn x(digits: &str) -> Result<Self, ParseIdError> {
        decimal(digits)
            .filter(|number| i64::try_from(number.get()).is_ok())
            .map(|number| Self { site: Site::X, number })
            .ok_or(ParseIdError { kind: "post" })
    }

    /// The site that has the post.
    pub const fn site(self) -> Site {
        self.site
    }

    /// The site's number of the post.
    pub const fn number(self) -> u64 {
        self.number.get()
    }

    /// The address of the post on its site, the same for all links that name it.
    pub fn url(self) -> String {
        match self.site {
            Site::X => format!("https://x.com/i/status/{}", self.number),
        }
    }
}

impl fmt::Display for PostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.site.code(), self.number)
    }
}

impl FromStr for PostId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = ParseIdError { kind: "post" };
        let (code, digits) = text.split_once(':').ok_or(bad)?;
        match Site::ALL.into_iter().find(|site| site.code() == code).ok_or(bad)? {
            Site::X => Self::x(digits),
        }
    }
}

/// One request: the message that made it, and which of its links is meant.
///
/// It is derived, not drawn, so that a message which the gateway delivers twice gives the same requests twice.
/// Reads and prints as `discord-1234-0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    front_end: FrontEnd,
    origin: MessageId,
    ordinal: u8,
}

impl RequestId {
    /// The request that link number `ordinal` (from zero) of the message `origin` makes.
    pub const fn new(front_end: FrontEnd, origin: MessageId, ordinal: u8) -> Self {
        Self { front_end, origin, ordinal }
    }

    /// Where the message was written.
    pub const fn front_end(self) -> FrontEnd {
        self.front_end
    }

    /// The message that made the request.
    pub const fn origin(self) -> MessageId {
        self.origin
    }

    /// Which link of the message, from zero.
    pub const fn ordinal(self) -> u8 {
        self.ordinal
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.front_end.code(), self.origin, self.ordinal)
    }
}

impl FromStr for RequestId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = ParseIdError { kind: "request" };
        let (code, rest) = text.split_once('-').ok_or(bad)?;
        let (origin, ordinal) = rest.split_once('-').ok_or(bad)?;
        let front_end = FrontEnd::ALL.into_iter().find(|front_end| front_end.code() == code).ok_or(bad)?;
        let origin = origin.parse().map_err(|_| bad)?;
        let ordinal = match ordinal {
            "0" => 0,
            // At most 255, or it is refused: the conversion checks.
            other => decimal(other).and_then(|number| u8::try_from(number.get()).ok()).ok_or(bad)?,
        };
        Ok(Self { front_end, origin, ordinal })
    }
}

/// A text that is no such id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a {kind} id")]
pub struct ParseIdError {
    kind: &'static str,
}

/// The number that `text` writes in its one canonical form: ASCII digits, no sign, no leading zero.
fn decimal(text: &str) -> Option<NonZeroU64> {
    // `parse` alone would take a leading `+` and leading zeros, and one id would have several texts.
    let canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    if canonical { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_have_one_text_only() {
        for text in ["", "0", "-1", "+1", "01", " 1", "1 ", "1e3", "١", "18446744073709551616"] {
            assert!(text.parse::<UserId>().is_err(), "{text:?}");
            assert!(PostId::x(text).is_err(), "{text:?}");
        }
        assert_eq!("18446744073709551615".parse::<ChannelId>().map(ChannelId::get), Ok(u64::MAX));
    }

    #[test]
    fn status_ids_are_positive_signed_64_bit_numbers() {
        assert_eq!(PostId::x("20").map(PostId::number), Ok(20));
        assert_eq!(PostId::x("9223372036854775807").map(PostId::number), Ok(9_223_372_036_854_775_807));
        assert!(PostId::x("9223372036854775808").is_err());
    }

    #[test]
    fn posts_print_as_stored_and_as_address() {
        let post = PostId::x("1234567890").unwrap();
        assert_eq!(post.to_string(), "x:1234567890");
        assert_eq!(post.url(), "https://x.com/i/status/1234567890");
        for text in ["", "x", "x:", "y:1", "X:1", "x:01", "x:1:2"] {
            assert!(text.parse::<PostId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn requests_print_as_stored() {
        let id = RequestId::new(FrontEnd::Console, "77".parse().unwrap(), 3);
        assert_eq!(id.to_string(), "console-77-3");
        for text in
            ["", "console", "console-77", "console-77-", "console-77-256", "console-77-00", "irc-77-3"]
        {
            assert!(text.parse::<RequestId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_error_names_the_kind_of_id() {
        assert_eq!("x".parse::<GuildId>().unwrap_err().to_string(), "not a guild id");
    }

    proptest! {
        #[test]
        fn ids_survive_their_text(number in 1_u64..=u64::MAX, status in 1_i64..=i64::MAX, ordinal: u8) {
            let message = MessageId::new(NonZeroU64::new(number).unwrap());
            prop_assert_eq!(message.to_string().parse(), Ok(message));
            let post = PostId::x(&status.to_string()).unwrap();
            prop_assert_eq!(post.to_string().parse(), Ok(post));
            for front_end in FrontEnd::ALL {
                let request = RequestId::new(front_end, message, ordinal);
                prop_assert_eq!(request.to_string().parse(), Ok(request));
            }
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<UserId>();
            let _ = text.parse::<PostId>();
            let _ = text.parse::<RequestId>();
        }
    }
}
