//! Measures an opened container: which tracks, which part, where the presentation begins, what may be kept.

use crate::error::Error;
use crate::fit::Wanted;
use crate::libav::StreamFacts;
use crate::limits::LimitKind;
use crate::mp4::{Pacing as Stts, Planned, PlannedAudio, PlannedVideo, overhead_bound};
use crate::pipeline::describe::{MOST_FRAMES_A_SECOND, sound_hindrance};
use crate::pipeline::early::Early;
use crate::pipeline::finish::Job;
use crate::pipeline::inspect::Tracks;
use crate::pipeline::listen;
use crate::pipeline::material::Span;
use crate::pipeline::survey::{Survey, TrackSurvey, survey};
use crate::planner::budget::SoundSource;
use crate::progress::Stage;
use crate::report::Warning;
use crate::units::{ByteSize, Timestamp};

/// An input that was measured.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) tracks: Tracks,
    pub(crate) survey: Survey,
    /// The moment of the source that becomes the presentation's beginning.
    pub(crate) origin: Timestamp,
    /// The part that is wanted.
    pub(crate) span: Span,
    /// Set when pictures can be made before everything has arrived.
    pub(crate) early: Option<Early>,
}

/// Measures `tracks`.
pub(crate) fn measure(mut tracks: Tracks, job: &mut Job<'_>) -> Result<Measured, Error> {
    let began = job.enter(Stage::Probe);
    let limits = &job.fit.limits;
    listen::prefer_audible(&mut tracks, limits, &job.context.control)?;
    if job.fit.wanted == Wanted::AudioOnly {
        if tracks.sounds.is_empty() {
            return Err(Error::unsupported(tracks.unknown_sound.as_ref().map_or_else(
                || "the input has no sound".to_owned(),
                |codec| format!("the codec {codec} of the sound is not supported"),
            )));
        }
        tracks.video = None;
    } else if let Some(codec) = &tracks.unknown_video {
        return Err(Error::unsupported(format!("the codec {codec} of the picture is not supported")));
    }
    tracks.rewind(limits)?;
    let survey = survey(&mut tracks, limits)?;
    let empty = |track: Option<&TrackSurvey>| track.is_none_or(|track| track.packets == 0);
    if empty(survey.video.as_ref()) && tracks.video.take().is_some() {
        job.warn(Warning::VideoDropped { reason: "the file holds nothing of it".to_owned() });
    }
    let wants_sound = job.fit.wanted != Wanted::Gif;
    if empty(survey.audio.as_ref()) && !std::mem::take(&mut tracks.sounds).is_empty() && wants_sound {
        job.warn(Warning::AudioDropped { reason: "the file holds nothing of it".to_owned() });
    }
    if let Some(codec) = tracks.unknown_sound.as_ref().filter(|_| wants_sound) {
        job.warn(Warning::AudioDropped { reason: format!("its codec {codec} is not supported") });
    }
    if survey.cut_short {
        job.warn(Warning::CutShort);
    }
    let video = survey.video.as_ref().filter(|_| tracks.video.is_some());
    let audio = survey.audio.as_ref().filter(|_| !tracks.sounds.is_empty());
    let origin = origin(video, audio);
    let span = span(video, audio, origin, job)?;
    if span.duration() > Timestamp::from(limits.duration) {
        let found = span.duration().seconds_up();
        return Err(Error::TooLarge {
            limit: LimitKind::Duration,
            found,
            allowed: limits.duration.as_secs(),
        });
    }
    job.stages.probe += began.elapsed();
    let early = video.and_then(|video| Early::of(tracks.arrival.as_ref(), video));
    Ok(Measured { tracks, survey, origin, span, early })
}

/// The presentation begins with the picture. Sound that begins clearly earlier is worth keeping, with the first
/// picture held; a little earlier is how containers round and encoders prime.
fn origin(video: Option<&TrackSurvey>, audio: Option<&TrackSurvey>) -> Timestamp {
    match (video, audio) {
        (Some(video), Some(audio)) if video.start.minus(audio.start) > LEADING_SOUND => audio.start,
        (Some(video), _) => video.start,
        (None, Some(audio)) => audio.start.max(Timestamp::ZERO),
        (None, None) => Timestamp::ZERO,
    }
}

