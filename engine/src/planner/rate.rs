//! Which constant rate factor (CRF) comes next: the first guess, steering inside a round, and what a finished
//! round teaches the next one.
//!
//! x264 in CRF mode spends bits where the picture needs them; what is not known beforehand is which CRF gives
//! the wanted number of bytes. A round encodes the whole track. While packets come out, [`Steering`] compares
//! bytes with what the share of the track's complexity allows and moves the CRF a little; a round that is far
//! off is stopped early and begun again. [`Search`] judges finished rounds and ends with the best one that fits.

use crate::units::ByteSize;

/// A CRF at which x264's result cannot be told from the source by eye: better is never asked for.
pub(crate) const TRANSPARENT_CRF: f64 = 18.0;
/// Beyond this the picture falls apart and a smaller one looks better.
pub(crate) const WORST_CRF: f64 = 47.0;

/// How log2(bytes) falls with each step of CRF on usual content. Measured 0.19 to 0.26, up to 0.7 on noise.
const USUAL_SLOPE: f64 = 0.22;
const SLOPES: std::ops::RangeInclusive<f64> = 0.10..=0.75;
/// Bits per pixel and frame of x264 at CRF 23, 1280x720, 30 frames a second, on usual content.
const USUAL_BITS_AT_23: f64 = 0.085;
/// The part of the ceiling that is aimed at: what steering misses by, on average.
const AIM: f64 = 0.986;
/// A file with at least this share of the limit is full enough.
const FULL: f64 = 0.966;
/// Packets of a round's beginning that are compared with another round's, to learn the slope.
const PREFIX: usize = 96;
/// Rounds that are encoded to the end, at most, before the best one so far has to do.
const ROUNDS: usize = 6;
/// Rounds that were all too large before the search takes larger strides.
const STUBBORN_ROUNDS: usize = 3;
/// Rounds that may be stopped early, at most.
const RESTARTS: u32 = 2;

/// More than any frame's bytes; sums of wild weights must not overflow.
const MOST_WEIGHT: f64 = 1e15;

/// How a track's complexity is spread over its frames, from 0 at the first to 1 after the last.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Profile(Vec<f64>);

impl Profile {
    /// From a weight for each frame, in order. Weights that are no positive number count as nothing.
    pub(crate) fn new(weights: impl IntoIterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let mut cumulative = vec![0.0];
        for weight in weights {
            sum += if weight.is_finite() && weight > 0.0 { weight.min(MOST_WEIGHT) } else { 0.0 };
            cumulative.push(sum);
        }
        let count = f64::from(u32::try_from(cumulative.len().saturating_sub(1)).unwrap_or(u32::MAX));
        for (number, value) in (0_u32..).zip(&mut cumulative) {
            *value = if sum > 0.0 { *value / sum } else { f64::from(number) / count.max(1.0) };
        }
        Self(cumulative)
    }

    /// The share of complexity in the first `frames` frames.
    fn share(&self, frames: usize) -> f64 {
        self.0.get(frames).or_else(|| self.0.last()).copied().unwrap_or(1.0)
    }

    fn frames(&self) -> usize {
        self.0.len().saturating_sub(1)
    }
}

/// What the first guess is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FirstGuess {
    /// Pixels of one frame of the result.
    pub(crate) pixels: f64,
    pub(crate) frames: f64,
    pub(crate) frame_rate: f64,
    /// How easy the source is, as in [`PictureSource`](super::ladder::PictureSource); `None` when unknown.
    pub(crate) bits_per_pixel: Option<f64>,
    pub(crate) bytes: ByteSize,
}

impl FirstGuess {
    fn crf(&self) -> f64 {
        let ease = self.bits_per_pixel.map_or(1.0, |bits| (bits / 0.1).powf(0.7).clamp(0.15, 4.0));
        let per_pixel = USUAL_BITS_AT_23 * (921_600.0 / self.pixels.max(1.0)).powf(0.25) * ease;
        let fewer = (30.0 / self.frame_rate.max(0.1)).powf(0.4);
        let at_23 = per_pixel * fewer * self.pixels * self.frames / 8.0;
        23.0 + (at_23 / self.bytes.as_f64().max(1.0)).log2() / USUAL_SLOPE
    }
}

