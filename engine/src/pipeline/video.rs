//! Makes a video track: the size of its picture, its segments, and the track out of them.

use std::sync::Arc;
use std::time::Instant;

use crate::error::Error;
use crate::fit::Preset;
use crate::libav::{Answer, Encoded, Encoder, PixelTarget, VideoSpec};
use crate::media::Orientation;
use crate::mp4::h264;
use crate::mp4::{ColorTags, Sample, Track, VideoFormat};
use crate::pipeline::JobContext;
use crate::pipeline::detail::{Detail, Moments};
use crate::pipeline::early::Early;
use crate::pipeline::material::{Material, Span};
use crate::pipeline::pacing::Pacing;
use crate::pipeline::pictures::{Pictures, Treatment};
use crate::pipeline::reorder::rebuild_dts;
use crate::pipeline::segments::{Layout, SegmentMap};
use crate::pipeline::workers::{self, Assignment, Spent, Stop};
use crate::planner::budget;
use crate::planner::course::{Belief, Course, Goal, Order, WORST_CRF};
use crate::planner::cut::Shown;
use crate::planner::guess::FirstGuess;
use crate::planner::ladder::{Ladder, Rung};
use crate::units::{ByteSize, Dimensions, FrameRate, Timestamp};

/// What the planner decided about a video track, and what it decided from.
#[derive(Clone, Debug)]
pub(crate) struct VideoPlan {
    pub(crate) ladder: Ladder,
    pub(crate) first_rung: Rung,
    pub(crate) orientation: Orientation,
    pub(crate) interlaced: bool,
    pub(crate) even: bool,
    pub(crate) span: Span,
    /// Frames that the source shows in the span, about.
    pub(crate) source_frames: f64,
    /// The source's packets, as far as they are known.
    pub(crate) shown: Arc<[Shown]>,
    /// The source's times can be trusted, so that it can be decoded from any key frame.
    pub(crate) trustworthy: bool,
    pub(crate) bits_per_pixel: Option<f64>,
    pub(crate) preset: Preset,
    pub(crate) limit: ByteSize,
    /// Pixels of the source as shown, upright and square.
    pub(crate) source_pixels: f64,
    /// The same as a size with even sides.
    pub(crate) display: Dimensions,
    /// The source's own size caps the result, not the limit alone.
    pub(crate) source_ceiling: ByteSize,
    /// Set when pictures are made before everything has arrived.
    pub(crate) early: Option<Early>,
}

/// A finished video track.
#[derive(Debug)]
pub(crate) struct VideoTrack {
    pub(crate) track: Track<VideoFormat>,
    pub(crate) rung: Rung,
    pub(crate) crf: f64,
    pub(crate) frames_redone: u64,
    pub(crate) frames_probed: u64,
    /// Segments that were encoded again although they were finished.
    pub(crate) repairs: u32,
    /// The bytes that were expected when the segments were begun.
    pub(crate) predicted: ByteSize,
    pub(crate) damaged: u64,
    pub(crate) not_tone_mapped: bool,
    pub(crate) spent: Spent,
}

/// Why no video track was made.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No rung of the ladder fits; the fewest bytes that were reached.
    CannotFit {
        least: ByteSize,
    },
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// The bytes that there are for the samples of a video track.
pub(crate) struct Room<'a> {
    /// At most, with pictures at a rung.
    pub(crate) budget: &'a dyn Fn(&Rung) -> ByteSize,
    /// So much more can be made up for elsewhere.
    pub(crate) spare: ByteSize,
}

