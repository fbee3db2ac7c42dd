//! A segment while it is encoded: what its packets so far say about the whole of it.

use super::model::{Descent, Sight};
use super::{Cut, WORST_CRF};

/// Deviation, in log2, of a segment's size as told by a short piece of [`PIECE`] frames: measured 0.4 to 0.5 for
/// windows of 24 frames without the source's sizes, less with them.
const PIECE_DEVIATION: f64 = 0.35;
const PIECE: f64 = 16.0;
/// What even a long piece does not say about the rest: another scene may follow.
const REST_DEVIATION: f64 = 0.3;
/// The same when the sizes of all frames are known from an earlier encode.
const KNOWN_PIECE_DEVIATION: f64 = 0.08;
const KNOWN_REST_DEVIATION: f64 = 0.03;

/// Frames before the end that no later frame takes over from: x264 spends less and less on them, by this share.
const TAIL: f64 = 30.0;
const TAIL_SAVES: f64 = 0.35;
/// A first frame is at most this many usual ones.
const MOST_HEAD: f64 = 200.0;

/// How far the sizes of the same frames in two encodes are from falling evenly, in log2.
const SAME_FRAMES_DEVIATION: f64 = 0.04;

/// How log2(bytes) falls with each step towards the worst CRF at most: there, headers and motion are most of them.
const STEEPEST_END: f64 = 0.4;

/// A packet that came out, and the CRF it was asked for with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Packet {
    pub(super) bytes: u32,
    pub(super) crf: f64,
}

/// The sum of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sum {
    pub(super) bytes: f64,
    /// The mean CRF, weighted by bytes as they would have been at one CRF: at this CRF throughout, the packets
    /// would have taken about as many bytes.
    pub(super) crf: f64,
    /// The mean CRF of the frames.
    pub(super) mean_crf: f64,
}

impl Sum {
    pub(super) fn of(packets: &[Packet], slope: f64) -> Self {
        let origin = packets.first().map_or(0.0, |packet| packet.crf);
        let (mut bytes, mut weights, mut weighted, mut crfs, mut count) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for packet in packets {
            let weight = (f64::from(packet.bytes) + 1.0) * (slope * (packet.crf - origin)).exp2();
            bytes += f64::from(packet.bytes);
            weights += weight;
            weighted += weight * packet.crf;
            crfs += packet.crf;
            count += 1.0;
        }
        if count > 0.0 && weights > 0.0 {
            Self { bytes, crf: weighted / weights, mean_crf: crfs / count }
        } else {
            Self::default()
        }
    }

    /// The fewest bytes that the same packets could take at the worst CRF.
    pub(super) fn least(&self) -> f64 {
        self.bytes * (STEEPEST_END * (self.crf - WORST_CRF).min(0.0)).exp2()
    }

    pub(super) fn log_bytes(&self) -> f64 {
        self.bytes.max(1.0).log2()
    }
}

/// How the bytes of a segment are spread over its frames, in units of a usual frame that is not the first.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Profile {
    /// The first frame, which refers to no other.
    head: f64,
    /// Sums of the frames after it.
    cumulative: Vec<f64>,
    /// Frames at which another scene begins, with their bytes against those of the first frame.
    cuts: Vec<(u32, f64)>,
    /// Measured in an earlier encode of the segment.
    known: bool,
}

impl Profile {
    /// From weights of all frames that are guessed; the first one's is `head` usual frames instead.
    /// Where another scene begins, at one of `cuts`, a frame is like the first. Those near the end are cheaper.
    pub(super) fn guessed(weights: impl IntoIterator<Item = f64>, head: f64, cuts: &[Cut]) -> Self {
        let mut weights: Vec<f64> = weights.into_iter().skip(1).collect();
        for (left, weight) in
            (0_u32..).zip(weights.iter_mut().rev()).take_while(|(left, _)| f64::from(*left) < TAIL)
        {
            *weight *= 1.0 - TAIL_SAVES * (1.0 - f64::from(left) / TAIL);
        }
        let mut profile = Self::new(weights.into_iter(), head, false);
        profile.cuts = cuts.iter().map(|cut| (cut.frame.max(1), cut.weight())).collect();
        profile
    }

    /// From the packets of an earlier encode.
    pub(super) fn known(packets: &[Packet], slope: f64) -> Self {
        let origin = packets.first().map_or(0.0, |packet| packet.crf);
        let weights: Vec<f64> = packets
            .iter()
            .map(|packet| (f64::from(packet.bytes) + 1.0) * (slope * (packet.crf - origin)).exp2())
            .collect();
        let (head, rest) = weights.split_first().map_or((1.0, &[][..]), |(head, rest)| (*head, rest));
        let count = f64::from(u32::try_from(rest.len()).unwrap_or(u32::MAX)).max(1.0);
        let usual = rest.iter().sum::<f64>() / count;
        Self::new(rest.iter().copied(), if usual > 0.0 { head / usual } else { 1.0 }, true)
    }

