//! The two keys that keep work from being done twice.
//!
//! A key's `Display` is its stored form: one line of ASCII, at most 160 bytes, beginning with its version. Two keys
//! are equal exactly when their texts are. A digest would be shorter, but could not be read in a log or a store, and
//! would need a dependency whose output must never change.

use std::fmt;
use std::num::{NonZeroU8, NonZeroU32, NonZeroU64};

use crate::domain::id::{ChannelId, FrontEnd, PostId};
use crate::domain::link::MediaChoice;
use crate::domain::request::{Edits, Options, Request, Trim};

/// What must not be **posted** twice: destination channel, post and options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeliveryKey {
    front_end: FrontEnd,
    channel: ChannelId,
    post: PostId,
    options: Options,
}

impl DeliveryKey {
    /// The key of what `request` asks for. Who asks, and in which message, is no part of it.
    pub fn of(request: &Request) -> Self {
        Self {
            front_end: request.destination.front_end,
            channel: request.destination.channel,
            post: request.post(),
            options: Options {
                choice: request.choice(),
                edits: request.options.edits,
                spoiler: request.spoiler(),
                quoted: request.options.quoted,
                // Whoever asks for the same gets the same.
                unasked: false,
            },
        }
    }

    /// The channel that the result goes to.
    pub const fn channel(&self) -> ChannelId {
        self.channel
    }

    /// The post that is wanted.
    pub const fn post(&self) -> PostId {
        self.post
    }

    /// 64 bits in the place of the key, where thousands of them have to be small. Two of 10,000 keys have the same
    /// digest once in 10¹¹ times. It stands in files, so it never changes.
    pub(crate) fn digest(&self) -> u64 {
        let hash = blake3::hash(self.to_string().as_bytes());
        hash.as_bytes().first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

impl fmt::Display for DeliveryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Taken apart by name: a new field does not compile until it has its place in the text.
        let Self {
            front_end,
            channel,
            post,
            options: Options { choice, edits, spoiler, quoted, unasked: _ },
        } = self;
        write!(f, "delivery/1/{}/{channel}/{post}/", front_end.code())?;
        match choice {
            None => f.write_str("all")?,
            Some(MediaChoice::Photo(position)) => write!(f, "photo-{position}")?,
            Some(MediaChoice::Video(position)) => write!(f, "video-{position}")?,
        }
        write_edits(f, *edits)?;
        f.write_str(if *spoiler { "/spoiler" } else { "/open" })?;
        f.write_str(if *quoted { "/quoted" } else { "" })
    }
}

/// What must not be **made** twice: post, medium, every option that changes the bytes, limit class, engine profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArtifactKey {
    /// The post that has the medium. For a medium of a quoted post, the quoted post.
    pub post: PostId,
    /// Which of the post's media.
    pub medium: MediumIndex,
    /// What changes the bytes of the file.
    pub edits: Edits,
    /// How large the file may be.
    pub limit: LimitClass,
    /// Which engine makes it.
    pub profile: ProfileVersion,
}

impl fmt::Display for ArtifactKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { post, medium, edits, limit, profile } = self;
        write!(f, "artifact/1/{post}/{}", medium.0)?;
        write_edits(f, *edits)?;
        write!(f, "/{}/{}", limit.0, profile.0)
    }
}

/// The place of a medium among all media of its post, from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct MediumIndex(NonZeroU8);

impl MediumIndex {
    /// The medium at this place.
    pub const fn new(position: NonZeroU8) -> Self {
        Self(position)
    }

    /// The place, from one.
    pub const fn get(self) -> u8 {
        self.0.get()
    }
}

/// Destinations that allow files of the same size share their artifacts. In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitClass(NonZeroU64);

impl LimitClass {
    /// The class of destinations that take files of at most `bytes` bytes.
    pub const fn new(bytes: NonZeroU64) -> Self {
        Self(bytes)
    }

