//! Quantities with a unit: sizes, rates, dimensions.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of bytes.
///
/// Parses `8MiB`, `10MB`, `512k` (binary, as people mean it for files), and `10485760`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    /// Zero bytes.
    pub const ZERO: Self = Self(0);

    /// A size of `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// A size of `count` MiB (1,048,576 bytes each); saturates.
    pub const fn mebibytes(count: u64) -> Self {
        Self(count.saturating_mul(1 << 20))
    }

    /// The size of something that is in memory.
    pub fn of(bytes: &[u8]) -> Self {
        Self(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bytes as a float, exact up to 2^53.
    #[allow(
        clippy::cast_precision_loss,
        reason = "sizes beyond 2^53 bytes do not occur; the loss would be relative 1e-16"
    )]
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// The nearest whole number of bytes not above `bytes`; negative and NaN give zero.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float to integer saturates, as documented"
    )]
    pub const fn from_f64(bytes: f64) -> Self {
        Self(bytes as u64)
    }

    /// This much less, zero at the lowest.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Both together, saturating.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The next size that is written with two decimals of its unit: nothing is lost when a person types it.
    #[must_use]
    pub fn rounded_up(self) -> Self {
        let unit = UNITS.into_iter().map(|(unit, _)| unit).find(|unit| self.0 >= *unit);
        let Some(unit) = unit else { return self };
        let hundredths = (u128::from(self.0) * 100).div_ceil(u128::from(unit));
        Self(u64::try_from((hundredths * u128::from(unit)).div_ceil(100)).unwrap_or(u64::MAX))
    }

    /// The average rate when these bytes last for `duration`; zero for an empty duration.
    pub fn over(self, duration: Duration) -> BitRate {
        let seconds = duration.as_secs_f64();
        if seconds > 0.0 { BitRate::from_f64(self.as_f64() * 8.0 / seconds) } else { BitRate::new(0) }
    }
}

const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];

impl fmt::Display for ByteSize {
    #[allow(clippy::cast_precision_loss, reason = "shown with two decimals")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, name) in UNITS {
            if self.0 >= unit {
                let value = self.0 as f64 / unit as f64;
                let text = format!("{value:.2}");
                return write!(f, "{} {name}", text.trim_end_matches('0').trim_end_matches('.'));
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

/// A text that is no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a size; write it like 8MiB, 10MB or 10485760")]
pub struct ParseByteSizeError(String);

impl FromStr for ByteSize {
    type Err = ParseByteSizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || ParseByteSizeError(text.to_owned());
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            _ => return Err(bad()),
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(factor).map(Self).ok_or_else(bad);
        }
        if factor == 1 {
            return Err(bad());
        }
        let value: f64 = number.parse().map_err(|_| bad())?;
        let bytes = value * Self(factor).as_f64();
        if bytes.is_finite() && bytes < 1e18 { Ok(Self::from_f64(bytes)) } else { Err(bad()) }
    }
}

/// A number of bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

impl BitRate {
    /// A rate of `bits_per_second`.
    pub const fn new(bits_per_second: u64) -> Self {
        Self(bits_per_second)
    }

    /// A rate of `kilobits` × 1000 bits per second; saturates.
    pub const fn kilobits(kilobits: u64) -> Self {
        Self(kilobits.saturating_mul(1000))
    }

    /// Bits per second.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Kilobits (1000 bits) per second, rounded to the nearest.
    pub const fn as_kilobits(self) -> u64 {
        self.0.saturating_add(500) / 1000
    }

    /// Bits per second as a float.
    #[allow(clippy::cast_precision_loss, reason = "rates stay far below 2^53")]
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// The nearest whole rate not above `bits_per_second`; negative and NaN give zero.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float to integer saturates, as documented"
    )]
    pub const fn from_f64(bits_per_second: f64) -> Self {
        Self(bits_per_second as u64)
    }

    /// The bytes that this rate needs for `duration`, rounded down.
    pub fn bytes_in(self, duration: Duration) -> ByteSize {
        ByteSize::from_f64(self.as_f64() / 8.0 * duration.as_secs_f64())
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1000 { write!(f, "{} bit/s", self.0) } else { write!(f, "{} kbit/s", self.as_kilobits()) }
    }
}

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dimensions {
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
}

impl Dimensions {
    /// A picture of `width` × `height` pixels.
    pub const fn new(width: u32, height: u32) -> Self {
        Self { width, height }
    }

    /// Width × height.
    pub const fn pixels(self) -> u64 {
        // A u32 always fits a u64.
        self.width as u64 * self.height as u64
    }

    /// The shorter side.
    pub const fn short_side(self) -> u32 {
        if self.width < self.height { self.width } else { self.height }
    }

