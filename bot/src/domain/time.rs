//! Times as people type them: `90`, `1:30`, `1:02:03.5`, `1m30s`, `250ms`.

use std::time::Duration;

/// The time that `text` means, counted from the beginning of the media; `None` when it means none.
///
/// A bare number is seconds. With colons, the last field is seconds, every field but the first is below 60, and
/// only the last may have a fraction. With units, each of `h`, `m`, `s`, `ms` stands at most once, largest first,
/// and only the last number may have a fraction. Fractions finer than a nanosecond are cut off.
pub fn parse_time(text: &str) -> Option<Duration> {
    let text = text.trim();
    if text.contains(':') {
        parse_fields(text)
    } else if text.ends_with(|c: char| c.is_ascii_alphabetic()) {
        parse_units(text)
    } else {
        parse_number(text)?.times(NANOS_PER_SECOND)
    }
}

fn parse_fields(text: &str) -> Option<Duration> {
    let mut fields = text.split(':');
    let (first, rest) = (fields.next()?, fields.collect::<Vec<_>>());
    let (last, middle) = rest.split_last()?;
    if middle.len() > 1 {
        return None;
    }
    let mut whole = parse_number(first)?.whole()?;
    for field in middle {
        whole = whole.checked_mul(60)?.checked_add(parse_number(field)?.whole().filter(|n| *n < 60)?)?;
    }
    let seconds = parse_number(last)?.times(NANOS_PER_SECOND).filter(|t| *t < Duration::from_secs(60))?;
    Duration::from_secs(whole.checked_mul(60)?).checked_add(seconds)
}

fn parse_units(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    let mut smallest = u64::MAX;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let (digits, tail) = rest.split_at(unit_at);
        let unit_end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let nanos = match unit.to_ascii_lowercase().as_str() {
            "h" => 3600 * NANOS_PER_SECOND,
            "m" | "min" => 60 * NANOS_PER_SECOND,
            "s" => NANOS_PER_SECOND,
            "ms" => NANOS_PER_SECOND / 1000,
            _ => return None,
        };
        let number = parse_number(digits.trim())?;
        if nanos >= smallest || (number.fraction != 0 && !tail.is_empty()) {
            return None;
        }
        total = total.checked_add(number.times(nanos)?)?;
        smallest = nanos;
        rest = tail.trim_start();
    }
    Some(total)
}

/// A number without sign: its whole part, and its fraction in billionths.
struct Number {
    whole: u64,
    fraction: u64,
}

impl Number {
    fn whole(&self) -> Option<u64> {
        (self.fraction == 0).then_some(self.whole)
    }

    /// This many units of `nanos` nanoseconds each.
    fn times(&self, nanos: u64) -> Option<Duration> {
        let whole = u128::from(self.whole).checked_mul(u128::from(nanos))?;
        let fraction = u128::from(self.fraction) * u128::from(nanos) / u128::from(NANOS_PER_SECOND);
        let total = whole.checked_add(fraction)?;
        let per_second = u128::from(NANOS_PER_SECOND);
        let (seconds, rest) =
            (u64::try_from(total / per_second).ok()?, u32::try_from(total % per_second).ok()?);
        (seconds <= MOST_SECONDS).then(|| Duration::new(seconds, rest))
    }
}

fn parse_number(text: &str) -> Option<Number> {
    let digits_only = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if whole.is_empty() || fraction.is_empty() || !digits_only(whole) || !digits_only(fraction) {
        return None;
    }
    let billionths: String = fraction.chars().chain(std::iter::repeat('0')).take(9).collect();
    Some(Number { whole: whole.parse().ok()?, fraction: billionths.parse().ok()? })
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A century: no media is longer, and every sum of such times stays far from overflow.
const MOST_SECONDS: u64 = 100 * 366 * 24 * 3600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_parse_as_people_write_them() {
        for (text, millis) in [
            ("90", 90_000),
            ("0", 0),
            ("1.5", 1_500),
            ("1:30", 90_000),
            ("90:00", 5_400_000),
            ("0:00.25", 250),
            ("1:02:03.5", 3_723_500),
            ("1m30s", 90_000),
            ("1h2m3s", 3_723_000),
            ("1h", 3_600_000),
            ("2min", 120_000),
            ("1.5s", 1_500),
            ("1.5m", 90_000),
            ("250ms", 250),
            ("1s250ms", 1_250),
            (" 1m 30s ", 90_000),
        ] {
            assert_eq!(parse_time(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            " ",
            "-1",
            "+1",
            "s",
            "1x",
            "1:60",
            "1:2:3:4",
            ":30",
            "1:",
            "1:-2",
            "1.5:30",
            "1:60:00",
            "1s1m",
            "1m1m",
            "1.5m30s",
            "1e3",
            "NaN",
            "inf",
            ".5",
            "5.",
            "1..5",
            "99999999999999999999",
            "9999999999999h",
            "1:30s",
            "१:३०",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn fractions_are_exact() {
        assert_eq!(parse_time("0.1"), Some(Duration::from_millis(100)));
        assert_eq!(parse_time("0.123456789999"), Some(Duration::from_nanos(123_456_789)));
    }
}
