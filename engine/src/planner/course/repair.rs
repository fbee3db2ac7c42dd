//! When all segments are encoded: whether that is good enough, and which of them are encoded again.

use super::combination::{best, smallest, sum};
use super::model::{Load, solve};
use super::steering::to_f64;
use super::{Course, Step, TRANSPARENT_CRF, WORST_CRF};
use crate::units::ByteSize;

/// Encodes again when something fits already, and when nothing does: this many, or so many more than segments.
const POLISHING: u32 = 3;
/// Tracks of so few frames, slides above all, are hard to foretell and quickly encoded: they may take more.
const FEW_FRAMES: f64 = 150.0;
const FEW_POLISHING: u32 = 8;
/// With less than this share of what would be enough, some more.
const POOR: f64 = 0.94;
const POOR_POLISHING: u32 = 5;
const RESCUES: u32 = 6;
const RESCUES_BEYOND: u32 = 3;
/// How far a segment that is encoded again may end from the mean CRF: if possible, and otherwise.
const EVEN: f64 = 2.0;
const UNEVEN: f64 = 4.0;
/// Several segments at once are moved by at most this.
const SET_MOVE: f64 = 3.0;
/// A repair that failed aims this much lower, as a share of the ceiling ...
const CAUTION: f64 = 0.004;
/// ... and from the third on starts this much higher.
const STRIDE: f64 = 0.7;
/// Within this of the worst CRF, what is there can be told.
const NEAR: f64 = 0.5;
/// One frame in so many that is transparent says that the limit is not what bounds the bytes.
const MUCH: usize = 3;
/// Within this of the transparent CRF, all is as good as it will be.
const TRANSPARENT: f64 = 0.25;

/// What was encoded again, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Repairs {
    encodes: u32,
    /// Rounds after which nothing fitted.
    failed: u32,
    /// What has no version at the worst CRF is encoded there.
    last_resort: bool,
}

impl Repairs {
    pub(super) const fn encodes(&self) -> u32 {
        self.encodes
    }

    pub(super) const fn is_last_resort(&self) -> bool {
        self.last_resort
    }

    /// How much lower is aimed at, as a share of the ceiling.
    pub(super) fn caution(&self) -> f64 {
        CAUTION * f64::from(self.failed.min(10))
    }

    /// How much higher an encode starts than is thought to be right.
    pub(super) fn stride(&self) -> f64 {
        STRIDE * f64::from(self.failed.saturating_sub(2).min(8))
    }
}

impl Course {
    fn sizes(&self) -> Vec<Vec<u64>> {
        self.parts.iter().map(|part| part.versions.iter().map(|version| version.bytes).collect()).collect()
    }

    /// The version of each segment, counted from zero, that together are largest but not above the ceiling, or
    /// else smallest and above it by no more than is to spare; `None` when none fit, or a segment has none yet.
    pub(crate) fn chosen(&self) -> Option<Vec<usize>> {
        let sizes = self.sizes();
        best(&sizes, self.goal.ceiling.get()).or_else(|| {
            let most = self.goal.ceiling.saturating_add(self.goal.spare).get();
            smallest(&sizes).filter(|least| sum(&sizes, least) <= most)
        })
    }

    /// What was expected of the chosen versions when each was begun, to compare with what they are.
    pub(crate) fn predicted_bytes(&self) -> ByteSize {
        let chosen = self.chosen();
        let expected = self.parts.iter().enumerate().filter_map(|(segment, part)| {
            let version =
                chosen.as_ref().and_then(|chosen| chosen.get(segment)).copied().unwrap_or(part.current);
            part.versions.get(version).map(|version| version.expected)
        });
        ByteSize::from_f64(expected.sum())
    }

    /// The fewest bytes that the whole track was brought down to; what is not encoded yet counts as believed.
    pub(crate) fn least_bytes(&self) -> ByteSize {
        let model = self.model();
        let least = |part: &super::Part| match part.versions.iter().map(|version| version.bytes).min() {
            Some(bytes) => to_f64(bytes),
            None => {
                let load = part.load(&model, WORST_CRF);
                load.bytes * (load.slope * (load.crf - WORST_CRF)).exp2()
            }
        };
        ByteSize::from_f64(self.parts.iter().map(least).sum())
    }

    /// Judges a round that is over: the end, or a queue of segments that are encoded again.
    pub(super) fn judge(&mut self) -> Option<Step> {
        let sizes = self.sizes();
        let choice = self.chosen();
        let Some(base) = choice.clone().or_else(|| smallest(&sizes)) else { return Some(Step::TooLarge) };
        for (part, version) in self.parts.iter_mut().zip(&base) {
            part.current = *version;
        }
        let bytes = sum(&sizes, &base);
        let segments = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        if choice.is_some() {
            let full = bytes >= self.goal.enough.get();
            let frames: f64 = self.parts.iter().map(|part| part.frames).sum();
            let poor = to_f64(bytes) < self.goal.enough.as_f64() * POOR;
            let most = match (frames <= FEW_FRAMES, poor) {
                (true, _) => FEW_POLISHING,
                (false, true) => POOR_POLISHING,
                (false, false) => POLISHING,
            };
            if full || self.is_transparent() || self.repairs.encodes >= most || self.repairs.last_resort {
                return Some(Step::Done);
            }
        } else {
            if self.repairs.last_resort || self.is_worst() {
                return Some(Step::TooLarge);
            }
            self.repairs.failed = self.repairs.failed.saturating_add(u32::from(self.repairs.encodes > 0));
            if self.repairs.encodes >= RESCUES.max(segments.saturating_add(RESCUES_BEYOND)) {
                self.repairs.last_resort = true;
            }
        }
        let again = if self.repairs.last_resort { self.not_worst() } else { self.pick(to_f64(bytes)) };
        if again.is_empty() {
            return Some(if choice.is_some() { Step::Done } else { Step::TooLarge });
        }
        self.repairs.encodes =
            self.repairs.encodes.saturating_add(u32::try_from(again.len()).unwrap_or(u32::MAX));
        self.queue = again.into();
        None
    }

