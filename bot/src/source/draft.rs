//! Builds a post from what a source shows, and notices what is missing.

use std::num::NonZeroU8;
use std::time::Duration;

use crate::domain::{Author, Medium, MediumIndex, MediumKind, PixelSize, Post, PostId, Quoted, Variant};
use crate::source::failure::SourceFailure;

/// One medium as a source shows it.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) kind: MediumKind,
    pub(super) alt: String,
    pub(super) duration: Option<Duration>,
    pub(super) size: Option<PixelSize>,
    pub(super) variants: Vec<Variant>,
}

/// A post in the making.
#[derive(Debug)]
pub(super) struct Draft {
    post: Post,
    /// Media of the post itself, and of the quoted one, that the source lists and does not give.
    lost: [usize; 2],
}

impl Draft {
    pub(super) fn new(id: PostId, name: &str, handle: &str, text: &str) -> Self {
        let (author, text) = (author(name, handle), short(without_media_links(text), LONGEST_TEXT));
        let (media, quoted) = (Vec::new(), Vec::new());
        Self { post: Post { id, author, text, sensitive: false, media, quoted }, lost: [0; 2] }
    }

    /// Notes who wrote another post, whose media are added as well.
    pub(super) fn quote(&mut self, owner: PostId, name: &str, handle: &str) {
        if !handle.is_empty() {
            self.post.quoted.push(Quoted { id: owner, author: author(name, handle) });
        }
    }

    /// Marks the post as sensitive. Once is enough: it is never taken back.
    pub(super) fn mark_sensitive(&mut self, sensitive: bool) {
        self.post.sensitive |= sensitive;
    }

    /// Adds the media of `owner` in their order; `None` is one that could not be read.
    pub(super) fn add(&mut self, owner: PostId, media: impl IntoIterator<Item = Option<Shown>>) {
        for (at, shown) in media.into_iter().enumerate() {
            let place = u8::try_from(at).ok().and_then(|at| at.checked_add(1)).and_then(NonZeroU8::new);
            match (place, shown.filter(|shown| !shown.variants.is_empty())) {
                (Some(place), Some(shown)) => {
                    self.post.media.push(medium(owner, MediumIndex::new(place), shown));
                }
                _ if owner == self.post.id => self.lost[0] = self.lost[0].saturating_add(1),
                _ => self.lost[1] = self.lost[1].saturating_add(1),
            }
        }
    }

    /// The post.
    ///
    /// # Errors
    /// When it has no media at all, or when media that would answer a link to it are missing.
    pub(super) fn finish(self) -> Result<Post, SourceFailure> {
        let [own, quoted] = self.lost;
        let has_own = own > 0 || self.post.media.iter().any(|medium| !medium.is_quoted(self.post.id));
        let missing = if has_own { own } else { quoted };
        match (self.post.media.is_empty(), missing) {
            (false, 0) => Ok(self.post),
            (false, _) => Err(SourceFailure::Partial(Box::new(self.post))),
            (true, 0) => Err(SourceFailure::NoMedia),
            (true, _) => Err(SourceFailure::unclear("it gives none of the media that it lists")),
        }
    }

    /// The post, of a source that cannot show every kind of media.
    ///
    /// # Errors
    /// Always; with the post when it has media.
    pub(super) fn finish_in_part(self) -> Result<Post, SourceFailure> {
        Err(match self.finish() {
            Ok(post) => SourceFailure::Partial(Box::new(post)),
            Err(SourceFailure::NoMedia) => SourceFailure::unclear("it gives no media"),
            Err(other) => other,
        })
    }
}

fn author(name: &str, handle: &str) -> Author {
    Author { name: short(name, LONGEST_NAME), handle: short(handle, LONGEST_NAME) }
}

fn medium(post: PostId, index: MediumIndex, shown: Shown) -> Medium {
    let Shown { kind, alt, duration, size, mut variants } = shown;
    variants.truncate(MOST_VARIANTS);
    // The best first: files before playlists, then by bit rate; the order of the source otherwise.
    variants.sort_by_key(|variant| {
        let playlist = variant.container == crate::domain::Container::Hls;
        (playlist, std::cmp::Reverse(variant.bit_rate))
    });
    let largest = variants.iter().filter_map(|variant| variant.size).max_by_key(|size| size.height);
    let alt = short(alt.trim(), LONGEST_ALT);
    let duration = duration.filter(|_| kind != MediumKind::Photo);
    Medium {
        post,
        index,
        kind,
        alt: (!alt.is_empty()).then_some(alt),
        duration,
        size: size.or(largest),
        variants,
    }
}

