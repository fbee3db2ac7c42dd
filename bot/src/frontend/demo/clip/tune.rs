//! The sound of the clip: two soft notes in turn.

use super::FRAME_RATE;
use super::wave;

/// Samples a second in each channel.
pub(super) const SAMPLE_RATE: u32 = 48_000;

/// Left and right.
pub(super) const CHANNELS: u32 = 2;

/// Samples of each channel that belong to one picture.
pub(super) const SAMPLES_A_FRAME: u32 = SAMPLE_RATE / FRAME_RATE;

/// How long a note sounds: half a second.
const NOTE_SAMPLES: i64 = 24_000;

/// How long a note swells: 30 ms. Without it each would begin with a click.
const ATTACK_SAMPLES: i64 = 1_440;

/// A and the E above it, in thousandths of a hertz.
const NOTES: [i64; 2] = [440_000, 659_255];

/// The height of the loudest sample: a quarter of what 16 bits hold, so that a demo startles nobody.
const PEAK: i64 = 8_000;

/// Plays the tune from its start, a picture's worth at a time.
#[derive(Debug)]
pub(super) struct Player {
    at: i64,
}

impl Player {
    pub(super) const fn new() -> Self {
        Self { at: 0 }
    }

    /// The next picture's samples, left and right in turn, 16 bits each, little endian.
    pub(super) fn frame(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..SAMPLES_A_FRAME {
            let (left, right) = stereo(self.at);
            bytes.extend_from_slice(&left.to_le_bytes());
            bytes.extend_from_slice(&right.to_le_bytes());
            self.at += 1;
        }
        bytes
    }
}

/// Both channels at a sample: the first note sounds a little to the left, the second to the right.
fn stereo(at: i64) -> (i16, i16) {
    let within = at % NOTE_SAMPLES;
    let first = (at / NOTE_SAMPLES) % 2 == 0;
    let [low, high] = NOTES;
    let level = tone(if first { low } else { high }, within) * swell(within) / SWELL_PEAK;
    let quieter = level * 3 / 5;
    let (left, right) = if first { (level, quieter) } else { (quieter, level) };
    (sample(left), sample(right))
}

/// A note with a soft octave above it, up to [`PEAK`].
fn tone(millihertz: i64, within: i64) -> i64 {
    let angle = within * millihertz * wave::TURN / (i64::from(SAMPLE_RATE) * 1_000);
    let body = i64::from(wave::sine(angle)) * 4 + i64::from(wave::sine(angle * 2));
    (body * PEAK / 5) >> wave::BITS
}

/// The loudness at a moment of a note: up in a line, down in a curve that ends in silence.
fn swell(within: i64) -> i64 {
    if within < ATTACK_SAMPLES {
        return within * SWELL_PEAK / ATTACK_SAMPLES;
    }
    let left = (NOTE_SAMPLES - within) * SWELL_PEAK / (NOTE_SAMPLES - ATTACK_SAMPLES);
    left * left / SWELL_PEAK
}

/// What [`swell`] is at its loudest.
const SWELL_PEAK: i64 = 4_096;

fn sample(level: i64) -> i16 {
    i16::try_from(level).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_as_many_samples_as_it_should() {
        let mut player = Player::new();
        let bytes: usize = (0..FRAME_RATE).map(|_| player.frame().len()).sum();
        assert_eq!(bytes, 48_000 * 2 * 2);
    }

    #[test]
    fn notes_are_heard_never_clip_and_meet_in_silence() {
        let levels: Vec<i16> = (0..2 * NOTE_SAMPLES).map(|at| stereo(at).0).collect();
        let loudest = levels.iter().map(|level| level.unsigned_abs()).max().unwrap();
        assert!((4_000..=8_000).contains(&loudest), "{loudest}");
        assert!(levels.windows(2).all(|pair| pair[0].abs_diff(pair[1]) < 1_000));
        assert_eq!(stereo(NOTE_SAMPLES), (0, 0));
    }

    #[test]
    fn the_two_notes_are_a_and_e() {
        let crossings = |from: i64| {
            let signs: Vec<bool> = (from..from + NOTE_SAMPLES / 2).map(|at| stereo(at).0 >= 0).collect();
            signs.windows(2).filter(|pair| !pair[0] && pair[1]).count()
        };
        assert!((109..=111).contains(&crossings(0)), "{}", crossings(0));
        assert!((164..=166).contains(&crossings(NOTE_SAMPLES)), "{}", crossings(NOTE_SAMPLES));
    }
}
