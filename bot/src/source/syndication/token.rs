//! The token that the syndication wants beside a post's number.
//!
//! Its scripts compute it as the number divided by 10¹⁵ and multiplied by π, written in base 36 as JavaScript writes
//! numbers, without zeros and without the point. JavaScript writes as few digits behind the point as tell the number
//! from its neighbours, so that is what is done here.

use std::f64::consts::PI;

/// The token for the post with this number.
pub(super) fn token(number: u64) -> String {
    let value = float(number) / 1e15 * PI;
    let mut digits = whole_digits(value.trunc());
    digits.extend(fraction_digits(value));
    digits.retain(|digit| *digit != '0');
    digits.into_iter().collect()
}

/// The nearest float to `number`.
fn float(number: u64) -> f64 {
    let [high, low] =
        [number >> 32, number & u64::from(u32::MAX)].map(|half| u32::try_from(half).unwrap_or(u32::MAX));
    // Both terms are exact, so that only the sum is rounded.
    f64::from(high) * 4_294_967_296.0 + f64::from(low)
}

/// The digits before the point, the highest first; none for zero.
fn whole_digits(mut whole: f64) -> Vec<char> {
    let mut digits = Vec::new();
    while whole >= 1.0 {
        digits.push(digit(whole % BASE));
        whole = (whole / BASE).trunc();
    }
    digits.reverse();
    digits
}

/// The digits behind the point, as many as tell `value` from the floats beside it.
fn fraction_digits(value: f64) -> Vec<char> {
    let mut rest = value.fract();
    // Half of the distance to the next float: what is smaller cannot be told apart.
    let mut blur = 0.5 * (value.next_up() - value);
    let mut digits: Vec<f64> = Vec::new();
    while rest >= blur {
        rest *= BASE;
        blur *= BASE;
        let next = rest.trunc();
        rest -= next;
        digits.push(next);
        let above_half = rest > 0.5 || (rest == 0.5 && next % 2.0 == 1.0);
        if above_half && rest + blur > 1.0 {
            round_up(&mut digits);
            break;
        }
    }
    digits.into_iter().map(digit).collect()
}

/// Adds one to the last digit. A carry beyond the point would need a fraction that is all but one, which ends before.
fn round_up(digits: &mut Vec<f64>) {
    while let Some(last) = digits.pop() {
        if last + 1.0 < BASE {
            digits.push(last + 1.0);
            return;
        }
    }
}

/// The digit for a whole number below 36.
fn digit(value: f64) -> char {
    let matching = (0..36_u32).find(|candidate| f64::from(*candidate) == value);
    matching.and_then(|value| char::from_digit(value, 36)).unwrap_or('0')
}

const BASE: f64 = 36.0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What JavaScript gives, by yt-dlp's copy of its rules (version 2026.10.26).
    #[test]
    fn tokens_are_those_of_javascript() {
        for (number, wanted) in [
            (1, "bhi2ay3f28n"),
            (20, "6dq1a2xwd93"),
            (1_234_567_890, "6iio5bzbwyw"),
            (1_000_000_000_000_000, "353i5ab8p5f"),
            (210_462_857_140_252_672, "id6sdq7lat"),
            (1_629_307_668_568_633_344, "3y6mctgwzxo"),
            (1_719_368_921_438_314_687, "461k1kru5"),
            (1_857_000_000_000_000_001, "4i1xr2oxvpc"),
            (9_223_372_036_854_775_807, "mcw2svce2ao"),
        ] {
            assert_eq!(token(number), wanted, "{number}");
        }
    }

    proptest! {
        #[test]
        fn every_number_has_a_token(number in 1_u64..=u64::MAX) {
            let token = token(number);
            prop_assert!(!token.is_empty());
            prop_assert!(token.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase()));
        }
    }
}
