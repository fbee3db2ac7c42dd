//! What the head of an answer means for a download. Pure.

use super::DownloadError;
use super::attempt::Trouble;
use crate::domain::Failure;
use crate::http::{Head, Validator};

/// What is there of the file.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// How many bytes the sink has.
    pub(super) bytes: u64,
    /// How many there are, when known.
    pub(super) total: Option<u64>,
    /// Which version of the file they are of.
    pub(super) version: Validator,
    /// The media type that came with them.
    pub(super) content_type: Option<String>,
    /// Whether to ask for a part at all; false after the server did something odd with one.
    pub(super) ranges: bool,
}

impl Default for Held {
    fn default() -> Self {
        Self { bytes: 0, total: None, version: Validator::default(), content_type: None, ranges: true }
    }
}

impl Held {
    /// Nothing is there yet of the file that this head announces.
    pub(super) fn begin(&mut self, head: &Head) {
        *self = Self {
            bytes: 0,
            total: total(head),
            version: head.version.clone(),
            content_type: head.content_type.clone(),
            ranges: self.ranges,
        };
    }

    /// Takes over what this head of the same version says and an earlier one did not.
    pub(super) fn learn(&mut self, head: &Head) {
        self.total = self.total.or_else(|| total(head));
    }

    /// Where a request for a part would begin. `None` when the whole must be asked for: there is nothing yet, or
    /// nothing by which a part of another version could be told.
    pub(super) fn resume_at(&self) -> Option<u64> {
        let told_apart = self.total.is_some() || self.version != Validator::default();
        (self.ranges && self.bytes > 0 && told_apart).then_some(self.bytes)
    }
}

/// What to do with the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It is the whole file, and there is nothing yet.
    Begin,
    /// It begins where the sink's bytes end.
    Continue,
    /// It is the whole file, the same as before: leave out what the sink has.
    Skip,
    /// It is the whole file, perhaps or surely another version: begin anew.
    Anew {
        /// When that cannot be, it is likely enough the same to leave out what the sink has.
        or_skip: bool,
    },
    /// It is of no use. Ask for the whole.
    RangesAreNoHelp {
        /// What is odd.
        what: String,
    },
}

/// Decides what an answer means, given what is there.
pub(super) fn judge(head: &Head, held: &Held, max_bytes: u64) -> Result<Next, Trouble> {
    let host = &head.host;
    let status = head.status;
    match status {
        200 | 206 => {}
        404 | 410 => return Err(Trouble::Final(DownloadError::Missing { host: host.clone(), status })),
        416 if held.bytes > 0 => {
            return Ok(Next::RangesAreNoHelp { what: format!("{host} has less of the file than before") });
        }
        408 | 425 | 429 | 500..=599 => return Err(later(head, held)),
        400..=499 => return Err(Trouble::Final(DownloadError::Denied { host: host.clone(), status })),
        _ => return Err(odd(format!("{host} answered {status} where a file was expected"))),
    }
    if let Some(page) = head.content_type.as_deref().filter(|name| PAGES.contains(name)) {
        return Err(odd(format!("{host} answered with {page} where a file was expected")));
    }
    if head.encoded {
        return Err(odd(format!("{host} compressed the file although that was not asked for")));
    }
    // The announced length counts before a byte is read; a part counts with what is there.
    let part_end = head.content_range.map(|range| range.last.saturating_add(1));
    if let Some(bytes) = total(head).or(part_end).filter(|bytes| *bytes > max_bytes) {
        let what = format!("the file of {host} has {bytes} bytes, and {max_bytes} are taken");
        return Err(Trouble::fail(Failure::TooLarge { what }));
    }
    match (status, held.bytes) {
        (206, bytes) => part(head, held, bytes),
        (_, 0) => Ok(Next::Begin),
        (_, _) => Ok(match sameness(head, held) {
            Sameness::Same => Next::Skip,
            Sameness::Likely => Next::Anew { or_skip: true },
            Sameness::Unknown | Sameness::Different => Next::Anew { or_skip: false },
        }),
    }
}

/// What a part of the file means when `bytes` are there.
fn part(head: &Head, held: &Held, bytes: u64) -> Result<Next, Trouble> {
    let host = &head.host;
    let fits = head.content_range.is_some_and(|range| range.first == bytes);
    if bytes == 0 {
        // Nobody asked for a part, but one from the first byte on is a beginning.
        return if fits {
            Ok(Next::Begin)
        } else {
            Err(odd(format!("{host} answered with a part of the file that was not asked for")))
        };
    }
    let what = if !fits {
        format!("{host} did not continue where it stopped")
    } else if sameness(head, held) == Sameness::Different {
        format!("{host} continued with another version of the file")
    } else {
        return Ok(Next::Continue);
    };
    Ok(Next::RangesAreNoHelp { what })
}

