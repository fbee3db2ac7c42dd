//! Makes a video track: rounds of decoding and encoding until the bytes are right.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::fit::Preset;
use crate::libav::{Answer, Encoded, Encoder, PixelTarget, VideoSpec};
use crate::media::Orientation;
use crate::mp4::h264::{self, UnitSet};
use crate::mp4::{ColorTags, Sample, Track, VideoFormat};
use crate::pipeline::JobContext;
use crate::pipeline::pacing::Pacing;
use crate::pipeline::pictures::{Material, Pictures, Span, Treatment};
use crate::pipeline::reorder::rebuild_dts;
use crate::planner::budget;
use crate::planner::ladder::{Ladder, Rung};
use crate::planner::rate::{Advice, FirstGuess, Profile, Search, Verdict, WORST_CRF};
use crate::units::{ByteSize, FrameRate, Timestamp};

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
    /// Compressed bytes of the source in each second of the span.
    pub(crate) bytes_by_second: Vec<u64>,
    pub(crate) bits_per_pixel: Option<f64>,
    pub(crate) preset: Preset,
    pub(crate) limit: ByteSize,
    /// Pixels of the source as shown, upright and square.
    pub(crate) source_pixels: f64,
    /// The source's own size caps the result, not the limit alone.
    pub(crate) source_ceiling: ByteSize,
}

