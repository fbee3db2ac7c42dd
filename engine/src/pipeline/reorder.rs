//! Decoding times from presentation times.

use crate::error::Error;
use crate::mp4::Sample;

/// Gives samples in decoding order their decoding times: the presentation times in rising order, all moved
/// back by the least amount that lets no sample be decoded after it is shown.
///
/// This is what an encoder does when nothing was cut or joined; it also holds over joins, for sources without
/// decoding times, and keeps an even track even.
///
/// # Errors
/// `Corrupt` when two samples are shown at the same time.
pub(crate) fn rebuild_dts(samples: &mut [Sample]) -> Result<(), Error> {
    let mut times: Vec<i64> = samples.iter().map(|sample| sample.pts).collect();
    times.sort_unstable();
    if times.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
        return Err(Error::corrupt("two pictures are shown at the same time"));
    }
    let delay =
        samples.iter().zip(&times).map(|(sample, time)| time.saturating_sub(sample.pts)).max().unwrap_or(0);
    for (sample, time) in samples.iter_mut().zip(times) {
        sample.dts = time.saturating_sub(delay.max(0));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn samples(times: &[i64]) -> Vec<Sample> {
        times
            .iter()
            .map(|pts| Sample { data: Bytes::new(), dts: 0, pts: *pts, duration: 1, sync: false })
            .collect()
    }

    #[test]
    fn b_frames_move_decoding_back() {
        let mut samples = samples(&[0, 3, 1, 2, 6, 4, 5]);
        rebuild_dts(&mut samples).unwrap();
        assert_eq!(samples.iter().map(|sample| sample.dts).collect::<Vec<_>>(), [-1, 0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn repeated_times_are_refused() {
        assert!(rebuild_dts(&mut samples(&[0, 1, 1])).is_err());
    }

    proptest! {
        #[test]
        fn nothing_is_decoded_after_it_is_shown(times in proptest::collection::hash_set(-1000_i64..100_000, 1..100)) {
            let mut samples = samples(&times.into_iter().collect::<Vec<_>>());
            rebuild_dts(&mut samples).unwrap();
            prop_assert!(samples.iter().all(|sample| sample.dts <= sample.pts));
            prop_assert!(samples.windows(2).all(|pair| pair[0].dts < pair[1].dts));
        }
    }
}
