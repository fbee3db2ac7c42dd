//! Divides a limit between sound and picture before anything is encoded.

use std::time::Duration;

use crate::planner::budget::{self, SoundPlan, SoundSource};
use crate::planner::ladder::{Ladder, Rung};
use crate::units::{BitRate, ByteSize};

/// The sound that goes beside the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SoundNeed {
    pub(crate) source: SoundSource,
    /// Its bytes when it is kept as it is; `None` when it has to be encoded.
    pub(crate) kept: Option<ByteSize>,
}

/// What a file has to hold.
pub(crate) struct Needs<'a> {
    pub(crate) duration: Duration,
    pub(crate) sound: Option<SoundNeed>,
    pub(crate) ladder: &'a Ladder,
    /// An upper bound of the container's own bytes with pictures at a rung.
    pub(crate) container: &'a dyn Fn(&Rung) -> ByteSize,
    /// The most bytes that pictures are given, whatever the limit is.
    pub(crate) picture_ceiling: ByteSize,
}

/// What sound gets, and where the picture starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Division {
    pub(crate) sound: SoundChoice,
    pub(crate) rung: Rung,
}

/// What happens to the sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SoundChoice {
    /// There is none.
    Silent,
    /// Its packets are kept.
    Keep,
    /// It is encoded anew.
    Encode(SoundPlan),
}

/// A kept track may be this much larger than what would be encoded: a second generation costs more than that.
const KEEP_UP_TO: f64 = 1.2;

/// How much more than the rate that is usual for a size difficult content may need.
const CONTENT_MARGIN: f64 = 1.2;

/// Sound first, then the container, then the picture from what is left.
///
/// # Errors
/// The smallest limit that would work, when no division gives a watchable picture.
pub(crate) fn divide(needs: &Needs<'_>, limit: ByteSize) -> Result<Division, ByteSize> {
    if let Some(division) = try_divide(needs, limit) {
        return Ok(division);
    }
    let usual = needs.ladder.least_rate().bytes_in(needs.duration);
    Err(least_limit(needs, ByteSize::from_f64(usual.as_f64() * CONTENT_MARGIN)))
}

/// The smallest limit that leaves `picture` bytes for pictures at the last rung, within a few per cent.
pub(crate) fn least_limit(needs: &Needs<'_>, picture: ByteSize) -> ByteSize {
    let container = (needs.container)(&needs.ladder.last());
    let mut limit = picture.saturating_add(container).saturating_add(ByteSize::new(64));
    // A higher limit also gives the sound more, so the answer cannot be computed in one go.
    for _ in 0..1000 {
        let left = try_divide(needs, limit).map(|division| {
            let sound = match division.sound {
                SoundChoice::Silent => ByteSize::ZERO,
                SoundChoice::Keep => needs.sound.and_then(|sound| sound.kept).unwrap_or_default(),
                SoundChoice::Encode(plan) => plan.bytes(needs.duration),
            };
            budget::picture_bytes(limit, sound, container)
        });
        if left.is_some_and(|left| left >= picture) {
            break;
        }
        limit = ByteSize::from_f64(limit.as_f64() * 1.02 + 16.0);
    }
    limit
}

