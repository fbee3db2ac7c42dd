//! The course of a video track through its encodes: which segment is encoded next, at which CRF, and when it is
//! good enough.
//!
//! A track is made of segments, each encoded by an encoder of its own, all packets kept. What is not known
//! beforehand is the constant rate factor (CRF) that fills the bytes there are. [`Course`] learns it: from a few
//! short windows, from finished segments, and from the packets of those in flight, whose CRF it moves so that the
//! whole lands just under the ceiling. What misses all the same is mended by encoding one segment again.
//!
//! It knows no clock, no randomness and no thread: the same answers to the same questions in the same order.
//! Invariants: it ends, whatever is told; what it chooses is never above the ceiling by more than is to spare.

mod combination;
mod flight;
mod model;
mod part;
mod probing;
mod repair;
mod steering;

#[cfg(test)]
mod pretend;
#[cfg(test)]
mod statistics;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use self::flight::{Flight, Packet, Sum};
use self::model::{Descent, Load, Model, Prior, Sight, Subject, solve};
use self::part::{MOST_FRAMES, Part, track_mean};
use self::probing::{Probing, Seen};
use self::repair::Repairs;
use crate::units::ByteSize;

/// A CRF at which x264's result cannot be told from the source by eye: better is never asked for.
pub(crate) const TRANSPARENT_CRF: f64 = 18.0;
/// Beyond this the picture falls apart and a smaller one looks better.
pub(crate) const WORST_CRF: f64 = 47.0;

/// The CRFs at which a window is encoded: beyond, nothing is learnt about those that will be used.
const WINDOW_CRFS: (f64, f64) = (18.0, 41.0);
/// A short window shows too few bytes, in log2: measured 0.03 to 0.07 where the encoder was shown the frames that
/// follow, 0.28 where not.
const WINDOW_LACKS: f64 = 0.05;
/// Deviation, in log2, of a segment's size as told by a window, and by one whose later frames were not seen.
const WINDOW_DEVIATION: f64 = 0.35;
const BLIND_WINDOW_DEVIATION: f64 = 0.7;
/// Key frames of a source and of a result differ in size like this, by its source's.
const CUT_EXPONENT: f64 = 0.7;
/// The first frame of a segment against a usual one, in log2, how sure that is, and how far segments differ.
const HEAD: f64 = 2.6;
const HEAD_DEVIATION: f64 = 0.8;
const HEAD_SPREAD: f64 = 0.5;
/// Versions of a segment that are steered.
const STEERED_VERSIONS: usize = 2;

/// One segment before anything is encoded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Segment {
    /// Frames of the result, about.
    pub(crate) frames: u32,
    /// The source's bytes for each of these frames, smoothed over about a second. May be shorter or empty; zero
    /// means unknown.
    pub(crate) source_bytes: Vec<f64>,
    /// Frames in the middle at which another scene begins, in rising order.
    pub(crate) cuts: Vec<Cut>,
}

/// A frame at which another scene begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    pub(crate) frame: u32,
    /// The source's bytes of its key frame there, against those of the segment's first.
    pub(crate) ratio: f64,
}

impl Cut {
    /// Its bytes against those of the segment's first frame.
    fn weight(&self) -> f64 {
        if self.ratio.is_finite() { self.ratio.clamp(0.05, 20.0).powf(CUT_EXPONENT) } else { 1.0 }
    }
}

/// What the chosen packets together may and should take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Goal {
    /// Never more than this.
    pub(crate) ceiling: ByteSize,
    /// From here on it is full enough.
    pub(crate) enough: ByteSize,
    /// So much above the ceiling is cheaper to make up for elsewhere than by encoding a segment again.
    pub(crate) spare: ByteSize,
}

/// What is believed of the CRF that fills the ceiling, before anything was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Belief {
    pub(crate) crf: f64,
    /// Its standard deviation, in steps of CRF: about 4 when blind, 0.8 from a probe at another size.
    pub(crate) deviation: f64,
}

/// In which order segments can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Any,
    /// Any that are there, see [`Course::arrived`], in time order those that are not; the first ones are probed.
    AsTheyArrive,
    /// One decoder runs through the source: segments are handed out in time order, only the first is probed.
    InTime,
}