/// Makes a video track of samples that fit the room.
pub(crate) fn encode(
    material: &mut dyn Material,
    plan: &VideoPlan,
    room: &Room<'_>,
    context: &JobContext,
) -> Result<VideoTrack, Failure> {
    let mut attempt =
        Attempt { rung: plan.first_rung, belief: None, parts: Parts::of(material, plan), changes: 0 };
    let mut tally = Tally { redone: 0, least: ByteSize::new(u64::MAX) };
    loop {
        let smaller = match attempt.encode(material, plan, room, &mut tally, context) {
            Ok(Some(track)) => return Ok(track),
            Ok(None) => true,
            Err(Stop::TooLarge { least, redone }) => {
                tally.redone += redone;
                tally.least = tally.least.min(least);
                true
            }
            Err(Stop::OtherSize { rung, crf }) => {
                attempt = Attempt { rung, belief: Some(crf), changes: attempt.changes + 1, ..attempt };
                false
            }
            Err(Stop::NotInParts { redone, crf }) => {
                tally.redone += redone;
                attempt.belief = Some(crf);
                tracing::debug!(parts = ?attempt.parts, "the segments do not come apart");
                attempt.parts =
                    attempt.parts.fewer().ok_or_else(|| Error::internal("one segment is not whole"))?;
                false
            }
            Err(Stop::Failed(error)) => return Err(error.into()),
        };
        if smaller {
            let below = plan.ladder.below(&attempt.rung);
            attempt.rung = below.ok_or(Failure::CannotFit { least: tally.least })?;
            attempt.belief = None;
            attempt.changes = MOST_CHANGES;
        }
    }
}

/// The bytes of the plan's first rung at the worst quality that is ever given.
pub(crate) fn least_bytes(
    material: &mut dyn Material,
    plan: &VideoPlan,
    context: &JobContext,
) -> Result<ByteSize, Error> {
    let rung = &plan.first_rung;
    let pacing = plan.pacing(rung);
    let mut pictures = Pictures::new(material.start()?, plan.treatment(rung, pacing));
    let mut encoder = Encoder::video(&VideoSpec { crf: WORST_CRF, ..plan.spec(rung, pacing) })?;
    let mut bytes = 0;
    let mut more = true;
    while more {
        context.control.stop()?;
        let frame = pictures.next()?;
        more = frame.is_some();
        encoder.send(frame.as_ref()).map_err(|fault| fault.internal("a picture cannot be encoded"))?;
        while let Answer::Item(packet) =
            encoder.receive().map_err(|fault| fault.internal("a picture cannot be encoded"))?
        {
            bytes += ByteSize::of(&packet.data).get();
        }
    }
    Ok(ByteSize::new(bytes))
}

/// What is counted over all attempts.
struct Tally {
    redone: u64,
    least: ByteSize,
}

/// How the track is taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parts {
    /// Each segment is decoded from its key frame.
    Apart,
    /// One decoder runs through the track.
    Running,
    /// There is one segment.
    Whole,
}

impl Parts {
    fn of(material: &dyn Material, plan: &VideoPlan) -> Self {
        if material.can_seek() && plan.trustworthy { Self::Apart } else { Self::Running }
    }

    const fn fewer(self) -> Option<Self> {
        match self {
            Self::Apart => Some(Self::Running),
            Self::Running => Some(Self::Whole),
            Self::Whole => None,
        }
    }
}

/// An attempt at one size.
struct Attempt {
    rung: Rung,
    /// The CRF that is expected to fill the budget, where something is known.
    belief: Option<f64>,
    parts: Parts,
    /// How often the size was changed by what probes said.
    changes: u32,
}

