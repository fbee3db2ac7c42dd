//! Sines in whole numbers, which are the same on every machine.

/// A full turn; angles are fractions of it.
pub(super) const TURN: i64 = 65_536;

/// The sine's value at its peak, as bits: it runs from -16384 to 16384.
pub(super) const BITS: u32 = 14;

/// The sine of an angle, within 0.2 % of its peak (Bhaskara's approximation). Any angle is taken modulo [`TURN`].
pub(super) fn sine(angle: i64) -> i32 {
    const HALF: i64 = TURN / 2;
    let angle = angle.rem_euclid(TURN);
    let (within, sign) = if angle < HALF { (angle, 1) } else { (angle - HALF, -1) };
    let product = within * (HALF - within);
    let value = sign * 16 * product * (1 << BITS) / (5 * HALF * HALF - 4 * product);
    i32::try_from(value).unwrap_or_default()
}

/// The cosine of an angle, as [`sine`].
pub(super) fn cosine(angle: i64) -> i32 {
    sine(angle.rem_euclid(TURN) + TURN / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sine_meets_the_real_one_everywhere() {
        for angle in (-2 * TURN..2 * TURN).step_by(97) {
            let turns = f64::from(i32::try_from(angle).unwrap()) / 65_536.0;
            let real = (turns * std::f64::consts::TAU).sin();
            let ours = f64::from(sine(angle)) / 16_384.0;
            assert!((real - ours).abs() < 0.002, "{angle}: {ours} for {real}");
        }
    }

    #[test]
    fn no_angle_is_too_large() {
        assert!(sine(i64::MAX).abs() <= 1 << BITS);
        assert!(cosine(i64::MIN).abs() <= 1 << BITS);
        assert_eq!((sine(TURN / 4), cosine(0), cosine(TURN / 2)), (16_384, 16_384, -16_384));
    }
}
