//! The one rule: at every decision, the CRF at which what is still to come takes what is left of the budget.

use super::flight::{Flight, Sum, descent};
use super::model::{Load, Model, solve};
use super::{Advice, Course, TRANSPARENT_CRF, WORST_CRF};

/// What the end of the track misses by, as a share of the ceiling and in usual frames: so much less is aimed at.
const MARGIN: f64 = 0.01;
const MARGIN_FRAMES: f64 = 1.2;
const MOST_MARGIN: f64 = 0.02;
/// The least that the rest may be given, as a share of the ceiling.
const LEAST_REST: f64 = 0.002;
/// Packets before the first look at a segment, and in one of at most [`SHORT`] frames.
const FIRST_LOOK: usize = 24;
const SHORT_FIRST_LOOK: usize = 16;
const SHORT: f64 = 130.0;
/// Packets between two looks, and near the end of the last segment.
const PATIENCE: u32 = 6;
const LATE_PATIENCE: u32 = 3;
const FINAL_PATIENCE: u32 = 2;
const LANDING: f64 = 36.0;
/// A short segment lands in its last part only.
const MOST_LANDING: f64 = 0.4;
const FINAL: f64 = 4.0;
const LANDING_BAND: f64 = 6.0;
const LANDING_STRIDE: f64 = 0.8;
/// Upwards there: a file above the limit costs a whole segment, and a second that is a little softer is not seen.
const LANDING_RISE: f64 = 3.0;
/// With many segments to come a look costs more and matters less.
const SEGMENTS_A_PACKET: usize = 16;
/// Largest change at a time, so that neighbouring frames do not differ visibly, and smallest.
const STRIDE: f64 = 0.6;
const HYSTERESIS: f64 = 0.1;
/// How far a segment's CRF may leave its start, and in the last ones.
const BAND: f64 = 1.6;
const LAST_BAND: f64 = 4.5;
/// How far a segment's start may be from the mean of the others, while few are known, and for the last one.
const EVENNESS: f64 = 2.5;
const EARLY_EVENNESS: f64 = 6.0;
const LAST_EVENNESS: f64 = 5.0;
/// How far below that the last segment may start.
const DOWNWARDS: f64 = 1.5;
/// A segment begins again when it takes this many times what was planned, or this part of it ...
const RUNAWAY: f64 = 1.6;
const DAWDLER: f64 = 1.0 / 1.8;
/// ... and that is this share of the ceiling, and it would start so many steps of CRF elsewhere.
const RESTART_WORTH: f64 = 0.06;
const RESTART_STEPS: f64 = 2.0;
/// The shares of a segment between which it may begin again.
const RESTART_SHARES: std::ops::Range<f64> = 0.08..0.5;
/// What is not encoded yet may take so many times less than is believed.
const HOPE: f64 = 4.0;
const SEGMENT_RESTARTS: u32 = 2;
const TRACK_RESTARTS: u32 = 4;

impl Course {
    /// The bytes that all packets together shall take.
    pub(super) fn aim(&self) -> f64 {
        let frames: f64 = self.parts.iter().map(|part| part.frames).sum();
        let margin = (MARGIN + MARGIN_FRAMES / frames.max(1.0)).min(MOST_MARGIN);
        self.ceiling * (1.0 - margin - self.repairs.caution())
    }

    /// What is left of the budget for what is still to come.
    fn budget(&self) -> f64 {
        let mut spent = 0.0;
        for (segment, part) in self.parts.iter().enumerate() {
            spent += match &part.flight {
                Some(flight) => to_f64(flight.bytes),
                None if self.is_queued(segment) => 0.0,
                None => to_f64(part.bytes()),
            };
        }
        (self.aim() - spent).max(self.ceiling * LEAST_REST)
    }

    fn is_queued(&self, segment: usize) -> bool {
        self.parts.get(segment).is_none_or(|part| part.versions.is_empty()) || self.queue.contains(&segment)
    }

