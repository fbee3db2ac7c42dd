//! Reads the headers that matter.

use std::time::Duration;

use reqwest::header::{self, HeaderMap, HeaderName};

use crate::clock::WallTime;

/// What tells two versions of a file apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validator {
    /// A strong entity tag with its quotes. Weak ones say nothing about single bytes and are left out.
    pub etag: Option<String>,
    /// The date of the last change, as the server wrote it.
    pub last_modified: Option<String>,
}

/// Which part of a file an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The place of its first byte.
    pub first: u64,
    /// The place of its last byte, not before the first.
    pub last: u64,
    /// The length of the whole file, after the last byte; `None` when the server does not know it.
    pub total: Option<u64>,
}

impl Validator {
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let etag = text(headers, &header::ETAG).filter(|tag| tag.len() >= 2 && tag.starts_with('"'));
        Self {
            etag: etag.map(str::to_owned),
            last_modified: text(headers, &header::LAST_MODIFIED).map(str::to_owned),
        }
    }

    /// The better of the two, for If-Range.
    pub(super) fn strongest(&self) -> Option<&str> {
        self.etag.as_deref().or(self.last_modified.as_deref())
    }
}

impl ContentRange {
    pub(super) fn read(headers: &HeaderMap) -> Option<Self> {
        Self::parse(text(headers, &header::CONTENT_RANGE)?)
    }

    fn parse(text: &str) -> Option<Self> {
        let (range, total) = text.strip_prefix("bytes ")?.trim().split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (first, last) = (digits(first)?, digits(last)?);
        let total = if total == "*" { None } else { Some(digits(total)?) };
        (first <= last && total.is_none_or(|total| last < total)).then_some(Self { first, last, total })
    }
}

/// The value of a header when it is there, is text and is not longer than any honest one.
pub(super) fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    const LONGEST: usize = 8 * 1024;
    headers.get(name)?.to_str().ok().map(str::trim).filter(|text| text.len() <= LONGEST)
}

/// The media type in lower case, without parameters.
pub(super) fn media_type(headers: &HeaderMap) -> Option<String> {
    let text = text(headers, &header::CONTENT_TYPE)?;
    let essence = text.split(';').next()?.trim().to_ascii_lowercase();
    (!essence.is_empty()).then_some(essence)
}

/// Whether the bytes are something else than the file itself.
pub(super) fn is_encoded(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_ENCODING)
        .is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// How long the server asks us to wait: seconds, or a date of the form that servers must write. At most
/// [`LONGEST_PAUSE`]; what cannot be read counts as not said.
pub(super) fn retry_after(headers: &HeaderMap, now: WallTime) -> Option<Duration> {
    let text = text(headers, &header::RETRY_AFTER)?;
    let pause = match digits(text) {
        Some(seconds) => Duration::from_secs(seconds),
        None => http_date(text)?.since(now),
    };
    Some(pause.min(LONGEST_PAUSE))
}

/// Nobody means longer, and a wait that long is for the queue to cut.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 3600);