/// The server is busy or broken. Before the first byte the caller decides whether and when to come back; with a part
/// of the file in hand it is worth to wait here.
fn later(head: &Head, held: &Held) -> Trouble {
    let what = format!("{} answered {}", head.host, head.status);
    let failure = Failure::Transient { what, retry_after: head.retry_after };
    if held.bytes == 0 {
        Trouble::fail(failure)
    } else {
        Trouble::Again { failure, retry_after: head.retry_after }
    }
}

fn odd(what: String) -> Trouble {
    Trouble::fail(Failure::transient(what))
}

/// The length of the whole file, when the head tells it.
fn total(head: &Head) -> Option<u64> {
    if head.status == 206 { head.content_range.and_then(|range| range.total) } else { head.content_length }
}

/// Whether an answer is of the version that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sameness {
    Same,
    /// The length is the same, and there is nothing else to compare.
    Likely,
    /// There is nothing to compare.
    Unknown,
    Different,
}

fn sameness(head: &Head, held: &Held) -> Sameness {
    fn compare<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> Option<bool> {
        a.zip(b).map(|(a, b)| a == b)
    }
    let tags = compare(head.version.etag.as_ref(), held.version.etag.as_ref());
    let dates = compare(head.version.last_modified.as_ref(), held.version.last_modified.as_ref());
    let lengths = compare(total(head).as_ref(), held.total.as_ref());
    match (tags, dates, lengths) {
        (Some(false), _, _) | (_, _, Some(false)) => Sameness::Different,
        (Some(true), _, _) | (None, Some(true), Some(true)) => Sameness::Same,
        (None, Some(false), _) => Sameness::Different,
        (None, None, Some(true)) => Sameness::Likely,
        (None, _, None) => Sameness::Unknown,
    }
}

