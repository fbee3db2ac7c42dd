//! How far a job is, and the word to stop it: shared between the job's thread and its handle.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Waiting for a thread.
    Queued,
    /// Opening and looking at the input.
    Probe,
    /// Decoding to see that a kept stream is whole.
    Verify,
    /// Making the sound.
    Audio,
    /// Decoding, scaling and encoding pictures.
    Video,
    /// Writing the container.
    Mux,
    /// Finished, one way or the other.
    Done,
}

impl Stage {
    const ALL: [Self; 7] =
        [Self::Queued, Self::Probe, Self::Verify, Self::Audio, Self::Video, Self::Mux, Self::Done];

    /// The stage as a lower-case word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Probe => "probe",
            Self::Verify => "verify",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Mux => "mux",
            Self::Done => "done",
        }
    }
}

/// A snapshot of how far a job is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// What it is doing.
    pub stage: Stage,
    /// How much of the whole job is done, 0 to 1; never goes back.
    pub fraction: f32,
    /// Video frames encoded so far, those that are encoded again included.
    pub frames: u64,
    /// Seconds of video encoded per second of wall time in this stage; zero before the first.
    pub speed: f32,
}

/// Why a job must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// Somebody cancelled it.
    Cancelled,
    /// Its time is over.
    Deadline { allowed: Duration },
}

/// The two-way board of one job: the handle writes the wish to stop, the job writes its progress.
#[derive(Debug)]
pub(crate) struct Control {
    cancelled: AtomicU8,
    /// Set once, when work starts: when it must end, and how long that was.
    deadline: OnceLock<(Instant, Duration)>,
    stage: AtomicU8,
    /// Ten-thousandths.
    fraction: AtomicU32,
    frames: AtomicU64,
    /// Hundredths.
    speed: AtomicU32,
}

impl Control {
    pub(crate) const fn new() -> Self {
        Self {
            cancelled: AtomicU8::new(0),
            deadline: OnceLock::new(),
            stage: AtomicU8::new(0),
            fraction: AtomicU32::new(0),
            frames: AtomicU64::new(0),
            speed: AtomicU32::new(0),
        }
    }

    /// Starts the clock: the job must be over `allowed` from now. Only the first call counts.
    pub(crate) fn start_clock(&self, allowed: Duration) {
        // A deadline beyond what an Instant can hold is no deadline.
        if let Some(at) = Instant::now().checked_add(allowed) {
            let _ = self.deadline.set((at, allowed));
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline.get().map(|(at, _)| *at)
    }

    pub(crate) fn cancel(&self) {
        self.cancelled.store(1, Ordering::Relaxed);
    }

    /// Whether the job must stop; asked between packets and frames and inside blocking reads.
    pub(crate) fn stop(&self) -> Result<(), StopReason> {
        if self.cancelled.load(Ordering::Relaxed) != 0 {
            return Err(StopReason::Cancelled);
        }
        match self.deadline.get() {
            Some((at, allowed)) if Instant::now() >= *at => Err(StopReason::Deadline { allowed: *allowed }),
            _ => Ok(()),
        }
    }

    pub(crate) fn enter(&self, stage: Stage) {
        let index = Stage::ALL.iter().position(|s| *s == stage).unwrap_or(0);
        self.stage.store(u8::try_from(index).unwrap_or(0), Ordering::Relaxed);
    }

    /// Raises the fraction; lower values are ignored.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=1 just before"
    )]
    pub(crate) fn advance(&self, fraction: f64) {
        self.fraction.fetch_max((fraction.clamp(0.0, 1.0) * 10_000.0) as u32, Ordering::Relaxed);
    }

    pub(crate) fn count_frames(&self, more: u64) {
        self.frames.fetch_add(more, Ordering::Relaxed);
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float to integer saturates")]
    pub(crate) fn set_speed(&self, speed: f64) {
        self.speed.store((speed * 100.0) as u32, Ordering::Relaxed);
    }

    #[allow(clippy::cast_precision_loss, reason = "small numbers for people")]
    pub(crate) fn progress(&self) -> Progress {
        let stage = usize::from(self.stage.load(Ordering::Relaxed));
        Progress {
            stage: Stage::ALL.get(stage).copied().unwrap_or(Stage::Queued),
            fraction: self.fraction.load(Ordering::Relaxed) as f32 / 10_000.0,
            frames: self.frames.load(Ordering::Relaxed),
            speed: self.speed.load(Ordering::Relaxed) as f32 / 100.0,
        }
    }
}
