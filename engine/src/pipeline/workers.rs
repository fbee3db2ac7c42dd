//! Encodes a track's segments as the planner says, by one worker or several side by side.
//!
//! Every worker has its own decoder and encoder; what they share is the planner's course, under a lock that is
//! held for a few microseconds at each packet.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::error::Error;
use crate::libav::{Answer, Encoded, Encoder, VideoSpec};
use crate::mp4::h264;
use crate::pipeline::JobContext;
use crate::pipeline::early::Early;
use crate::pipeline::encode::{OWN_NOISE, Run, received, send};
use crate::pipeline::material::Material;
use crate::pipeline::pictures::Treatment;
use crate::pipeline::reel::Reel;
use crate::pipeline::segments::SegmentMap;
use crate::planner::course::{Course, Order, Step};
use crate::planner::ladder::Rung;
use crate::pool::catch;
use crate::units::ByteSize;

/// What all workers of a track are told.
pub(crate) struct Assignment<'a> {
    pub(crate) map: &'a SegmentMap,
    pub(crate) treatment: Treatment,
    /// CRF and threads are each segment's own.
    pub(crate) spec: VideoSpec,
    /// Frames of the result, about.
    pub(crate) frames: u32,
    /// What of the source has arrived, while it does.
    pub(crate) early: Option<&'a Early>,
    pub(crate) context: &'a JobContext,
    /// Asked once the probes are done, with the CRF that they predict: another size that is better, and the CRF there.
    pub(crate) reconsider: &'a (dyn Fn(f64) -> Option<(Rung, f64)> + Sync),
}

/// Encoded pictures of the whole track, in order.
#[derive(Debug)]
pub(crate) struct Encodes {
    pub(crate) segments: Vec<Vec<Encoded>>,
    pub(crate) header: Bytes,
    pub(crate) course: Course,
    pub(crate) damaged: u64,
    pub(crate) not_tone_mapped: bool,
    pub(crate) spent: Spent,
}

/// Time that workers spent, added up over them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) plan: Duration,
    pub(crate) decode: Duration,
    pub(crate) scale: Duration,
    pub(crate) encode: Duration,
}

/// Why there is no result.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Another size is better, and is expected to be filled at this CRF.
    OtherSize {
        rung: Rung,
        crf: f64,
    },
    /// The segments cannot be made apart from each other: the input is damaged or not what its index says.
    NotInParts {
        /// Frames that were encoded for nothing; counted when all workers have ended.
        redone: u64,
        /// The CRF that was expected to fill the budget by then.
        crf: f64,
    },
    /// No CRF makes the pictures fit; the fewest bytes that were reached.
    TooLarge {
        least: ByteSize,
        redone: u64,
    },
    Failed(Error),
}

impl Stop {
    const NOT_IN_PARTS: Self = Self::NotInParts { redone: 0, crf: 0.0 };
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// What workers write to.
pub(super) struct Board {
    pub(super) course: Course,
    /// Versions of each segment in the order in which they were made.
    versions: Vec<Vec<Vec<Encoded>>>,
    header: Option<Bytes>,
    damaged: u64,
    not_tone_mapped: bool,
    pub(super) spent: Spent,
    /// The probes are done and the size is settled.
    begun: bool,
    /// Workers that have not left.
    workers: usize,
    stopped: Option<Stop>,
}

/// What the workers of one track share.
pub(super) struct Shared<'a> {
    pub(super) assignment: &'a Assignment<'a>,
    board: Mutex<Board>,
    changed: Condvar,
    began: Instant,
    /// Pictures given to encoders so far.
    sent: AtomicU64,
}