/// A finished round.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Round {
    /// The mean CRF, weighted by bytes as they would have been at one CRF.
    crf: f64,
    bytes: f64,
    /// The CRF was the same throughout, so the same again would give the same again.
    steady: bool,
}

/// What to do after a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Take the best round so far that fits.
    Done,
    /// Encode again, starting at this CRF.
    Again { crf: f64 },
    /// No CRF makes this picture fit; take a smaller one.
    TooLarge,
}

/// The search for the CRF of one track at one size.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    ceiling: f64,
    /// Fewer bytes than this are encoded again.
    enough: f64,
    slope: f64,
    /// CRF and bytes of the first packets of each round, as far as its CRF was constant.
    prefixes: Vec<(f64, Vec<f64>)>,
    rounds: Vec<Round>,
    restarts: u32,
}

impl Search {
    /// A search for at most `ceiling` bytes of a file that may have `limit` bytes in all.
    pub(crate) fn new(ceiling: ByteSize, limit: ByteSize) -> Self {
        let enough = (ceiling.as_f64() - limit.as_f64() * (1.0 - FULL)).max(ceiling.as_f64() * 0.9);
        Self::with_enough(ceiling.as_f64(), enough)
    }

    /// A search that accepts much less than `ceiling`, which is the source's own size and not a person's limit.
    pub(crate) fn modest(ceiling: ByteSize) -> Self {
        Self::with_enough(ceiling.as_f64(), ceiling.as_f64() * 0.35)
    }

    fn with_enough(ceiling: f64, enough: f64) -> Self {
        let slope = USUAL_SLOPE;
        Self { ceiling, enough, slope, prefixes: Vec::new(), rounds: Vec::new(), restarts: 0 }
    }

    /// The CRF of the first round.
    pub(crate) fn first(&self, guess: &FirstGuess) -> f64 {
        let guess = FirstGuess { bytes: ByteSize::from_f64(self.ceiling * AIM), ..*guess };
        guess.crf().clamp(TRANSPARENT_CRF, WORST_CRF - 6.0)
    }

    /// Steering for a round that starts at `crf`. `exact` says that the profile was measured, not guessed.
    pub(crate) fn steer(&self, crf: f64, profile: Profile, exact: bool) -> Steering {
        Steering {
            aim: self.ceiling * AIM,
            base: crf,
            crf,
            slope: self.slope,
            trust: if exact { 0.25 } else { 0.03 },
            steady: exact && profile.frames() < STEERED_FRAMES,
            profile,
            may_restart: !exact && self.restarts < RESTARTS,
            judged_from: if self.restarts == 0 { 0.05 } else { 0.15 },
            frames: 0,
            bytes: 0.0,
            at_base: 0.0,
            weighted_crf: 0.0,
            sizes: Vec::new(),
            prefix: Vec::new(),
            since_change: 0,
        }
    }

    /// Counts a round that was stopped early, and learns from it.
    pub(crate) fn restarted(&mut self, round: &Steering) {
        self.restarts += 1;
        self.learn_from(round);
    }

    /// The same pictures at two CRFs tell the slope.
    fn learn_from(&mut self, round: &Steering) {
        let own = (round.base, round.prefix.clone());
        let slope = self
            .prefixes
            .iter()
            .filter(|(crf, _)| (crf - own.0).abs() > 0.4)
            .filter_map(|(crf, bytes)| {
                let count = bytes.len().min(own.1.len());
                let (theirs, ours) = (bytes.get(count.checked_sub(1)?)?, own.1.get(count - 1)?);
                (count >= 12).then(|| (count, (theirs / ours).log2() / (own.0 - crf)))
            })
            .max_by_key(|(count, _)| *count)
            .map(|(_, slope)| slope);
        if let Some(slope) = slope.filter(|slope| slope.is_finite()) {
            self.slope = slope.clamp(*SLOPES.start(), *SLOPES.end());
        }
        self.prefixes.push(own);
    }

