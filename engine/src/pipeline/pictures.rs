//! Pictures as the encoder wants them: decoded, chosen by time, filtered.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::libav::{Answer, Frame, Graph, PicturePath, PictureShape, PixelTarget, can_tone_map};
use crate::media::{DynamicRange, Orientation};
use crate::pipeline::material::{Frames, Span};
use crate::pipeline::pacing::{Pacer, Pacing};
use crate::pipeline::segments::ROUNDING;
use crate::units::{Dimensions, Timestamp};

/// What happens to pictures on their way to the encoder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Treatment {
    pub(crate) target: Dimensions,
    pub(crate) orientation: Orientation,
    pub(crate) interlaced: bool,
    pub(crate) pixels: PixelTarget,
    pub(crate) pacing: Pacing,
    pub(crate) span: Span,
}

/// Pictures ready to be encoded, with their ticks.
pub(crate) struct Pictures<'a> {
    frames: Box<dyn Frames + 'a>,
    treatment: Treatment,
    pacer: Pacer,
    graph: Option<(PictureShape, bool, Graph)>,
    /// Width to height of the first picture, which fills the target.
    first_aspect: Option<f64>,
    ready: VecDeque<Frame>,
    /// The last picture before the span, which may still be on the screen when it begins.
    held: Option<Frame>,
    /// Pictures before this time are not wanted: decoding began before them, or cannot make them whole.
    not_before: Option<Timestamp>,
    begun: bool,
    ended: bool,
    last_time: Option<Timestamp>,
    not_tone_mapped: bool,
    decoding: Duration,
    filtering: Duration,
}

impl<'a> Pictures<'a> {
    pub(crate) fn new(frames: Box<dyn Frames + 'a>, treatment: Treatment) -> Self {
        Self {
            frames,
            treatment,
            pacer: Pacer::new(treatment.pacing, treatment.span.start),
            graph: None,
            first_aspect: None,
            ready: VecDeque::new(),
            held: None,
            not_before: None,
            begun: false,
            ended: false,
            last_time: None,
            not_tone_mapped: false,
            decoding: Duration::ZERO,
            filtering: Duration::ZERO,
        }
    }

    /// The same pictures that would be made from the beginning, but from a tick on. `start` is the time of the
    /// first of them, and `phase` how far the track's first picture stands from its slot.
    pub(crate) fn starting_at(mut self, tick: i64, start: Timestamp, phase: Timestamp) -> Self {
        self.pacer = Pacer::resumed(self.treatment.pacing, self.treatment.span.start, phase, tick);
        // `start` may be rounded, up as well as down; pictures stand further apart than that.
        self.not_before = Some(start.minus(ROUNDING));
        self.begun = true;
        self
    }

    /// Time spent with decoding and filtering since the last call.
    pub(crate) fn take_spent(&mut self) -> (Duration, Duration) {
        (std::mem::take(&mut self.decoding), std::mem::take(&mut self.filtering))
    }

    pub(crate) fn damaged(&self) -> u64 {
        self.frames.damaged()
    }

    pub(crate) const fn not_tone_mapped(&self) -> bool {
        self.not_tone_mapped
    }

