//! Bytes: sound first, then the container, then the picture.

use std::time::Duration;

use crate::units::{BitRate, ByteSize};

/// What the source's sound is, as far as a budget depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SoundSource {
    pub(crate) channels: u32,
    pub(crate) sample_rate: u32,
    /// Its own rate, measured from its packets; `None` when that says nothing (lossless).
    pub(crate) bit_rate: Option<BitRate>,
}

/// How sound shall be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SoundPlan {
    pub(crate) bit_rate: BitRate,
    pub(crate) channels: u32,
    pub(crate) sample_rate: u32,
}

/// One step of what sound may cost.
struct Step {
    kilobits: u64,
    channels: u32,
    most_hertz: u32,
}

const fn step(kilobits: u64, channels: u32, most_hertz: u32) -> Step {
    Step { kilobits, channels, most_hertz }
}

/// From transparent stereo to intelligible speech. Below 32 kbit/s one channel sounds better than two, and a
/// lower sample rate better than bits spread over octaves that are lost anyway.
const STEPS: [Step; 10] = [
    step(160, 2, 48_000),
    step(128, 2, 48_000),
    step(96, 2, 48_000),
    step(80, 2, 48_000),
    step(64, 2, 44_100),
    step(48, 2, 32_000),
    step(32, 1, 24_000),
    step(24, 1, 22_050),
    step(16, 1, 16_000),
    step(12, 1, 12_000),
];

/// With pictures, sound takes at most this share of all bits; people notice blur before they notice hiss.
const SHARE: f64 = 0.16;
/// At very low rates sound needs more than its share to be understood at all.
const SHARE_AT_MOST: f64 = 0.42;
/// FFmpeg's AAC comes out up to 1.3 % above its nominal rate; short files pay for priming as well.
const OVERSHOOT: f64 = 1.03;

impl SoundPlan {
    /// The bytes that this plan will need, with room for the encoder's overshoot.
    pub(crate) fn bytes(&self, duration: Duration) -> ByteSize {
        ByteSize::from_f64(self.bit_rate.bytes_in(duration).as_f64() * OVERSHOOT + PRIMING_BYTES)
    }
}

/// A few packets of priming and padding.
const PRIMING_BYTES: f64 = 512.0;

/// What encoded sound can give up for pictures that took a little too much: making it once more costs less than
/// encoding a segment again, and a few percent of its rate are not heard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Loan {
    plan: SoundPlan,
    bytes: ByteSize,
}

impl Loan {
    /// Of sound that was made by `plan` and took `bytes`; `None` when its size does not follow its rate.
    pub(crate) fn of(plan: SoundPlan, bytes: ByteSize, duration: Duration) -> Option<Self> {
        let nominal = plan.bit_rate.bytes_in(duration).as_f64();
        let follows = bytes.as_f64() >= nominal * LEAST_FOLLOWING && plan.bit_rate >= LEAST_LENDING;
        follows.then_some(Self { plan, bytes })
    }

    /// Of sound that was made by `plan` and took `bytes`, and for which more room was promised than there is.
    pub(crate) const fn owed(plan: SoundPlan, bytes: ByteSize) -> Self {
        Self { plan, bytes }
    }

    /// The most bytes that it gives.
    pub(crate) fn most(&self) -> ByteSize {
        ByteSize::from_f64(self.bytes.as_f64() * MOST_LENT)
    }

    /// The plan that gives `over` bytes; asks for more than that at each further attempt.
    pub(crate) fn plan(&self, over: ByteSize, attempt: u32) -> SoundPlan {
        let share = over.as_f64() / self.bytes.as_f64().max(1.0) + IMPRECISION * f64::from(attempt + 1);
        let left = (1.0 - share).clamp(1.0 - 2.0 * MOST_LENT, 1.0);
        SoundPlan { bit_rate: BitRate::from_f64(self.plan.bit_rate.as_f64() * left), ..self.plan }
    }
}

