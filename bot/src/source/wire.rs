//! Reads JSON from strangers: bounded, and without minding what is wrong with what is not needed.

use std::time::Duration;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde_json::Value;

/// A value, or its default when what stands there is of another type.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Lax<T>(pub(super) T);

impl<'de, T: DeserializeOwned + Default> Deserialize<'de> for Lax<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(Self(T::deserialize(value).unwrap_or_default()))
    }
}

/// A list in which an unreadable element is a hole, so that the others keep their places.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Places<T>(pub(super) Vec<Option<T>>);

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Places<T> {
    /// The readable elements.
    pub(super) fn readable(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }

    /// Whether there is no place at all.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Places<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = match Value::deserialize(deserializer)? {
            Value::Array(values) => values,
            _ => Vec::new(),
        };
        Ok(Self(values.into_iter().take(MOST_PLACES).map(|value| T::deserialize(value).ok()).collect()))
    }
}

/// A number that is not negative, written as a number or as text.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) struct Amount(f64);

impl Amount {
    /// The whole part of it times `factor`; `None` when that is zero or beyond all bounds.
    pub(super) fn times(self, factor: f64) -> Option<u64> {
        // A time in seconds is the one thing the standard library turns into whole numbers with a check.
        let whole = Duration::try_from_secs_f64(self.0 * factor).ok()?.as_secs();
        (whole > 0).then_some(whole)
    }

    /// The whole part of it; `None` when that is zero.
    pub(super) fn whole(self) -> Option<u64> {
        self.times(1.0)
    }

    /// The whole part of it as pixels.
    pub(super) fn pixels(self) -> Option<u32> {
        self.whole().and_then(|pixels| u32::try_from(pixels).ok())
    }

    /// A time of so many units of `unit` seconds, in whole milliseconds; `None` when it is zero, which the sources
    /// write for "not known".
    pub(super) fn time(self, unit: f64) -> Option<Duration> {
        let millis = self.times(unit * 1_000.0)?;
        Some(Duration::from_millis(millis))
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = match Value::deserialize(deserializer)? {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| number.is_finite() && *number >= 0.0);
        number.map(Self).ok_or_else(|| D::Error::custom("no amount"))
    }
}

/// An id, written as text or as a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text(pub(super) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            Value::Number(number) => Ok(Self(number.to_string())),
            _ => Err(D::Error::custom("no text")),
        }
    }
}

/// The longest list that is read: no post has so many media, and no medium so many variants.
const MOST_PLACES: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Wire {
        text: Lax<String>,
        amount: Lax<Option<Amount>>,
        places: Places<Text>,
    }

    fn read(json: &str) -> Wire {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_wrong_type_is_as_good_as_nothing() {
        let wire = read(r#"{"text": 7, "amount": {"a": []}, "places": {}, "more": 1}"#);
        assert_eq!(wire.text.0, "");
        assert_eq!(wire.amount.0, None);
        assert!(wire.places.is_empty());
    }

    #[test]
    fn an_unreadable_element_keeps_its_place() {
        let wire = read(r#"{"places": ["a", null, {}, 4]}"#);
        let some = |text: &str| Some(Text(text.to_owned()));
        assert_eq!(wire.places.0, [some("a"), None, None, some("4")]);
    }

    #[test]
    fn amounts_are_numbers_however_written() {
        let amount = |json: &str| read(&format!(r#"{{"amount": {json}}}"#)).amount.0;
        assert_eq!(amount("12.9").and_then(Amount::whole), Some(12));
        assert_eq!(amount("\"2176000\"").and_then(Amount::whole), Some(2_176_000));
        assert_eq!(amount("0").and_then(Amount::whole), None);
        assert_eq!(amount("832.5").and_then(|kbit| kbit.times(1_000.0)), Some(832_500));
        assert_eq!(amount("10704").and_then(|ms| ms.time(0.001)), Some(Duration::from_millis(10_704)));
        assert_eq!(amount("1e300").and_then(Amount::whole), None);
        for nothing in ["-1", "\"x\"", "null", "true", "\"NaN\""] {
            assert_eq!(amount(nothing), None, "{nothing}");
        }
    }

    proptest! {
        #[test]
        fn no_amount_panics(number: f64, factor: f64) {
            let amount = Amount(number);
            let _ = (amount.times(factor), amount.pixels(), amount.time(factor));
        }
    }
}
