//! How many bytes a segment takes at a CRF: one line through everything seen, and each segment's own deviation.
//!
//! log2(bytes / frames) = level + exponent · rate − slope · (CRF − origin) + deviation, a Bayesian regression
//! that is updated one observation at a time. What is known of usual content is the prior; a segment's deviation
//! is believed as far as the segment itself was seen.

/// How log2(bytes) follows log2(source bytes) of a segment. Of the shapes tried in the study, the square root
/// of the source's rate predicted segment sizes best: an error of 0.15 in log2, against 0.26 with the rate itself.
const EXPONENT: f64 = 0.5;
const EXPONENT_DEVIATION: f64 = 0.15;
const EXPONENTS: std::ops::RangeInclusive<f64> = 0.0..=1.2;
/// How log2(bytes) falls with each step of CRF. Measured 0.19 to 0.26 on usual content, up to 0.7 on noise.
pub(super) const SLOPE: f64 = 0.18;
const SLOPE_DEVIATION: f64 = 0.045;
/// How far one segment's slope is from another's.
pub(super) const SLOPE_SPREAD: f64 = 0.04;
const SLOPES: std::ops::RangeInclusive<f64> = 0.10..=0.75;
/// How far segments are from the line, in log2: measured 0.15 where the source's sizes tell the truth, 0.4 to 1.4
/// where they do not.
const SPREAD: f64 = 0.25;
const SPREADS: std::ops::RangeInclusive<f64> = 0.12..=0.6;
/// The observations that the usual spread counts for.
const SPREAD_TRUST: f64 = 3.0;

/// What was seen of a segment: the bytes of the whole of it at one CRF, as far as they can be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sight {
    pub(super) crf: f64,
    pub(super) log_bytes: f64,
    /// Zero when the whole segment was encoded.
    pub(super) variance: f64,
}

/// A segment as the regression sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Subject {
    pub(super) log_frames: f64,
    /// log2 of its source bytes in a frame against the track's.
    pub(super) rate: f64,
    pub(super) sight: Option<Sight>,
}

/// The same pictures at two CRFs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Descent {
    pub(super) slope: f64,
    pub(super) variance: f64,
}

impl Descent {
    /// From log2 of bytes at two CRFs; `None` when they are too close to tell. `noise` is the deviation of one of
    /// the sizes, in log2.
    pub(super) fn between(first: (f64, f64), second: (f64, f64), noise: f64) -> Option<Self> {
        let steps = second.0 - first.0;
        let slope = (first.1 - second.1) / steps;
        (steps.abs() > 0.4 && slope.is_finite()).then(|| Self {
            slope: slope.clamp(*SLOPES.start(), *SLOPES.end()),
            variance: 2.0 * (noise / steps).powi(2),
        })
    }

    /// This segment's slope, when others fall like `usual`.
    pub(super) fn against(&self, usual: f64) -> f64 {
        let share = SLOPE_SPREAD.powi(2) / (SLOPE_SPREAD.powi(2) + self.variance);
        usual + share * (self.slope - usual)
    }
}

/// What is believed before anything was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prior {
    /// The CRF that fills the budget.
    pub(super) crf: f64,
    /// Its standard deviation, in steps of CRF.
    pub(super) deviation: f64,
    /// log2 of the budget in bytes.
    pub(super) log_budget: f64,
}

/// What is believed now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Model {
    belief: Gaussian,
    origin: f64,
    spread: f64,
}

impl Model {
    /// Weighs the prior and all that was seen.
    ///
    /// All segments are among the `subjects`, seen or not: the prior is about all of them together.
    pub(super) fn fit(prior: &Prior, subjects: &[Subject], descents: &[Descent]) -> Self {
        let usual: f64 =
            subjects.iter().map(|subject| (subject.log_frames + EXPONENT * subject.rate).exp2()).sum();
        let level = prior.log_budget - usual.max(1.0).log2();
        let mut start = Gaussian {
            mean: [level, EXPONENT, SLOPE],
            covariance: [
                [(prior.deviation * SLOPE).powi(2), 0.0, 0.0],
                [0.0, EXPONENT_DEVIATION.powi(2), 0.0],
                [0.0, 0.0, SLOPE_DEVIATION.powi(2)],
            ],
        };
        for descent in descents {
            start.learn([0.0, 0.0, 1.0], descent.slope, descent.variance + SLOPE_SPREAD.powi(2));
        }
        let mut model = Self { belief: start, origin: prior.crf, spread: SPREAD };
        // The spread decides how much each sight says, and the sights say how large the spread is.
        for _ in 0..3 {
            model.belief = start;
            subjects.iter().for_each(|subject| model.learn(subject));
            model.spread = model.spread_of(subjects);
        }
        model
    }