/// Sound of few bits is given no fewer.
const LEAST_LENDING: BitRate = BitRate::kilobits(32);
/// Sound that is easy to encode stays below its rate, and would at a lower one.
const LEAST_FOLLOWING: f64 = 0.93;
/// The share of its bytes that sound gives up at most.
const MOST_LENT: f64 = 0.12;
/// So much less is asked for than is needed, as a share of the rate: about FFmpeg's imprecision.
const IMPRECISION: f64 = 0.01;

/// Sound beside pictures, for a result of `limit` bytes in all.
pub(crate) fn sound_beside_video(source: &SoundSource, limit: ByteSize, duration: Duration) -> SoundPlan {
    let total = limit.over(duration).as_f64();
    let steps = || STEPS.iter().map(|step| plan(source, step));
    steps()
        .find(|plan| plan.bit_rate.as_f64() <= total * SHARE)
        .or_else(|| steps().rev().find(|plan| plan.bit_rate.as_f64() > total * SHARE))
        .filter(|plan| plan.bit_rate.as_f64() <= total * SHARE_AT_MOST)
        .unwrap_or_else(least_sound_of(source))
}

/// The best sound of at most `bytes`; `None` when even the least is larger.
pub(crate) fn sound_within(source: &SoundSource, bytes: ByteSize, duration: Duration) -> Option<SoundPlan> {
    STEPS.iter().map(|step| plan(source, step)).find(|plan| plan.bytes(duration) <= bytes)
}

/// The least sound that is worth having.
pub(crate) fn least_sound(source: &SoundSource) -> SoundPlan {
    least_sound_of(source)()
}

fn least_sound_of(source: &SoundSource) -> impl FnOnce() -> SoundPlan {
    let least = plan(source, &STEPS[STEPS.len() - 1]);
    move || least
}

fn plan(source: &SoundSource, step: &Step) -> SoundPlan {
    let channels = step.channels.min(source.channels.max(1));
    // One channel of a stereo step needs a little more than half.
    let kilobits = if channels < step.channels { step.kilobits * 5 / 8 } else { step.kilobits };
    let mut bit_rate = BitRate::kilobits(kilobits);
    if let Some(own) = source.bit_rate {
        // More bits than the source has cannot make it better; the floor keeps a mangled source usable.
        bit_rate = bit_rate.min(BitRate::from_f64(own.as_f64() * 1.1).max(BitRate::kilobits(12)));
    }
    SoundPlan { bit_rate, channels, sample_rate: sample_rate(source.sample_rate, step.most_hertz) }
}

/// The rate of AAC's table that is nearest to the source's from above, within `most`.
fn sample_rate(source: u32, most: u32) -> u32 {
    const RATES: [u32; 9] = [8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000];
    let wanted = source.min(most);
    RATES
        .into_iter()
        .find(|rate| *rate >= wanted && *rate <= most)
        .unwrap_or_else(|| RATES.into_iter().rev().find(|rate| *rate <= most).unwrap_or(48_000))
}

/// What is left for pictures once the sound is known to the byte.
pub(crate) fn picture_bytes(limit: ByteSize, sound: ByteSize, container: ByteSize) -> ByteSize {
    limit.saturating_sub(sound).saturating_sub(container)
}

/// A ceiling that keeps small inputs small: a result needs no more bytes than its source, up to what the
/// source's codec saves over H.264.
pub(crate) fn ceiling_of_source(source: ByteSize, efficiency: f64) -> ByteSize {
    ByteSize::from_f64(source.as_f64() * efficiency).max(LEAST_CEILING)
}

/// A source's ceiling for a picture that keeps `pixels` of its pixels and `frames` of its frames, as shares.
///
/// Bytes fall more slowly than pixels and frames do; both exponents are usual for x264.
pub(crate) fn scaled_ceiling(ceiling: ByteSize, pixels: f64, frames: f64) -> ByteSize {
    let share = pixels.clamp(0.0, 1.0).powf(0.75) * frames.clamp(0.0, 1.0).powf(0.6);
    ByteSize::from_f64(ceiling.as_f64() * share).max(LEAST_CEILING)
}

