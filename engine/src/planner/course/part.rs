//! A segment with all that was seen of it: its source, its window, its finished versions, the encode in flight.

use super::flight::{Flight, Packet, Profile, Sum, descent};
use super::model::{Descent, Load, Model, Sight, Subject};
use super::{Cut, Segment};

/// How far a size between or beside known versions is off, in log2: noise, and for each step of CRF.
const VERSION_DEVIATION: f64 = 0.03;
const VERSION_STEP_DEVIATION: f64 = 0.04;
/// A mean distance of one step from the mean CRF counts like so many steps between two versions.
const UNSTEADY: f64 = 2.0;
/// Encoded at one CRF, as good as.
const STEADY: f64 = 0.2;
/// log2 of the largest difference between source rates that is believed.
const MOST_RATE: f64 = 6.0;

/// More frames than a segment has: what is told beyond is not believed.
pub(super) const MOST_FRAMES: u32 = 1 << 20;

/// A finished encode of a segment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Version {
    pub(super) packets: Vec<Packet>,
    pub(super) bytes: u64,
    pub(super) sum: Sum,
    /// Bytes that were expected when it began.
    pub(super) expected: f64,
}

impl Version {
    /// The mean distance from the mean CRF.
    fn unsteadiness(&self) -> f64 {
        mean_of(self.packets.iter().map(|packet| (packet.crf - self.sum.mean_crf).abs()))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// About, at least one.
    pub(super) frames: f64,
    /// Source bytes of each frame against the mean of the segment; zero when unknown.
    source: Vec<f64>,
    /// Frames at which another scene begins.
    cuts: Vec<Cut>,
    /// log2 of the source's bytes in a frame against the track's.
    rate: f64,
    /// What a probe or an encode that was stopped told.
    pub(super) glimpse: Option<Sight>,
    /// Packets of an encode that was stopped.
    pub(super) stopped: Vec<Packet>,
    pub(super) versions: Vec<Version>,
    /// The version that the others are planned around.
    pub(super) current: usize,
    pub(super) flight: Option<Flight>,
    pub(super) restarts: u32,
    /// How the segment itself falls with the CRF.
    pub(super) descent: Option<Descent>,
}

impl Part {
    /// `mean` is the source's bytes in a frame of the whole track.
    pub(super) fn new(segment: Segment, mean: f64) -> Self {
        let frames = segment.frames.clamp(1, MOST_FRAMES);
        let count = usize::try_from(frames).unwrap_or(usize::MAX);
        let known = segment.source_bytes.iter().copied().take(count).filter(|bytes| is_known(*bytes));
        let own = mean_of(known);
        let rate = if own > 0.0 && mean > 0.0 { (own / mean).log2() } else { 0.0 };
        let source: Vec<f64> = segment
            .source_bytes
            .into_iter()
            .take(count)
            .map(|bytes| if is_known(bytes) { (bytes / own).clamp(1.0 / 64.0, 64.0) } else { 0.0 })
            .collect();
        Self {
            frames: f64::from(frames),
            source,
            cuts: segment.cuts.into_iter().filter(|cut| cut.frame > 0 && cut.frame < frames).collect(),
            rate: if rate.is_finite() { rate.clamp(-MOST_RATE, MOST_RATE) } else { 0.0 },
            glimpse: None,
            stopped: Vec::new(),
            versions: Vec::new(),
            current: 0,
            flight: None,
            restarts: 0,
            descent: None,
        }
    }

    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn count(&self) -> usize {
        usize::try_from(f64_to_u32(self.frames)).unwrap_or(usize::MAX)
    }

    /// Each frame's weight, by its source.
    fn weights(&self, exponent: f64) -> impl Iterator<Item = f64> {
        let source = self.source.iter().copied().chain(std::iter::repeat(0.0));
        source.take(self.count()).map(move |ratio| if ratio > 0.0 { ratio.powf(exponent) } else { 1.0 })
    }

    /// How the segment's bytes will be spread; `head` is the weight of a first frame.
    pub(super) fn profile(&self, exponent: f64, head: f64, slope: f64) -> Profile {
        // Where the CRF moved, the slope's error is in the sizes: the steadiest version tells the truth.
        let steadiest = self.versions.iter().min_by(|a, b| a.unsteadiness().total_cmp(&b.unsteadiness()));
        match steadiest {
            Some(version) if version.packets.len() > 1 => Profile::known(&version.packets, slope),
            _ => Profile::guessed(self.weights(exponent), head, &self.cuts),
        }
    }

    pub(super) fn current(&self) -> Option<&Version> {
        self.versions.get(self.current)
    }

    /// Bytes of the version that the others are planned around.
    pub(super) fn bytes(&self) -> u64 {
        self.current().map_or(0, |version| version.bytes)
    }