impl Attempt {
    /// Makes a video track; `None` when there is no room at all.
    fn encode(
        &self,
        material: &mut dyn Material,
        plan: &VideoPlan,
        room: &Room<'_>,
        tally: &mut Tally,
        context: &JobContext,
    ) -> Result<Option<VideoTrack>, Stop> {
        let (rung, began) = (&self.rung, Instant::now());
        let goal = plan.goal(rung, (room.budget)(rung), room.spare);
        if goal.ceiling == ByteSize::ZERO {
            return Ok(None);
        }
        material.will_shrink(f64_of(rung.dimensions.pixels()) < plan.source_pixels * SHRUNK);
        let pacing = plan.pacing(rung);
        let frames = plan.result_frames(rung);
        let early = plan.early.as_ref();
        let layout = Layout {
            shown: &plan.shown,
            span: plan.span,
            pacing,
            frame_rate: rung.frame_rate,
            frames,
            early,
        };
        let map = match self.parts {
            Parts::Apart => match SegmentMap::seekable(&layout, material)? {
                // There is nothing to come apart, and damage is concealed better from the beginning on.
                map if map.len() == 1 => SegmentMap::undivided(&layout),
                map => map,
            },
            Parts::Running => SegmentMap::running(&layout),
            Parts::Whole => SegmentMap::undivided(&layout),
        };
        let belief = self.belief.map_or_else(
            || Belief { crf: plan.first_guess(rung, goal.ceiling), deviation: BLIND },
            |crf| Belief { crf, deviation: FROM_ANOTHER_SIZE },
        );
        tracing::debug!(size = %rung.dimensions, ceiling = goal.ceiling.get(), segments = map.len(), ?belief, parts = ?self.parts, "encoding");
        let course = Course::new(map.outlines(&layout), goal, belief, map.order());
        let planned = began.elapsed();
        let detail = if self.changes < MOST_CHANGES && plan.shown.len() > FEW_PICTURES {
            let early = map.order() == Order::AsTheyArrive;
            let moments = if early { Moments::Early } else { Moments::Everywhere };
            Some(Detail::of(material, plan.span, plan.display, plan.orientation, moments)?)
        } else {
            None
        };
        let assignment = Assignment {
            map: &map,
            treatment: plan.treatment(rung, pacing),
            spec: plan.spec(rung, pacing),
            frames,
            early,
            context,
            reconsider: &|crf| {
                let kept = |size| detail.as_ref()?.kept_at(size);
                plan.ladder.reconsider(rung, crf, &kept).filter(|_| self.changes < MOST_CHANGES)
            },
        };
        let encodes = workers::run(&assignment, material, course)?;
        let course = &encodes.course;
        let frames: usize = encodes.segments.iter().map(Vec::len).sum();
        if frames == 0 {
            return Err(Error::corrupt("no picture can be decoded: the file is damaged").into());
        }
        Ok(Some(VideoTrack {
            rung: *rung,
            crf: course.mean_crf(),
            frames_redone: tally.redone + course.frames_redone(),
            frames_probed: course.probe_frames(),
            repairs: course.repairs(),
            predicted: course.predicted_bytes(),
            damaged: encodes.damaged,
            not_tone_mapped: encodes.not_tone_mapped,
            spent: Spent { plan: planned, ..encodes.spent },
            track: assemble(encodes.segments, &encodes.header, plan, rung, pacing)?,
        }))
    }
}

impl VideoPlan {
    pub(crate) fn pacing(&self, rung: &Rung) -> Pacing {
        if self.even {
            Pacing::Even { rate: rung.frame_rate, divisor: rung.divisor }
        } else {
            // A little less than the distance at the rung's rate, so that jitter drops nothing it should not.
            let rate = if rung.divisor > 1 {
                rung.frame_rate.as_f64()
            } else {
                61.0_f64.max(rung.frame_rate.as_f64())
            };
            let least = 0.97 / rate.min(61.0);
            Pacing::Uneven { least: Timestamp::from_seconds(least) }
        }
    }

    /// Frames of a result at `rung`, about.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float to integer saturates")]
    pub(crate) fn result_frames(&self, rung: &Rung) -> u32 {
        ((self.source_frames / f64::from(rung.divisor.max(1))).ceil() as u32).max(1)
    }

    /// What may be used, and what must be.
    fn goal(&self, rung: &Rung, budget: ByteSize, spare: ByteSize) -> Goal {
        // Where the limit is what makes the picture smaller, the source's own size bounds nothing.
        let source_ceiling = if self.source_ceiling > budget {
            self.source_ceiling
        } else {
            let pixels = f64_of(rung.dimensions.pixels()) / self.source_pixels;
            budget::scaled_ceiling(self.source_ceiling, pixels, 1.0 / f64::from(rung.divisor.max(1)))
        };
        let ceiling = budget.min(source_ceiling);
        let enough = if source_ceiling < budget {
            // The source's own size is no person's limit: much less of it is as good.
            ceiling.as_f64() * MODEST
        } else {
            (ceiling.as_f64() - self.limit.as_f64() * (1.0 - FULL)).max(ceiling.as_f64() * 0.9)
        };
        // What the source's size leaves of the limit may be used before anything is encoded again.
        let spare = budget.saturating_add(spare).saturating_sub(ceiling);
        let spare = spare.min(ByteSize::from_f64(ceiling.as_f64() * MOST_SPARE));
        Goal { ceiling, enough: ByteSize::from_f64(enough), spare }
    }

