//! Pictures first, and the sound when it has arrived.

use std::time::Duration;

use crate::error::Error;
use crate::fit::Verify;
use crate::mp4::{AudioFormat, Pacing as Stts, PlannedAudio, Track};
use crate::pipeline::finish::{Job, track_bytes, track_duration};
use crate::pipeline::material::TrackMaterial;
use crate::pipeline::measure::Measured;
use crate::pipeline::tracks::keep;
use crate::pipeline::transcode::{Beside, Pictured, make_sound, make_video, sound_packets, take_up};
use crate::pipeline::verify::{self, Share};
use crate::pipeline::video::VideoPlan;
use crate::planner::budget::{self, Loan};
use crate::planner::division::SoundChoice;
use crate::planner::route::Treatment;
use crate::progress::Stage;
use crate::report::Fitted;
use crate::units::ByteSize;

/// Sound that leaves only its room to be known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AwaitedSound {
    /// Of its packets, at most.
    pub(super) bytes: ByteSize,
    pub(super) packets: PlannedAudio,
    pub(super) duration: Duration,
}

impl AwaitedSound {
    pub(super) fn of(track: &Track<AudioFormat>) -> Self {
        let packets = PlannedAudio {
            packets: u64::try_from(track.samples.len()).unwrap_or(u64::MAX),
            pacing: Stts::of(&track.samples),
        };
        Self { bytes: track_bytes(track), packets, duration: track_duration(track) }
    }
}

/// While the input arrives there are pictures to be made, and its sound is whole at the end only: the pictures leave
/// room for it, and it is made or kept when they are finished.
pub(super) fn run(
    mut measured: Measured,
    plan: &VideoPlan,
    choice: SoundChoice,
    source: &Pictured,
    mut job: Job<'_>,
) -> Result<Fitted, Error> {
    let Some(stream) = measured.tracks.video.clone() else {
        return Err(Error::internal("the video is gone"));
    };
    let duration = measured.span.duration().since_zero();
    let awaited = awaited_sound(&measured, choice, duration);
    let spare = match (choice, &awaited) {
        (SoundChoice::Encode(plan), Some(awaited)) => Loan::of(plan, awaited.bytes, duration),
        _ => None,
    };
    let spare = spare.map_or(ByteSize::ZERO, |loan| loan.most());
    let limits = job.fit.limits;
    let mut material = TrackMaterial::new(&mut measured.tracks, &stream, &limits, source.span);
    let beside = Beside { sound: None, awaited, spare };
    let mut made = make_video(&mut material, plan, source, beside, &job)?;
    if choice == SoundChoice::Keep {
        made.sound = kept_sound(&mut measured, &mut job)?;
    }
    let encoded = match (choice, measured.sound_source(), awaited) {
        (SoundChoice::Encode(plan), _, _) => Some(plan),
        // It is no such sound after all: what it would have taken is what there is.
        (SoundChoice::Keep, Some(source), Some(awaited)) if made.sound.is_none() => {
            let within = budget::sound_within(&source, awaited.bytes, duration);
            Some(within.unwrap_or_else(|| budget::least_sound(&source)))
        }
        _ => None,
    };
    if let Some(plan) = encoded {
        made.sound = make_sound(&mut measured, &plan, &mut job)?.map(|sound| sound.track);
    }
    let owing = encoded.zip(made.sound.as_ref()).map(|(plan, sound)| Loan::owed(plan, track_bytes(sound)));
    let fits = match owing {
        Some(loan) => take_up(loan, &mut made, &mut measured, &mut job)?,
        None => made.size() <= job.fit.limit,
    };
    if !fits {
        let mut material = TrackMaterial::new(&mut measured.tracks, &stream, &limits, source.span);
        let beside = Beside { sound: made.sound.take(), ..Beside::default() };
        made = make_video(&mut material, plan, source, beside, &job)?.after(&made);
    }
    made.finish(job)
}

/// What the sound will take at most, by the index or by its plan.
fn awaited_sound(measured: &Measured, choice: SoundChoice, duration: Duration) -> Option<AwaitedSound> {
    let (_, survey) = measured.audio()?;
    match choice {
        SoundChoice::Silent => None,
        SoundChoice::Keep => Some(AwaitedSound {
            bytes: survey.bytes,
            packets: PlannedAudio {
                packets: survey.packets.saturating_add(2),
                pacing: if survey.is_unbroken() { Stts::Even } else { Stts::Uneven },
            },
            duration: survey.duration().since_zero(),
        }),
        SoundChoice::Encode(plan) => Some(AwaitedSound {
            bytes: plan.bytes(duration),
            packets: PlannedAudio { packets: sound_packets(&plan, duration), pacing: Stts::Even },
            duration,
        }),
    }
}

/// The sound as it is, when it is whole.
fn kept_sound(measured: &mut Measured, job: &mut Job<'_>) -> Result<Option<Track<AudioFormat>>, Error> {
    let Some((stream, _)) = measured.audio() else { return Ok(None) };
    let stream = stream.clone();
    if job.fit.verify == Verify::Decode {
        let began = job.enter(Stage::Verify);
        measured.rewind(job)?;
        let share = Share { from: 0.96, to: 0.97, duration: measured.span.duration() };
        let (limits, control) = (&job.fit.limits, &job.context.control);
        let whole = verify::is_whole(&mut measured.tracks, &stream, share, limits, control)?;
        job.stages.verify += began.elapsed();
        if !whole {
            return Ok(None);
        }
    }
    let kept = keep(measured, job, Treatment::Absent, Treatment::Copy)?;
    Ok(kept.and_then(|movie| movie.audio))
}
