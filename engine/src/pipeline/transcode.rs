//! Encodes what cannot be kept: sound first, to the byte, then pictures into what is left.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::fit::Preset;
use crate::mp4::{
    self, AudioFormat, Movie, Pacing as Stts, Planned, PlannedAudio, PlannedVideo, Track, overhead_bound,
};
use crate::pipeline::awaited::{self, AwaitedSound};
use crate::pipeline::early::Early;
use crate::pipeline::finish::{Job, movie_kind, track_bytes};
use crate::pipeline::material::{Material, Span, TrackMaterial};
use crate::pipeline::measure::Measured;
use crate::pipeline::sound::{self, SoundTrack};
use crate::pipeline::tracks::keep;
use crate::pipeline::video::{self, Failure, Room, VideoPlan, VideoTrack};
use crate::planner::budget::{self, Loan, SoundPlan};
use crate::planner::cut::Shown;
use crate::planner::division::{Needs, SoundChoice, SoundNeed, divide, least_limit};
use crate::planner::ladder::{Ladder, PictureSource, Rung};
use crate::planner::route::Treatment;
use crate::progress::Stage;
use crate::report::{Action, Fitted, OutputKind, Warning};
use crate::units::{ByteSize, Timestamp};

/// Encodes the tracks that are to be encoded and keeps the others.
pub(crate) fn run(
    mut measured: Measured,
    video: Treatment,
    audio: Treatment,
    job: Job<'_>,
) -> Result<Fitted, Error> {
    if measured.tracks.video.is_none() {
        return sound_alone(measured, job);
    }
    if video == Treatment::Copy
        && let Some(Movie { video: Some(track), .. }) = keep(&mut measured, &job, video, Treatment::Absent)?
    {
        return beside_kept_video(measured, track, job);
    }
    pictures_and_sound(measured, audio, job)
}

/// The picture is kept, the sound gets what is left.
fn beside_kept_video(
    mut measured: Measured,
    track: Track<mp4::VideoFormat>,
    mut job: Job<'_>,
) -> Result<Fitted, Error> {
    let left = job.fit.limit.saturating_sub(track_bytes(&track)).saturating_sub(measured.copy_overhead());
    let duration = measured.span.duration().since_zero();
    let source = measured.sound_source();
    let mut left_for_sound = left;
    let mut movie = Movie { video: Some(track), audio: None };
    while let Some(plan) = source.and_then(|source| budget::sound_within(&source, left_for_sound, duration)) {
        movie.audio = make_sound(&mut measured, &plan, &mut job)?.map(|sound| sound.track);
        if mp4::size(&movie) <= job.fit.limit {
            let report =
                job.report(Action::Transcode, movie_kind(movie.video.as_ref(), movie.audio.as_ref()));
            return job.finish_movie(&movie, report);
        }
        left_for_sound = ByteSize::from_f64(left_for_sound.as_f64() * 0.85);
    }
    pictures_and_sound(measured, Treatment::Encode, job)
}

fn sound_alone(mut measured: Measured, mut job: Job<'_>) -> Result<Fitted, Error> {
    let source = measured.sound_source().ok_or_else(|| Error::corrupt("the input has no sound"))?;
    let duration = measured.span.duration().since_zero();
    let container = |plan: &SoundPlan| {
        overhead_bound(&Planned {
            duration,
            video: None,
            audio: Some(PlannedAudio { packets: sound_packets(plan, duration), pacing: Stts::Even }),
        })
    };
    let least = budget::least_sound(&source);
    let least_bytes = least.bytes(duration).saturating_add(container(&least));
    let cannot = |min_bytes: ByteSize| Error::CannotFit {
        limit: job.fit.limit,
        min_bytes,
        what: format!("{:.0} s of sound need more", duration.as_secs_f64()),
    };
    let mut room = job.fit.limit;
    loop {
        let plan = budget::sound_within(&source, room.saturating_sub(container(&least)), duration)
            .ok_or_else(|| cannot(least_bytes.max(job.fit.limit.saturating_add(ByteSize::new(1)))))?;
        let Some(sound) = make_sound(&mut measured, &plan, &mut job)? else {
            return Err(Error::corrupt("no sound can be decoded: the file is damaged"));
        };
        let movie = Movie { video: None, audio: Some(sound.track) };
        if mp4::size(&movie) <= job.fit.limit {
            let report = job.report(Action::Transcode, movie_kind(None, movie.audio.as_ref()));
            return job.finish_movie(&movie, report);
        }
        room = ByteSize::from_f64(room.as_f64() * 0.85);
    }
}

