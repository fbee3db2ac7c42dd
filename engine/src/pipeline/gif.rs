//! Makes a GIF: smaller and with fewer frames until it fits.

use std::time::Instant;

use bytes::Bytes;
use gif::{Encoder as GifEncoder, Frame as GifFrame, Repeat};

use crate::error::Error;
use crate::fit::{Fit, Verify};
use crate::libav::{self, PixelTarget};
use crate::picture;
use crate::pipeline::JobContext;
use crate::pipeline::finish::Job;
use crate::pipeline::inspect::{PictureFile, open_pictures};
use crate::pipeline::material::{Material, TrackMaterial};
use crate::pipeline::measure::Measured;
use crate::pipeline::pacing::Pacing;
use crate::pipeline::pictures::{Pictures, Treatment};
use crate::pipeline::transcode::{Pictured, picture_source};
use crate::pipeline::verify::{self, Share};
use crate::planner::animation::{GifSize, first, last, next};
use crate::progress::Stage;
use crate::report::{Action, Fitted, OutputKind};
use crate::units::{ByteSize, Dimensions, Timestamp};

/// A finished GIF.
pub(crate) struct Made {
    bytes: Bytes,
    size: GifSize,
    frames: u64,
    redone: u64,
    damaged: u64,
    duration: Timestamp,
    took: std::time::Duration,
}

/// A GIF that fits as it is, without its metadata; `None` when something must change.
pub(crate) fn keep(file: &PictureFile, fit: &Fit, context: &JobContext) -> Result<Option<Bytes>, Error> {
    let cut = fit.start.is_some() || fit.end.is_some();
    let low_enough = fit.max_height.is_none_or(|height| file.facts.dimensions.height <= height);
    if cut || !low_enough || !file.facts.whole {
        return Ok(None);
    }
    let bytes = picture::strip(file.container, &file.bytes)?;
    if ByteSize::of(&bytes) > fit.limit {
        return Ok(None);
    }
    if fit.verify == Verify::Decode {
        let control = &context.control;
        let mut tracks = open_pictures(file, libav::Pictures::All, &fit.limits, control)?;
        let Some(stream) = tracks.video.clone() else { return Ok(None) };
        let share = Share { from: 0.0, to: 0.5, duration: Timestamp::from_seconds(60.0) };
        if !verify::is_whole(&mut tracks, &stream, share, &fit.limits, control)? {
            return Ok(None);
        }
    }
    Ok(Some(bytes))
}

/// The result for a GIF that is kept.
pub(crate) fn finish_kept(file: &PictureFile, bytes: Bytes, job: Job<'_>) -> Result<Fitted, Error> {
    let delays = picture::frame_delays(file.container, &file.bytes)?;
    let action = if file.facts.has_metadata { Action::Remux } else { Action::Pass };
    let mut report = job.report(action, OutputKind::Gif);
    report.dimensions = Some(file.facts.dimensions);
    report.frames = u64::try_from(delays.len()).unwrap_or(u64::MAX);
    report.duration = delays.iter().sum();
    job.finish(bytes, report)
}

/// Makes a GIF of a video track.
pub(crate) fn from_tracks(mut measured: Measured, job: Job<'_>) -> Result<Fitted, Error> {
    let Some(source) = picture_source(&measured, &job) else {
        return Err(Error::unsupported("the input has no pictures to make a GIF of"));
    };
    let Some(stream) = measured.tracks.video.clone() else {
        return Err(Error::unsupported("the input has no pictures to make a GIF of"));
    };
    let mut material = TrackMaterial::new(&mut measured.tracks, &stream, &job.fit.limits, source.span);
    let made = encode(&mut material, &source, &job)?;
    finish(made, job)
}

/// The result for a GIF that was made.
pub(crate) fn finish(made: Made, mut job: Job<'_>) -> Result<Fitted, Error> {
    job.warn_damaged(made.damaged);
    job.stages.video += made.took;
    let mut report = job.report(Action::Transcode, OutputKind::Gif);
    report.dimensions = Some(made.size.dimensions);
    report.frames = made.frames;
    report.frames_redone = made.redone;
    report.duration = made.duration.since_zero();
    job.finish(made.bytes, report)
}

/// Encodes until the size is right.
pub(crate) fn encode(material: &mut dyn Material, source: &Pictured, job: &Job<'_>) -> Result<Made, Error> {
    let began = job.enter(Stage::Video);
    let mut size = Some(first(&source.picture));
    let mut redone = 0;
    while let Some(now) = size {
        // Far above the limit there is no use in going on: what is there tells how much smaller it must be.
        let enough = ByteSize::new(job.fit.limit.get().saturating_mul(4));
        let (bytes, frames, damaged) = encode_once(material, source, now, enough, job)?;
        if frames == 0 {
            return Err(Error::corrupt("no picture can be decoded: the file is damaged"));
        }
        let got = ByteSize::of(&bytes);
        if got <= job.fit.limit {
            let duration = source.span.duration();
            let took = began.elapsed();
            return Ok(Made { bytes: bytes.into(), size: now, frames, redone, damaged, duration, took });
        }
        redone += frames;
        size = next(&source.picture, &now, got, job.fit.limit);
    }
    // The smallest GIF as a whole tells which limit would work.
    let smallest = last(&source.picture);
    let min_bytes = ByteSize::of(&encode_once(material, source, smallest, ByteSize::new(u64::MAX), job)?.0);
    Err(Error::CannotFit {
        limit: job.fit.limit,
        min_bytes,
        what: format!("a GIF of {:.1} s needs more", source.span.duration().seconds()),
    })
}

