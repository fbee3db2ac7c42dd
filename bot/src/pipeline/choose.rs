//! Which variant of a medium is fetched, decided before any byte is moved.
//!
//! Pure: the same medium and the same limits give the same order.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::time::Duration;

use crate::domain::{Codec, Container, Failure, Medium, MediumKind, Variant};

/// What bounds the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Bytes of a file that can be delivered.
    pub(crate) limit: u64,
    /// Bytes that are downloaded at most.
    pub(crate) most: u64,
    /// The file will be encoded anyway: a part of it is wanted, or another kind of file.
    pub(crate) edited: bool,
}

/// The variants worth trying, the best first; never empty.
///
/// The best one that plays everywhere and fits the limit as it is comes first. When none does, or the file is
/// encoded anyway, it is the one with the most to see: a better source gives a better result at every size.
/// The others follow, so that a variant that is missing at its server does not end the request. Playlists, which
/// are no files, are never among them.
///
/// # Errors
/// [`Failure::Unsupported`] when there is nothing but playlists, [`Failure::TooLarge`] when every variant is known
/// to be larger than what is downloaded.
pub(crate) fn choose(medium: &Medium, bounds: Bounds) -> Result<Vec<&Variant>, Failure> {
    let usable = |variant: &&Variant| match medium.kind {
        MediumKind::Photo => variant.container == Container::Image,
        MediumKind::Video | MediumKind::Gif => {
            !matches!(variant.container, Container::Image | Container::Hls)
        }
    };
    let mut files: Vec<&Variant> = medium.variants.iter().filter(usable).collect();
    if files.is_empty() {
        return Err(Failure::Unsupported { what: "a stream without a file".to_owned() });
    }
    files.retain(|variant| variant.bytes.is_none_or(|bytes| bytes <= bounds.most));
    if files.is_empty() {
        let what = format!("every variant is larger than {} bytes", bounds.most);
        return Err(Failure::TooLarge { what });
    }
    files.sort_by_key(|variant| (Reverse(plays(variant)), Reverse(worth(variant))));
    let fits = |variant: &&Variant| {
        plays(variant) && expected(variant, medium.duration).is_some_and(|bytes| bytes <= bounds.limit)
    };
    if !bounds.edited
        && let Some(place) = files.iter().position(fits)
    {
        let best = files.remove(place);
        files.insert(0, best);
    }
    let mut seen = HashSet::new();
    files.retain(|variant| seen.insert(variant.url.as_str()));
    // What is too large by its rate is tried when nothing else is left: a rate is no promise.
    let beyond =
        |variant: &Variant| expected(variant, medium.duration).is_some_and(|bytes| bytes > bounds.most);
    files.sort_by_key(|variant| beyond(variant));
    Ok(files)
}

/// Whether another variant of the same medium may be had, or used, where one failed like this.
pub(crate) const fn another_may_do(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::Missing { .. }
            | Failure::Unsupported { .. }
            | Failure::TooLarge { .. }
            | Failure::Forbidden { .. }
            | Failure::Transient { .. }
    )
}

/// Whether every player shows it.
fn plays(variant: &Variant) -> bool {
    match variant.container {
        Container::Image => true,
        // X's mp4 files are H.264 unless something says otherwise.
        Container::Mp4 => matches!(variant.codec, None | Some(Codec::H264)),
        Container::WebM | Container::Hls | Container::Other => false,
    }
}

/// How much there is to see: bits a second, else pixels, else bytes.
fn worth(variant: &Variant) -> (u64, u64, u64) {
    let pixels = variant.size.map_or(0, |size| u64::from(size.width) * u64::from(size.height));
    (variant.bit_rate.unwrap_or(0), pixels, variant.bytes.unwrap_or(0))
}