/// What a worker does next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    /// Encode the segment's first `frames` frames at `crf`, tell the sizes by [`Course::probed`], drop the packets.
    Probe { segment: usize, frames: u32, crf: f64 },
    /// Encode the segment from `crf` on, tell each packet by [`Course::packet`] and the end by
    /// [`Course::finished`].
    Encode { segment: usize, crf: f64 },
    /// Nothing to do until something in flight ends.
    Wait,
    /// Take what is [chosen](Course::chosen).
    Done,
    /// No CRF fits.
    TooLarge,
}

/// What to do while a segment is encoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Advice {
    /// Go on.
    Keep,
    /// Go on with another CRF from the next packet on.
    Change { crf: f64 },
    /// Throw this encode away; [`Course::next`] hands the segment out again.
    Restart,
}

/// The controller of one track at one size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Course {
    parts: Vec<Part>,
    ceiling: f64,
    goal: Goal,
    prior: Prior,
    order: Order,
    /// So many segments at the beginning are there.
    there: usize,
    probing: Probing,
    /// The segments to be encoded in this round, in order.
    queue: VecDeque<usize>,
    /// The queue stands in its final order.
    sorted: bool,
    descents: Vec<Descent>,
    /// Mean and variance of log2 of a first frame against a usual one.
    head: (f64, f64),
    repairs: Repairs,
    restarts: u32,
    redone: u64,
    end: Option<Step>,
    /// What is believed without the encodes in flight.
    settled: Model,
}

impl Course {
    pub(crate) fn new(segments: Vec<Segment>, goal: Goal, belief: Belief, order: Order) -> Self {
        let mean = track_mean(&segments);
        let parts: Vec<Part> = segments.into_iter().map(|segment| Part::new(segment, mean)).collect();
        let crf = if belief.crf.is_finite() { belief.crf.clamp(5.0, 60.0) } else { 28.0 };
        let deviation = if belief.deviation.is_finite() { belief.deviation.clamp(0.2, 8.0) } else { 4.0 };
        let ceiling = goal.ceiling.as_f64();
        let prior = Prior { crf, deviation, log_budget: ceiling.max(1.0).log2() };
        let subjects: Vec<_> = parts.iter().map(Part::subject).collect();
        Self {
            settled: Model::fit(&prior, &subjects, &[]),
            probing: Probing::plan(&parts, deviation, order),
            queue: (0..parts.len()).collect(),
            there: if order == Order::AsTheyArrive { 0 } else { parts.len() },
            sorted: order == Order::InTime,
            parts,
            ceiling,
            goal,
            prior,
            order,
            descents: Vec::new(),
            head: (HEAD, HEAD_DEVIATION.powi(2)),
            repairs: Repairs::default(),
            restarts: 0,
            redone: 0,
            end: None,
        }
    }

    /// What the worker that asks does next. Several workers ask in turn.
    pub(crate) fn next(&mut self) -> Step {
        if let Some(end) = self.end {
            return end;
        }
        if !self.probing.is_over() {
            let crf = self.predicted_crf().clamp(WINDOW_CRFS.0, WINDOW_CRFS.1);
            return match self.probing.next() {
                Some(window) => Step::Probe { segment: window.segment, frames: window.frames, crf },
                None => Step::Wait,
            };
        }
        if !self.sorted {
            self.sort();
        }
        if self.is_hopeless() {
            self.end = Some(Step::TooLarge);
            return Step::TooLarge;
        }
        if self.queue.is_empty() {
            if self.in_flight().next().is_some() {
                return Step::Wait;
            }
            if let Some(end) = self.judge() {
                self.end = Some(end);
                return end;
            }
        }
        self.begin()
    }

    /// The first `segments` segments are there, and can be read without waiting.
    pub(crate) fn arrived(&mut self, segments: usize) {
        self.there = self.there.max(segments);
    }

    /// The place in the queue of the segment that is encoded next.
    fn front(&self) -> usize {
        let there = self.queue.iter().position(|segment| *segment < self.there);
        there
            .or_else(|| {
                self.queue.iter().enumerate().min_by_key(|(_, segment)| **segment).map(|first| first.0)
            })
            .unwrap_or(0)
    }

    fn begin(&mut self) -> Step {
        let front = self.front();
        let Some(segment) = self.queue.get(front).copied() else { return Step::Done };
        let model = self.model();
        let crf = self.start(&model, segment);
        self.queue.remove(front);
        let head = self.head.0.exp2();
        let last_resort = self.repairs.is_last_resort();
        let Some(part) = self.parts.get_mut(segment) else { return Step::Wait };
        // Steering that missed twice would miss again in the same way; what a constant CRF gives is known by then.
        let fixed = last_resort || part.versions.len() >= STEERED_VERSIONS;
        let load = part.load(&model, crf);
        let expected = load.bytes * (load.slope * (load.crf - crf)).exp2();
        let profile = part.profile(model.exponent(), head, load.slope);
        let mut flight = Flight::new(crf, expected, profile, load.slope);
        flight.fixed = fixed;
        part.flight = Some(flight);
        self.settle();
        Step::Encode { segment, crf }
    }