/// Encodes all segments.
pub(crate) fn run(
    assignment: &Assignment<'_>,
    material: &mut dyn Material,
    course: Course,
) -> Result<Encodes, Stop> {
    let board = Board {
        course,
        versions: vec![Vec::new(); assignment.map.len()],
        header: None,
        damaged: 0,
        not_tone_mapped: false,
        spent: Spent::default(),
        begun: false,
        workers: 1,
        stopped: None,
    };
    let shared = Shared {
        assignment,
        board: Mutex::new(board),
        changed: Condvar::new(),
        began: Instant::now(),
        sent: AtomicU64::new(0),
    };
    let mut others = Vec::new();
    if assignment.map.is_apart() {
        let share = assignment.context.threads.share_of_a_job();
        let most = assignment.map.len().min(most_workers(share, assignment.map.order()));
        for _ in 1..most {
            let Some(other) = material.another()? else { break };
            others.push(other);
        }
    }
    thread::scope(|scope| {
        for (number, mut material) in (1..).zip(others) {
            let shared = &shared;
            let work = move || shared.work(number, &mut *material);
            shared.lock().workers += 1;
            if let Err(error) =
                thread::Builder::new().name(format!("azalea-segment-{number}")).spawn_scoped(scope, work)
            {
                // Fewer workers do the same.
                shared.lock().workers -= 1;
                tracing::debug!(%error, "no thread for another worker");
                break;
            }
        }
        shared.work(0, material);
    });
    let board = shared.board.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (redone, crf) = (board.course.frames_encoded(), board.course.predicted_crf());
    let result = match board.stopped {
        Some(stop) => Err(stop),
        None => board.choose(),
    };
    result.map_err(|stop| match stop {
        Stop::NotInParts { .. } => Stop::NotInParts { redone, crf },
        stop => stop,
    })
}

impl Board {
    fn choose(self) -> Result<Encodes, Stop> {
        let Self { course, mut versions, header, damaged, not_tone_mapped, spent, .. } = self;
        let Some(chosen) = course.chosen() else {
            return Err(Stop::TooLarge { least: course.least_bytes(), redone: course.frames_encoded() });
        };
        let mut segments = Vec::with_capacity(versions.len());
        for (versions, number) in versions.iter_mut().zip(chosen) {
            if number >= versions.len() {
                return Err(Error::internal("the planner chose what was never encoded").into());
            }
            segments.push(versions.swap_remove(number));
        }
        // Two key frames in a row of different encoders could have the same number, and count as one picture.
        let alone = |segment: &Vec<Encoded>| segment.len() == 1;
        if segments.iter().rev().skip(1).any(alone) {
            return Err(Stop::NOT_IN_PARTS);
        }
        let header = header.unwrap_or_default();
        Ok(Encodes { segments, header, course, damaged, not_tone_mapped, spent })
    }
}