    /// The longer side.
    pub const fn long_side(self) -> u32 {
        if self.width < self.height { self.height } else { self.width }
    }

    /// Width and height exchanged, as after a quarter turn.
    #[must_use]
    pub const fn turned(self) -> Self {
        Self { width: self.height, height: self.width }
    }
}

impl fmt::Display for Dimensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// Frames per second as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameRate {
    numerator: u32,
    denominator: u32,
}

impl FrameRate {
    /// `numerator / denominator` frames per second, reduced; `None` when either is zero.
    pub const fn new(numerator: u32, denominator: u32) -> Option<Self> {
        if numerator == 0 || denominator == 0 {
            return None;
        }
        let (mut a, mut b) = (numerator, denominator);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Some(Self { numerator: numerator / a, denominator: denominator / a })
    }

    /// The numerator of the reduced fraction.
    pub const fn numerator(self) -> u32 {
        self.numerator
    }

    /// The denominator of the reduced fraction.
    pub const fn denominator(self) -> u32 {
        self.denominator
    }

    /// Frames per second as a float.
    pub fn as_f64(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }

    /// This rate divided by a whole number; zero divides by one.
    #[must_use]
    pub fn divided_by(self, divisor: u32) -> Self {
        let denominator = self.denominator.saturating_mul(divisor.max(1));
        Self::new(self.numerator, denominator).unwrap_or(self)
    }
}

impl fmt::Display for FrameRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.3}", self.as_f64());
        write!(f, "{} fps", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// A point on the presentation's clock, in microseconds; negative before the presentation begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Timestamp(i64);

impl Timestamp {
    pub(crate) const ZERO: Self = Self(0);

    pub(crate) const fn from_micros(microseconds: i64) -> Self {
        Self(microseconds)
    }

    /// `seconds` rounded to the nearest microsecond; saturates.
    #[allow(clippy::cast_possible_truncation, reason = "float to integer saturates")]
    pub(crate) fn from_seconds(seconds: f64) -> Self {
        Self((seconds * 1e6).round() as i64)
    }

    pub(crate) const fn micros(self) -> i64 {
        self.0
    }

    #[allow(clippy::cast_precision_loss, reason = "exact for the first 285 years")]
    pub(crate) const fn seconds(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Whole seconds, rounded up; times before zero give zero.
    pub(crate) fn seconds_up(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0).div_ceil(1_000_000)
    }

    /// The distance to zero; times before zero give zero.
    pub(crate) fn since_zero(self) -> Duration {
        Duration::from_micros(u64::try_from(self.0).unwrap_or(0))
    }

    /// This time on a clock of `rate` ticks per second, rounded to the nearest.
    pub(crate) fn ticks(self, numerator: u32, denominator: u32) -> i64 {
        let scaled = i128::from(self.0) * i128::from(numerator);
        let divisor = i128::from(denominator.max(1)) * 1_000_000;
        let rounded = (scaled + divisor / 2).div_euclid(divisor);
        i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX })
    }

    #[must_use]
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    #[must_use]
    pub(crate) const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl From<Duration> for Timestamp {
    fn from(duration: Duration) -> Self {
        Self(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_as_people_write_them() {
        for (text, bytes) in [
            ("8MiB", 8 << 20),
            ("10MB", 10_000_000),
            ("10485760", 10_485_760),
            (" 512 KiB ", 524_288),
            ("1.5m", 1_572_864),
            ("0", 0),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize::new(bytes)), "{text}");
        }
        for text in ["", "MiB", "1.5", "-1", "8 parsecs", "1e9", "99999999999999999999", "1.2.3M"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_print_in_binary_units() {
        assert_eq!(ByteSize::mebibytes(10).to_string(), "10 MiB");
        assert_eq!(ByteSize::new(1536).to_string(), "1.5 KiB");
        assert_eq!(ByteSize::new(12).to_string(), "12 bytes");
    }

    #[test]
    fn a_size_that_was_rounded_up_is_enough_when_typed() {
        for bytes in [1, 1023, 1024, 9_277, 9_278, 10_485_761, 123_456_789, 5_000_000_001] {
            let size = ByteSize::new(bytes);
            let typed: ByteSize = size.rounded_up().to_string().replace(" bytes", "").parse().unwrap();
            assert!(typed >= size && typed.as_f64() <= size.as_f64() * 1.011 + 1.0, "{bytes} {typed:?}");
        }
    }

    #[test]
    fn rates_reduce() {
        let rate = FrameRate::new(60, 2).unwrap();
        assert_eq!((rate.numerator(), rate.denominator()), (30, 1));
        assert_eq!(FrameRate::new(30_000, 1001).unwrap().to_string(), "29.97 fps");
        assert_eq!(FrameRate::new(0, 1), None);
    }
}