    /// The largest file, in bytes.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

/// Which engine profile made a file; it grows when the engine would make another file from the same input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProfileVersion(NonZeroU32);

impl ProfileVersion {
    /// The profile with this number.
    pub const fn new(number: NonZeroU32) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

/// Writes `/form/start-end`, in milliseconds; no end is an empty text.
fn write_edits(f: &mut fmt::Formatter<'_>, edits: Edits) -> fmt::Result {
    let Edits { form, trim } = edits;
    write!(f, "/{}/", form.code())?;
    if trim == Trim::default() {
        return f.write_str("whole");
    }
    write!(f, "{}-", trim.start().as_millis())?;
    trim.end().map_or(Ok(()), |end| write!(f, "{}", end.as_millis()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::option;
    use proptest::prelude::*;

    use super::*;
    use crate::domain::id::RequestId;
    use crate::domain::link::Link;
    use crate::domain::request::{Destination, Form};

    fn some_request() -> Request {
        Request {
            id: RequestId::new(FrontEnd::Discord, "111".parse().unwrap(), 0),
            requester: "222".parse().unwrap(),
            link: "https://x.com/ann/status/1234567890".parse().unwrap(),
            destination: Destination {
                front_end: FrontEnd::Discord,
                guild: Some("333".parse().unwrap()),
                channel: "444".parse().unwrap(),
                reply_to: Some("111".parse().unwrap()),
            },
            options: Options::default(),
        }
    }

    fn some_artifact() -> ArtifactKey {
        ArtifactKey {
            post: PostId::x("1234567890").unwrap(),
            medium: MediumIndex::new(NonZeroU8::MIN),
            edits: Edits::default(),
            limit: LimitClass::new(NonZeroU64::new(10_485_760).unwrap()),
            profile: ProfileVersion::new(NonZeroU32::new(3).unwrap()),
        }
    }

    fn seconds(start: u64, end: Option<u64>) -> Trim {
        Trim::new(Some(Duration::from_secs(start)), end.map(Duration::from_secs)).unwrap()
    }

    /// These texts stand in stores. If one changes, the version in it must change too.
    #[test]
    fn delivery_texts_are_as_stored() {
        let mut request = some_request();
        assert_eq!(
            DeliveryKey::of(&request).to_string(),
            "delivery/1/discord/444/x:1234567890/all/as-is/whole/open"
        );
        request.options = Options {
            choice: MediaChoice::video("2"),
            edits: Edits { form: Form::Gif, trim: seconds(1, Some(3)) },
            spoiler: true,
            ..Options::default()
        };
        assert_eq!(
            DeliveryKey::of(&request).to_string(),
            "delivery/1/discord/444/x:1234567890/video-2/gif/1000-3000/spoiler"
        );
        request.options = Options { quoted: true, ..Options::default() };
        assert_eq!(
            DeliveryKey::of(&request).to_string(),
            "delivery/1/discord/444/x:1234567890/all/as-is/whole/open/quoted"
        );
    }

    /// These texts stand in stores. If one changes, the version in it must change too.
    #[test]
    fn artifact_texts_are_as_stored() {
        let mut key = some_artifact();
        assert_eq!(key.to_string(), "artifact/1/x:1234567890/1/as-is/whole/10485760/3");
        key.edits = Edits { form: Form::AudioOnly, trim: seconds(90, None) };
        assert_eq!(key.to_string(), "artifact/1/x:1234567890/1/audio/90000-/10485760/3");
    }

    #[test]
    fn who_asks_in_which_message_is_no_part_of_a_delivery() {
        let first = some_request();
        let mut second = some_request();
        second.id = RequestId::new(FrontEnd::Discord, "999".parse().unwrap(), 4);
        second.requester = "888".parse().unwrap();
        second.destination.reply_to = None;
        second.link = "https://vxtwitter.com/i/web/status/1234567890?s=20".parse().unwrap();
        assert_eq!(DeliveryKey::of(&first), DeliveryKey::of(&second));
    }

    #[test]
    fn a_choice_in_the_link_and_in_words_is_one_delivery() {
        let mut linked = some_request();
        linked.link.choice = MediaChoice::photo("2");
        let mut said = some_request();
        said.options.choice = MediaChoice::photo("2");
        assert_eq!(DeliveryKey::of(&linked), DeliveryKey::of(&said));
    }

    fn choices() -> impl Strategy<Value = Option<MediaChoice>> {
        option::of((any::<bool>(), any::<NonZeroU8>()).prop_map(|(photo, position)| {
            if photo { MediaChoice::Photo(position) } else { MediaChoice::Video(position) }
        }))
    }

    fn edits() -> impl Strategy<Value = Edits> {
        let forms = prop_oneof![Just(Form::AsIs), Just(Form::AudioOnly), Just(Form::Gif)];
        // Few values, so that equal ones meet often.
        (forms, 0_u64..4, option::of(4_u64..8))
            .prop_map(|(form, start, end)| Edits { form, trim: seconds(start, end) })
    }

    fn deliveries() -> impl Strategy<Value = DeliveryKey> {
        (any::<bool>(), 1_u64..4, 1_u64..4, choices(), edits(), any::<bool>()).prop_map(
            |(console, channel, post, choice, edits, spoiler)| {
                let mut request = some_request();
                request.destination.front_end = if console { FrontEnd::Console } else { FrontEnd::Discord };
                request.destination.channel = ChannelId::new(NonZeroU64::new(channel).unwrap());
                request.link = Link { post: PostId::x(&post.to_string()).unwrap(), choice, spoiler };
                request.options.edits = edits;
                DeliveryKey::of(&request)
            },
        )
    }

    fn artifacts() -> impl Strategy<Value = ArtifactKey> {
        (1_u64..30, 1_u8..30, edits(), 1_u64..30, 1_u32..30).prop_map(
            |(post, medium, edits, limit, profile)| ArtifactKey {
                post: PostId::x(&post.to_string()).unwrap(),
                medium: MediumIndex::new(NonZeroU8::new(medium).unwrap()),
                edits,
                limit: LimitClass::new(NonZeroU64::new(limit).unwrap()),
                profile: ProfileVersion::new(NonZeroU32::new(profile).unwrap()),
            },
        )
    }

    proptest! {
        #[test]
        fn keys_are_equal_exactly_when_their_texts_are(
            deliveries in prop::collection::vec(deliveries(), 2..12),
            artifacts in prop::collection::vec(artifacts(), 2..12),
        ) {
            for (index, one) in deliveries.iter().enumerate() {
                for other in deliveries.iter().skip(index) {
                    prop_assert_eq!(one == other, one.to_string() == other.to_string());
                }
            }
            for (index, one) in artifacts.iter().enumerate() {
                for other in artifacts.iter().skip(index) {
                    prop_assert_eq!(one == other, one.to_string() == other.to_string());
                }
            }
        }

        #[test]
        fn texts_are_one_short_word(delivery in deliveries(), artifact in artifacts()) {
            for text in [delivery.to_string(), artifact.to_string()] {
                prop_assert!(text.len() <= 120 && text.bytes().all(|byte| byte.is_ascii_graphic()), "{}", text);
            }
        }
    }

    #[test]
    fn the_longest_texts_stay_short() {
        let longest = Trim::new(Some(Duration::from_secs(u64::MAX / 2)), Some(Duration::MAX)).unwrap();
        let mut request = some_request();
        request.destination.channel = ChannelId::new(NonZeroU64::MAX);
        request.link.post = PostId::x("9223372036854775807").unwrap();
        request.options.edits = Edits { form: Form::AudioOnly, trim: longest };
        assert!(DeliveryKey::of(&request).to_string().len() <= 160);
    }
}
