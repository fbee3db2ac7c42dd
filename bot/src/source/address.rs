//! What the address of a medium says about the file behind it.

use url::Url;

use crate::domain::{Codec, Container, PixelSize, Variant};

/// The video file at this address, with what the address tells. `None` when it is no http or https address: there
/// is nothing to fetch then.
pub(super) fn video(address: &str) -> Option<Variant> {
    let url = web(address)?;
    let segments = || url.path_segments().into_iter().flatten();
    Some(Variant {
        container: container(&url),
        codec: segments().find_map(codec),
        bit_rate: None,
        size: segments().find_map(size),
        bytes: None,
        url: url.into(),
    })
}

/// The files that a photo can be had as, the best first; none when it is no http or https address.
///
/// X's own picture server scales by the parameter `name`, and only `orig` is the whole picture.
pub(super) fn photo(address: &str, size: Option<PixelSize>) -> Vec<Variant> {
    let Some(url) = web(address) else { return Vec::new() };
    let picture = |url: Url, size| Variant {
        container: Container::Image,
        codec: None,
        bit_rate: None,
        size,
        bytes: None,
        url: url.into(),
    };
    if url.host_str() != Some(PICTURE_HOST) {
        return vec![picture(url, size)];
    }
    let kept = url.query_pairs().filter(|(name, _)| name != "name");
    let kept: Vec<(String, String)> =
        kept.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    let mut whole = url.clone();
    whole.query_pairs_mut().clear().extend_pairs(kept).append_pair("name", "orig");
    if whole == url {
        return vec![picture(whole, size)];
    }
    vec![picture(whole, size), picture(url, None)]
}

/// Whether the address is one of X's silent loops.
pub(super) fn is_loop(address: &str) -> bool {
    web(address).is_some_and(|url| url.path_segments().is_some_and(|mut all| all.any(|s| s == "tweet_video")))
}

fn web(address: &str) -> Option<Url> {
    if address.len() > LONGEST_ADDRESS {
        return None;
    }
    let url = Url::parse(address).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

fn container(url: &Url) -> Container {
    let file = url.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default();
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match ending.as_str() {
        "mp4" | "m4v" => Container::Mp4,
        "webm" => Container::WebM,
        "m3u8" => Container::Hls,
        "jpg" | "jpeg" | "png" | "webp" | "gif" | "avif" => Container::Image,
        _ => Container::Other,
    }
}

/// The codec that a name stands for, as paths, formats and MIME parameters write it.
pub(super) fn codec(name: &str) -> Option<Codec> {
    let name = name.to_ascii_lowercase();
    // "avc1.64001f" is the codec with its profile.
    match name.split('.').next().unwrap_or_default() {
        "avc1" | "avc3" | "avc" | "h264" => Some(Codec::H264),
        "hevc" | "hev1" | "hvc1" | "h265" => Some(Codec::Hevc),
        "vp9" | "vp09" => Some(Codec::Vp9),
        "av1" | "av01" => Some(Codec::Av1),
        _ => None,
    }
}

/// A part of a path such as `1280x720`.
fn size(segment: &str) -> Option<PixelSize> {
    let (width, height) = segment.split_once('x')?;
    let side = |digits: &str| {
        let plain = digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|side| plain && *side > 0)
    };
    Some(PixelSize { width: side(width)?, height: side(height)? })
}

const PICTURE_HOST: &str = "pbs.twimg.com";
/// Addresses of X have some 150 characters; what is longer is no address to keep.
const LONGEST_ADDRESS: usize = 4_096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: PixelSize = PixelSize { width: 1280, height: 720 };

    #[test]
    fn a_path_tells_codec_and_size() {
        let url = "https://video.twimg.com/ext_tw_video/1/pu/vid/avc1/1280x720/a.mp4?tag=14";
        let variant = video(url).unwrap();
        assert_eq!(variant.url, url);
        assert_eq!((variant.codec, variant.size), (Some(Codec::H264), Some(SIZE)));
        assert_eq!(variant.container, Container::Mp4);
        let hevc = video("https://video.twimg.com/amplify_video/1/vid/hevc/720x1280/a.mp4").unwrap();
        assert_eq!(hevc.codec, Some(Codec::Hevc));
        assert_eq!(hevc.size, Some(PixelSize { width: 720, height: 1280 }));
        let plain = video("https://video.twimg.com/tweet_video/a.mp4").unwrap();
        assert_eq!((plain.codec, plain.size), (None, None));
    }

    #[test]
    fn a_playlist_is_known_by_its_ending() {
        let variant = video("https://video.twimg.com/ext_tw_video/1/pu/pl/a.m3u8?tag=14").unwrap();
        assert_eq!(variant.container, Container::Hls);
    }

    #[test]
    fn what_is_no_web_address_is_dropped() {
        for address in ["", "x", "file:///etc/passwd", "ftp://a/b.mp4", "data:video/mp4,a", "https:", "//a/b"]
        {
            assert_eq!(video(address), None, "{address}");
            assert_eq!(photo(address, None), [], "{address}");
        }
        assert_eq!(video(&format!("https://a/{}", "b".repeat(5_000))), None);
    }

    #[test]
    fn a_photo_is_had_whole_first() {
        let urls = |address: &str| photo(address, Some(SIZE)).into_iter().map(|v| v.url).collect::<Vec<_>>();
        let (plain, whole) =
            ("https://pbs.twimg.com/media/A.jpg", "https://pbs.twimg.com/media/A.jpg?name=orig");
        assert_eq!(urls(plain), [whole, plain]);
        assert_eq!(urls(whole), [whole]);
        assert_eq!(
            urls("https://pbs.twimg.com/media/A?format=png&name=small"),
            [
                "https://pbs.twimg.com/media/A?format=png&name=orig",
                "https://pbs.twimg.com/media/A?format=png&name=small"
            ]
        );
        assert_eq!(urls("http://127.0.0.1:9/A.jpg"), ["http://127.0.0.1:9/A.jpg"]);
    }

    #[test]
    fn sizes_are_plain_numbers() {
        for segment in ["x", "1x", "x1", "0x5", "+1x5", "1e1x5", "123456x5", "1x5x"] {
            assert_eq!(size(segment), None, "{segment}");
        }
    }

    proptest! {
        #[test]
        fn no_address_panics(address: String) {
            let _ = (video(&address), photo(&address, None), is_loop(&address));
        }
    }
}
