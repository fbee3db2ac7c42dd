//! A pretend encoder and workers that drive a [`Course`] with it.

use super::{Advice, Belief, Course, Goal, Order, Segment, Step};
use crate::units::ByteSize;

/// A small generator of numbers that are the same for the same seed.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        u32::try_from(mixed >> 32).unwrap()
    }

    /// Between `low` and `high`.
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * f64::from(self.bits()) / f64::from(u32::MAX)
    }

    /// Around zero, with a standard deviation of one.
    pub(super) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.between(0.0, 1.0)).sum::<f64>() - 6.0
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.bits()).unwrap() % end.max(1)
    }
}

/// What a pretend track is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) segments: usize,
    /// Frames of a segment, at least and at most.
    pub(super) frames: (usize, usize),
    /// The source's sizes say little or nothing, scenes differ much, bytes fall unevenly with the CRF.
    pub(super) hard: bool,
    pub(super) deviation: f64,
    pub(super) order: Order,
    pub(super) workers: usize,
    /// The number of frames is told once the encoder has them all.
    pub(super) counted: bool,
}

/// A segment's frames, as log2 of their bytes at CRF 26.
#[derive(Clone, Debug)]
struct Pictures {
    frames: Vec<f64>,
    /// Frames that are shown after all before them.
    anchors: Vec<bool>,
    slope: f64,
    /// How much steeper it gets with each step below CRF 26.
    steeper: f64,
}

impl Pictures {
    fn bytes(&self, frame: usize, crf: f64) -> f64 {
        let steps = 26.0 - crf;
        // First frames depend less on the CRF than those that refer to others.
        let part = if frame == 0 { 0.75 } else { 1.0 };
        let more = part * (self.slope * steps + self.steeper * steps.max(0.0).powi(2) / 2.0);
        (self.frames[frame] + more).exp2() + 12.0
    }
}

#[derive(Clone, Debug)]
pub(super) struct Track {
    pictures: Vec<Pictures>,
    segments: Vec<Segment>,
    pub(super) crf: f64,
    belief: Belief,
    kind: Kind,
    seed: u64,
    delay: usize,
    window_lacks: f64,
}

impl Track {
    pub(super) fn new(seed: u64, kind: Kind) -> Self {
        let mut dice = Dice::new(seed);
        let scale = dice.between(8.0, 13.0);
        let (scene_spread, segment_spread) =
            if kind.hard { (0.8, dice.between(0.3, 1.0)) } else { (0.4, 0.15) };
        // Whether the source's sizes say anything.
        let truth = if kind.hard { [0.0, 0.5, 1.0][dice.below(3)] } else { 1.0 };
        let slope = dice.between(0.18, 0.27);
        let steeper = if kind.hard { dice.between(0.0, 0.06) } else { dice.between(0.0, 0.01) };
        let mut scene = dice.normal() * scene_spread;
        let (mut pictures, mut segments) = (Vec::new(), Vec::new());
        for _ in 0..kind.segments {
            let count = kind.frames.0 + dice.below(kind.frames.1 - kind.frames.0 + 1);
            if dice.between(0.0, 1.0) < 0.7 {
                scene = dice.normal() * scene_spread;
            }
            let own = dice.normal() * segment_spread;
            let (mut drift, mut frames, mut source) = (0.0, Vec::new(), Vec::new());
            let mut anchors = Vec::new();
            let mut group = 1;
            for frame in 0..count {
                drift = 0.97 * drift + 0.24 * dice.normal() * 0.3;
                let mut cut = 0.0;
                if frame > 0 && dice.between(0.0, 1.0) < 1.0 / 260.0 {
                    scene = dice.normal() * scene_spread;
                    cut = dice.between(1.0, 2.5);
                }
                group -= 1;
                let shape = if group == 0 { 0.8 } else { -0.7 };
                anchors.push(frame == 0 || group == 0);
                if group == 0 {
                    group = 1 + dice.below(4);
                }
                let first = if frame == 0 { dice.between(2.0, 3.6) - shape } else { 0.0 };
                frames.push(scale + scene + own + drift + cut + shape + first + 0.25 * dice.normal());
                source.push((2.0 * truth * (scene + drift) + 0.3 * dice.normal() + 14.0).exp2());
            }
            // No later frame takes over from the last ones.
            for (left, frame) in (0_u32..30).zip(frames.iter_mut().rev()) {
                *frame += (0.65 + 0.35 * f64::from(left) / 30.0).log2();
            }
            let smooth: Vec<f64> = (0..count)
                .map(|frame| {
                    let near = &source[frame.saturating_sub(15)..(frame + 15).min(count)];
                    near.iter().sum::<f64>() / f64::from(u32::try_from(near.len()).unwrap())
                })
                .collect();
            let off = if dice.between(0.0, 1.0) < 0.3 { dice.below(5) } else { 2 };
            segments.push(Segment {
                cuts: Vec::new(),
                frames: u32::try_from((count + off).saturating_sub(2)).unwrap(),
                source_bytes: smooth,
            });
            let slope = slope * dice.between(0.85, 1.15);
            pictures.push(Pictures { frames, anchors, slope, steeper });
        }
        let crf = dice.between(20.0, 38.0);
        let believed = crf + kind.deviation * dice.normal().clamp(-2.5, 2.5);
        let belief = Belief { crf: believed, deviation: kind.deviation };
        let delay = dice.below(2);
        let window_lacks = 0.05 + 0.2 * dice.normal();
        Self { pictures, segments, crf, belief, kind, seed, delay, window_lacks }
    }