/// A number of ASCII digits alone: no sign, no space.
fn digits(text: &str) -> Option<u64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT`. The two older forms, which servers must not write any more, are not read.
fn http_date(text: &str) -> Option<WallTime> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, date) = text.split_once(", ")?;
    let mut parts = date.split(' ');
    let day = digits(parts.next()?)?;
    let name = parts.next()?;
    let month = u64::try_from(MONTHS.iter().position(|month| *month == name)?).ok()?;
    let year = digits(parts.next()?).filter(|year| (1970..=9999).contains(year))?;
    let mut clock = parts.next()?.split(':').map(digits);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let in_range = (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    if !in_range || clock.next().is_some() || parts.next() != Some("GMT") || parts.next().is_some() {
        return None;
    }
    let seconds = days_since_1970(year, month, day)?
        .checked_mul(24)?
        .checked_add(hour)?
        .checked_mul(60)?
        .checked_add(minute)?
        .checked_mul(60)?
        .checked_add(second)?;
    Some(WallTime::from_millis(seconds.checked_mul(1000)?))
}

/// Days from 1 January 1970 to this one. The month counts from zero; the year is 1970 or later.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    // A year that begins in March has its leap day at its end, so that the days before a month need no exception.
    let (year, month) = if month < 2 { (year.checked_sub(1)?, month + 10) } else { (year, month - 2) };
    let before_year = year * 365 + year / 4 - year / 100 + year / 400;
    // The months from March on have 31, 30, 31, 30, 31 days and begin again: 153 in five.
    let before_month = (month * 153 + 2) / 5;
    // The same count gives 719 468 for the first day of 1970.
    (before_year + before_month + day).checked_sub(719_469)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[track_caller]
    fn pause(value: &str, now: u64, expected: Option<u64>) {
        let headers = with(header::RETRY_AFTER, value);
        let now = WallTime::from_millis(now * 1000);
        assert_eq!(retry_after(&headers, now), expected.map(Duration::from_secs), "{value}");
    }

    #[test]
    fn retry_after_reads_seconds_and_dates() {
        pause("7", 0, Some(7));
        pause(" 120 ", 0, Some(120));
        pause("99999999999", 0, Some(86_400));
        pause("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777 - 30, Some(30));
        pause("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777 + 30, Some(0));
        pause("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800 - 5, Some(5));
        pause("Fri, 01 Mar 2024 00:00:00 GMT", 1_709_251_200 - 5, Some(5));
        pause("Thu, 01 Jan 1970 00:00:01 GMT", 0, Some(1));
    }

    #[test]
    fn what_is_no_pause_is_not_taken_for_one() {
        for bad in
            ["-1", "+1", "1.5", "", "soon", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 32 Nov 1994 08:49:37 GMT"]
        {
            pause(bad, 0, None);
        }
    }

    #[test]
    fn a_content_range_is_read_only_when_it_makes_sense() {
        let range = |text| ContentRange::parse(text).map(|r| (r.first, r.last, r.total));
        assert_eq!(range("bytes 5-9/10"), Some((5, 9, Some(10))));
        assert_eq!(range("bytes 5-9/*"), Some((5, 9, None)));
        for bad in
            ["bytes 5-9/9", "bytes 9-5/10", "bytes */10", "items 0-1/2", "bytes -5/10", "bytes 5-9", ""]
        {
            assert_eq!(range(bad), None, "{bad}");
        }
    }

    #[test]
    fn weak_tags_are_not_used() {
        let weak = Validator::read(&with(header::ETAG, "W/\"a\""));
        assert_eq!(weak, Validator::default());
        let strong = Validator::read(&with(header::ETAG, "\"a\""));
        assert_eq!(strong.strongest(), Some("\"a\""));
    }

    #[test]
    fn a_media_type_loses_its_parameters() {
        let read = |value| media_type(&with(header::CONTENT_TYPE, value));
        assert_eq!(read("Text/HTML; charset=utf-8").as_deref(), Some("text/html"));
        assert_eq!(read(" ; a=b"), None);
    }

    proptest! {
        #[test]
        fn no_header_panics(value in "[ -~]{0,60}") {
            for name in [header::RETRY_AFTER, header::CONTENT_RANGE, header::ETAG, header::CONTENT_TYPE] {
                let headers = with(name, &value);
                let _ = retry_after(&headers, WallTime::default());
                let _ = (ContentRange::read(&headers), Validator::read(&headers), media_type(&headers));
            }
        }

        /// Every day is one after the day before it, over leap years and centuries.
        #[test]
        fn days_follow_each_other(year in 1970_u64..9999, month in 0_u64..12) {
            let lengths = [31, if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) { 29 } else { 28 },
                31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            let last = lengths[usize::try_from(month).unwrap()];
            let (next_year, next_month) = if month == 11 { (year + 1, 0) } else { (year, month + 1) };
            let end = days_since_1970(year, month, last).unwrap();
            prop_assert_eq!(days_since_1970(next_year, next_month, 1), Some(end + 1));
        }
    }
}