/// Its bytes, or what its bit rate and length come to; `None` when neither is known.
fn expected(variant: &Variant, duration: Option<Duration>) -> Option<u64> {
    variant.bytes.or_else(|| {
        let millis = u64::try_from(duration?.as_millis()).ok().filter(|millis| *millis > 0)?;
        // A nominal rate leaves out the container and some of the sound.
        let bytes = variant.bit_rate?.saturating_mul(millis) / 8000;
        Some(bytes.saturating_add(bytes / 20))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{MediumIndex, PixelSize, PostId};

    const MIB: u64 = 1 << 20;
    const TEN: Bounds = Bounds { limit: 10 * MIB, most: 500 * MIB, edited: false };

    fn variant(name: &str, container: Container, bit_rate: u64) -> Variant {
        Variant {
            url: format!("https://video.example/{name}"),
            container,
            codec: None,
            bit_rate: (bit_rate > 0).then_some(bit_rate),
            size: None,
            bytes: None,
        }
    }

    fn video(seconds: u64, variants: Vec<Variant>) -> Medium {
        Medium {
            post: PostId::x("20").unwrap(),
            index: MediumIndex::new(std::num::NonZeroU8::MIN),
            kind: MediumKind::Video,
            alt: None,
            duration: (seconds > 0).then(|| Duration::from_secs(seconds)),
            size: None,
            variants,
        }
    }

    #[track_caller]
    fn check(medium: &Medium, bounds: Bounds, expected: &[&str]) {
        let names: Vec<&str> = choose(medium, bounds)
            .unwrap()
            .iter()
            .filter_map(|variant| variant.url.rsplit('/').next())
            .collect();
        assert_eq!(names, expected);
    }

    fn usual(seconds: u64) -> Medium {
        video(
            seconds,
            vec![
                variant("playlist", Container::Hls, 0),
                variant("270", Container::Mp4, 256_000),
                variant("720", Container::Mp4, 2_176_000),
                variant("1080", Container::Mp4, 10_368_000),
                variant("360", Container::Mp4, 832_000),
            ],
        )
    }

    #[test]
    fn the_best_that_fits_as_it_is_comes_first() {
        check(&usual(30), TEN, &["720", "1080", "360", "270"]);
        check(&usual(7), TEN, &["1080", "720", "360", "270"]);
        check(&usual(90), TEN, &["360", "1080", "720", "270"]);
    }

    #[test]
    fn what_must_be_encoded_is_encoded_from_the_best() {
        check(&usual(360), TEN, &["1080", "720", "360", "270"]);
        check(&usual(30), Bounds { edited: true, ..TEN }, &["1080", "720", "360", "270"]);
        check(&usual(0), TEN, &["1080", "720", "360", "270"]);
    }

    #[test]
    fn known_bytes_are_believed_before_rates() {
        let mut medium = usual(30);
        medium.variants[3].bytes = Some(9 * MIB);
        check(&medium, TEN, &["1080", "720", "360", "270"]);
    }

    #[test]
    fn what_does_not_play_everywhere_comes_last() {
        let mut medium = usual(360);
        medium.variants[3].codec = Some(Codec::Hevc);
        check(&medium, TEN, &["720", "360", "270", "1080"]);
    }

    #[test]
    fn a_playlist_or_a_thumbnail_is_never_taken_for_the_video() {
        let only = video(30, vec![variant("list", Container::Hls, 0), variant("thumb", Container::Image, 0)]);
        assert!(matches!(choose(&only, TEN), Err(Failure::Unsupported { .. })));
        let mut photo = only;
        photo.kind = MediumKind::Photo;
        check(&photo, TEN, &["thumb"]);
    }

    #[test]
    fn what_is_too_large_to_fetch_is_left_out() {
        let mut medium = usual(600);
        medium.variants[3].bytes = Some(700 * MIB);
        check(&medium, TEN, &["720", "360", "270"]);
        // Ten minutes at 10.4 Mbit/s are 780 MB.
        check(&usual(600), TEN, &["720", "360", "270", "1080"]);
        medium.variants.iter_mut().for_each(|variant| variant.bytes = Some(700 * MIB));
        assert!(matches!(choose(&medium, TEN), Err(Failure::TooLarge { .. })));
    }

    proptest! {
        #[test]
        fn an_answer_holds_files_only_and_each_once(
            kinds in prop::collection::vec((0_u8..5, any::<u64>(), any::<Option<u64>>(), any::<(u32, u32)>()), 0..12),
            seconds in any::<u32>(),
            limit in any::<u64>(),
            edited in any::<bool>(),
        ) {
            let variants: Vec<Variant> = kinds
                .into_iter()
                .enumerate()
                .map(|(number, (kind, rate, bytes, (width, height)))| {
                    let container = [Container::Mp4, Container::Hls, Container::Image, Container::WebM, Container::Other]
                        [usize::from(kind)];
                    let size = Some(PixelSize { width, height });
                    Variant { bytes, size, ..variant(&number.to_string(), container, rate) }
                })
                .collect();
            let medium = video(u64::from(seconds), variants);
            if let Ok(chosen) = choose(&medium, Bounds { limit, edited, ..TEN }) {
                prop_assert!(!chosen.is_empty());
                let mut urls: Vec<&str> = chosen.iter().map(|variant| variant.url.as_str()).collect();
                urls.sort_unstable();
                urls.dedup();
                prop_assert_eq!(urls.len(), chosen.len());
                for variant in chosen {
                    prop_assert!(!matches!(variant.container, Container::Hls | Container::Image));
                    prop_assert!(variant.bytes.is_none_or(|bytes| bytes <= TEN.most));
                }
            }
        }
    }
}