fn encode_once(
    material: &mut dyn Material,
    source: &Pictured,
    size: GifSize,
    enough: ByteSize,
    job: &Job<'_>,
) -> Result<(Vec<u8>, u64, u64), Error> {
    let treatment = Treatment {
        target: size.dimensions,
        orientation: source.orientation,
        interlaced: source.interlaced,
        pixels: PixelTarget::Rgba,
        pacing: Pacing::Uneven { least: Timestamp::from_seconds(0.97 / size.frames_a_second) },
        span: source.span,
    };
    let mut pictures = Pictures::new(material.start()?, treatment);
    let mut writer = Writer::new(size.dimensions)?;
    let clock = treatment.pacing.clock().as_f64();
    let whole = source.span.duration().seconds().max(0.001);
    let began = Instant::now();
    while let Some(frame) = pictures.next()? {
        job.context.control.stop()?;
        #[allow(clippy::cast_precision_loss, reason = "ticks of 1/600 s")]
        let seconds = frame.pts().map_or(0.0, |ticks| ticks.micros() as f64 / clock);
        let pixels = frame.to_rgba().ok_or_else(|| Error::internal("a picture has no pixels"))?;
        writer.add(pixels, seconds)?;
        job.context.control.count_frames(1);
        job.context.control.advance(0.9 * (seconds / whole));
        job.context.control.set_speed(seconds / began.elapsed().as_secs_f64().max(0.001));
        if writer.size() > enough {
            break;
        }
    }
    let damaged = pictures.damaged();
    let (bytes, frames) = writer.finish(source.span.duration().seconds())?;
    Ok((bytes, frames, damaged))
}

/// Writes frames, each only where it differs from the one before.
struct Writer {
    encoder: GifEncoder<Vec<u8>>,
    width: u16,
    height: u16,
    /// The frame whose length is not known yet.
    waiting: Option<(Vec<u8>, f64)>,
    shown: Vec<u8>,
    frames: u64,
    /// Hundredths written so far, so that rounding does not add up.
    written: u64,
}

impl Writer {
    fn new(size: Dimensions) -> Result<Self, Error> {
        let side = |length: u32| {
            u16::try_from(length).map_err(|_| Error::internal("a GIF has at most 65,535 pixels on a side"))
        };
        let (width, height) = (side(size.width)?, side(size.height)?);
        let mut encoder = GifEncoder::new(Vec::new(), width, height, &[]).map_err(unwritable)?;
        encoder.set_repeat(Repeat::Infinite).map_err(unwritable)?;
        Ok(Self { encoder, width, height, waiting: None, shown: Vec::new(), frames: 0, written: 0 })
    }

    fn size(&self) -> ByteSize {
        ByteSize::of(self.encoder.get_ref())
    }

    fn add(&mut self, pixels: Vec<u8>, seconds: f64) -> Result<(), Error> {
        if let Some((waiting, _)) = self.waiting.replace((pixels, seconds)) {
            self.write(waiting, seconds)?;
        }
        Ok(())
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float to integer saturates")]
    fn write(&mut self, mut pixels: Vec<u8>, until: f64) -> Result<(), Error> {
        // Browsers show delays below two hundredths as ten.
        let end = ((until * 100.0).round() as u64).max(self.written + 2);
        let delay = u16::try_from(end - self.written).unwrap_or(u16::MAX);
        self.written = end;
        self.make_unchanged_transparent(&mut pixels);
        let mut frame = GifFrame::from_rgba_speed(self.width, self.height, &mut pixels, QUANTISER_SPEED);
        frame.delay = delay;
        frame.dispose = gif::DisposalMethod::Keep;
        self.encoder.write_frame(&frame).map_err(unwritable)?;
        self.frames += 1;
        Ok(())
    }

    /// Pixels that stay as they are become transparent, which packs better.
    fn make_unchanged_transparent(&mut self, pixels: &mut [u8]) {
        if self.shown.len() == pixels.len() {
            for (shown, pixel) in self.shown.chunks_exact_mut(4).zip(pixels.chunks_exact_mut(4)) {
                let near = shown.iter().zip(pixel.iter()).all(|(a, b)| a.abs_diff(*b) <= NOT_SEEN);
                if near {
                    pixel.fill(0);
                } else {
                    shown.copy_from_slice(pixel);
                }
            }
        } else {
            self.shown = pixels.to_vec();
        }
    }

    fn finish(mut self, end: f64) -> Result<(Vec<u8>, u64), Error> {
        if let Some((waiting, seconds)) = self.waiting.take() {
            self.write(waiting, end.max(seconds + 0.02))?;
        }
        let bytes = self.encoder.into_inner().map_err(unwritable)?;
        Ok((bytes, self.frames))
    }
}

fn unwritable(error: impl std::fmt::Display) -> Error {
    Error::internal(format!("a GIF cannot be written: {error}"))
}

/// A change of this many steps in a component is not seen, and is mostly noise.
const NOT_SEEN: u8 = 6;
/// 1 is best and slow, 30 fast and poor.
const QUANTISER_SPEED: i32 = 10;