    /// Bytes of the whole at one CRF.
    pub(super) fn bytes(&self, crf: f64) -> f64 {
        self.pictures
            .iter()
            .map(|pictures| (0..pictures.frames.len()).map(|frame| pictures.bytes(frame, crf)).sum::<f64>())
            .sum()
    }

    pub(super) fn frames(&self) -> usize {
        self.pictures.iter().map(|pictures| pictures.frames.len()).sum()
    }

    /// The goal that the track's own CRF fills.
    pub(super) fn goal(&self) -> Goal {
        goal(self.bytes(self.crf))
    }

    pub(super) fn run(&self) -> Outcome {
        self.run_to(self.goal())
    }

    /// Segments that have arrived when so many frames are encoded: a download is about three times as fast.
    fn arrived(&self, encoded: u64) -> usize {
        let mut left = usize::try_from(encoded).unwrap() * 3;
        let is_there = |pictures: &&Pictures| {
            let there = left >= pictures.frames.len();
            left = left.saturating_sub(pictures.frames.len());
            there
        };
        self.pictures.iter().take_while(is_there).count()
    }

    /// Lets the workers encode until all are told to end.
    pub(super) fn run_to(&self, goal: Goal) -> Outcome {
        let mut course = Course::new(self.segments.clone(), goal, self.belief, self.kind.order);
        let mut workers = vec![Worker::Idle; self.kind.workers];
        let mut dice = Dice::new(self.seed ^ 0xABCD);
        let mut kept: Vec<Vec<u64>> = vec![Vec::new(); self.segments.len()];
        let mut crfs: Vec<Vec<Vec<f64>>> = vec![Vec::new(); self.segments.len()];
        let (mut steps, mut encoded) = (Vec::new(), 0_u64);
        let mut end = None;
        for _ in 0..200 * (self.frames() + 100) {
            let number = dice.below(workers.len());
            let (worker, others) = take(&mut workers, number);
            match worker {
                Worker::Ended => {
                    if others.iter().all(|other| matches!(other, Worker::Ended)) {
                        break;
                    }
                }
                Worker::Idle => {
                    if self.kind.order == Order::AsTheyArrive {
                        course.arrived(self.arrived(encoded));
                    }
                    let step = course.next();
                    if step != Step::Wait {
                        steps.push(step);
                    }
                    workers[number] = match step {
                        Step::Probe { segment, frames, crf } => Worker::Probing { segment, frames, crf },
                        Step::Encode { segment, crf } => Worker::Encoding(Encode::new(segment, crf)),
                        Step::Wait => Worker::Idle,
                        Step::Done | Step::TooLarge => {
                            end = Some(step);
                            Worker::Ended
                        }
                    };
                }
                Worker::Probing { segment, frames, crf } => {
                    let pictures = &self.pictures[segment];
                    let count = usize::try_from(frames).unwrap().min(pictures.frames.len());
                    let sizes: Vec<u32> = (0..count)
                        .map(|frame| {
                            let lacks = if frame == 0 { 0.0 } else { self.window_lacks };
                            whole(pictures.bytes(frame, crf) * (-lacks).exp2())
                        })
                        .collect();
                    course.probed(segment, crf, &sizes);
                    workers[number] = Worker::Idle;
                }
                Worker::Encoding(mut encode) => {
                    let pictures = &self.pictures[encode.segment];
                    let frame = encode.crfs.len();
                    if frame == pictures.frames.len() {
                        kept[encode.segment].push(encode.bytes);
                        crfs[encode.segment].push(encode.crfs);
                        course.finished(encode.segment);
                        workers[number] = Worker::Idle;
                        continue;
                    }
                    if self.kind.counted && frame + 40 == pictures.frames.len().max(40) {
                        course.counted(encode.segment, u32::try_from(pictures.frames.len()).unwrap());
                    }
                    let crf = encode.next(self.delay);
                    // The same pictures twice are not the same bytes twice.
                    let bytes = whole(pictures.bytes(frame, crf) * (1.0 + 0.004 * dice.normal()));
                    encode.bytes += u64::from(bytes);
                    encode.crfs.push(crf);
                    encoded += 1;
                    workers[number] = match course.packet(encode.segment, bytes, pictures.anchors[frame]) {
                        Advice::Keep => Worker::Encoding(encode),
                        Advice::Change { crf } => {
                            encode.asked = (crf, encode.crfs.len());
                            encode.before = encode.crfs[frame];
                            Worker::Encoding(encode)
                        }
                        Advice::Restart => Worker::Idle,
                    };
                }
            }
        }
        let end = end.expect("the course ends");
        let chosen = course.chosen();
        let (mut bytes, mut all) = (0, Vec::new());
        for (segment, version) in chosen.iter().flatten().enumerate() {
            bytes += kept[segment][*version];
            all.extend(crfs[segment][*version].iter().copied());
        }
        let count = f64::from(u32::try_from(all.len()).unwrap()).max(1.0);
        let mean = all.iter().sum::<f64>() / count;
        let spread = (all.iter().map(|crf| (crf - mean).powi(2)).sum::<f64>() / count).sqrt();
        Outcome { end, steps, bytes, encoded, spread, mean, goal, course }
    }
}

