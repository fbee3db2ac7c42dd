//! Where a track is cut into segments that are encoded on their own.
//!
//! A segment begins with a key frame of ours, which costs bytes, so cuts belong where the encoder would put one
//! anyway: at scene cuts, else about as far apart as its longest key frame interval.

use crate::units::Timestamp;

/// A packet of the source that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) time: Timestamp,
    pub(crate) bytes: u32,
    pub(crate) key: bool,
}

/// The segments' beginnings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cuts {
    /// In rising order, without the track's own beginning.
    pub(crate) times: Vec<Timestamp>,
    /// Every one of them is a key frame of the source, from where decoding can begin.
    pub(crate) at_key_frames: bool,
}

/// Shortest segment. Cutting at no less than this costs nothing measurable; all of a source's key frames, a
/// second or two apart, would cost 5 % more bytes.
const SHORTEST: Timestamp = Timestamp::from_micros(3_000_000);
/// As far apart as the encoder's own key frames at most are.
const USUAL: Timestamp = Timestamp::from_micros(8_000_000);
const LONGEST: Timestamp = Timestamp::from_micros(12_000_000);
/// What is shorter is not divided even where there are scene cuts.
const UNDIVIDED: Timestamp = Timestamp::from_micros(8_000_000);
/// A slide show has few pictures in many seconds.
const FEWEST_PICTURES: usize = 24;
/// A key frame that comes this many seconds before its time, about a frame, was put at a scene cut.
const EARLIER: f64 = 0.025;

/// Cuts the pictures from `start` to `end`. `may_be_key` says of a key frame whether decoding can begin there.
pub(crate) fn cut(shown: &[Shown], start: Timestamp, end: Timestamp) -> Cuts {
    let first = shown.partition_point(|shown| shown.time < start);
    let after = shown.partition_point(|shown| shown.time < end);
    let shown = shown.get(first..after).unwrap_or_default();
    let start = shown.first().map_or(start, |shown| shown.time.max(start));
    if end.minus(start) < UNDIVIDED || shown.len() < 2 * FEWEST_PICTURES {
        return Cuts { times: Vec::new(), at_key_frames: true };
    }
    let keys = key_frames(shown);
    let mut cuts = Cuts { times: Vec::new(), at_key_frames: true };
    let mut last = start;
    let mut last_index = 0;
    loop {
        let rest = end.minus(last);
        if rest < UNDIVIDED {
            break;
        }
        let fits = |key: &&Key| {
            key.time.minus(last) >= SHORTEST
                && end.minus(key.time) >= SHORTEST
                && key.index.saturating_sub(last_index) >= FEWEST_PICTURES
                && shown.len().saturating_sub(key.index) >= FEWEST_PICTURES
        };
        let within = || keys.iter().filter(fits).filter(|key| key.time.minus(last) <= LONGEST);
        let best = within().find(|key| key.scene).or_else(|| {
            let by_distance = |key: &&Key| key.time.minus(last).minus(USUAL).micros().abs();
            within().filter(|_| rest > LONGEST).min_by_key(by_distance)
        });
        let (time, index) = match best {
            Some(key) => (key.time, key.index),
            // No key frame for long: the pieces are encoded one after the other, and any picture will do.
            None if rest > LONGEST => {
                let index = shown.partition_point(|shown| shown.time < last.plus(USUAL));
                let index = index.max(last_index + FEWEST_PICTURES);
                match shown.get(index) {
                    Some(shown) if end.minus(shown.time) >= SHORTEST => {
                        cuts.at_key_frames &= shown.key;
                        (shown.time, index)
                    }
                    _ => break,
                }
            }
            None => break,
        };
        cuts.times.push(time);
        (last, last_index) = (time, index);
    }
    cuts
}

struct Key {
    time: Timestamp,
    index: usize,
    /// It is there because the picture changed, not because it was time for one.
    scene: bool,
}

fn key_frames(shown: &[Shown]) -> Vec<Key> {
    let mut keys: Vec<Key> = shown
        .iter()
        .enumerate()
        .filter(|(_, shown)| shown.key)
        .map(|(index, shown)| Key { time: shown.time, index, scene: false })
        .collect();
    let mut distances: Vec<f64> =
        keys.windows(2).filter_map(|pair| Some(distance(pair.first()?, pair.get(1)?))).collect();
    distances.sort_unstable_by(f64::total_cmp);
    let usual = usual_distance(&distances);
    let mut before = None;
    for key in &mut keys {
        if let Some(before) = before {
            key.scene = distance(&before, key) < usual - EARLIER;
        }
        before = Some(Key { ..*key });
    }
    keys
}

/// The distance that an encoder was told to keep, when many keep it; else the longest. `distances` is sorted.
fn usual_distance(distances: &[f64]) -> f64 {
    let mut most = (0, distances.last().copied().unwrap_or(0.0));
    for distance in distances {
        let near = |bound: f64| distances.partition_point(|other| *other < bound);
        let alike = near(distance * 1.02).saturating_sub(near(distance * 0.98));
        if alike >= most.0 {
            most = (alike, *distance);
        }
    }
    if most.0.saturating_mul(3) >= distances.len() {
        most.1
    } else {
        distances.last().copied().unwrap_or(0.0)
    }
}

fn distance(a: &Key, b: &Key) -> f64 {
    b.time.minus(a.time).seconds()
}