fn pictures_and_sound(mut measured: Measured, audio: Treatment, mut job: Job<'_>) -> Result<Fitted, Error> {
    let Some(source) = picture_source(&measured, &job) else {
        return Err(Error::corrupt("the video has no size"));
    };
    let duration = measured.span.duration().since_zero();
    let need = measured.sound_source().map(|source| SoundNeed {
        source,
        kept: measured.audio().filter(|_| audio == Treatment::Copy).map(|(_, survey)| survey.bytes),
    });
    let Some(stream) = measured.tracks.video.clone() else {
        return Err(Error::internal("the video is gone"));
    };
    let mut least = |plan: &VideoPlan| {
        let mut material = TrackMaterial::new(&mut measured.tracks, &stream, &job.fit.limits, source.span);
        video::least_bytes(&mut material, plan, job.context)
    };
    let (plan, choice) = plan_video(&source, need, duration, &job, &mut least)?;
    if measured.early.is_some() {
        return awaited::run(measured, &plan, choice, &source, job);
    }
    let lends = if let SoundChoice::Encode(plan) = choice { Some(plan) } else { None };
    let sound = match choice {
        SoundChoice::Silent => None,
        SoundChoice::Keep => match keep(&mut measured, &job, Treatment::Absent, Treatment::Copy)? {
            Some(Movie { audio: Some(track), .. }) => Some(track),
            _ => {
                let source = measured.sound_source().ok_or_else(|| Error::internal("the sound is gone"))?;
                let plan = budget::sound_beside_video(&source, job.fit.limit, duration);
                make_sound(&mut measured, &plan, &mut job)?.map(|sound| sound.track)
            }
        },
        SoundChoice::Encode(plan) => make_sound(&mut measured, &plan, &mut job)?.map(|sound| sound.track),
    };
    let loan =
        lends.zip(sound.as_ref()).and_then(|(plan, sound)| Loan::of(plan, track_bytes(sound), duration));
    let mut material = TrackMaterial::new(&mut measured.tracks, &stream, &job.fit.limits, source.span);
    let spare = loan.map_or(ByteSize::ZERO, |loan| loan.most());
    let beside = Beside { sound, awaited: None, spare };
    let mut made = make_video(&mut material, &plan, &source, beside, &job)?;
    if let Some(loan) = loan
        && !take_up(loan, &mut made, &mut measured, &mut job)?
    {
        let mut material = TrackMaterial::new(&mut measured.tracks, &stream, &job.fit.limits, source.span);
        let beside = Beside { sound: made.sound.take(), ..Beside::default() };
        made = make_video(&mut material, &plan, &source, beside, &job)?.after(&made);
    }
    made.finish(job)
}

/// Makes the sound once more, smaller by what the pictures took too much; whether all fits then.
pub(super) fn take_up(
    loan: Loan,
    made: &mut MadeVideo,
    measured: &mut Measured,
    job: &mut Job<'_>,
) -> Result<bool, Error> {
    for attempt in 0..LOANS {
        let over = made.size().saturating_sub(job.fit.limit);
        if over == ByteSize::ZERO {
            return Ok(true);
        }
        let plan = loan.plan(over, attempt);
        tracing::debug!(over = over.get(), bit_rate = plan.bit_rate.get(), "the sound is made smaller");
        // What was said of the sound when it was made first is not said again.
        let warnings = job.warnings.clone();
        let sound = make_sound(measured, &plan, job)?;
        job.warnings = warnings;
        if let Some(sound) = sound {
            made.sound = Some(sound.track);
        }
    }
    Ok(made.size() <= job.fit.limit)
}

/// How often sound is made again; an encoder that does not obey is not asked a third time.
const LOANS: u32 = 2;