/// Tiny sources (a GIF of a few hundred bytes) may grow to this, below which the parameter sets dominate.
const LEAST_CEILING: ByteSize = ByteSize::new(48 * 1024);

/// How many bytes H.264 needs for the picture of one byte of `codec`, generously.
pub(crate) fn efficiency_over_h264(codec: &str) -> f64 {
    match codec {
        "av1" => 1.8,
        "hevc" | "vp9" => 1.5,
        "h264" => 1.2,
        "vp8" => 1.1,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STEREO: SoundSource = SoundSource { channels: 2, sample_rate: 48_000, bit_rate: None };

    #[test]
    fn sound_gives_what_pictures_took_and_little_more() {
        let plan = SoundPlan { bit_rate: BitRate::kilobits(100), channels: 2, sample_rate: 48_000 };
        let ten_seconds = Duration::from_secs(10);
        let loan = Loan::of(plan, ByteSize::new(125_000), ten_seconds).unwrap();
        assert_eq!(loan.most(), ByteSize::new(15_000));
        assert_eq!(loan.plan(ByteSize::new(5_000), 0).bit_rate, BitRate::from_f64(95_000.0));
        assert_eq!(loan.plan(ByteSize::new(5_000), 1).bit_rate, BitRate::from_f64(94_000.0));
        // Silence stays below its rate, and would stay as large at a lower one.
        assert_eq!(Loan::of(plan, ByteSize::new(60_000), ten_seconds), None);
        let poor = SoundPlan { bit_rate: BitRate::kilobits(24), ..plan };
        assert_eq!(Loan::of(poor, ByteSize::new(30_000), ten_seconds), None);
    }

    #[test]
    fn sound_gets_its_share() {
        for (limit, seconds, kilobits, channels) in [
            (ByteSize::mebibytes(10), 30, 160, 2),
            (ByteSize::mebibytes(10), 120, 96, 2),
            (ByteSize::mebibytes(8), 240, 32, 1),
            (ByteSize::mebibytes(6), 1200, 12, 1),
        ] {
            let plan = sound_beside_video(&STEREO, limit, Duration::from_secs(seconds));
            assert_eq!(
                (plan.bit_rate.as_kilobits(), plan.channels),
                (kilobits, channels),
                "{limit} {seconds} s"
            );
        }
    }

    #[test]
    fn sound_never_exceeds_its_source() {
        let source = SoundSource { channels: 1, sample_rate: 8000, bit_rate: Some(BitRate::kilobits(20)) };
        let plan = sound_beside_video(&source, ByteSize::mebibytes(10), Duration::from_secs(10));
        assert_eq!(plan, SoundPlan { bit_rate: BitRate::kilobits(22), channels: 1, sample_rate: 8000 });
    }

    #[test]
    fn a_smaller_picture_has_a_lower_ceiling() {
        let ceiling = ByteSize::new(10_000_000);
        assert_eq!(scaled_ceiling(ceiling, 1.0, 1.0), ceiling);
        assert_eq!(scaled_ceiling(ceiling, 4.0, 1.0), ceiling);
        let quarter = scaled_ceiling(ceiling, 0.25, 1.0);
        assert!((3_400_000..3_700_000).contains(&quarter.get()), "{quarter}");
    }

    proptest! {
        #[test]
        fn sound_within_a_budget_stays_within(bytes in 0_u64..50_000_000, seconds in 1_u64..20_000, channels in 1_u32..9) {
            let source = SoundSource { channels, ..STEREO };
            let duration = Duration::from_secs(seconds);
            if let Some(plan) = sound_within(&source, ByteSize::new(bytes), duration) {
                prop_assert!(plan.bytes(duration).get() <= bytes);
                prop_assert!(plan.channels <= 2 && plan.sample_rate <= 48_000);
            }
        }
    }
}