impl Shared<'_> {
    pub(super) fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until there is nothing left to do.
    fn work(&self, number: usize, material: &mut dyn Material) {
        let mut outcome = Ok(());
        let caught = catch(|| {
            outcome = self.work_through(number, material);
            Ok(())
        });
        let mut board = self.lock();
        board.workers = board.workers.saturating_sub(1);
        if let Err(stop) = caught.map_err(Stop::from).and(outcome) {
            board.stopped.get_or_insert(stop);
        }
        drop(board);
        self.changed.notify_all();
    }

    fn work_through(&self, number: usize, material: &mut dyn Material) -> Result<(), Stop> {
        let mut step = self.next_step(number)?;
        while let Some(first) = step.as_ref().and_then(segment_of) {
            let mut reel = Reel::open(material, self.assignment.map, self.assignment.treatment, first)?;
            while let Some(segment) = step.as_ref().and_then(segment_of).filter(|next| reel.reaches(*next)) {
                reel.go_to(segment)?;
                match step {
                    Some(Step::Probe { frames, crf, .. }) => self.probe(&mut reel, segment, frames, crf)?,
                    Some(Step::Encode { crf, .. }) => self.encode(&mut reel, segment, crf)?,
                    _ => {}
                }
                self.note(&mut reel)?;
                step = self.next_step(number)?;
            }
        }
        Ok(())
    }

    /// What worker `number` does next; `None` when it is done. Waits while others may still make work.
    fn next_step(&self, number: usize) -> Result<Option<Step>, Stop> {
        let control = &self.assignment.context.control;
        let mut board = self.lock();
        loop {
            control.stop().map_err(Error::from)?;
            // Other jobs want their share of the machine.
            let share = self.assignment.context.threads.share_of_a_job();
            let surplus = number > 0 && number >= most_workers(share, self.assignment.map.order());
            if board.stopped.is_some() || surplus {
                return Ok(None);
            }
            if let Some(early) = self.assignment.early {
                board.course.arrived(self.assignment.map.arrived(early));
            }
            match board.course.next() {
                Step::Wait => {}
                Step::Done => return Ok(None),
                Step::TooLarge => {
                    let (least, redone) = (board.course.least_bytes(), board.course.frames_encoded());
                    return Err(Stop::TooLarge { least, redone });
                }
                step @ Step::Encode { .. } if !board.begun => {
                    let crf = board.course.predicted_crf();
                    if let Some((rung, crf)) = (self.assignment.reconsider)(crf) {
                        let stop = Stop::OtherSize { rung, crf };
                        // Told under the same lock, or another worker would begin at the size that is left.
                        board.stopped.get_or_insert(stop);
                        return Ok(None);
                    }
                    board.begun = true;
                    return Ok(Some(step));
                }
                step => return Ok(Some(step)),
            }
            board = self.changed.wait_timeout(board, STOP_CHECK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Tells whoever watches that one more picture was encoded.
    #[allow(clippy::cast_precision_loss, reason = "counts of frames stay far below 2^53")]
    pub(super) fn report_one(&self) {
        let Assignment { frames, spec, context, .. } = self.assignment;
        let sent = (self.sent.fetch_add(1, Ordering::Relaxed) + 1) as f64;
        context.control.count_frames(1);
        context.control.advance(0.06 + 0.9 * (sent / f64::from((*frames).max(1))).min(1.0));
        let seconds = sent / spec.frame_rate.as_f64();
        context.control.set_speed(seconds / self.began.elapsed().max(Duration::from_millis(1)).as_secs_f64());
    }

    /// Keeps what is to be told of the reading.
    fn note(&self, reel: &mut Reel<'_>) -> Result<(), Stop> {
        let (decode, scale) = reel.take_spent();
        let mut board = self.lock();
        board.spent.decode += decode;
        board.spent.scale += scale;
        board.damaged = board.damaged.max(reel.damaged());
        board.not_tone_mapped |= reel.not_tone_mapped();
        // What cannot be decoded from a key frame on may still be concealed from the beginning on.
        if board.damaged > 0 && self.assignment.map.is_apart() { Err(Stop::NOT_IN_PARTS) } else { Ok(()) }
    }

    fn probe(&self, reel: &mut Reel<'_>, segment: usize, frames: u32, crf: f64) -> Result<(), Stop> {
        let began = Instant::now();
        let context = self.assignment.context;
        let grant = context.threads.take(1, &context.control)?;
        let mut encoder = self.encoder(crf, grant.threads())?;
        // Frames that are decoded again anyway need not be held meanwhile.
        let keeps = self.assignment.map.len() == 1 || self.assignment.map.phase().is_none();
        let (mut kept, mut sizes, mut given) = (Vec::new(), Vec::new(), 0);
        let mut ended = false;
        let wanted = usize::try_from(frames).unwrap_or(usize::MAX);
        let take = |encoder: &mut Encoder, sizes: &mut Vec<u32>| -> Result<(), Stop> {
            while sizes.len() < wanted
                && let Answer::Item(packet) = received(encoder)?
            {
                let data = h264::sample_from_annex_b(&packet.data, OWN_NOISE);
                sizes.push(u32::try_from(data.len()).unwrap_or(u32::MAX));
            }
            Ok(())
        };
        while given < frames.saturating_add(IN_SIGHT) && sizes.len() < wanted && !ended {
            self.assignment.context.control.stop().map_err(Error::from)?;
            match reel.next()? {
                Some(frame) => {
                    send(&mut encoder, Some(&frame))?;
                    take(&mut encoder, &mut sizes)?;
                    given += 1;
                    if keeps {
                        kept.push(frame);
                    }
                }
                None => ended = true,
            }
        }
        if sizes.len() < wanted {
            send(&mut encoder, None)?;
            take(&mut encoder, &mut sizes)?;
        }
        if keeps {
            reel.give_back(kept, ended);
        }
        let mut board = self.lock();
        board.spent.encode += began.elapsed();
        board.course.probed(segment, crf, &sizes);
        tracing::debug!(segment, crf, ?sizes, predicted = board.course.predicted_crf(), "probed");
        drop(board);
        self.changed.notify_all();
        Ok(())
    }

    /// Threads of the encoder of `segment`: those that others leave.
    fn threads_for(&self, segment: usize) -> usize {
        let share = self.assignment.context.threads.share_of_a_job();
        let board = self.lock();
        let alone = board.workers <= 1 || board.course.decides(segment);
        let one_each = is_pressed(share, self.assignment.map.order()) && !alone;
        if one_each { 1 } else { THREADS_OF_A_WORKER }
    }

    fn encoder(&self, crf: f64, threads: usize) -> Result<Encoder, Error> {
        Encoder::video(&VideoSpec { crf, threads, ..self.assignment.spec })
    }

    fn encode(&self, reel: &mut Reel<'_>, segment: usize, crf: f64) -> Result<(), Stop> {
        let context = self.assignment.context;
        let grant = context.threads.take(self.threads_for(segment), &context.control)?;
        let mut encoder = self.encoder(crf, grant.threads())?;
        let last_segment = segment + 1 == self.assignment.map.len();
        let mut run = Run::new(self, segment);
        let mut waiting = reel.next()?;
        while let Some(mut frame) = waiting {
            context.control.stop().map_err(Error::from)?;
            waiting = reel.next()?;
            if waiting.is_none() && !run.is_empty() && !last_segment {
                // Another key frame right before the next segment's could not be told from it.
                frame.make_predicted();
            }
            let go_on = run.give(&mut encoder, &frame)?;
            if !go_on {
                return Ok(());
            }
            if waiting.is_none() && !run.pad(&mut encoder)? {
                return Ok(());
            }
        }
        if run.is_empty() && self.assignment.map.is_apart() {
            return Err(Stop::NOT_IN_PARTS);
        }
        let (packets, spent) = run.finish();
        let header = encoder.header();
        drop(encoder);
        let mut board = self.lock();
        board.spent.encode += spent;
        if board.header.get_or_insert_with(|| header.clone()) != &header {
            return Err(Stop::NOT_IN_PARTS);
        }
        let bytes: usize = packets.iter().map(|packet| packet.data.len()).sum();
        if let Some(versions) = board.versions.get_mut(segment) {
            versions.push(packets);
        }
        board.course.finished(segment);
        tracing::debug!(
            segment,
            crf,
            bytes,
            predicted = board.course.predicted_crf(),
            "a segment is encoded"
        );
        drop(board);
        self.changed.notify_all();
        Ok(())
    }
}

fn segment_of(step: &Step) -> Option<usize> {
    match step {
        Step::Probe { segment, .. } | Step::Encode { segment, .. } => Some(*segment),
        Step::Wait | Step::Done | Step::TooLarge => None,
    }
}

/// Frames after a probe's that the encoder looks ahead at: without them it underrates what they take over.
const IN_SIGHT: u32 = 32;
/// One for the encoder beside the worker's own, which decodes and scales meanwhile.
const THREADS_OF_A_WORKER: usize = 2;
/// With fewer threads than this, each is a worker while the source arrives: two segments side by side leave no core idle,
/// as two threads of one encoder and its decoder do for a quarter of the time. Otherwise the memory of a second worker is
/// worth more than that.
const FEW_THREADS: usize = 4;

/// Whether each thread is a worker.
fn is_pressed(share: usize, order: Order) -> bool {
    share < FEW_THREADS && order == Order::AsTheyArrive
}

/// Workers of a job that may count on `share` threads.
fn most_workers(share: usize, order: Order) -> usize {
    let most = if is_pressed(share, order) { share } else { share / THREADS_OF_A_WORKER };
    most.clamp(1, MOST_WORKERS)
}

/// Each worker holds a decoder's and an encoder's pictures: some hundred mebibytes at 720p.
const MOST_WORKERS: usize = 16;
/// How often a waiting worker looks for a stop, which has no bell.
const STOP_CHECK: Duration = Duration::from_millis(50);
