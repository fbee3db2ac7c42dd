//! A video track's segments: where each begins in the source and in the result.

use crate::error::Error;
use crate::pipeline::early::Early;
use crate::pipeline::material::{Material, Span};
use crate::pipeline::pacing::Pacing;
use crate::planner::course::{Cut, Order, Segment};
use crate::planner::cut::{self, Shown};
use crate::units::{FrameRate, Timestamp};

/// The segments of a result, in order.
#[derive(Clone, Debug)]
pub(crate) struct SegmentMap {
    segments: Vec<Place>,
    /// How far the track's first picture stands from its slot, where that is known before decoding.
    phase: Option<Timestamp>,
    /// Segments may be decoded in any order.
    order: Order,
}

/// One segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The first picture's time in the source.
    pub(crate) start: Timestamp,
    /// The first tick in the result.
    pub(crate) from: i64,
    /// The tick at which the next segment begins.
    pub(crate) until: Option<i64>,
}

/// What segments are made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout<'a> {
    pub(crate) shown: &'a [Shown],
    pub(crate) span: Span,
    pub(crate) pacing: Pacing,
    pub(crate) frame_rate: FrameRate,
    /// Frames of the result, about.
    pub(crate) frames: u32,
    /// What of the source has arrived, where its index tells exactly when key frames are shown.
    pub(crate) early: Option<&'a Early>,
}

impl SegmentMap {
    /// Cuts a track that can be read from any key frame.
    ///
    /// # Errors
    /// What reading the input gives.
    pub(crate) fn seekable(layout: &Layout<'_>, material: &mut dyn Material) -> Result<Self, Error> {
        let Layout { shown, span, pacing, .. } = *layout;
        let cuts = cut::cut(shown, span.start, span.end);
        let mut starts = Vec::with_capacity(cuts.times.len());
        for time in &cuts.times {
            if !cuts.at_key_frames || layout.early.is_some() {
                starts.push(*time);
            } else if let Some(key) = material.key_frame_near(time.plus(ROUNDING))?
                // Where pictures that are shown before it follow the key frame, the index is a little early.
                && (time.minus(key).micros().abs() < MOST_REORDERING.micros())
                && starts.last().is_none_or(|last| key.minus(*last) > MOST_REORDERING)
            {
                starts.push(key);
            }
        }
        let first = shown.iter().find(|shown| shown.time >= span.start).map(|shown| shown.time);
        let phase = first.map(|time| pacing.phase(time.minus(span.start)));
        let order = match (cuts.at_key_frames, layout.early.and_then(Early::arrived)) {
            (true, None) => Order::Any,
            (true, Some(_)) => Order::AsTheyArrive,
            (false, _) => Order::InTime,
        };
        Ok(Self::new(layout, &starts, phase, order))
    }

    /// Cuts a track that is decoded from its beginning to its end.
    pub(crate) fn running(layout: &Layout<'_>) -> Self {
        let cuts = cut::cut(layout.shown, layout.span.start, layout.span.end);
        Self::new(layout, &cuts.times, None, Order::InTime)
    }

    /// The whole track as one segment.
    pub(crate) fn undivided(layout: &Layout<'_>) -> Self {
        Self::new(layout, &[], None, Order::InTime)
    }

    fn new(layout: &Layout<'_>, starts: &[Timestamp], phase: Option<Timestamp>, order: Order) -> Self {
        let mut segments = vec![Place { start: layout.span.start, from: 0, until: None }];
        for start in starts {
            let time = start.minus(layout.span.start);
            let from = layout.pacing.first_tick_from(time, phase.unwrap_or_default());
            if let Some(last) = segments.last_mut().filter(|last| from > last.from) {
                last.until = Some(from);
                segments.push(Place { start: *start, from, until: None });
            }
        }
        Self { segments, phase, order }
    }

    pub(crate) const fn order(&self) -> Order {
        self.order
    }

    /// Whether each segment is decoded from its own key frame.
    pub(crate) fn is_apart(&self) -> bool {
        self.order != Order::InTime
    }

    pub(crate) const fn phase(&self) -> Option<Timestamp> {
        self.phase
    }

    /// So many segments at the beginning can be read without waiting.
    pub(crate) fn arrived(&self, early: &Early) -> usize {
        let Some(arrived) = early.arrived() else { return self.segments.len() };
        let ends = self.segments.iter().skip(1).map(|next| next.start);
        ends.take_while(|end| early.needed_until(*end) <= arrived).count()
    }

    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(crate) fn place(&self, segment: usize) -> Option<Place> {
        self.segments.get(segment).copied()
    }

    /// The segments as the planner sees them.
    pub(crate) fn outlines(&self, layout: &Layout<'_>) -> Vec<Segment> {
        let whole = layout.span.duration().seconds().max(1e-6);
        let even = matches!(layout.pacing, Pacing::Even { .. });
        let scenes = cut::scenes(layout.shown);
        self.segments
            .iter()
            .zip(self.segments.iter().skip(1).map(|next| next.start).chain([layout.span.end]))
            .map(|(place, end)| {
                let length = end.minus(place.start).seconds().max(0.0);
                let frames = if even {
                    length * layout.frame_rate.as_f64()
                } else {
                    let inside =
                        layout.shown.iter().filter(|s| s.time >= place.start && s.time < end).count();
                    let all = layout
                        .shown
                        .iter()
                        .filter(|s| s.time >= layout.span.start && s.time < layout.span.end)
                        .count();
                    let share = if all > 0 { ratio(inside, all) } else { length / whole };
                    f64::from(layout.frames) * share
                };
                let frames = count(frames);
                let step = Timestamp::from_seconds(length / f64::from(frames));
                let source_bytes = cut::bytes_around(layout.shown, place.start, step, frames);
                let number = |time: Timestamp| time.minus(place.start).seconds() / step.seconds().max(1e-9);
                let first_bytes = cut::key_bytes(layout.shown, place.start.plus(ROUNDING));
                let cuts = scenes
                    .iter()
                    .filter(|scene| scene.time > place.start && scene.time < end)
                    .map(|scene| Cut {
                        frame: count(number(scene.time)),
                        ratio: f64::from(scene.bytes) / f64::from(first_bytes.unwrap_or(scene.bytes).max(1)),
                    })
                    .collect();
                Segment { frames, source_bytes, cuts }
            })
            .collect()
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float to integer saturates")]
fn count(value: f64) -> u32 {
    (value.round() as u32).max(1)
}

fn ratio(part: usize, whole: usize) -> f64 {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    number(part) / number(whole).max(1.0)
}

/// An index may round times to its ticks.
pub(crate) const ROUNDING: Timestamp = Timestamp::from_micros(2000);
/// Pictures that follow an open key frame and are shown before it.
const MOST_REORDERING: Timestamp = Timestamp::from_micros(1_000_000);