    /// Judges a finished round.
    pub(crate) fn judge(&mut self, round: &Steering) -> Verdict {
        let bytes = round.bytes.max(1.0);
        self.rounds.push(Round { crf: round.mean_crf(), bytes, steady: round.steady });
        self.learn_from(round);
        let transparent = round.mean_crf() <= TRANSPARENT_CRF + 0.05;
        if bytes <= self.ceiling && (bytes >= self.enough || transparent) {
            return Verdict::Done;
        }
        let fits = self.rounds.iter().any(|round| round.bytes <= self.ceiling);
        if self.rounds.len() >= ROUNDS && fits {
            return Verdict::Done;
        }
        if self.rounds.len() >= ROUNDS + 3 {
            return Verdict::TooLarge;
        }
        let mut crf = self.next();
        if !fits && self.rounds.len() >= STUBBORN_ROUNDS {
            // Bytes fall less than the slope says, or not at all for a while: larger strides find the way down.
            let furthest = self.rounds.iter().map(|round| round.crf).fold(TRANSPARENT_CRF, f64::max);
            let more = f64::from(u32::try_from(self.rounds.len() + 1 - STUBBORN_ROUNDS).unwrap_or(1));
            crf = crf.max(furthest + 1.5 * more);
        }
        // The same CRF again would give the same bytes again.
        let stuck = self.rounds.iter().any(|round| round.steady && (round.crf - crf).abs() < 0.02);
        match (crf > WORST_CRF, stuck) {
            (true, _) if fits => Verdict::Done,
            (true, _) if self.rounds.iter().any(|round| round.crf >= WORST_CRF - 0.5) => Verdict::TooLarge,
            (true, _) => Verdict::Again { crf: WORST_CRF },
            (false, true) if fits => Verdict::Done,
            (false, true) => Verdict::Again { crf: (crf + 0.7).min(WORST_CRF) },
            (false, false) => Verdict::Again { crf },
        }
    }

    /// Between the two nearest rounds on either side of the aim, else from the nearest one by the slope.
    fn next(&mut self) -> f64 {
        // Each failed round aims a little lower, so that noise in the encoder cannot keep it above for ever.
        let lower = 0.003 * f64::from(u32::try_from(self.rounds.len()).unwrap_or(0));
        let aim = self.ceiling * (AIM - lower);
        let nearest = |above: bool| {
            self.rounds
                .iter()
                .filter(|round| (round.bytes > aim) == above)
                .min_by(|a, b| (a.bytes / aim).log2().abs().total_cmp(&(b.bytes / aim).log2().abs()))
                .copied()
        };
        let (above, below) = (nearest(true), nearest(false));
        if let (Some(above), Some(below)) = (above, below) {
            let slope = (above.bytes / below.bytes).log2() / (below.crf - above.crf);
            if SLOPES.contains(&slope) {
                self.slope = slope;
                return above.crf + (above.bytes / aim).log2() / slope;
            }
        }
        // A round at one CRF says more than one whose CRF moved.
        let from = [above, below].into_iter().flatten().max_by_key(|round| round.steady).unwrap_or(Round {
            crf: 30.0,
            bytes: aim,
            steady: false,
        });
        (from.crf + (from.bytes / aim).log2() / self.slope).max(TRANSPARENT_CRF)
    }
}

/// What to do while a round runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Advice {
    /// Go on.
    Keep,
    /// Go on with another CRF.
    Change { crf: f64 },
    /// Stop and begin again at this CRF: the round would miss by far.
    Restart { crf: f64 },
}

/// Steers one round.
#[derive(Clone, Debug)]
pub(crate) struct Steering {
    aim: f64,
    base: f64,
    crf: f64,
    slope: f64,
    profile: Profile,
    /// How much the plan counts against what is seen, as a share of the whole track.
    trust: f64,
    /// The CRF stays as it is.
    steady: bool,
    may_restart: bool,
    /// The share of complexity after which a round may be judged: a first guess may be far off, a second one is
    /// not thrown away for an unusual beginning.
    judged_from: f64,
    frames: usize,
    bytes: f64,
    /// Bytes as they would have been at the base CRF.
    at_base: f64,
    weighted_crf: f64,
    /// Each packet's bytes as they would have been at the base CRF.
    sizes: Vec<f64>,
    /// Bytes after each of the first packets, as long as the CRF is the base.
    prefix: Vec<f64>,
    since_change: u32,
}