    /// Small segments first, as pilots, then from large to small; the second smallest is kept for the end, where
    /// it is steered so that the whole lands.
    fn sort(&mut self) {
        self.sorted = true;
        let model = self.model();
        let size = |segment: &usize| {
            self.parts.get(*segment).map_or(0.0, |part| part.load(&model, model.origin()).bytes)
        };
        let mut small_first: Vec<usize> = (0..self.parts.len()).collect();
        small_first.sort_by(|a, b| size(a).total_cmp(&size(b)));
        let mut rest: VecDeque<usize> = small_first.into();
        let first = rest.pop_front();
        let last = if rest.len() > 1 { rest.pop_front() } else { None };
        let second = if rest.len() > 1 { rest.pop_front() } else { None };
        self.queue = first.into_iter().chain(second).chain(rest.into_iter().rev()).chain(last).collect();
    }

    /// Takes in a window: its packets' sizes as they came out of the encoder, the first frame's first.
    pub(crate) fn probed(&mut self, segment: usize, crf: f64, sizes: &[u32]) {
        if !self.probing.landed(segment, sizes.len()) {
            return;
        }
        let head_weight = self.head.0.exp2();
        let exponent = self.model().exponent();
        let Some(part) = self.parts.get_mut(segment).filter(|_| (0.0..=80.0).contains(&crf)) else { return };
        let Some((head, rest)) = sizes.split_first() else { return };
        let rest_bytes: f64 = rest.iter().copied().map(f64::from).sum();
        let mut profile = part.profile(exponent, head_weight, model::SLOPE);
        profile.settle(f64::from(*head), rest_bytes, sizes.len());
        let (bytes, deviation) = match profile.whole_by(sizes.len(), rest_bytes) {
            Some((whole, _)) => {
                let head = f64::from(*head);
                let without_head = whole * profile.rest() / profile.whole().max(1e-9);
                (head + without_head * WINDOW_LACKS.exp2(), WINDOW_DEVIATION)
            }
            None => (f64::from(*head) / head_weight * profile.whole(), BLIND_WINDOW_DEVIATION),
        };
        let log_bytes = bytes.max(1.0).log2();
        part.glimpse = Some(Sight { crf, log_bytes, variance: deviation.powi(2) });
        let seen = Seen {
            segment,
            crf,
            log_bytes: (rest_bytes + f64::from(*head)).max(1.0).log2(),
            packets: sizes.len(),
        };
        let first = self.probing.compare(seen);
        self.descents.extend(
            first.and_then(|first| {
                Descent::between((first.crf, first.log_bytes), (crf, seen.log_bytes), 0.05)
            }),
        );
        self.settle();
        let crf = self.predicted_crf().clamp(WINDOW_CRFS.0, WINDOW_CRFS.1);
        self.probing.reconsider(crf);
    }

    /// The segment has exactly `frames` frames: worth telling as soon as its last frame was given to the encoder,
    /// while packets are still to come. Without this the number told at first is believed.
    pub(crate) fn counted(&mut self, segment: usize, frames: u32) {
        let Some(part) = self.parts.get_mut(segment) else { return };
        part.frames = f64::from(frames.clamp(1, MOST_FRAMES));
        let count = part.count();
        if let Some(flight) = &mut part.flight {
            flight.resize(count);
        }
    }

    /// The encode in flight is whole: it becomes the segment's next version.
    pub(crate) fn finished(&mut self, segment: usize) {
        let slope = self.model().slope();
        let Some(part) = self.parts.get_mut(segment) else { return };
        let Some(flight) = &part.flight else { return };
        if part.versions.is_empty() {
            self.head = learn_head(self.head, &flight.packets);
        } else {
            self.redone = self.redone.saturating_add(count(&flight.packets));
        }
        self.descents.extend(part.land(slope));
        self.settle();
    }