    fn new(weights: impl Iterator<Item = f64>, head: f64, known: bool) -> Self {
        let mut sum = 0.0;
        let mut cumulative = vec![0.0];
        for weight in weights {
            sum += if weight.is_finite() { weight.clamp(0.0, 1e9) } else { 1.0 };
            cumulative.push(sum);
        }
        let count = f64::from(u32::try_from(cumulative.len().saturating_sub(1)).unwrap_or(u32::MAX));
        if sum > 0.0 {
            cumulative.iter_mut().for_each(|value| *value *= count / sum);
        }
        Self { head, cumulative, cuts: Vec::new(), known }
    }

    /// Makes it as long as `count` frames; what was not known of counts as usual.
    fn resize(&mut self, count: usize) {
        let count = count.max(1);
        self.cumulative.truncate(count);
        while self.cumulative.len() < count {
            self.cumulative.push(self.cumulative.last().copied().unwrap_or(0.0) + 1.0);
        }
    }

    /// The frames after the first, in usual frames.
    pub(super) fn rest(&self) -> f64 {
        self.done(usize::MAX)
    }

    pub(super) fn whole(&self) -> f64 {
        self.head + self.rest()
    }

    /// The frames after the first, up to packet `count`.
    fn done(&self, count: usize) -> f64 {
        self.usual(count) + self.scenes(count) * (self.head - 1.0).max(0.0)
    }

    /// The same without what scenes cost that begin among them.
    fn usual(&self, count: usize) -> f64 {
        let after_first = count.saturating_sub(1);
        self.cumulative.get(after_first).or_else(|| self.cumulative.last()).copied().unwrap_or(0.0)
    }

    /// First frames of scenes up to packet `count`, counted in first frames of the segment.
    fn scenes(&self, count: usize) -> f64 {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.cuts.iter().filter(|(frame, _)| *frame < count).map(|(_, weight)| weight).sum()
    }

    /// Learns what first frames cost against usual ones, from a first frame of `head` bytes and `rest` bytes of
    /// the packets after it, up to packet `count`.
    pub(super) fn settle(&mut self, head: f64, rest: f64, count: usize) {
        let (usual, scenes) = (self.usual(count), self.scenes(count));
        if usual <= 0.0 || head <= 0.0 || self.known {
            return;
        }
        let mean = (rest - scenes * head) / (usual - scenes).max(usual / 2.0);
        let least = rest / usual / 10.0;
        let head = head / mean.max(least).max(1.0);
        if head.is_finite() {
            self.head = head.clamp(1.0, MOST_HEAD);
        }
    }

    /// The whole segment's bytes by those of its first packets, as if its first frame were a usual one: bytes of
    /// the whole, and the variance of their log2.
    pub(super) fn whole_by(&self, count: usize, rest_bytes: f64) -> Option<(f64, f64)> {
        let done = self.done(count);
        if !(done > 0.0 && rest_bytes > 0.0) {
            return None;
        }
        let (piece, rest) = if self.known {
            (KNOWN_PIECE_DEVIATION, KNOWN_REST_DEVIATION)
        } else {
            (PIECE_DEVIATION, REST_DEVIATION)
        };
        let frames = f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let open = (1.0 - done / self.rest().max(done)).max(0.0);
        let variance = piece.powi(2) * PIECE / frames * open + (rest * open).powi(2);
        Some((rest_bytes / done * self.whole(), variance))
    }
}

/// A segment that is being encoded.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Flight {
    /// The CRF it began with.
    pub(super) start: f64,
    /// The CRF of the next packet.
    pub(super) crf: f64,
    /// Bytes that were expected of the whole when it began.
    pub(super) expected: f64,
    /// The CRF stays as it is.
    pub(super) fixed: bool,
    pub(super) packets: Vec<Packet>,
    pub(super) bytes: u64,
    /// Packets since the CRF was last looked at.
    pub(super) since: u32,
    profile: Profile,
    slope: f64,
    /// Bytes of all packets but the first, as they would have been at the first CRF.
    rest: f64,
}

impl Flight {
    pub(super) fn new(crf: f64, expected: f64, profile: Profile, slope: f64) -> Self {
        Self {
            start: crf,
            crf,
            expected,
            fixed: false,
            packets: Vec::new(),
            bytes: 0,
            since: 0,
            profile,
            slope,
            rest: 0.0,
        }
    }

    pub(super) fn push(&mut self, bytes: u32, crf: f64) {
        if !self.packets.is_empty() {
            self.rest += f64::from(bytes) * (self.slope * (crf - self.start)).exp2();
        }
        self.packets.push(Packet { bytes, crf });
        if let Some(first) = self.packets.first() {
            self.profile.settle(f64::from(first.bytes), self.rest, self.packets.len());
        }
        self.bytes = self.bytes.saturating_add(u64::from(bytes));
        self.since = self.since.saturating_add(1);
    }

    /// The segment turns out to have exactly so many frames.
    pub(super) fn resize(&mut self, count: usize) {
        self.profile.resize(count);
    }

    /// Counts the packets so far anew, now that the slope is known better.
    pub(super) fn learn_slope(&mut self, slope: f64) {
        if (slope - self.slope).abs() > 0.01 {
            self.slope = slope;
            self.rest = self
                .packets
                .iter()
                .skip(1)
                .map(|packet| f64::from(packet.bytes) * (slope * (packet.crf - self.start)).exp2())
                .sum();
        }
    }