/// Packets between two changes of CRF.
const PATIENCE: u32 = 6;
/// In a short track a change of CRF shows only when it is nearly over; once its sizes are known, it is better
/// encoded at one CRF.
const STEERED_FRAMES: usize = 200;
/// Packets before the first look.
const FIRST_LOOK: usize = 24;
/// How far the CRF may leave the base, in the middle and near the end of a round.
const BAND: f64 = 2.5;
const LATE_BAND: f64 = 4.0;
/// Largest single change, so that neighbouring frames do not differ visibly.
const STRIDE: f64 = 0.6;
/// A round that is off by more than this many steps of CRF begins again.
const RESTART_ABOVE: f64 = 2.2;

impl Steering {
    #[cfg(test)]
    const fn crf(&self) -> f64 {
        self.crf
    }

    /// Counts one packet.
    pub(crate) fn packet(&mut self, bytes: usize) -> Advice {
        let bytes = f64::from(u32::try_from(bytes).unwrap_or(u32::MAX));
        let normal = bytes * (self.slope * (self.crf - self.base)).exp2();
        self.frames = self.frames.saturating_add(1);
        self.bytes += bytes;
        self.at_base += normal;
        self.weighted_crf += normal * self.crf;
        self.sizes.push(normal);
        if self.prefix.len() + 1 == self.frames && self.prefix.len() < PREFIX && self.crf == self.base {
            self.prefix.push(self.bytes);
        }
        self.since_change += 1;
        let done = self.profile.share(self.frames);
        let enough = self.frames >= FIRST_LOOK && done >= 0.03;
        if self.steady || !enough || self.since_change < PATIENCE || self.frames >= self.profile.frames() {
            return Advice::Keep;
        }
        self.since_change = 0;
        let whole = (self.at_base + self.aim * self.trust) / (done + self.trust);
        let off = (whole / self.aim).log2() / self.slope;
        let seen = (self.at_base / done / self.aim).log2() / self.slope;
        let early = (self.judged_from..0.55).contains(&done);
        if self.may_restart && early && seen.abs() > RESTART_ABOVE && off.abs() > RESTART_ABOVE * 0.6 {
            let crf = (self.base + seen).clamp(TRANSPARENT_CRF, WORST_CRF);
            // At either end of the range the same round would come again.
            if (crf - self.base).abs() > 1.0 {
                return Advice::Restart { crf };
            }
        }
        let left = (self.aim - self.bytes).max(self.aim * 0.002);
        let wanted = self.base + (whole * (1.0 - done) / left).max(1e-9).log2() / self.slope;
        let band = if done > 0.7 { LATE_BAND } else { BAND };
        let wanted = wanted
            .clamp(self.base - band, self.base + band)
            .clamp(self.crf - STRIDE, self.crf + STRIDE)
            .clamp(TRANSPARENT_CRF, WORST_CRF + 2.0);
        if (wanted - self.crf).abs() < 0.08 {
            return Advice::Keep;
        }
        self.crf = wanted;
        Advice::Change { crf: wanted }
    }

    /// The mean CRF so far.
    pub(crate) fn mean_crf(&self) -> f64 {
        if self.at_base > 0.0 { self.weighted_crf / self.at_base } else { self.base }
    }

    /// Each packet's bytes as they would have been at the CRF that the round began with: the next round's profile.
    pub(crate) fn sizes_at_base(&self) -> &[f64] {
        &self.sizes
    }