    pub(super) fn subject(&self) -> Subject {
        let seen = self.current().map(|version| Sight {
            crf: version.sum.crf,
            log_bytes: version.sum.log_bytes(),
            variance: 0.0,
        });
        let flying = self.flight.as_ref().and_then(Flight::sight);
        // A glimpse shows frames that the encode in flight has shown as well: the surer one counts.
        let sight = seen.or_else(|| {
            flying.into_iter().chain(self.glimpse).min_by(|a, b| a.variance.total_cmp(&b.variance))
        });
        Subject { log_frames: self.frames.log2(), rate: self.rate, sight }
    }

    /// How the segment falls with the CRF, when others fall like `usual`.
    pub(super) fn slope(&self, usual: f64) -> f64 {
        self.descent.map_or(usual, |descent| descent.against(usual))
    }

    /// Adds the encode in flight to the versions, with what the comparison with another teaches.
    pub(super) fn land(&mut self, usual: f64) -> Option<Descent> {
        let flight = self.flight.take()?;
        let (bytes, expected) = (flight.bytes, flight.expected);
        let other = self.current().map_or(&self.stopped, |version| &version.packets);
        let learnt = descent(other, &flight.packets);
        self.descent = learnt.or(self.descent);
        self.stopped = Vec::new();
        self.current = self.versions.len();
        self.versions.push(Version { packets: flight.packets, bytes, sum: Sum::default(), expected });
        let slope = self.slope(usual);
        for version in &mut self.versions {
            version.sum = Sum::of(&version.packets, slope);
        }
        learnt
    }

    /// What the segment takes around `crf`.
    pub(super) fn load(&self, model: &Model, crf: f64) -> Load {
        // What came out at one CRF says more about another than what was steered over many does.
        let distance = |version: &Version| (version.sum.crf - crf).abs() + UNSTEADY * version.unsteadiness();
        let nearest = self.versions.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let Some(nearest) = nearest.map(|version| &version.sum) else {
            return Load { crf, bytes: model.bytes(&self.subject(), crf), slope: model.slope() };
        };
        let slope = self.slope(model.slope());
        Load { crf: nearest.crf, bytes: nearest.bytes.max(1.0), slope }
    }

    /// The CRF at which it takes `target` bytes, between two versions that were encoded at one CRF each; `None` as
    /// long as there is none on each side. Where bytes fall off a cliff, as noise does when it is no longer worth its
    /// bits, this gets nearer each time when no slope tells anything.
    pub(super) fn between(&self, target: f64) -> Option<f64> {
        let steady = || self.versions.iter().filter(|version| version.unsteadiness() < STEADY);
        let log_target = target.max(1.0).log2();
        let over = steady().filter(|version| version.sum.log_bytes() > log_target);
        let under = steady().filter(|version| version.sum.log_bytes() <= log_target);
        let over = &over.max_by(|a, b| a.sum.crf.total_cmp(&b.sum.crf))?.sum;
        let under = &under.min_by(|a, b| a.sum.crf.total_cmp(&b.sum.crf))?.sum;
        let share = (over.log_bytes() - log_target) / (over.log_bytes() - under.log_bytes());
        let crf = over.crf + (under.crf - over.crf) * share.clamp(0.1, 0.9);
        (over.crf < under.crf && crf.is_finite()).then_some(crf)
    }

    /// What is still to come of the encode in flight.
    pub(super) fn flight_load(&self, model: &Model) -> Option<Load> {
        let flight = self.flight.as_ref()?;
        let bytes = flight.left(self.whole(model, flight));
        Some(Load { crf: flight.start, bytes, slope: self.slope(model.slope()) })
    }

    /// Bytes of the whole encode in flight, had it kept its first CRF.
    pub(super) fn whole(&self, model: &Model, flight: &Flight) -> f64 {
        if self.versions.is_empty() {
            return model.bytes(&self.subject(), flight.start);
        }
        let load = self.load(model, flight.start);
        let steps = flight.start - load.crf;
        let expected = load.bytes.log2() - load.slope * steps;
        let variance = VERSION_DEVIATION.powi(2) + (VERSION_STEP_DEVIATION * steps).powi(2);
        let Some(sight) = flight.sight() else { return expected.exp2() };
        let share = variance / (variance + sight.variance);
        (expected + share * (sight.log_bytes - expected)).exp2()
    }
}

fn is_known(bytes: f64) -> bool {
    bytes.is_finite() && bytes > 0.0 && bytes < 1e12
}

fn mean_of(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

/// The source's bytes in a frame of the whole track; zero when unknown.
pub(super) fn track_mean(segments: &[Segment]) -> f64 {
    mean_of(segments.iter().flat_map(|segment| {
        let count = usize::try_from(segment.frames.clamp(1, MOST_FRAMES)).unwrap_or(usize::MAX);
        segment.source_bytes.iter().copied().take(count).filter(|bytes| is_known(*bytes))
    }))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float to integer saturates")]
pub(super) const fn f64_to_u32(value: f64) -> u32 {
    value as u32
}
