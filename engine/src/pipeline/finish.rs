//! Turns finished tracks or pictures into the result with its report.

use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::error::Error;
use crate::fit::Fit;
use crate::mp4::{self, AudioFormat, Movie, Track, VideoFormat};
use crate::pipeline::JobContext;
use crate::progress::Stage;
use crate::report::{Action, Fitted, OutputKind, Report, StageTimes, Warning};
use crate::units::{ByteSize, FrameRate};

/// What a job carries along from its first step to its report.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) fit: &'a Fit,
    pub(crate) context: &'a JobContext,
    pub(crate) input_bytes: ByteSize,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) stages: StageTimes,
    pub(crate) began: Instant,
    /// Processor time of the process when the job began.
    pub(crate) cpu_before: Duration,
}

impl Job<'_> {
    /// Enters a stage; gives the moment, to measure it.
    pub(crate) fn enter(&self, stage: Stage) -> Instant {
        self.context.control.enter(stage);
        Instant::now()
    }

    /// Adds a warning once.
    pub(crate) fn warn(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    pub(crate) fn warn_damaged(&mut self, count: u64) {
        if count == 0 {
            return;
        }
        for warning in &mut self.warnings {
            if let Warning::Damaged { count: before } = warning {
                *before = before.saturating_add(count);
                return;
            }
        }
        self.warnings.push(Warning::Damaged { count });
    }

    /// A report with nothing but what every result has.
    pub(crate) fn report(&self, action: Action, kind: OutputKind) -> Report {
        Report {
            action,
            kind,
            bytes: ByteSize::ZERO,
            limit: self.fit.limit,
            input_bytes: self.input_bytes,
            dimensions: None,
            frame_rate: None,
            duration: Duration::ZERO,
            video_rate: None,
            audio_rate: None,
            preset: None,
            crf: None,
            frames: 0,
            frames_redone: 0,
            frames_probed: 0,
            repairs: 0,
            predicted_video: None,
            video_bytes: ByteSize::ZERO,
            warnings: Vec::new(),
            wall: Duration::ZERO,
            cpu: Duration::ZERO,
            stages: StageTimes::default(),
        }
    }

    /// The result: checked against the limit to the byte.
    pub(crate) fn finish(self, bytes: Bytes, report: Report) -> Result<Fitted, Error> {
        self.finish_pieces(vec![bytes], report)
    }

    fn finish_pieces(self, pieces: Vec<Bytes>, mut report: Report) -> Result<Fitted, Error> {
        report.bytes =
            pieces.iter().fold(ByteSize::ZERO, |sum, piece| sum.saturating_add(ByteSize::of(piece)));
        if report.bytes > self.fit.limit {
            // The planner left room for everything; this is the last guard of the promise.
            return Err(Error::internal(format!(
                "the result has {} bytes, allowed are {}",
                report.bytes.get(),
                self.fit.limit.get()
            )));
        }
        report.warnings = self.warnings;
        report.stages = self.stages;
        report.wall = self.began.elapsed();
        report.cpu = cpu_time().saturating_sub(self.cpu_before);
        self.context.control.advance(1.0);
        Ok(Fitted::new(pieces, report))
    }

    /// Writes an mp4 and reports on its tracks.
    pub(crate) fn finish_movie(mut self, movie: &Movie, mut report: Report) -> Result<Fitted, Error> {
        let began = self.enter(Stage::Mux);
        let pieces = mp4::pieces(movie)?;
        self.stages.mux += began.elapsed();
        let mut longest = Duration::ZERO;
        if let Some(track) = &movie.video {
            let duration = track_duration(track);
            longest = longest.max(duration);
            report.video_bytes = track_bytes(track);
            report.video_rate = Some(report.video_bytes.over(duration));
            report.frames = u64::try_from(track.samples.len()).unwrap_or(u64::MAX);
            report.dimensions = Some(track.format.dimensions);
            report.frame_rate = report.frame_rate.or_else(|| average_rate(track, duration));
        }
        if let Some(track) = &movie.audio {
            let duration = track_duration(track);
            longest = longest.max(duration);
            report.audio_rate = Some(track_bytes(track).over(duration));
        }
        report.duration = longest;
        self.finish_pieces(pieces, report)
    }
}

/// Processor time of the whole process so far; zero where the system does not tell.
#[cfg(unix)]
pub(crate) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Processor time of the whole process so far; zero where the system does not tell.
#[cfg(not(unix))]
pub(crate) const fn cpu_time() -> Duration {
    Duration::ZERO
}

/// From the presentation's beginning to the track's end.
pub(crate) fn track_duration<F>(track: &Track<F>) -> Duration {
    let end = track.samples.iter().map(|sample| sample.pts.saturating_add(i64::from(sample.duration))).max();
    let ticks = u64::try_from(end.unwrap_or(0)).unwrap_or(0);
    let micros = u128::from(ticks) * 1_000_000 / u128::from(track.timescale.max(1));
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// The bytes of a track's samples.
pub(crate) fn track_bytes<F>(track: &Track<F>) -> ByteSize {
    ByteSize::new(track.samples.iter().map(|sample| ByteSize::of(&sample.data).get()).sum())
}

fn average_rate(track: &Track<VideoFormat>, duration: Duration) -> Option<FrameRate> {
    let millis = u32::try_from(duration.as_millis()).ok()?;
    FrameRate::new(u32::try_from(track.samples.len()).ok()?.checked_mul(1000)?, millis)
}

/// The kind of file that tracks make.
pub(crate) const fn movie_kind(
    video: Option<&Track<VideoFormat>>,
    _audio: Option<&Track<AudioFormat>>,
) -> OutputKind {
    if video.is_some() { OutputKind::Mp4 } else { OutputKind::M4a }
}