    #[cfg(test)]
    fn bytes(&self) -> ByteSize {
        ByteSize::from_f64(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A pretend encoder whose frames cost `weight · 2^(slope · (base − crf))` bytes.
    struct Content {
        weights: Vec<f64>,
        base: f64,
        slope: f64,
    }

    impl Content {
        fn encode(&self, mut steering: Steering) -> Result<Steering, Box<(Steering, f64)>> {
            let mut crf = steering.crf();
            for weight in &self.weights {
                let bytes = weight * (self.slope * (self.base - crf)).exp2();
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "test data")]
                match steering.packet(bytes as usize) {
                    Advice::Keep => {}
                    Advice::Change { crf: next } => crf = next,
                    Advice::Restart { crf } => return Err(Box::new((steering, crf))),
                }
            }
            Ok(steering)
        }

        fn search(&self, ceiling: f64, first: f64) -> (Option<f64>, u32) {
            let mut search = Search::new(ByteSize::from_f64(ceiling), ByteSize::from_f64(ceiling));
            let mut crf = first;
            let mut best: Option<f64> = None;
            for rounds in 1..40 {
                let profile = Profile::new(self.weights.iter().map(|_| 1.0));
                match self.encode(search.steer(crf, profile, false)) {
                    Err(stopped) => {
                        search.restarted(&stopped.0);
                        crf = stopped.1;
                    }
                    Ok(steering) => {
                        let bytes = steering.bytes().as_f64();
                        if bytes <= ceiling {
                            best = best.into_iter().chain([bytes]).reduce(f64::max);
                        }
                        match search.judge(&steering) {
                            Verdict::Done => return (best, rounds),
                            Verdict::TooLarge => return (None, rounds),
                            Verdict::Again { crf: next } => crf = next,
                        }
                    }
                }
            }
            panic!("the search does not end");
        }
    }

    #[test]
    fn a_good_guess_needs_one_round() {
        let content = Content { weights: vec![1000.0; 600], base: 25.0, slope: 0.22 };
        let (best, rounds) = content.search(600_000.0, 25.5);
        assert_eq!(rounds, 1);
        assert!((0.96..=1.0).contains(&(best.unwrap() / 600_000.0)), "{best:?}");
    }

    #[test]
    fn a_bad_guess_is_noticed_early() {
        let content = Content { weights: vec![1000.0; 600], base: 25.0, slope: 0.22 };
        let (best, rounds) = content.search(600_000.0, 40.0);
        assert!(rounds <= 3, "{rounds}");
        assert!(best.unwrap() >= 577_000.0, "{best:?}");
    }

    #[test]
    fn an_easy_source_stops_at_the_transparent_crf() {
        let content = Content { weights: vec![10.0; 600], base: 25.0, slope: 0.22 };
        let mut search = Search::new(ByteSize::new(10_000_000), ByteSize::new(10_000_000));
        let steering =
            content.encode(search.steer(TRANSPARENT_CRF, Profile::new(vec![1.0; 600]), false)).unwrap();
        assert_eq!(search.judge(&steering), Verdict::Done);
        assert!(steering.bytes() < ByteSize::new(100_000));
    }

    #[test]
    fn bytes_that_hardly_fall_are_followed_down() {
        // Near the end of the range, headers and motion are most of the bytes.
        let content = Content { weights: vec![300.0; 50], base: 25.0, slope: 0.05 };
        let (best, rounds) = content.search(9000.0, 29.0);
        assert!(best.is_some_and(|best| best <= 9000.0), "{best:?} in {rounds}");
    }

    #[test]
    fn wild_weights_overflow_nothing() {
        let profile = Profile::new([f64::MAX, f64::MAX, f64::NAN, -1.0]);
        assert_eq!(profile.0, [0.0, 0.5, 1.0, 1.0, 1.0]);
    }

    proptest! {
        #[test]
        fn the_search_ends_and_never_accepts_what_is_too_large(
            weights in proptest::collection::vec(10.0_f64..20_000.0, 1..400),
            slope in 0.12_f64..0.7,
            first in 18.0_f64..41.0,
            ceiling in 1_000.0_f64..2_000_000.0,
        ) {
            let content = Content { weights, base: 26.0, slope };
            let (best, _) = content.search(ceiling, first);
            if let Some(best) = best {
                prop_assert!(best <= ceiling);
            }
        }

        #[test]
        fn profiles_grow_from_zero_to_one(weights in proptest::collection::vec(proptest::num::f64::ANY, 0..50)) {
            let profile = Profile::new(weights.clone());
            prop_assert!(profile.0.windows(2).all(|pair| pair[0] <= pair[1]));
            prop_assert!(weights.is_empty() || (profile.share(weights.len()) - 1.0).abs() < 1e-9);
        }
    }
}