/// A finished video track.
#[derive(Debug)]
pub(crate) struct VideoTrack {
    pub(crate) track: Track<VideoFormat>,
    pub(crate) rung: Rung,
    pub(crate) crf: f64,
    pub(crate) frames_redone: u64,
    pub(crate) damaged: u64,
    pub(crate) not_tone_mapped: bool,
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

/// One encode from the first picture to the last, or to where it was stopped.
enum Round {
    Whole { packets: Vec<Encoded>, header: bytes::Bytes, damaged: u64, not_tone_mapped: bool },
    Restart { crf: f64, frames: u64 },
}

/// Makes a video track of at most `budget(rung)` bytes of samples.
pub(crate) fn encode(
    material: &mut dyn Material,
    plan: &VideoPlan,
    budget: &dyn Fn(&Rung) -> ByteSize,
    context: &JobContext,
) -> Result<VideoTrack, Failure> {
    let mut rung = plan.first_rung;
    let mut tally = Tally { redone: 0, least: ByteSize::new(u64::MAX) };
    loop {
        match encode_rung(material, plan, &rung, budget(&rung), &mut tally, context)? {
            Some(track) => return Ok(track),
            None => rung = plan.ladder.below(&rung).ok_or(Failure::CannotFit { least: tally.least })?,
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
    let mut bytes = 0_usize;
    let mut count = |packet: usize| {
        bytes = bytes.saturating_add(packet);
        Advice::Keep
    };
    run_round(material, plan, rung, plan.pacing(rung), WORST_CRF, &mut count, context)?;
    Ok(ByteSize::new(u64::try_from(bytes).unwrap_or(u64::MAX)))
}

/// What is counted over all rounds.
struct Tally {
    redone: u64,
    least: ByteSize,
}

/// Makes a video track at one size; `None` when no CRF makes it fit.
fn encode_rung(
    material: &mut dyn Material,
    plan: &VideoPlan,
    rung: &Rung,
    budget: ByteSize,
    tally: &mut Tally,
    context: &JobContext,
) -> Result<Option<VideoTrack>, Error> {
    // Where the limit is what makes the picture smaller, the source's own size bounds nothing.
    let source_ceiling = if plan.source_ceiling > budget {
        plan.source_ceiling
    } else {
        let pixels =
            f64::from(rung.dimensions.width) * f64::from(rung.dimensions.height) / plan.source_pixels;
        budget::scaled_ceiling(plan.source_ceiling, pixels, 1.0 / f64::from(rung.divisor.max(1)))
    };
    let ceiling = budget.min(source_ceiling);
    if ceiling == ByteSize::ZERO {
        return Ok(None);
    }
    let mut search =
        if source_ceiling < budget { Search::modest(ceiling) } else { Search::new(ceiling, plan.limit) };
    let pacing = plan.pacing(rung);
    let frames = plan.result_frames(rung);
    let mut crf = search.first(&FirstGuess {
        pixels: f64::from(rung.dimensions.width) * f64::from(rung.dimensions.height),
        frames: f64::from(frames),
        frame_rate: rung.frame_rate.as_f64(),
        bits_per_pixel: plan.bits_per_pixel,
        bytes: ceiling,
    });
    let mut measured: Option<Vec<f64>> = None;
    let mut best: Option<VideoTrack> = None;
    loop {
        let profile = match &measured {
            Some(sizes) => Profile::new(sizes.iter().copied()),
            None => plan.guessed_profile(frames, rung),
        };
        let mut steering = search.steer(crf, profile, measured.is_some());
        let round =
            run_round(material, plan, rung, pacing, crf, &mut |bytes| steering.packet(bytes), context)?;
        match round {
            Round::Restart { crf: next, frames } => {
                tracing::debug!(crf, next, frames, "the round was far off and begins again");
                tally.redone += frames;
                search.restarted(&steering);
                crf = next;
            }
            Round::Whole { packets, header, damaged, not_tone_mapped } => {
                if packets.is_empty() {
                    return Err(Error::corrupt("no picture can be decoded: the file is damaged"));
                }
                let count = u64::try_from(packets.len()).unwrap_or(u64::MAX);
                let bytes: u64 = packets.iter().map(|packet| ByteSize::of(&packet.data).get()).sum();
                tally.least = tally.least.min(ByteSize::new(bytes));
                measured = Some(steering.sizes_at_base().to_vec());
                let verdict = search.judge(&steering);
                tracing::debug!(crf, bytes, ceiling = ceiling.get(), ?verdict, size = %rung.dimensions, "a round ended");
                let better = best.as_ref().is_none_or(|best| ByteSize::new(bytes) > sample_bytes(best));
                if ByteSize::new(bytes) <= ceiling && better {
                    let track = assemble(packets, &header, plan, rung, pacing)?;
                    best = Some(VideoTrack {
                        track,
                        rung: *rung,
                        crf: steering.mean_crf(),
                        frames_redone: 0,
                        damaged,
                        not_tone_mapped,
                    });
                }
                match verdict {
                    Verdict::Done => {
                        return Ok(best.map(|track| VideoTrack { frames_redone: tally.redone, ..track }));
                    }
                    Verdict::TooLarge => {
                        tally.redone += count;
                        return Ok(None);
                    }
                    Verdict::Again { crf: next } => {
                        tally.redone += count;
                        crf = next;
                    }
                }
            }
        }
    }
}

fn sample_bytes(track: &VideoTrack) -> ByteSize {
    ByteSize::new(track.track.samples.iter().map(|sample| ByteSize::of(&sample.data).get()).sum())
}

fn run_round(
    material: &mut dyn Material,
    plan: &VideoPlan,
    rung: &Rung,
    pacing: Pacing,
    crf: f64,
    steer: &mut dyn FnMut(usize) -> Advice,
    context: &JobContext,
) -> Result<Round, Error> {
    let grant = context.threads.take(MOST_THREADS, &context.control)?;
    let mut encoder = Encoder::video(&VideoSpec {
        dimensions: rung.dimensions,
        clock: pacing.clock(),
        frame_rate: rung.frame_rate,
        crf,
        preset: plan.preset,
        threads: grant.threads(),
        key_interval: key_interval(rung.frame_rate),
    })?;
    let treatment = Treatment {
        target: rung.dimensions,
        orientation: plan.orientation,
        interlaced: plan.interlaced,
        pixels: PixelTarget::Video,
        pacing,
        span: plan.span,
    };
    let mut pictures = Pictures::new(material.start()?, treatment);
    let mut packets = Vec::new();
    let began = Instant::now();
    let expected = plan.span.duration().seconds().max(0.001);
    let mut round = Collecting { packets: &mut packets, steer, reported: 0 };
    while let Some(frame) = pictures.next()? {
        context.control.stop()?;
        let seconds = frame.pts().map_or(0.0, |ticks| f64_of(ticks.micros()) / pacing.clock().as_f64());
        encoder.send(Some(&frame)).map_err(|fault| fault.internal("a picture cannot be encoded"))?;
        if let Some(crf) = round.collect(&mut encoder)? {
            return Ok(Round::Restart { crf, frames: u64::try_from(packets.len()).unwrap_or(0) });
        }
        context.control.count_frames(1);
        context.control.advance(0.06 + 0.9 * (seconds / expected).min(1.0));
        context.control.set_speed(seconds / began.elapsed().max(Duration::from_millis(1)).as_secs_f64());
    }
    encoder.send(None).map_err(|fault| fault.internal("the video encoder cannot be drained"))?;
    loop {
        context.control.stop()?;
        // What is left is a second or so: too little to begin again for.
        round.collect(&mut encoder)?;
        if round.finished(&mut encoder)? {
            break;
        }
    }
    let (damaged, not_tone_mapped) = (pictures.damaged(), pictures.not_tone_mapped());
    Ok(Round::Whole { packets, header: encoder.header(), damaged, not_tone_mapped })
}

/// Takes packets out of the encoder and follows the planner's advice.
struct Collecting<'a> {
    packets: &'a mut Vec<Encoded>,
    steer: &'a mut dyn FnMut(usize) -> Advice,
    reported: usize,
}

impl Collecting<'_> {
    /// Takes what is there; a CRF when the round is to begin again.
    fn collect(&mut self, encoder: &mut Encoder) -> Result<Option<f64>, Error> {
        loop {
            match encoder.receive().map_err(|fault| fault.internal("a picture cannot be encoded"))? {
                Answer::Item(mut packet) => {
                    // Start codes become lengths of the same size, and the encoder's remark about itself goes.
                    packet.data = h264::sample_from_annex_b(&packet.data, OWN_NOISE);
                    let advice = (self.steer)(packet.data.len());
                    self.packets.push(packet);
                    self.reported += 1;
                    match advice {
                        Advice::Keep => {}
                        Advice::Change { crf } => {
                            encoder
                                .set_crf(crf)
                                .map_err(|fault| fault.internal("the CRF cannot be changed"))?;
                        }
                        Advice::Restart { crf } => return Ok(Some(crf)),
                    }
                }
                Answer::FeedMe | Answer::Finished => return Ok(None),
            }
        }
    }

    /// Whether a drained encoder has nothing left.
    fn finished(&mut self, encoder: &mut Encoder) -> Result<bool, Error> {
        match encoder.receive().map_err(|fault| fault.internal("a picture cannot be encoded"))? {
            Answer::Item(mut packet) => {
                packet.data = h264::sample_from_annex_b(&packet.data, OWN_NOISE);
                (self.steer)(packet.data.len());
                self.packets.push(packet);
                Ok(false)
            }
            Answer::FeedMe | Answer::Finished => Ok(true),
        }
    }
}

const OWN_NOISE: UnitSet = UnitSet::REDUNDANT.with(h264::SEI);

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