    /// The CRF at which the rest fits; `near` is where it is looked for.
    fn rest_crf(&self, model: &Model, near: f64) -> f64 {
        let budget = self.budget();
        let flying: Vec<Load> = self.parts.iter().filter_map(|part| part.flight_load(model)).collect();
        let all = |crf: f64| -> Vec<Load> {
            let waiting = self.queue.iter().filter_map(|segment| self.parts.get(*segment));
            waiting.map(|part| part.load(model, crf)).chain(flying.iter().copied()).collect()
        };
        let crf = solve(&all(near), budget);
        // Segments whose sizes are known at several CRFs are not straight lines: once more, nearer.
        if self.repairs.encodes() > 0 { solve(&all(crf), budget) } else { crf }
    }

    /// The CRF that `segment` starts with.
    pub(super) fn start(&self, model: &Model, segment: usize) -> f64 {
        if self.repairs.is_last_resort() {
            return WORST_CRF;
        }
        let (mut frames, mut sum, mut finished) = (0.0, 0.0, 0_u32);
        for part in &self.parts {
            let crf = match (&part.flight, part.current()) {
                (Some(flight), _) => Some(flight.crf),
                (None, Some(version)) => Some(version.sum.mean_crf),
                (None, None) => None,
            };
            if let Some(crf) = crf {
                frames += part.frames;
                sum += part.frames * crf;
                finished += u32::from(part.flight.is_none());
            }
        }
        let mean = if frames > 0.0 { sum / frames } else { self.prior.crf };
        let mut crf = self.rest_crf(model, mean);
        let is_repair = self.parts.get(segment).is_some_and(|part| !part.versions.is_empty());
        if frames > 0.0 && !is_repair {
            let band = match (finished, self.queue.len()) {
                (0..3, _) => EARLY_EVENNESS,
                (_, 0..=1) => LAST_EVENNESS,
                _ => EVENNESS,
            };
            // What is left over can still be spent when it is seen to be; what was spent is gone.
            let down = if self.queue.len() <= 1 && finished > 0 { DOWNWARDS } else { band };
            crf = crf.clamp(mean - down, mean + band);
        }
        if is_repair {
            let part =
                self.parts.get(segment).filter(|_| self.queue.len() <= 1 && self.in_flight().count() == 0);
            crf = match part.and_then(|part| part.between(self.budget())) {
                Some(between) => between,
                None => crf + self.repairs.stride(),
            };
        }
        crf.clamp(TRANSPARENT_CRF, WORST_CRF)
    }

    /// Takes in a packet of the encode in flight, in the order of encoding. `anchor` says that it is shown after
    /// all before it: the packets before are then whole groups, each of a large frame and the small ones between
    /// it and the one before, and can be compared with what was expected.
    pub(crate) fn packet(&mut self, segment: usize, bytes: u32, anchor: bool) -> Advice {
        // The packet was encoded before what is decided now can take effect.
        let crf = self.flight_mut(segment).map_or(WORST_CRF, |flight| flight.crf);
        let advice = if anchor { self.look(segment) } else { Advice::Keep };
        match self.flight_mut(segment) {
            Some(flight) => flight.push(bytes, crf),
            None => self.redone = self.redone.saturating_add(u64::from(advice == Advice::Restart)),
        }
        advice
    }