/// Key frames that are there because another scene begins.
pub(crate) fn scenes(shown: &[Shown]) -> Vec<Shown> {
    let scenes = key_frames(shown).into_iter().filter(|key| key.scene);
    scenes.filter_map(|key| shown.get(key.index)).copied().collect()
}

/// Bytes of the key frame that is shown last at `time` or before.
pub(crate) fn key_bytes(shown: &[Shown], time: Timestamp) -> Option<u32> {
    let after = shown.partition_point(|shown| shown.time <= time);
    shown.get(..after)?.iter().rev().find(|shown| shown.key).map(|shown| shown.bytes)
}

/// The source's bytes around each of `count` pictures that are shown from `start` on, `step` apart: the average
/// over about a second, since single frames are large or small by their type.
pub(crate) fn bytes_around(shown: &[Shown], start: Timestamp, step: Timestamp, count: u32) -> Vec<f64> {
    let mut sums = Vec::with_capacity(shown.len() + 1);
    let mut sum = 0.0;
    sums.push(sum);
    let (mut frames, mut counts) = (0.0, vec![0.0]);
    for shown in shown {
        if !shown.key {
            sum += f64::from(shown.bytes);
            frames += 1.0;
        }
        sums.push(sum);
        counts.push(frames);
    }
    let at = |time: Timestamp| shown.partition_point(|shown| shown.time < time);
    (0..count)
        .map(|number| {
            let middle = start.plus(Timestamp::from_seconds(step.seconds() * f64::from(number)));
            let (from, to) = (at(middle.minus(HALF_AROUND)), at(middle.plus(HALF_AROUND)));
            let between = |sums: &[f64]| sums.get(to).zip(sums.get(from)).map_or(0.0, |(to, from)| to - from);
            between(&sums) / between(&counts).max(1.0)
        })
        .collect()
}

const HALF_AROUND: Timestamp = Timestamp::from_micros(600_000);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(seconds: f64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    /// Thirty pictures a second with key frames at these seconds.
    fn track(length: f64, keys: &[f64]) -> Vec<Shown> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "test data")]
        let count = (length * 30.0) as u32;
        (0..count)
            .map(|number| {
                let time = seconds(f64::from(number) / 30.0);
                let key = keys.iter().any(|key| (key - time.seconds()).abs() < 0.001);
                Shown { time, bytes: 1000, key }
            })
            .collect()
    }

    #[track_caller]
    fn check(length: f64, keys: &[f64], expected: &[f64], at_key_frames: bool) {
        let cuts = cut(&track(length, keys), Timestamp::ZERO, seconds(length));
        let times: Vec<f64> = cuts.times.iter().map(|time| time.seconds()).collect();
        assert_eq!((times, cuts.at_key_frames), (expected.to_vec(), at_key_frames));
    }

    #[test]
    fn regular_key_frames_are_taken_at_the_usual_distance() {
        let keys: Vec<f64> = (0..20).map(|number| f64::from(number) * 2.0).collect();
        check(30.0, &keys, &[8.0, 16.0, 24.0], true);
    }

    #[test]
    fn scene_cuts_come_first() {
        check(20.0, &[0.0, 2.0, 4.0, 5.0, 7.0, 9.0, 11.0, 11.5, 13.5, 15.5, 17.5], &[5.0, 11.5], true);
    }

    #[test]
    fn short_tracks_are_whole() {
        check(7.9, &[0.0, 2.0, 4.0, 4.5, 6.5], &[], true);
        check(11.9, &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0], &[], true);
    }

    #[test]
    fn tracks_without_key_frames_are_cut_anywhere() {
        check(30.0, &[0.0], &[8.0, 16.0, 24.0], false);
    }

    #[test]
    fn a_slide_show_is_not_cut() {
        let slides: Vec<Shown> =
            (0..40).map(|n| Shown { time: seconds(f64::from(n) * 5.0), bytes: 1, key: true }).collect();
        assert_eq!(cut(&slides, Timestamp::ZERO, seconds(200.0)).times, []);
    }

    #[test]
    fn bytes_around_are_averages() {
        let around = bytes_around(&track(10.0, &[]), Timestamp::ZERO, seconds(1.0 / 30.0), 300);
        assert_eq!(around.len(), 300);
        assert!(around.iter().all(|bytes| (bytes - 1000.0).abs() < 1e-6), "{around:?}");
        assert_eq!(bytes_around(&[], Timestamp::ZERO, Timestamp::ZERO, 2), [0.0, 0.0]);
    }

    proptest! {
        #[test]
        fn segments_are_long_enough_and_cover_all(
            keys in proptest::collection::vec(0.0_f64..120.0, 0..60),
            length in 0.0_f64..120.0,
        ) {
            let keys: Vec<f64> = keys.iter().map(|key| (key * 30.0).round() / 30.0).collect();
            let shown = track(length, &keys);
            let cuts = cut(&shown, Timestamp::ZERO, seconds(length));
            let mut last = Timestamp::ZERO;
            for time in cuts.times.iter().chain([&seconds(length)]) {
                prop_assert!(cuts.times.is_empty() || time.minus(last) >= SHORTEST);
                last = *time;
            }
            if cuts.at_key_frames {
                let is_key = |time: &Timestamp| shown.iter().any(|shown| shown.time == *time && shown.key);
                prop_assert!(cuts.times.iter().all(is_key));
            }
        }
    }
}