/// The size, when both sides are known.
pub(super) fn size(width: Option<u32>, height: Option<u32>) -> Option<PixelSize> {
    Some(PixelSize { width: width?, height: height? })
}

/// `text` without the short links at its end, by which X points at the post's own media.
fn without_media_links(text: &str) -> &str {
    let mut kept = text.trim_end();
    while let Some(at) = kept.rfind("https://t.co/") {
        let (before, link) = kept.split_at(at);
        let code = link.strip_prefix("https://t.co/").unwrap_or_default();
        let alone = before.is_empty() || before.ends_with(char::is_whitespace);
        if !alone || code.is_empty() || !code.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            break;
        }
        kept = before.trim_end();
    }
    kept
}

/// The first `most` characters.
fn short(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

// Bounds on what a source may say, in characters; X's own are 25 000 for a text, 1 000 for a description, 50 for a name
// and 15 for a handle.
const LONGEST_TEXT: usize = 32_000;
const LONGEST_ALT: usize = 4_000;
const LONGEST_NAME: usize = 64;
const MOST_VARIANTS: usize = 32;

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::source::address;

    fn id(digits: &str) -> PostId {
        PostId::x(digits).unwrap()
    }

    fn shown(address: &str) -> Option<Shown> {
        let variants = address::video(address).into_iter().collect();
        Some(Shown { kind: MediumKind::Video, alt: String::new(), duration: None, size: None, variants })
    }

    pub(in crate::source) fn medium(url: &str) -> Medium {
        let index = MediumIndex::new(NonZeroU8::MIN);
        super::medium(id("20"), index, shown(url).unwrap())
    }

    const GOOD: &str = "https://video.twimg.com/a.mp4";

    #[test]
    fn a_medium_without_a_file_leaves_its_place_empty() {
        let mut draft = Draft::new(id("20"), "", "", "");
        draft.add(id("20"), [shown(GOOD), shown(""), shown(GOOD)]);
        let Err(SourceFailure::Partial(post)) = draft.finish() else { panic!("it is a part") };
        let places: Vec<u8> = post.media.iter().map(|medium| medium.index.get()).collect();
        assert_eq!(places, [1, 3]);
    }

    #[test]
    fn what_is_missing_of_a_quote_does_not_matter_beside_own_media() {
        let mut draft = Draft::new(id("20"), "", "", "");
        draft.add(id("20"), [shown(GOOD)]);
        draft.add(id("19"), [shown(""), shown(GOOD)]);
        let post = draft.finish().unwrap();
        let owners: Vec<u64> = post.media.iter().map(|medium| medium.post.number()).collect();
        assert_eq!(owners, [20, 19]);
        let mut draft = Draft::new(id("20"), "", "", "");
        draft.add(id("19"), [shown(""), shown(GOOD)]);
        assert!(matches!(draft.finish(), Err(SourceFailure::Partial(_))));
    }

    #[test]
    fn names_and_handles_are_bounded() {
        let long = "é".repeat(65);
        let mut draft = Draft::new(id("20"), &long, &long, "");
        draft.quote(id("19"), &long, &long);
        draft.add(id("19"), [shown(GOOD)]);
        let post = draft.finish().unwrap();
        let bounded = Author { name: "é".repeat(64), handle: "é".repeat(64) };
        assert_eq!((post.author_of(&post.media[0]), &post.author), (Some(&bounded), &bounded));
    }

    #[test]
    fn a_post_without_media_is_told_from_one_whose_media_are_missing() {
        assert_eq!(Draft::new(id("20"), "", "", "").finish(), Err(SourceFailure::NoMedia));
        let mut draft = Draft::new(id("20"), "", "", "");
        draft.add(id("20"), [None]);
        assert!(matches!(draft.finish(), Err(SourceFailure::Unclear { .. })));
    }

    #[test]
    fn no_more_media_than_can_be_numbered() {
        let mut draft = Draft::new(id("20"), "", "", "");
        draft.add(id("20"), (0..300).map(|_| shown(GOOD)));
        let Err(SourceFailure::Partial(post)) = draft.finish() else { panic!("it is a part") };
        assert_eq!(post.media.len(), 255);
    }

    #[test]
    fn links_to_own_media_are_no_words() {
        assert_eq!(without_media_links("hello https://t.co/abc https://t.co/DEF \n"), "hello");
        assert_eq!(without_media_links("https://t.co/abc"), "");
        assert_eq!(without_media_links("see https://t.co/abc there"), "see https://t.co/abc there");
        assert_eq!(without_media_links("xhttps://t.co/abc"), "xhttps://t.co/abc");
    }
}