    /// The next picture; its time is in ticks of the pacing's clock. `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, Error> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Ok(Some(frame));
            }
            if self.ended {
                return Ok(None);
            }
            let began = Instant::now();
            let frame = self.frames.next()?;
            let decoded = Instant::now();
            self.decoding += decoded.duration_since(began);
            match frame {
                Some(frame) => self.take(frame)?,
                None => {
                    self.ended = true;
                    if !self.begun {
                        self.show_held()?;
                    }
                    self.finish_graph()?;
                }
            }
            self.filtering += decoded.elapsed();
        }
    }

    fn take(&mut self, mut frame: Frame) -> Result<(), Error> {
        let step = frame.duration().unwrap_or(UNKNOWN_STEP);
        let time = frame.pts().or_else(|| self.last_time.map(|last| last.plus(step)));
        let time = time.unwrap_or(self.treatment.span.start);
        self.last_time = Some(time);
        let span = self.treatment.span;
        if span.starts_late && time < span.start && !self.begun {
            self.held = Some(frame);
            return Ok(());
        }
        if span.ends_early && time >= span.end {
            return Ok(());
        }
        if let Some(start) = self.not_before {
            if time < start {
                return Ok(());
            }
            self.not_before = None;
            // Pictures that follow an open key frame and are shown before it cannot be whole, nor are they wanted.
            self.frames.forgive();
        }
        if !self.begun {
            self.begun = true;
            if time.minus(span.start) > self.treatment.pacing.patience() {
                self.show_held()?;
            }
            self.held = None;
        }
        let deinterlace = self.treatment.interlaced || frame.is_interlaced();
        // A deinterlacer looks at the neighbours, so it must see every frame; without one, frames that are
        // left out need not be filtered.
        if deinterlace {
            frame.set_pts(time.micros());
        } else {
            let Some(tick) = self.pacer.keep(time) else { return Ok(()) };
            frame.set_pts(tick);
        }
        self.filter(frame, deinterlace)
    }

    /// Shows the picture that stood on the screen when the span began.
    fn show_held(&mut self) -> Result<(), Error> {
        let Some(mut frame) = self.held.take() else { return Ok(()) };
        let deinterlace = self.treatment.interlaced || frame.is_interlaced();
        let time = if deinterlace { self.treatment.span.start.micros() } else { self.pacer.hold() };
        frame.set_pts(time);
        self.filter(frame, deinterlace)
    }

    fn filter(&mut self, frame: Frame, deinterlace: bool) -> Result<(), Error> {
        let shape = frame.picture_shape();
        let fits = self.graph.as_ref().is_some_and(|(known, way, _)| *known == shape && *way == deinterlace);
        if !fits {
            self.finish_graph()?;
            self.not_tone_mapped |= shape.dynamic_range() != DynamicRange::Standard && !can_tone_map();
            let first_aspect = *self.first_aspect.get_or_insert_with(|| shape.aspect());
            let stored = shape.aspect() / first_aspect;
            let shown = if self.treatment.orientation.swaps_sides() { stored.recip() } else { stored };
            let path = PicturePath {
                target: self.treatment.target,
                inside: inside(self.treatment.target, shown),
                orientation: self.treatment.orientation,
                deinterlace,
                pixels: self.treatment.pixels,
            };
            self.graph = Some((shape, deinterlace, Graph::pictures(&shape, &path)?));
        }
        if let Some((_, _, graph)) = &mut self.graph {
            graph.send(Some(frame)).map_err(|fault| fault.internal("a picture cannot be filtered"))?;
        }
        self.collect()
    }

    fn finish_graph(&mut self) -> Result<(), Error> {
        if let Some((_, _, graph)) = &mut self.graph {
            graph.send(None).map_err(|fault| fault.internal("the filters cannot be drained"))?;
            self.collect()?;
            self.graph = None;
        }
        Ok(())
    }

    fn collect(&mut self) -> Result<(), Error> {
        let Some((_, deinterlaced, graph)) = &mut self.graph else { return Ok(()) };
        loop {
            match graph.receive().map_err(|fault| fault.internal("a picture cannot be filtered"))? {
                Answer::Item(mut frame) => {
                    if *deinterlaced {
                        let time = frame.pts().unwrap_or(self.treatment.span.start);
                        let Some(tick) = self.pacer.keep(time) else { continue };
                        frame.set_pts(tick);
                    }
                    self.ready.push_back(frame);
                }
                Answer::FeedMe | Answer::Finished => return Ok(()),
            }
        }
    }
}

/// A frame without time and length is taken to follow after this.
const UNKNOWN_STEP: Timestamp = Timestamp::from_micros(40_000);

/// The largest picture in `target` that is `wider` times as wide for its height: what comes after a change of
/// shape is framed in black, not stretched.
fn inside(target: Dimensions, wider: f64) -> Dimensions {
    let even = |length: u32, factor: f64| {
        // Rounding of sizes is no change of shape.
        let shorter = f64::from(length) * factor;
        let rounded = length.saturating_sub(whole((f64::from(length) - shorter) / 2.0).saturating_mul(2));
        if f64::from(length) - shorter < (f64::from(length) / 50.0).max(2.0) {
            length
        } else {
            rounded.max(2)
        }
    };
    match wider {
        wider if wider > 1.0 => Dimensions::new(target.width, even(target.height, wider.recip())),
        wider if wider > 0.0 => Dimensions::new(even(target.width, wider), target.height),
        _ => target,
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float to integer saturates")]
fn whole(value: f64) -> u32 {
    value.round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(target: (u32, u32), wider: f64, expected: (u32, u32)) {
        let found = inside(Dimensions::new(target.0, target.1), wider);
        assert_eq!((found.width, found.height), expected);
    }

    #[test]
    fn another_shape_is_framed() {
        check((320, 240), (16.0 / 9.0) / (4.0 / 3.0), (320, 180));
        check((320, 240), (3.0 / 4.0) / (4.0 / 3.0), (180, 240));
        check((640, 360), f64::from(540) / f64::from(960), (360, 360));
        check((320, 240), 1000.0, (320, 2));
        check((320, 240), 0.0001, (2, 240));
    }

    #[test]
    fn the_same_shape_fills_the_target() {
        check((320, 240), 1.0, (320, 240));
        check((640, 360), (854.0 / 480.0) / (16.0 / 9.0), (640, 360));
        check((22, 18), 1.05, (22, 18));
        check((320, 240), f64::NAN, (320, 240));
    }
}