    /// Takes in one more segment.
    pub(super) fn learn(&mut self, subject: &Subject) {
        let Some(sight) = subject.sight else { return };
        let features = [1.0, subject.rate, self.origin - sight.crf];
        let variance = sight.variance + self.spread.powi(2);
        self.belief.learn(features, sight.log_bytes - subject.log_frames, variance);
    }

    /// The spread that the deviations seen are likeliest to come from.
    fn spread_of(&self, subjects: &[Subject]) -> f64 {
        let usual = self.spread.powi(2);
        let (mut sum, mut count) = (SPREAD_TRUST * SPREAD.powi(2), SPREAD_TRUST);
        for (subject, sight) in seen(subjects) {
            let share = usual / (usual + sight.variance);
            let deviation = sight.log_bytes - self.line(subject, sight.crf);
            sum += (deviation * share).powi(2) + usual * (1.0 - share);
            count += 1.0;
        }
        (sum / count).sqrt().clamp(*SPREADS.start(), *SPREADS.end())
    }

    /// The CRF that was believed in at first.
    pub(super) const fn origin(&self) -> f64 {
        self.origin
    }

    pub(super) fn slope(&self) -> f64 {
        let [_, _, slope] = self.belief.mean;
        slope.clamp(*SLOPES.start(), *SLOPES.end())
    }

    pub(super) fn exponent(&self) -> f64 {
        let [_, exponent, _] = self.belief.mean;
        exponent.clamp(*EXPONENTS.start(), *EXPONENTS.end())
    }

    #[cfg(test)]
    /// The usual deviation of a segment from the line.
    pub(super) const fn spread(&self) -> f64 {
        self.spread
    }

    fn line(&self, subject: &Subject, crf: f64) -> f64 {
        let [level, exponent, _] = self.belief.mean;
        subject.log_frames + level + exponent * subject.rate - self.slope() * (crf - self.origin)
    }

    /// log2 of the bytes that the segment takes at `crf`: the likeliest, and the variance of its own deviation.
    pub(super) fn likeliest(&self, subject: &Subject, crf: f64) -> (f64, f64) {
        let line = self.line(subject, crf);
        let usual = self.spread.powi(2);
        let Some(sight) = subject.sight else { return (line, usual) };
        let share = usual / (usual + sight.variance);
        (line + share * (sight.log_bytes - self.line(subject, sight.crf)), usual * (1.0 - share))
    }

    /// The bytes that the segment takes at `crf`, on average: more than the likeliest, since it is the logarithm
    /// that errs by as much on either side.
    pub(super) fn bytes(&self, subject: &Subject, crf: f64) -> f64 {
        let (likeliest, variance) = self.likeliest(subject, crf);
        (likeliest + variance * std::f64::consts::LN_2 / 2.0).exp2()
    }
}

fn seen(subjects: &[Subject]) -> impl Iterator<Item = (&Subject, Sight)> {
    subjects.iter().filter_map(|subject| subject.sight.map(|sight| (subject, sight)))
}

/// Three numbers that are believed with errors that hang together.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gaussian {
    mean: [f64; 3],
    covariance: [[f64; 3]; 3],
}