    /// The encode in flight, or the window, was thrown away: the segment is handed out again.
    pub(crate) fn lost(&mut self, segment: usize) {
        self.probing.landed(segment, 0);
        let Some(part) = self.parts.get_mut(segment) else { return };
        let sight = part.flight.as_ref().and_then(Flight::sight);
        let Some(flight) = part.flight.take() else { return };
        self.redone = self.redone.saturating_add(count(&flight.packets));
        if part.versions.is_empty() {
            part.glimpse = sight.or(part.glimpse);
            part.stopped = flight.packets;
        }
        self.queue.push_front(segment);
        self.settle();
    }

    /// What is believed now.
    fn model(&self) -> Model {
        let mut model = self.settled;
        self.in_flight().for_each(|(part, _)| model.learn(&part.subject()));
        model
    }

    /// Takes in what changes seldom, so that a look at a packet costs little.
    fn settle(&mut self) {
        let subject = |part: &Part| match &part.flight {
            Some(_) => Subject { sight: None, ..part.subject() },
            None => part.subject(),
        };
        let subjects: Vec<_> = self.parts.iter().map(subject).collect();
        self.settled = Model::fit(&self.prior, &subjects, &self.descents);
    }

    fn in_flight(&self) -> impl Iterator<Item = (&Part, &Flight)> {
        self.parts.iter().filter_map(|part| part.flight.as_ref().map(|flight| (part, flight)))
    }

    /// What all segments take around `crf`.
    fn loads(&self, model: &Model, crf: f64) -> Vec<Load> {
        self.parts.iter().map(|part| part.load(model, crf)).collect()
    }

    /// Whether the encode of `segment` is the last one to come, so that it settles the sum.
    pub(crate) fn decides(&self, segment: usize) -> bool {
        self.queue.is_empty()
            && self.parts.iter().enumerate().all(|(other, part)| other == segment || part.flight.is_none())
    }

    /// The CRF that would fill the ceiling over the whole track, by what is known now.
    pub(crate) fn predicted_crf(&self) -> f64 {
        if self.parts.iter().all(|part| part.subject().sight.is_none()) {
            return self.prior.crf;
        }
        let model = self.model();
        let near = solve(&self.loads(&model, self.prior.crf), self.ceiling);
        solve(&self.loads(&model, near), self.ceiling)
    }

    /// The mean CRF of the chosen versions, weighted by frames; of what there is, as long as none is chosen.
    pub(crate) fn mean_crf(&self) -> f64 {
        let chosen = self.chosen();
        let (mut frames, mut sum) = (0.0, 0.0);
        for (segment, part) in self.parts.iter().enumerate() {
            let version =
                chosen.as_ref().and_then(|chosen| chosen.get(segment)).copied().unwrap_or(part.current);
            if let Some(version) = part.versions.get(version) {
                frames += part.frames;
                sum += part.frames * version.sum.mean_crf;
            }
        }
        if frames > 0.0 { sum / frames } else { self.predicted_crf() }
    }

    /// Frames that were encoded in vain: by encodes that were stopped, and by all versions of a segment but one.
    /// Windows are not counted.
    pub(crate) const fn frames_redone(&self) -> u64 {
        self.redone
    }

    /// All frames that were encoded so far, in vain or not, without windows.
    pub(crate) fn frames_encoded(&self) -> u64 {
        let standing = self.parts.iter().map(|part| {
            let flying = part.flight.as_ref().map_or(0, |flight| count(&flight.packets));
            part.current().map_or(0, |version| count(&version.packets)).saturating_add(flying)
        });
        standing.fold(self.redone, u64::saturating_add)
    }

    /// Frames of all windows.
    pub(crate) const fn probe_frames(&self) -> u64 {
        self.probing.frames
    }

    /// Encodes of segments that had a finished version already.
    pub(crate) const fn repairs(&self) -> u32 {
        self.repairs.encodes()
    }
}

fn count(packets: &[Packet]) -> u64 {
    u64::try_from(packets.len()).unwrap_or(u64::MAX)
}

/// What a segment's packets teach about first frames.
fn learn_head((mean, variance): (f64, f64), packets: &[Packet]) -> (f64, f64) {
    let Some((head, rest)) = packets.split_first() else { return (mean, variance) };
    let usual =
        Sum::of(rest, model::SLOPE).bytes / f64::from(u32::try_from(rest.len()).unwrap_or(u32::MAX)).max(1.0);
    if usual < 1.0 || head.bytes == 0 {
        return (mean, variance);
    }
    let seen = (f64::from(head.bytes) / usual).log2().clamp(0.0, 6.0);
    let gain = variance / (variance + HEAD_SPREAD.powi(2));
    (mean + gain * (seen - mean), variance * (1.0 - gain))
}