/// Media types of pages and messages, which servers send with status 200 when they mean an error.
const PAGES: [&str; 3] = ["text/html", "application/xhtml+xml", "application/json"];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::http::ContentRange;

    const MOST: u64 = 1000;

    fn whole(length: u64, etag: Option<&str>) -> Head {
        Head {
            status: 200,
            content_length: Some(length),
            version: Validator { etag: etag.map(str::to_owned), last_modified: None },
            host: "cdn.example".into(),
            ..Head::default()
        }
    }

    fn piece(first: u64, total: u64, etag: Option<&str>) -> Head {
        let range = ContentRange { first, last: total - 1, total: Some(total) };
        let content_length = Some(total - first);
        Head { status: 206, content_range: Some(range), content_length, ..whole(0, etag) }
    }

    fn held(bytes: u64, head: &Head) -> Held {
        let mut held = Held::default();
        held.begin(head);
        held.bytes = bytes;
        held
    }

    fn next(head: &Head, held: &Held) -> Next {
        judge(head, held, MOST).unwrap()
    }

    fn failure(head: &Head, held: &Held) -> Failure {
        match judge(head, held, MOST) {
            Err(Trouble::Final(DownloadError::Failed(failure)) | Trouble::Again { failure, .. }) => failure,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_part_must_continue_where_it_stopped() {
        let held = held(40, &whole(100, Some("\"a\"")));
        assert_eq!(next(&piece(40, 100, Some("\"a\"")), &held), Next::Continue);
        for odd in
            [piece(41, 100, None), piece(0, 100, None), piece(40, 101, None), piece(40, 100, Some("\"b\""))]
        {
            assert!(matches!(next(&odd, &held), Next::RangesAreNoHelp { .. }), "{odd:?}");
        }
        let unmarked = Head { content_range: None, ..piece(40, 100, None) };
        assert!(matches!(next(&unmarked, &held), Next::RangesAreNoHelp { .. }));
        assert!(matches!(next(&Head { status: 416, ..whole(0, None) }, &held), Next::RangesAreNoHelp { .. }));
    }

    #[test]
    fn the_whole_file_is_used_as_far_as_it_is_the_same() {
        let tagged = held(40, &whole(100, Some("\"a\"")));
        assert_eq!(next(&whole(100, Some("\"a\"")), &tagged), Next::Skip);
        assert_eq!(next(&whole(100, Some("\"b\"")), &tagged), Next::Anew { or_skip: false });
        assert_eq!(next(&whole(90, None), &tagged), Next::Anew { or_skip: false });
        let bare = held(40, &whole(100, None));
        assert_eq!(next(&whole(100, None), &bare), Next::Anew { or_skip: true });
        let dated = |date: &str| {
            let mut head = whole(100, None);
            head.version.last_modified = Some(date.into());
            head
        };
        assert_eq!(next(&dated("monday"), &held(40, &dated("monday"))), Next::Skip);
        assert_eq!(next(&dated("tuesday"), &held(40, &dated("monday"))), Next::Anew { or_skip: false });
    }

    #[test]
    fn a_part_is_asked_for_only_when_another_version_would_be_noticed() {
        assert_eq!(Held::default().resume_at(), None);
        assert_eq!(held(40, &whole(100, None)).resume_at(), Some(40));
        let unknown = Head { content_length: None, ..whole(0, None) };
        assert_eq!(held(40, &unknown).resume_at(), None);
        assert_eq!(held(40, &Head { content_length: None, ..whole(0, Some("\"a\"")) }).resume_at(), Some(40));
        assert_eq!(Held { ranges: false, ..held(40, &whole(100, None)) }.resume_at(), None);
    }

    #[test]
    fn an_announced_length_is_held_against_the_cap() {
        let none = Held::default();
        assert_eq!(next(&whole(MOST, None), &none), Next::Begin);
        assert!(matches!(failure(&whole(MOST + 1, None), &none), Failure::TooLarge { .. }));
        let half = held(500, &Head { content_length: None, ..whole(0, Some("\"a\"")) });
        let longer = ContentRange { first: 500, last: MOST, total: None };
        let longer = Head { content_range: Some(longer), ..piece(500, 501, Some("\"a\"")) };
        assert!(matches!(failure(&longer, &half), Failure::TooLarge { .. }));
    }

    #[test]
    fn statuses_have_their_class() {
        let with =
            |status| Head { status, retry_after: Some(std::time::Duration::from_secs(7)), ..whole(9, None) };
        let none = Held::default();
        for status in [404, 410] {
            assert!(matches!(
                judge(&with(status), &none, MOST),
                Err(Trouble::Final(DownloadError::Missing { .. }))
            ));
        }
        for status in [400, 401, 403, 451, 416] {
            assert!(matches!(
                judge(&with(status), &none, MOST),
                Err(Trouble::Final(DownloadError::Denied { .. }))
            ));
        }
        for status in [408, 429, 500, 503] {
            let Failure::Transient { retry_after, .. } = failure(&with(status), &none) else { panic!() };
            assert_eq!(retry_after.map(|pause| pause.as_secs()), Some(7), "{status}");
            let part = held(5, &whole(9, None));
            assert!(matches!(judge(&with(status), &part, MOST), Err(Trouble::Again { .. })), "{status}");
        }
        for status in [204, 304] {
            assert!(matches!(failure(&with(status), &none), Failure::Transient { .. }), "{status}");
        }
    }

    #[test]
    fn a_page_is_no_file() {
        for page in PAGES {
            let head = Head { content_type: Some(page.into()), ..whole(9, None) };
            assert!(matches!(failure(&head, &Held::default()), Failure::Transient { .. }), "{page}");
        }
        let packed = Head { encoded: true, ..whole(9, None) };
        assert!(matches!(failure(&packed, &Held::default()), Failure::Transient { .. }));
    }

    proptest! {
        /// Whatever a server says, bytes are only added where they belong and never beyond the cap.
        #[test]
        fn only_what_fits_is_continued(
            status in 100_u16..600,
            first in 0_u64..2000,
            more in 0_u64..2000,
            total in proptest::option::of(0_u64..4000),
            bytes in 0_u64..1000,
            known in proptest::option::of(0_u64..1000),
        ) {
            let range = ContentRange { first, last: first + more, total };
            let head = Head { status, content_range: Some(range), content_length: known, ..whole(0, None) };
            let mut held = Held { bytes, ..Held::default() };
            held.total = known;
            if let Ok(Next::Continue) = judge(&head, &held, MOST) {
                prop_assert!(status == 206 && first == bytes && first + more < MOST);
                prop_assert!(total.is_none() || known.is_none() || total == known);
            }
        }
    }
}
