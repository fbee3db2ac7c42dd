//! Makes a container with tracks fit: measure, choose the route, keep or encode each track, write.

use std::time::Duration;

use crate::error::Error;
use crate::fit::{Verify, Wanted};
use crate::mp4::{self, Movie};
use crate::pipeline::copy::{self, Wish};
use crate::pipeline::finish::{Job, movie_kind};
use crate::pipeline::inspect::{Tracks, unreadable};
use crate::pipeline::measure::{Measured, measure};
use crate::pipeline::verify::{self, Share};
use crate::pipeline::{gif, transcode};
use crate::planner::budget::SoundSource;
use crate::planner::route::{Route, Situation, TrackState, Treatment, route};
use crate::progress::Stage;
use crate::report::{Action, Fitted, OutputKind};
use crate::units::{BitRate, ByteSize};

/// Makes `tracks` fit.
pub(crate) fn run(tracks: Tracks, mut job: Job<'_>) -> Result<Fitted, Error> {
    let mut measured = measure(tracks, &mut job)?;
    if job.fit.wanted == Wanted::Gif {
        return gif::from_tracks(measured, job);
    }
    let mut situation = situation(&measured, &job);
    let mut way = route(&situation);
    // What is encoded while it arrives is not held up by the sound, which is looked at when it is there.
    let early = matches!(way, Route::Transcode { video: Treatment::Encode, .. }) && measured.early.is_some();
    if !early {
        measured.early = None;
    }
    if job.fit.verify == Verify::Decode && !early {
        let whole = verify_kept(&mut measured, way, &mut job)?;
        if !whole.0 {
            situation.video = situation.video.map(|track| TrackState { keepable: false, ..track });
        }
        if !whole.1 {
            situation.audio = situation.audio.map(|track| TrackState { keepable: false, ..track });
        }
        way = route(&situation);
    }
    tracing::debug!(?way, ?situation, "the route is chosen");
    match way {
        Route::Pass => pass(measured, job),
        Route::Remux => match keep(&mut measured, &job, Treatment::Copy, Treatment::Copy)? {
            Some(movie) if mp4::size(&movie) <= job.fit.limit => {
                let kind = movie_kind(movie.video.as_ref(), movie.audio.as_ref());
                let report = job.report(Action::Remux, kind);
                job.finish_movie(&movie, report)
            }
            // The streams are not what the container said: nothing of them is kept.
            _ => transcode::run(measured, Treatment::Encode, Treatment::Encode, job),
        },
        Route::Transcode { video, audio } => transcode::run(measured, video, audio, job),
    }
}

fn situation(measured: &Measured, job: &Job<'_>) -> Situation {
    let tracks = &measured.tracks;
    let display = tracks.display();
    let low_enough = job.fit.max_height.is_none_or(|most| display.is_none_or(|size| size.height <= most));
    let video = measured.video().map(|(_, survey)| TrackState {
        keepable: low_enough && measured.video_is_keepable(),
        bytes: survey.bytes,
    });
    let audio = measured
        .audio()
        .map(|(_, survey)| TrackState { keepable: measured.audio_is_keepable(), bytes: survey.bytes });
    let changed = measured.span.starts_late || measured.span.ends_early;
    let sound_source = measured.sound_source();
    let duration = measured.span.duration().since_zero();
    Situation {
        limit: job.fit.limit,
        input: Some(tracks.bytes),
        plays_inline: job.fit.wanted == Wanted::Natural && tracks.describe().plays_inline,
        changed,
        video,
        audio,
        container: measured.copy_overhead(),
        least_audio: sound_source
            .map_or(ByteSize::ZERO, |source| least_sound_beside_kept_video(&source, duration)),
    }
}

/// Beside a picture that is kept, sound must stay good; else the picture is encoded a little smaller instead.
fn least_sound_beside_kept_video(source: &SoundSource, duration: Duration) -> ByteSize {
    let wished = BitRate::kilobits(64);
    let rate = source.bit_rate.map_or(wished, |own| own.min(wished));
    rate.bytes_in(duration).saturating_add(ByteSize::new(1024))
}

/// Decodes what the route keeps; whether picture and sound are whole.
fn verify_kept(measured: &mut Measured, way: Route, job: &mut Job<'_>) -> Result<(bool, bool), Error> {
    let (video, audio) = match way {
        Route::Pass | Route::Remux => (true, true),
        Route::Transcode { video, audio } => (video == Treatment::Copy, audio == Treatment::Copy),
    };
    let began = job.enter(Stage::Verify);
    let mut whole = [true, true];
    let duration = measured.span.duration();
    let streams = [
        measured.tracks.video.clone().filter(|_| video),
        measured.tracks.sounds.first().cloned().filter(|_| audio),
    ];
    for (number, stream) in streams.into_iter().enumerate() {
        let Some(stream) = stream else { continue };
        measured.rewind(job)?;
        let share = if number == 0 {
            Share { from: 0.0, to: 0.04, duration }
        } else {
            Share { from: 0.04, to: 0.05, duration }
        };
        let control = &job.context.control;
        let found = verify::is_whole(&mut measured.tracks, &stream, share, &job.fit.limits, control)?;
        if let Some(slot) = whole.get_mut(number) {
            *slot = found;
        }
    }
    job.stages.verify += began.elapsed();
    let [video, audio] = whole;
    Ok((video, audio))
}

fn pass(mut measured: Measured, job: Job<'_>) -> Result<Fitted, Error> {
    let kind = if measured.tracks.video.is_some() { OutputKind::Mp4 } else { OutputKind::M4a };
    let mut report = job.report(Action::Pass, kind);
    report.duration = measured.span.duration().since_zero();
    if let Some((_, survey)) = measured.video() {
        report.dimensions = measured.tracks.display();
        report.frames = survey.packets;
        report.frame_rate = Some(survey.frame_rate());
        report.video_rate = Some(survey.bit_rate());
    }
    report.audio_rate = measured.audio().map(|(_, survey)| survey.bit_rate());
    let size = measured.tracks.bytes;
    let control = job.context.control.clone();
    let bytes = measured.tracks.input.read_all(size).map_err(|cause| unreadable(cause, &control))?;
    job.finish(bytes, report)
}

/// Keeps the tracks as they are; `None` when they are not what the container says.
pub(crate) fn keep(
    measured: &mut Measured,
    job: &Job<'_>,
    video: Treatment,
    audio: Treatment,
) -> Result<Option<Movie>, Error> {
    measured.rewind(job)?;
    let (video_stream, sound_stream) =
        (measured.tracks.video.clone(), measured.tracks.sounds.first().cloned());
    let wish = Wish {
        video: video_stream.as_ref().filter(|_| video == Treatment::Copy),
        audio: sound_stream.as_ref().filter(|_| audio == Treatment::Copy),
        origin: measured.origin,
    };
    match copy::copy(&mut measured.tracks, wish) {
        Ok(kept) => Ok(Some(Movie { video: kept.video, audio: kept.audio.map(|sound| sound.track) })),
        Err(Error::Corrupt { what }) => {
            tracing::debug!(what, "a track cannot be kept");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