/// Divides the limit and plans the pictures; with the plan, what happens to the sound.
///
/// When nothing fits, `least` is asked for the fewest bytes of a plan's pictures, where that is quickly told.
pub(crate) fn plan_video(
    source: &Pictured,
    sound: Option<SoundNeed>,
    duration: Duration,
    job: &Job<'_>,
    least: &mut dyn FnMut(&VideoPlan) -> Result<ByteSize, Error>,
) -> Result<(VideoPlan, SoundChoice), Error> {
    let ladder = Ladder::new(&source.picture);
    let planned_sound = sound.map(|need| PlannedAudio {
        packets: packets_at(48_000, duration),
        pacing: if need.kept.is_some() { Stts::Uneven } else { Stts::Even },
    });
    let container = |rung: &Rung| source.overhead(rung, duration, planned_sound);
    let needs = Needs {
        duration: duration.max(LEAST_DURATION),
        sound,
        ladder: &ladder,
        container: &container,
        picture_ceiling: source.ceiling,
    };
    let plan = |first_rung: Rung| VideoPlan {
        ladder: ladder.clone(),
        first_rung,
        orientation: source.orientation,
        interlaced: source.interlaced,
        even: source.even,
        span: source.span,
        source_frames: source.frames,
        shown: Arc::clone(&source.shown),
        trustworthy: source.trustworthy,
        bits_per_pixel: source.picture.bits_per_pixel,
        preset: job.fit.preset,
        limit: job.fit.limit,
        source_pixels: f64_of(source.picture.display.pixels()),
        display: ladder.largest(),
        source_ceiling: source.ceiling,
        early: source.early.clone(),
    };
    match divide(&needs, job.fit.limit) {
        Ok(division) => {
            tracing::debug!(?division, "the limit is divided");
            Ok((plan(division.rung), division.sound))
        }
        Err(usual) => {
            let last = ladder.last();
            let min_bytes = if source.frames / f64::from(last.divisor.max(1)) <= QUICK_FRAMES {
                let picture = least(&plan(last))?;
                least_limit(&needs, ByteSize::from_f64(picture.as_f64() * ENCODER_MARGIN))
            } else {
                usual
            };
            let seconds = duration.as_secs_f64().max(1.0);
            let what = format!("{seconds:.0} s of video need more for a watchable picture");
            Err(Error::CannotFit { limit: job.fit.limit, min_bytes, what })
        }
    }
}

/// Pictures that can be encoded at the smallest size to see what they need, rather than being guessed at.
const QUICK_FRAMES: f64 = 2000.0;
/// x264 gives slightly different sizes for the same pictures with another number of threads.
const ENCODER_MARGIN: f64 = 1.05;

/// A single picture lasts no time; bits a second would be absurd.
const LEAST_DURATION: Duration = Duration::from_millis(500);

/// What the planner must know of pictures, whatever they come from.
#[derive(Clone, Debug)]
pub(crate) struct Pictured {
    pub(crate) picture: PictureSource,
    pub(crate) orientation: crate::media::Orientation,
    pub(crate) interlaced: bool,
    pub(crate) even: bool,
    /// No slot of an even track is empty.
    pub(crate) unbroken: bool,
    /// The part of the span in which there are pictures.
    pub(crate) span: Span,
    /// Pictures in the span, about.
    pub(crate) frames: f64,
    pub(crate) shown: Arc<[Shown]>,
    /// Its times can be trusted.
    pub(crate) trustworthy: bool,
    pub(crate) ceiling: ByteSize,
    /// Set when pictures can be made before everything has arrived.
    pub(crate) early: Option<Early>,
}

impl Pictured {
    /// An upper bound of the container's own bytes with pictures at `rung`.
    pub(crate) fn overhead(&self, rung: &Rung, duration: Duration, audio: Option<PlannedAudio>) -> ByteSize {
        let frames = count(self.frames / f64::from(rung.divisor.max(1))).saturating_add(2);
        overhead_bound(&Planned {
            duration,
            video: Some(PlannedVideo {
                frames,
                // Scene cuts make key frames beside the regular ones.
                key_frames: frames / 20 + 4,
                pacing: if self.unbroken { Stts::Even } else { Stts::Uneven },
                reordered: true,
                avcc: PlannedVideo::AVCC_ALLOWANCE,
            }),
            audio,
        })
    }
}