impl Gaussian {
    /// Takes in that the sum of `features` times the numbers was seen to be `value`, with this variance.
    fn learn(&mut self, features: [f64; 3], value: f64, variance: f64) {
        let with = self.covariance.map(|row| dot(row, features));
        let total = dot(features, with) + variance;
        let surprise = value - dot(features, self.mean);
        if !(total > 0.0 && surprise.is_finite()) {
            return;
        }
        for ((mean, row), gain) in self.mean.iter_mut().zip(&mut self.covariance).zip(with) {
            *mean += gain * surprise / total;
            for (cell, other) in row.iter_mut().zip(with) {
                *cell -= gain * other / total;
            }
        }
    }
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.into_iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Bytes that fall with the CRF.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Load {
    pub(super) crf: f64,
    /// At this CRF.
    pub(super) bytes: f64,
    pub(super) slope: f64,
}

/// The CRF at which all loads together take `budget` bytes, between 0 and 80.
pub(super) fn solve(loads: &[Load], budget: f64) -> f64 {
    let goal = budget.max(1.0).log2();
    let mut crf: f64 = 30.0;
    // The logarithm of such a sum is convex, so that Newton's steps end up on the right side and close in.
    for _ in 0..24 {
        let (mut sum, mut fall) = (0.0, 0.0);
        for load in loads {
            let bytes = load.bytes * (load.slope * (load.crf - crf)).exp2();
            sum += bytes;
            fall += bytes * load.slope;
        }
        if !(sum > 0.0 && fall > 0.0 && sum.is_finite()) {
            return if sum > 0.0 { 80.0 } else { 0.0 };
        }
        let step = (sum.log2() - goal) * sum / fall;
        let next = (crf + step).clamp(0.0, 80.0);
        if (next - crf).abs() < 1e-4 {
            return next;
        }
        crf = next;
    }
    crf
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIOR: Prior = Prior { crf: 28.0, deviation: 4.0, log_budget: 20.0 };

    fn subject(rate: f64, sight: Option<(f64, f64, f64)>) -> Subject {
        let sight = sight.map(|(crf, log_bytes, variance)| Sight { crf, log_bytes, variance });
        Subject { log_frames: 8.0, rate, sight }
    }

    #[test]
    fn the_prior_fills_the_budget() {
        let subjects = [subject(-1.0, None), subject(1.0, None), subject(0.0, None)];
        let model = Model::fit(&PRIOR, &subjects, &[]);
        let sum: f64 = subjects.iter().map(|subject| model.likeliest(subject, 28.0).0.exp2()).sum();
        assert!((sum.log2() - 20.0).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn what_was_encoded_moves_the_others_and_is_known_itself() {
        let seen = subject(0.0, Some((28.0, 20.0, 0.0)));
        let unseen = subject(0.0, None);
        let subjects = [seen, unseen, unseen];
        let before = Model::fit(&PRIOR, &[unseen; 3], &[]).likeliest(&unseen, 28.0).0;
        let model = Model::fit(&PRIOR, &subjects, &[]);
        assert!((model.likeliest(&seen, 28.0).0 - 20.0).abs() < 1e-9);
        let after = model.likeliest(&unseen, 28.0).0;
        assert!(after > before + 1.0 && after < 20.0, "{before} {after}");
    }

    #[test]
    fn two_sizes_of_the_same_pictures_tell_the_slope() {
        let descent = Descent::between((24.0, 18.0), (29.0, 15.5), 0.03).unwrap();
        assert!((descent.slope - 0.5).abs() < 1e-9);
        let model = Model::fit(&PRIOR, &[subject(0.0, None)], &[descent]);
        assert!((0.35..0.5).contains(&model.slope()), "{}", model.slope());
        assert_eq!(Descent::between((24.0, 18.0), (24.1, 17.0), 0.03), None);
    }

    #[test]
    fn segments_off_the_line_widen_the_spread() {
        let calm: Vec<_> = (0..8).map(|_| subject(0.0, Some((28.0, 17.0, 0.0)))).collect();
        let wild: Vec<_> =
            (0..8).map(|n| subject(0.0, Some((28.0, if n % 2 == 0 { 16.0 } else { 18.0 }, 0.0)))).collect();
        assert!(Model::fit(&PRIOR, &calm, &[]).spread() < 0.2);
        assert!(Model::fit(&PRIOR, &wild, &[]).spread() > 0.5);
    }

    #[test]
    fn loads_of_different_slopes_meet_the_budget() {
        let loads = [
            Load { crf: 20.0, bytes: 5e6, slope: 0.7 },
            Load { crf: 30.0, bytes: 2e5, slope: 0.2 },
            Load { crf: 25.0, bytes: 3e5, slope: 0.15 },
        ];
        for budget in [1e4, 2e5, 1e6, 3e7] {
            let crf = solve(&loads, budget);
            let sum: f64 = loads.iter().map(|load| load.bytes * (load.slope * (load.crf - crf)).exp2()).sum();
            assert!((sum / budget - 1.0).abs() < 1e-3, "{budget} {crf} {sum}");
        }
        assert_eq!(solve(&[], 1000.0), 0.0);
        assert!(solve(&loads, 0.0) > 60.0);
    }
}
