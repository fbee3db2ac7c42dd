//! What a client asks: the head of an HTTP request, and the part of a file that it wants.

use std::ops::Range;

use crate::domain::PostId;

/// A request, as far as this server cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// A post, asked for under the name of a user.
    Post {
        /// The post.
        id: PostId,
        /// The user, or `i` where the client did not know.
        user: String,
    },
    /// The clip.
    Clip {
        /// The part that is wanted, as it was written.
        range: Option<String>,
        /// The version that the part must be of; of another one, the whole is wanted.
        if_range: Option<String>,
    },
    /// Something that is not here.
    Unknown,
}

impl Request {
    /// Reads a head, up to and without the empty line; `None` when it is no HTTP/1 at all.
    pub(super) fn read(head: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(head).ok()?;
        let mut lines = text.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let (method, target, version) = (first.next()?, first.next()?, first.next()?);
        if first.next().is_some() || !version.starts_with("HTTP/1.") || !target.starts_with('/') {
            return None;
        }
        let (mut range, mut if_range) = (None, None);
        for line in lines {
            let (name, value) = line.split_once(':')?;
            let value = || Some(value.trim().to_owned());
            if name.eq_ignore_ascii_case("range") {
                range = value();
            } else if name.eq_ignore_ascii_case("if-range") {
                if_range = value();
            }
        }
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        Some(match (method, path) {
            ("GET", CLIP_PATH) => Self::Clip { range, if_range },
            ("GET", _) => post(path).unwrap_or(Self::Unknown),
            _ => Self::Unknown,
        })
    }
}

/// Where the clip is. X's own addresses end in `.mp4`, whatever is behind them.
pub(super) const CLIP_PATH: &str = "/video/azalea.mp4";

/// The post that `/user/status/id` names.
fn post(path: &str) -> Option<Request> {
    /// X allows 15; its own names are a little longer.
    const LONGEST_USER: usize = 32;
    let (user, digits) = path.strip_prefix('/')?.split_once("/status/")?;
    let named = (1..=LONGEST_USER).contains(&user.len())
        && user.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let id = PostId::x(digits).ok()?;
    named.then(|| Request::Post { id, user: user.to_owned() })
}

/// What of a file is given to a request for a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it: no part was asked for, several were, or the wish makes no sense.
    Whole,
    /// These bytes; at least one, all within the file.
    Within(Range<usize>),
    /// Nothing: the file ends before.
    Beyond,
}

/// Reads a `Range` header for a file of `length` bytes.
pub(super) fn part(wish: &str, length: usize) -> Part {
    let bytes = wish
        .split_once('=')
        .and_then(|(unit, range)| unit.trim().eq_ignore_ascii_case("bytes").then_some(range.trim()));
    let Some((first, last)) = bytes.and_then(|range| range.split_once('-')) else { return Part::Whole };
    match (number(first), number(last)) {
        // The last so many bytes.
        (None, Some(count)) if first.is_empty() => within(length.saturating_sub(count), length, length),
        (Some(first), None) if last.is_empty() => within(first, length, length),
        (Some(first), Some(last)) if first <= last => within(first, last.saturating_add(1), length),
        _ => Part::Whole,
    }
}

fn within(start: usize, end: usize, length: usize) -> Part {
    if start >= length { Part::Beyond } else { Part::Within(start..end.min(length)) }
}

/// A number, or the largest there is when it is larger.
fn number(digits: &str) -> Option<usize> {
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| digits.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(head: &str) -> Option<Request> {
        Request::read(head.as_bytes())
    }

    #[test]
    fn a_post_is_found_by_its_path() {
        let post = |user: &str| Some(Request::Post { id: PostId::x("20").unwrap(), user: user.to_owned() });
        assert_eq!(read("GET /i/status/20 HTTP/1.1\r\nHost: a"), post("i"));
        assert_eq!(read("GET /ann_1/status/20?s=20 HTTP/1.0"), post("ann_1"));
        for path in [
            "/",
            "/status/20",
            "/a/status/",
            "/a/status/0",
            "/a/status/20/",
            "/a-b/status/20",
            "/a/b/status/20",
        ] {
            assert_eq!(read(&format!("GET {path} HTTP/1.1")), Some(Request::Unknown), "{path}");
        }
        assert_eq!(read("POST /i/status/20 HTTP/1.1"), Some(Request::Unknown));
    }

    #[test]
    fn the_clip_is_asked_for_whole_or_in_part() {
        let clip = |range: Option<&str>, if_range: Option<&str>| {
            Some(Request::Clip { range: range.map(str::to_owned), if_range: if_range.map(str::to_owned) })
        };
        assert_eq!(read("GET /video/azalea.mp4?tag=12 HTTP/1.1"), clip(None, None));
        let head = "GET /video/azalea.mp4 HTTP/1.1\r\nrange:  bytes=1- \r\nIF-RANGE: \"a\"";
        assert_eq!(read(head), clip(Some("bytes=1-"), Some("\"a\"")));
    }

    #[test]
    fn what_is_no_request_is_told_apart() {
        for head in ["", "GET", "GET / HTTP/2", "GET  / HTTP/1.1", "GET x HTTP/1.1", "GET / HTTP/1.1\r\nHost"]
        {
            assert_eq!(read(head), None, "{head}");
        }
        assert_eq!(Request::read(b"GET /\xff HTTP/1.1"), None);
    }

    #[test]
    fn parts_are_read_as_the_standard_says() {
        for (wish, wanted) in [
            ("bytes=0-0", Part::Within(0..1)),
            ("bytes=2-", Part::Within(2..10)),
            ("Bytes = 2-5", Part::Within(2..6)),
            ("bytes=5-99999999999999999999999", Part::Within(5..10)),
            ("bytes=-3", Part::Within(7..10)),
            ("bytes=-30", Part::Within(0..10)),
            ("bytes=10-", Part::Beyond),
            ("bytes=99999999999999999999999-", Part::Beyond),
            ("bytes=-0", Part::Beyond),
            ("bytes=5-2", Part::Whole),
            ("bytes=0-1,3-4", Part::Whole),
            ("bytes=-", Part::Whole),
            ("bytes=+1-2", Part::Whole),
            ("pages=1-2", Part::Whole),
            ("", Part::Whole),
        ] {
            assert_eq!(part(wish, 10), wanted, "{wish}");
        }
        assert_eq!(part("bytes=0-", 0), Part::Beyond);
    }

    proptest! {
        #[test]
        fn no_head_panics(head in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Request::read(&head);
        }

        #[test]
        fn a_part_is_never_empty_and_never_outside(
            wish in prop_oneof!["bytes=[0-9]{0,22}-[0-9]{0,22}", "\\PC*"],
            length in 0_usize..100,
        ) {
            if let Part::Within(range) = part(&wish, length) {
                prop_assert!(range.start < range.end && range.end <= length);
            }
        }
    }
}