    /// Complexity by the square root of the source's bytes in each second: measured to predict best.
    fn guessed_profile(&self, frames: u32, rung: &Rung) -> Profile {
        let rate = rung.frame_rate.as_f64();
        let mean =
            self.bytes_by_second.iter().map(|bytes| f64_of(i64::try_from(*bytes).unwrap_or(0))).sum::<f64>()
                / f64_of(i64::try_from(self.bytes_by_second.len().max(1)).unwrap_or(1));
        Profile::new((0..frames).map(|number| {
            let second = f64::from(number) / rate;
            let bytes = self.bytes_by_second.get(whole(second)).copied().unwrap_or(0);
            // A second without bytes still costs something.
            (f64_of(i64::try_from(bytes).unwrap_or(0)) + mean * 0.05 + 1.0).sqrt()
        }))
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float to integer saturates")]
fn whole(value: f64) -> usize {
    value as usize
}

#[allow(clippy::cast_precision_loss, reason = "counts and sizes stay far below 2^53")]
const fn f64_of(value: i64) -> f64 {
    value as f64
}

/// Key frames let viewers jump; eight seconds between them cost nothing measurable.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped just before")]
fn key_interval(rate: FrameRate) -> u32 {
    (rate.as_f64() * 8.0).round().clamp(1.0, 600.0) as u32
}

fn assemble(
    packets: Vec<Encoded>,
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
    let mut samples: Vec<Sample> = packets
        .into_iter()
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
/// x264 gains nothing from more threads on pictures of the sizes that fit Discord.
const MOST_THREADS: usize = 8;