fn span(
    video: Option<&TrackSurvey>,
    audio: Option<&TrackSurvey>,
    origin: Timestamp,
    job: &Job<'_>,
) -> Result<Span, Error> {
    let end = video.iter().chain(&audio).map(|track| track.end).max().unwrap_or(origin);
    let start = job.fit.start.map_or(origin, |start| origin.plus(start.into()));
    let wanted_end = job.fit.end.map(|end| origin.plus(end.into()));
    let ends_early = wanted_end.is_some_and(|wanted| wanted < end);
    let span = Span {
        start,
        end: wanted_end.map_or(end, |wanted| wanted.min(end)),
        starts_late: start > origin,
        ends_early,
    };
    if (span.starts_late || ends_early) && span.duration() <= Timestamp::ZERO {
        let seconds = end.minus(origin).seconds();
        return Err(Error::unsupported(format!(
            "the part that is asked for is empty: the input lasts {seconds:.1} s"
        )));
    }
    Ok(span)
}

impl Measured {
    /// The picture track and what was measured of it.
    pub(crate) fn video(&self) -> Option<(&StreamFacts, &TrackSurvey)> {
        self.tracks.video.as_ref().zip(self.survey.video.as_ref())
    }

    /// The sound track and what was measured of it.
    pub(crate) fn audio(&self) -> Option<(&StreamFacts, &TrackSurvey)> {
        self.tracks.sounds.first().zip(self.survey.audio.as_ref())
    }

    /// What a budget for sound depends on.
    pub(crate) fn sound_source(&self) -> Option<SoundSource> {
        let (stream, survey) = self.audio()?;
        let lossy = !(stream.codec.starts_with("pcm_") || stream.codec == "flac" || stream.codec == "alac");
        Some(SoundSource {
            channels: stream.channels.max(1),
            sample_rate: stream.sample_rate.max(8000),
            bit_rate: lossy.then(|| survey.bit_rate()).filter(|rate| rate.get() > 0),
        })
    }

    /// An upper bound of the container's bytes when the tracks are kept.
    pub(crate) fn copy_overhead(&self) -> ByteSize {
        // Only an mp4's own ticks are exactly even; other containers round theirs.
        let exact = self.tracks.layout.is_some();
        let pacing =
            |survey: &TrackSurvey| if exact && survey.is_unbroken() { Stts::Even } else { Stts::Uneven };
        overhead_bound(&Planned {
            duration: self.span.duration().since_zero(),
            video: self.video().map(|(_, survey)| PlannedVideo {
                frames: survey.packets,
                key_frames: survey.packets / 12 + 2,
                pacing: pacing(survey),
                reordered: true,
                avcc: PlannedVideo::AVCC_ALLOWANCE,
            }),
            audio: self
                .audio()
                .map(|(_, survey)| PlannedAudio { packets: survey.packets + 2, pacing: pacing(survey) }),
        })
    }

    /// Goes back to the beginning.
    pub(crate) fn rewind(&mut self, job: &Job<'_>) -> Result<(), Error> {
        self.tracks.rewind(&job.fit.limits)
    }

    /// Whether the picture track may be copied, as far as its headers and packets tell.
    pub(crate) fn video_is_keepable(&self) -> bool {
        let Some((_, survey)) = self.video() else { return false };
        let rate = survey.frame_rate().as_f64();
        self.tracks.video_hindrance().is_none()
            && survey.hidden == 0
            && survey.damaged == 0
            && !self.survey.cut_short
            && !self.survey.jumped
            && survey.start <= self.origin
            && rate <= MOST_FRAMES_A_SECOND
    }

    /// Whether the sound track may be copied, as far as its headers and packets tell.
    pub(crate) fn audio_is_keepable(&self) -> bool {
        let Some((stream, survey)) = self.audio() else { return false };
        let gap = Timestamp::from_micros(survey.step.micros().saturating_mul(3).saturating_add(50_000));
        sound_hindrance(stream).is_none()
            && survey.damaged == 0
            && !self.survey.cut_short
            && !self.survey.jumped
            && survey.longest_step <= gap
            && survey.start.minus(self.origin) <= LATE_SOUND
    }
}

/// Sound that begins this much before the picture is kept, with the first picture held.
const LEADING_SOUND: Timestamp = Timestamp::from_micros(250_000);
/// Sound that begins this much after the picture may be kept; more is filled with silence.
const LATE_SOUND: Timestamp = Timestamp::from_micros(45_000);