    /// Whether more bytes would not be seen: all is transparent, or much of it is and the rest was steered.
    fn is_transparent(&self) -> bool {
        let (mut frames, mut transparent) = (0_usize, 0_usize);
        for packet in self.parts.iter().filter_map(super::Part::current).flat_map(|version| &version.packets)
        {
            frames += 1;
            transparent += usize::from(packet.crf <= TRANSPARENT_CRF + TRANSPARENT);
        }
        self.current_crf() <= TRANSPARENT_CRF + TRANSPARENT
            || (frames > 0 && transparent.saturating_mul(MUCH) >= frames)
    }

    /// Whether all was so near the worst CRF that it would be too large there as well.
    fn is_worst(&self) -> bool {
        let least =
            |part: &super::Part| part.versions.iter().map(|version| version.sum.least()).reduce(f64::min);
        let near =
            |part: &super::Part| part.versions.iter().any(|version| version.sum.crf >= WORST_CRF - NEAR);
        let bytes: f64 = self.parts.iter().filter_map(least).sum();
        self.parts.iter().all(near) && bytes > self.goal.ceiling.as_f64()
    }

    fn not_worst(&self) -> Vec<usize> {
        let at_worst =
            |part: &super::Part| part.versions.iter().any(|version| version.sum.crf >= WORST_CRF - 0.01);
        self.parts
            .iter()
            .enumerate()
            .filter(|(_, part)| !at_worst(part))
            .map(|(segment, _)| segment)
            .collect()
    }

    /// The mean CRF of the current versions, weighted by frames.
    fn current_crf(&self) -> f64 {
        let (mut frames, mut sum) = (0.0, 0.0);
        for part in &self.parts {
            if let Some(version) = part.current() {
                frames += part.frames;
                sum += part.frames * version.sum.mean_crf;
            }
        }
        if frames > 0.0 { sum / frames } else { self.prior.crf }
    }

    /// The segments whose encoding again costs the fewest frames and brings the whole where it should be.
    fn pick(&self, bytes: f64) -> Vec<usize> {
        let model = self.model();
        let mean = self.current_crf();
        let missing = self.aim() - bytes;
        let distance = |segment: usize| -> Option<f64> {
            let part = self.parts.get(segment)?;
            let current = part.current()?;
            let target = to_f64(current.bytes) + missing;
            if target < to_f64(current.bytes) * 0.02 {
                return None;
            }
            let near = solve(&[part.load(&model, current.sum.crf)], target);
            let crf = solve(&[part.load(&model, near)], target);
            // What stands at one end of the range can go no further.
            let stuck = !(TRANSPARENT_CRF - 0.05..=WORST_CRF + 0.05).contains(&crf);
            (!stuck).then_some((crf - mean).abs())
        };
        let distances: Vec<(usize, f64, f64)> = self
            .parts
            .iter()
            .enumerate()
            .filter_map(|(segment, part)| Some((segment, part.frames, distance(segment)?)))
            .collect();
        for most in [EVEN, UNEVEN] {
            let cheapest = distances
                .iter()
                .filter(|(_, _, distance)| *distance <= most)
                .min_by(|a, b| a.1.total_cmp(&b.1).then(a.2.total_cmp(&b.2)));
            if let Some((segment, _, _)) = cheapest {
                return vec![*segment];
            }
        }
        self.pick_several(bytes, mean)
    }

    /// No segment can do it alone: as many of the largest as can do it together.
    fn pick_several(&self, bytes: f64, mean: f64) -> Vec<usize> {
        let model = self.model();
        let mut large_first: Vec<usize> = (0..self.parts.len()).collect();
        large_first
            .sort_by_key(|segment| std::cmp::Reverse(self.parts.get(*segment).map_or(0, super::Part::bytes)));
        // Those that stand at the end of the range where the whole should go cannot help.
        let down = bytes > self.aim();
        large_first.retain(|segment| {
            let crf = self
                .parts
                .get(*segment)
                .and_then(super::Part::current)
                .map_or(mean, |version| version.sum.crf);
            if down { crf < WORST_CRF - 0.5 } else { crf > TRANSPARENT_CRF + 0.05 }
        });
        let mut set: Vec<usize> = Vec::new();
        let mut loads: Vec<Load> = Vec::new();
        let mut others = bytes;
        for segment in large_first {
            let Some(part) = self.parts.get(segment) else { continue };
            set.push(segment);
            others -= to_f64(part.bytes());
            loads.push(part.load(&model, mean));
            let target = self.aim() - others;
            if target > 0.0 && (solve(&loads, target) - mean).abs() <= SET_MOVE {
                break;
            }
        }
        // Small ones first: the large ones then know more.
        set.reverse();
        if self.order == super::Order::InTime {
            set.sort_unstable();
        }
        set
    }
}