/// The goal of a track of at most `ceiling` bytes.
pub(super) fn goal(ceiling: f64) -> Goal {
    let enough = ByteSize::from_f64(ceiling * 0.966);
    Goal { ceiling: ByteSize::from_f64(ceiling), enough, spare: ByteSize::ZERO }
}

fn take(workers: &mut [Worker], number: usize) -> (Worker, &[Worker]) {
    let worker = workers[number].clone();
    (worker, workers)
}

fn whole(bytes: f64) -> u32 {
    u32::try_from(ByteSize::from_f64(bytes).get()).unwrap_or(u32::MAX)
}

#[derive(Clone, Debug)]
enum Worker {
    Idle,
    Probing { segment: usize, frames: u32, crf: f64 },
    Encoding(Encode),
    Ended,
}

#[derive(Clone, Debug)]
struct Encode {
    segment: usize,
    crfs: Vec<f64>,
    bytes: u64,
    /// The CRF asked for last and the frame at which that was, and the one before.
    asked: (f64, usize),
    before: f64,
}

impl Encode {
    fn new(segment: usize, crf: f64) -> Self {
        Self { segment, crfs: Vec::new(), bytes: 0, asked: (crf, 0), before: crf }
    }

    fn next(&self, delay: usize) -> f64 {
        if self.crfs.len() >= self.asked.1 + delay { self.asked.0 } else { self.before }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) end: Step,
    pub(super) steps: Vec<Step>,
    /// Of the chosen versions.
    pub(super) bytes: u64,
    /// Frames that were encoded in all, without windows.
    pub(super) encoded: u64,
    /// Standard deviation of the CRF over all frames, and its mean.
    pub(super) spread: f64,
    pub(super) mean: f64,
    pub(super) goal: Goal,
    pub(super) course: Course,
}

impl Outcome {
    pub(super) fn fill(&self) -> f64 {
        ByteSize::new(self.bytes).as_f64() / self.goal.ceiling.as_f64()
    }
}