    fn first_guess(&self, rung: &Rung, bytes: ByteSize) -> f64 {
        FirstGuess {
            pixels: f64_of(rung.dimensions.pixels()),
            frames: f64::from(self.result_frames(rung)),
            frame_rate: rung.frame_rate.as_f64(),
            bits_per_pixel: self.bits_per_pixel,
            bytes,
        }
        .crf()
    }

    const fn treatment(&self, rung: &Rung, pacing: Pacing) -> Treatment {
        Treatment {
            target: rung.dimensions,
            orientation: self.orientation,
            interlaced: self.interlaced,
            pixels: PixelTarget::Video,
            pacing,
            span: self.span,
        }
    }

    fn spec(&self, rung: &Rung, pacing: Pacing) -> VideoSpec {
        VideoSpec {
            dimensions: rung.dimensions,
            clock: pacing.clock(),
            frame_rate: rung.frame_rate,
            crf: WORST_CRF,
            preset: self.preset,
            threads: 1,
            key_interval: key_interval(rung.frame_rate),
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts and sizes stay far below 2^53")]
const fn f64_of(value: u64) -> f64 {
    value as f64
}

/// Key frames let viewers jump; eight seconds between them cost nothing measurable.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped just before")]
fn key_interval(rate: FrameRate) -> u32 {
    (rate.as_f64() * 8.0).round().clamp(1.0, 600.0) as u32
}

fn assemble(
    segments: Vec<Vec<Encoded>>,
    header: &[u8],
    plan: &VideoPlan,
    rung: &Rung,
    pacing: Pacing,
) -> Result<Track<VideoFormat>, Error> {
    let clock = pacing.clock();
    // The timescale is a whole number of ticks a second, fine enough for the last picture's length.
    let mut factor = 1;
    while clock.numerator().saturating_mul(factor) < LEAST_TIMESCALE {
        factor *= 2;
    }
    let unit = i64::from(clock.denominator().saturating_mul(factor));
    let timescale = clock.numerator().saturating_mul(factor);
    let mut samples: Vec<Sample> = segments
        .into_iter()
        .flatten()
        .map(|packet| Sample {
            data: packet.data,
            dts: 0,
            pts: packet.pts.saturating_mul(unit),
            duration: u32::try_from(unit).unwrap_or(1),
            sync: packet.key,
        })
        .collect();
    rebuild_dts(&mut samples)?;
    let end = plan.span.duration().ticks(timescale, 1);
    if let Some(last) = samples.iter_mut().max_by_key(|sample| sample.pts) {
        let length = end.saturating_sub(last.pts).max(1);
        // A file whose end is not known for sure still shows its last picture for one slot.
        last.duration = u32::try_from(length).unwrap_or(last.duration);
    }
    let format = VideoFormat {
        avcc: h264::avcc_from_annex_b(header)?,
        dimensions: rung.dimensions,
        color: Some(ColorTags { primaries: 1, transfer: 1, matrix: 1, full_range: false }),
    };
    Ok(Track { format, timescale, samples })
}

const LEAST_TIMESCALE: u32 = 600;
/// A file with at least this share of the limit is full enough.
const FULL: f64 = 0.966;
/// The ceiling is missed by no more than this share of it without encoding anything again.
const MOST_SPARE: f64 = 0.05;
/// Full enough, where the source's own size is the bound.
const MODEST: f64 = 0.35;
/// Steps of CRF by which a guess without any picture seen is off, usually.
const BLIND: f64 = 4.0;
/// Steps of CRF by which a prediction is off that was made by probes at another size, or by an attempt before.
const FROM_ANOTHER_SIZE: f64 = 1.0;
/// With this share of the source's pixels a deblocking filter that is left out on B-frames does not show: no
/// change of VMAF was measured at 720p made 480p.
const SHRUNK: f64 = 0.6;
/// With fewer pictures nothing is probed.
const FEW_PICTURES: usize = 48;
/// How often probes may change the size.
const MOST_CHANGES: u32 = 2;