    /// The whole segment as its packets so far show it.
    pub(super) fn sight(&self) -> Option<Sight> {
        let (bytes, variance) = self.profile.whole_by(self.packets.len(), self.rest)?;
        Some(Sight { crf: self.start, log_bytes: bytes.max(1.0).log2(), variance })
    }

    /// The share of the segment that came out.
    pub(super) fn share(&self) -> f64 {
        if self.packets.is_empty() {
            return 0.0;
        }
        let whole = self.profile.whole().max(1e-9);
        ((self.profile.head + self.profile.done(self.packets.len())) / whole).clamp(0.0, 1.0)
    }

    /// The bytes still to come, when the whole segment is believed to take `whole` bytes.
    pub(super) fn left(&self, whole: f64) -> f64 {
        let done = if self.packets.is_empty() { 0.0 } else { self.profile.head };
        let left = self.profile.whole() - done - self.profile.done(self.packets.len());
        whole * left.max(0.0) / self.profile.whole().max(1e-9)
    }
}

/// How the same frames fell with the CRF from one encode to another, as far as both go.
///
/// It is told frame by frame, so that the CRF may have moved in both.
pub(super) fn descent(first: &[Packet], second: &[Packet]) -> Option<Descent> {
    let (mut weights, mut squares, mut products) = (0.0, 0.0, 0.0);
    for (first, second) in first.iter().zip(second) {
        let (before, after) = (f64::from(first.bytes) + 1.0, f64::from(second.bytes) + 1.0);
        let (steps, fall, weight) =
            (second.crf - first.crf, (before / after).log2(), (before * after).sqrt());
        weights += weight;
        squares += weight * steps.powi(2);
        products += weight * steps * fall;
    }
    let steps = (squares / weights).sqrt();
    Descent::between((0.0, products / squares * steps), (steps, 0.0), SAME_FRAMES_DEVIATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_segment_is_foretold_from_its_beginning() {
        let mut flight = Flight::new(28.0, 1e6, Profile::guessed(vec![1.0; 100], 6.0, &[]), 0.22);
        flight.push(6000, 28.0);
        (0..24).for_each(|_| flight.push(1000, 28.0));
        let sight = flight.sight().unwrap();
        assert!((sight.log_bytes.exp2() - 99_575.0).abs() < 1.0);
        assert!((flight.left(99_575.0) - 69_575.0).abs() < 1.0);
        assert!((flight.share() - 30_000.0 / 99_575.0).abs() < 1e-9);
    }

    #[test]
    fn bytes_at_another_crf_count_as_at_the_first() {
        let mut flight = Flight::new(28.0, 1e6, Profile::guessed(vec![1.0; 100], 6.0, &[]), 0.25);
        flight.push(6000, 28.0);
        (0..10).for_each(|_| flight.push(1000, 28.0));
        flight.crf = 32.0;
        (0..10).for_each(|_| flight.push(500, 32.0));
        assert!((flight.sight().unwrap().log_bytes.exp2() - 99_575.0).abs() < 1.0);
        flight.learn_slope(0.5);
        assert!(flight.sight().unwrap().log_bytes.exp2() > 140_000.0);
    }

    #[test]
    fn the_slope_is_told_although_the_crf_moved() {
        let encode = |crfs: [f64; 2]| -> Vec<Packet> {
            let sizes = [4000.0, 1000.0, 300.0, 2000.0].into_iter().cycle();
            let packet = |(n, size): (usize, f64)| {
                let crf = crfs[usize::from(n >= 30)];
                let bytes = crate::units::ByteSize::from_f64(size * (0.4 * (30.0 - crf)).exp2()).get();
                Packet { bytes: u32::try_from(bytes).unwrap(), crf }
            };
            sizes.take(60).enumerate().map(packet).collect()
        };
        let slope = descent(&encode([25.0, 29.0]), &encode([27.0, 26.0])).unwrap().slope;
        assert!((slope - 0.4).abs() < 0.01, "{slope}");
        assert_eq!(descent(&encode([25.0, 29.0]), &encode([25.1, 29.0])), None);
        assert_eq!(descent(&[], &[]), None);
    }

    #[test]
    fn a_segment_longer_than_thought_has_nothing_left() {
        let mut flight = Flight::new(28.0, 1e6, Profile::guessed(vec![1.0; 10], 6.0, &[]), 0.25);
        (0..30).for_each(|_| flight.push(1000, 28.0));
        assert_eq!((flight.left(1e6), flight.share()), (0.0, 1.0));
    }

    #[test]
    fn a_known_profile_is_surer_than_a_guess() {
        let packets: Vec<_> = (0..100).map(|n| Packet { bytes: 500 + n * 10, crf: 28.0 }).collect();
        let known = Profile::known(&packets, 0.22).whole_by(30, 1e5).unwrap();
        let guessed = Profile::guessed(vec![1.0; 100], 6.0, &[]).whole_by(30, 1e5).unwrap();
        assert!(known.1 < guessed.1 / 4.0);
    }
}