    /// Compares what came out of the encode in flight with what was expected.
    fn look(&mut self, segment: usize) -> Advice {
        let waiting = self.queue.len();
        let alone = waiting == 0 && self.in_flight().count() == 1;
        let Some(part) = self.parts.get_mut(segment) else { return Advice::Keep };
        let frames = part.frames;
        let Some(flight) = part.flight.as_mut() else { return Advice::Keep };
        let seen = flight.packets.len();
        let first_look = if frames <= SHORT { SHORT_FIRST_LOOK } else { FIRST_LOOK };
        let left = frames - f64::from(u32::try_from(seen).unwrap_or(u32::MAX));
        let landing = alone && left <= LANDING.min(frames * MOST_LANDING);
        let patience = match (alone, left) {
            (true, ..=FINAL) => FINAL_PATIENCE,
            (true, ..=LANDING) => LATE_PATIENCE,
            _ => PATIENCE,
        };
        let patience =
            patience.saturating_add(u32::try_from(waiting / SEGMENTS_A_PACKET).unwrap_or(u32::MAX));
        if flight.fixed || seen < first_look || flight.since < patience || left <= 0.0 {
            return Advice::Keep;
        }
        flight.since = 0;
        if !part.stopped.is_empty() && seen >= part.stopped.len() {
            let learnt = descent(&std::mem::take(&mut part.stopped), &flight.packets);
            part.descent = learnt.or(part.descent);
            self.descents.extend(learnt);
        }
        let model = self.model();
        if self.restarts_at(&model, segment) {
            self.restarts += 1;
            self.lost(segment);
            if let Some(part) = self.parts.get_mut(segment) {
                part.restarts += 1;
            }
            return Advice::Restart;
        }
        let Some(part) = self.parts.get_mut(segment) else { return Advice::Keep };
        let slope = part.slope(model.slope());
        let Some(flight) = part.flight.as_mut() else { return Advice::Keep };
        flight.learn_slope(slope);
        let (start, crf) = (flight.start, flight.crf);
        let band = match (waiting, landing) {
            (_, true) => LANDING_BAND,
            (0, false) => LAST_BAND,
            _ => BAND,
        };
        let (fall, rise) = match (landing, part.versions.is_empty()) {
            (true, true) => (LANDING_STRIDE, LANDING_RISE),
            (true, false) => (LANDING_STRIDE, LANDING_STRIDE),
            (false, _) => (STRIDE, STRIDE),
        };
        // At the very end, too little is better than too much.
        let least = if alone && left <= FINAL { crf } else { TRANSPARENT_CRF };
        let wanted = self
            .rest_crf(&model, crf)
            .clamp(start - band, start + band)
            .clamp(least, WORST_CRF)
            .clamp(crf - fall, crf + rise);
        if (wanted - crf).abs() < HYSTERESIS {
            return Advice::Keep;
        }
        if let Some(flight) = self.flight_mut(segment) {
            flight.crf = wanted;
        }
        Advice::Change { crf: wanted }
    }

    fn flight_mut(&mut self, segment: usize) -> Option<&mut Flight> {
        self.parts.get_mut(segment)?.flight.as_mut()
    }

    /// Whether the encode in flight is so far from what was planned that it is better begun again.
    fn restarts_at(&self, model: &Model, segment: usize) -> bool {
        let Some(part) = self.parts.get(segment) else { return false };
        let Some(flight) = &part.flight else { return false };
        let spent = self.restarts >= TRACK_RESTARTS || part.restarts >= SEGMENT_RESTARTS;
        if spent || !part.versions.is_empty() || !RESTART_SHARES.contains(&flight.share()) {
            return false;
        }
        let whole = part.whole(model, flight);
        let planned = flight.expected.max(1.0);
        let off = !(DAWDLER..=RUNAWAY).contains(&(whole / planned));
        if !off || (whole - planned).abs() < self.ceiling * RESTART_WORTH {
            return false;
        }
        let mut again = self.clone();
        again.lost(segment);
        let crf = again.start(model, segment);
        (crf - flight.start).abs() > RESTART_STEPS
    }

    /// Whether what was encoded at the worst CRF leaves no room for the rest.
    pub(super) fn is_hopeless(&self) -> bool {
        let finished: Vec<&Sum> =
            self.parts.iter().filter_map(|part| part.current().map(|version| &version.sum)).collect();
        let waits = self.parts.iter().any(|part| part.versions.is_empty());
        if !waits || finished.is_empty() || finished.iter().any(|sum| sum.crf < WORST_CRF - 0.5) {
            return false;
        }
        let model = self.model();
        let bytes: f64 = finished.iter().map(|sum| sum.least()).sum();
        let waiting = self.parts.iter().filter(|part| part.versions.is_empty());
        let rest: f64 = waiting
            .map(|part| part.load(&model, WORST_CRF))
            .map(|load| load.bytes * (load.slope * (load.crf - WORST_CRF)).exp2())
            .sum();
        bytes + rest / HOPE > self.ceiling
    }
}

/// Exact up to 2^53.
pub(super) fn to_f64(bytes: u64) -> f64 {
    crate::units::ByteSize::new(bytes).as_f64()
}