fn try_divide(needs: &Needs<'_>, limit: ByteSize) -> Option<Division> {
    let rate_after = |sound: ByteSize| -> Option<Rung> {
        let container = (needs.container)(&needs.ladder.last());
        let rate = budget::picture_bytes(limit, sound, container).over(needs.duration);
        let rung = needs.ladder.choose(rate)?;
        // A richer rung has more frames, and each costs the container a few bytes.
        let container = (needs.container)(&rung);
        let rate = budget::picture_bytes(limit, sound, container).over(needs.duration);
        (rate > BitRate::new(0)).then(|| needs.ladder.choose(rate)).flatten()
    };
    let Some(sound) = &needs.sound else {
        return rate_after(ByteSize::ZERO).map(|rung| Division { sound: SoundChoice::Silent, rung });
    };
    let wished = budget::sound_beside_video(&sound.source, limit, needs.duration);
    // What pictures cannot use, since their source is small, is the sound's.
    let unused =
        limit.saturating_sub(needs.picture_ceiling).saturating_sub((needs.container)(&needs.ladder.last()));
    let wished = budget::sound_within(&sound.source, unused, needs.duration)
        .filter(|richer| richer.bit_rate > wished.bit_rate)
        .unwrap_or(wished);
    if let Some(kept) = sound.kept
        && kept.as_f64() <= wished.bytes(needs.duration).as_f64() * KEEP_UP_TO
        && let Some(rung) = rate_after(kept)
    {
        return Some(Division { sound: SoundChoice::Keep, rung });
    }
    [wished, budget::least_sound(&sound.source)].into_iter().find_map(|plan| {
        let rung = rate_after(plan.bytes(needs.duration))?;
        Some(Division { sound: SoundChoice::Encode(plan), rung })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::planner::ladder::PictureSource;
    use crate::units::{Dimensions, FrameRate};

    fn ladder() -> Ladder {
        Ladder::new(&PictureSource {
            display: Dimensions::new(1280, 720),
            frame_rate: FrameRate::new(30, 1).unwrap(),
            bits_per_pixel: None,
            max_height: None,
        })
    }

    fn check_below(
        ceiling: u64,
        seconds: u64,
        limit: ByteSize,
        kept: Option<u64>,
    ) -> Result<Division, ByteSize> {
        let ladder = ladder();
        let duration = Duration::from_secs(seconds);
        let container = |rung: &Rung| {
            ByteSize::from_f64(1000.0 + 16.0 * duration.as_secs_f64() * rung.frame_rate.as_f64())
        };
        let source = SoundSource { channels: 2, sample_rate: 48_000, bit_rate: None };
        let sound = Some(SoundNeed { source, kept: kept.map(ByteSize::new) });
        let picture_ceiling = ByteSize::new(ceiling);
        divide(&Needs { duration, sound, ladder: &ladder, container: &container, picture_ceiling }, limit)
    }

    fn check(seconds: u64, limit: ByteSize, kept: Option<u64>) -> Result<Division, ByteSize> {
        check_below(u64::MAX, seconds, limit, kept)
    }

    #[test]
    fn kept_sound_is_kept_only_when_it_is_not_too_dear() {
        let small = check(30, ByteSize::mebibytes(10), Some(480_000)).unwrap();
        assert_eq!(small.sound, SoundChoice::Keep);
        let large = check(30, ByteSize::mebibytes(1), Some(480_000)).unwrap();
        assert!(matches!(large.sound, SoundChoice::Encode(_)), "{large:?}");
    }

    #[test]
    fn sound_gets_what_small_pictures_leave() {
        let rate = |ceiling| match check_below(ceiling, 30, ByteSize::mebibytes(1), None).unwrap().sound {
            SoundChoice::Encode(plan) => plan.bit_rate,
            other => panic!("{other:?}"),
        };
        assert_eq!(rate(u64::MAX), BitRate::kilobits(32));
        assert_eq!(rate(100_000), BitRate::kilobits(160));
        assert_eq!(rate(700_000), BitRate::kilobits(80));
    }

    #[test]
    fn three_hours_do_not_fit_half_a_mebibyte() {
        let least = check(3 * 3600, ByteSize::new(524_288), None).unwrap_err();
        assert!(least > ByteSize::mebibytes(10) && least < ByteSize::mebibytes(100), "{least}");
    }

    proptest! {
        #[test]
        fn the_limit_that_is_named_works(seconds in 1_u64..20_000, limit in 1_u64..3_000_000) {
            if let Err(least) = check(seconds, ByteSize::new(limit), None) {
                prop_assert!(least.get() > limit);
                prop_assert!(check(seconds, least, None).is_ok());
            }
        }
    }
}