/// Encoded pictures and their sound.
#[derive(Debug)]
pub(crate) struct MadeVideo {
    track: VideoTrack,
    pub(super) sound: Option<Track<AudioFormat>>,
    even: bool,
    preset: Preset,
    took: Duration,
}

/// What stands beside pictures.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    pub(crate) sound: Option<Track<AudioFormat>>,
    /// Sound that is made later.
    pub(crate) awaited: Option<AwaitedSound>,
    /// So many of its bytes can be given up in the end.
    pub(crate) spare: ByteSize,
}

/// Encodes pictures beside sound that is finished, or for which there must be room.
pub(crate) fn make_video(
    material: &mut dyn Material,
    plan: &VideoPlan,
    source: &Pictured,
    beside: Beside,
    job: &Job<'_>,
) -> Result<MadeVideo, Error> {
    let Beside { sound, awaited, spare } = beside;
    let began = job.enter(Stage::Video);
    let room = sound.as_ref().map(AwaitedSound::of).or(awaited);
    let sound_bytes = room.map_or(ByteSize::ZERO, |sound| sound.bytes);
    let planned_sound = room.map(|sound| sound.packets);
    let duration = source.span.duration().since_zero();
    let longest = room.map_or(duration, |sound| duration.max(sound.duration));
    let limit = job.fit.limit;
    let budget = |rung: &Rung| {
        budget::picture_bytes(limit, sound_bytes, source.overhead(rung, longest, planned_sound))
    };
    match video::encode(material, plan, &Room { budget: &budget, spare }, job.context) {
        Ok(track) => {
            Ok(MadeVideo { track, sound, even: plan.even, preset: plan.preset, took: began.elapsed() })
        }
        Err(Failure::Other(error)) => Err(error),
        Err(Failure::CannotFit { least }) => {
            let last = plan.ladder.last();
            let rest = sound_bytes.saturating_add(source.overhead(&last, longest, planned_sound));
            // With a higher limit sound gets a little more, too.
            let min_bytes = ByteSize::from_f64((least.as_f64() + rest.as_f64()) * 1.1);
            let what = "even the smallest picture has too much detail for it".to_owned();
            Err(Error::CannotFit { limit, min_bytes, what })
        }
    }
}

impl MadeVideo {
    /// Counts what an attempt before it took for nothing.
    pub(super) fn after(mut self, wasted: &Self) -> Self {
        let (now, before) = (&mut self.track, &wasted.track);
        now.frames_redone += before.frames_redone + u64::try_from(before.track.samples.len()).unwrap_or(0);
        now.frames_probed += before.frames_probed;
        now.repairs += before.repairs;
        now.damaged = now.damaged.max(before.damaged);
        now.spent.decode += before.spent.decode;
        now.spent.scale += before.spent.scale;
        now.spent.encode += before.spent.encode;
        now.spent.plan += before.spent.plan;
        self.took += wasted.took;
        self
    }

    /// Bytes of the file.
    pub(super) fn size(&self) -> ByteSize {
        mp4::size(&Movie { video: Some(self.track.track.clone()), audio: self.sound.clone() })
    }

    /// Writes the file.
    pub(crate) fn finish(self, mut job: Job<'_>) -> Result<Fitted, Error> {
        job.stages.video += self.took;
        job.stages.decode += self.track.spent.decode;
        job.stages.scale += self.track.spent.scale;
        job.stages.encode += self.track.spent.encode;
        job.stages.plan += self.track.spent.plan;
        job.warn_damaged(self.track.damaged);
        if self.track.not_tone_mapped {
            job.warn(Warning::NotToneMapped);
        }
        let mut report = job.report(Action::Transcode, OutputKind::Mp4);
        report.frame_rate = self.even.then_some(self.track.rung.frame_rate);
        report.crf = Some(self.track.crf);
        report.preset = Some(self.preset);
        report.frames_redone = self.track.frames_redone;
        report.frames_probed = self.track.frames_probed;
        report.repairs = self.track.repairs;
        report.predicted_video = Some(self.track.predicted);
        job.finish_movie(&Movie { video: Some(self.track.track), audio: self.sound }, report)
    }
}

/// What the planner must know of a picture track; `None` when it has no size.
pub(crate) fn picture_source(measured: &Measured, job: &Job<'_>) -> Option<Pictured> {
    let (stream, survey) = measured.video()?;
    let display = measured.tracks.display()?;
    let frame_rate = survey.frame_rate();
    let whole = survey.duration().seconds().max(1e-6);
    // The part of the request in which the track has pictures. A late first picture is held from the beginning.
    let span = Span { end: measured.span.end.min(survey.end).max(measured.span.start), ..measured.span };
    let shown = span.end.minus(span.start.max(survey.start)).seconds().clamp(0.0, whole);
    let part = if measured.span.starts_late || measured.span.ends_early { shown / whole } else { 1.0 };
    let packets = f64_of(survey.packets);
    let efficiency = budget::efficiency_over_h264(&stream.codec);
    let says_little = matches!(
        stream.codec.as_str(),
        "gif" | "apng" | "png" | "mjpeg" | "prores" | "rawvideo" | "theora" | "flv1" | "h263" | "mpeg1video"
    );
    let bits_per_pixel = (!says_little).then(|| {
        let pixels = f64_of(stream.coded.map_or(1, crate::units::Dimensions::pixels));
        survey.bytes.as_f64() * 8.0 * efficiency / 1.1 / (pixels * packets.max(1.0))
    });
    let source_bytes = ByteSize::from_f64(survey.bytes.as_f64() * part);
    let picture = PictureSource { display, frame_rate, bits_per_pixel, max_height: job.fit.max_height };
    Some(Pictured {
        early: measured.early.clone(),
        picture,
        orientation: stream.orientation,
        interlaced: stream.interlaced,
        // On the coarse grid of a slide show a picture could be half a slide off.
        even: survey.even && !measured.survey.jumped && frame_rate.as_f64() >= LEAST_EVEN_RATE,
        unbroken: survey.is_unbroken() && !measured.survey.jumped && survey.start <= measured.origin,
        span,
        frames: (packets * part).max(1.0),
        shown: survey.shown.as_slice().into(),
        trustworthy: !measured.survey.jumped && !measured.survey.cut_short && survey.damaged == 0,
        ceiling: budget::ceiling_of_source(source_bytes, efficiency),
    })
}

pub(super) fn make_sound(
    measured: &mut Measured,
    plan: &SoundPlan,
    job: &mut Job<'_>,
) -> Result<Option<SoundTrack>, Error> {
    let Some((stream, survey)) = measured.audio() else { return Ok(None) };
    let stream = stream.clone();
    let span = Span { end: measured.span.end.min(survey.end.plus(SOUND_TAIL)), ..measured.span };
    let began = job.enter(Stage::Audio);
    measured.rewind(job)?;
    let limits = &job.fit.limits;
    let made = sound::encode(&mut measured.tracks, &stream, plan, span, limits, &job.context.control);
    job.stages.audio += began.elapsed();
    let has_picture = measured.tracks.video.is_some();
    let sound = match made {
        Ok(sound) => sound,
        // A picture without its sound is better than nothing, as long as it is said.
        Err(Error::Unsupported { what } | Error::Corrupt { what }) if has_picture => {
            job.warn(Warning::AudioDropped { reason: what });
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    match &sound {
        Some(sound) => job.warn_damaged(sound.damaged),
        None => job.warn(Warning::AudioDropped { reason: "nothing of it can be decoded".into() }),
    }
    Ok(sound)
}

pub(super) fn sound_packets(plan: &SoundPlan, duration: Duration) -> u64 {
    packets_at(plan.sample_rate, duration)
}

/// AAC packets of 1024 samples, with those of priming and padding.
fn packets_at(sample_rate: u32, duration: Duration) -> u64 {
    count(duration.as_secs_f64() * f64::from(sample_rate) / 1024.0).saturating_add(4)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float to integer saturates")]
fn count(value: f64) -> u64 {
    value.ceil() as u64
}

#[allow(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
const fn f64_of(value: u64) -> f64 {
    value as f64
}

/// Frames a second from which slots are fine enough for the eye and the ear.
const LEAST_EVEN_RATE: f64 = 10.0;
/// Decoders may give a little more than the packets' times say.
const SOUND_TAIL: Timestamp = Timestamp::from_micros(100_000);
