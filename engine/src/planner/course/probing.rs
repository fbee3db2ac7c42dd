//! Short windows that are encoded before anything else, to learn what the track costs.

use std::collections::VecDeque;

use super::Order;
use super::part::{Part, f64_to_u32};

/// Frames of a window.
const WINDOW: u32 = 16;
/// Frames of the window of a short track that is one segment.
const SHORT_WINDOW: u32 = 12;
const SHORT_TRACK: f64 = 160.0;
/// A track of so many frames has two windows, if it has two segments.
const TWO_WINDOWS_FROM: f64 = 400.0;
/// A track of so few frames is encoded at once: a window costs as much as it saves. So is a short one whose CRF
/// is believed to be known.
const UNPROBED: f64 = 48.0;
/// Shorter segments have no window, unless there is no other.
const SHORTEST_SEGMENT: f64 = 40.0;
const MOST_WINDOWS: usize = 8;
/// The part of a track, one in so many of its segments, that is waited for and looked at before anything is encoded. The
/// size of the picture hangs on what is seen: by two segments of ten a clip was taken for a third harder than it is.
const EARLY_PART: usize = 3;
const LEAST_EARLY: usize = 2;
/// The share of all frames that windows may take, beyond the first window.
const MOST_SHARE: f64 = 0.06;
/// A belief wider than this, in steps of CRF, is tested in many segments.
const WIDE: f64 = 1.5;
/// A first window so far from the CRF it taught is looked at again there: this tells the slope as well.
const FAR: f64 = 2.5;
/// In a short track a second window costs more than beginning again would.
const SHORT_FAR: f64 = 7.0;

/// A window to be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) segment: usize,
    pub(super) frames: u32,
}

/// What a window gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) segment: usize,
    pub(super) crf: f64,
    pub(super) log_bytes: f64,
    pub(super) packets: usize,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Probing {
    waiting: VecDeque<Window>,
    flying: Vec<Window>,
    first: Option<Seen>,
    repeated: bool,
    far: f64,
    pub(super) frames: u64,
}

impl Probing {
    /// Windows in segments whose sources are typical, then in others over the whole range. While segments arrive
    /// only the first ones are looked at: what the others would tell is not worth waiting for.
    pub(super) fn plan(parts: &[Part], deviation: f64, order: Order) -> Self {
        let all: f64 = parts.iter().map(|part| part.frames).sum();
        let mut fit: Vec<(usize, &Part)> =
            parts.iter().enumerate().filter(|(_, part)| part.frames >= SHORTEST_SEGMENT).collect();
        if fit.is_empty() {
            fit = parts
                .iter()
                .enumerate()
                .max_by(|a, b| a.1.frames.total_cmp(&b.1.frames))
                .into_iter()
                .collect();
        }
        if order == Order::InTime {
            fit = parts.iter().enumerate().take(1).collect();
        }
        let short = all <= SHORT_TRACK;
        if all <= UNPROBED || (short && deviation <= WIDE) {
            fit.clear();
        }
        if order == Order::AsTheyArrive {
            fit.truncate(parts.len().div_ceil(EARLY_PART).max(LEAST_EARLY));
        }
        if order != Order::AsTheyArrive {
            fit.sort_by(|a, b| a.1.rate().total_cmp(&b.1.rate()));
        }
        let frames = if short { SHORT_WINDOW } else { WINDOW };
        let affordable =
            usize::try_from(f64_to_u32(all * MOST_SHARE / f64::from(frames))).unwrap_or(usize::MAX);
        let wanted = match order {
            _ if deviation <= WIDE => 1,
            Order::AsTheyArrive => fit.len().min(MOST_WINDOWS),
            Order::Any | Order::InTime => fit.len().div_ceil(2).min(MOST_WINDOWS),
        };
        // Where there are scenes to differ, one of them does not speak for the others.
        let least = if deviation > WIDE && all >= TWO_WINDOWS_FROM { 2 } else { 1 };
        let count = wanted.max(least).min(affordable.max(least)).min(fit.len());
        // Evenly over the sorted segments, beginning in the middle and going outwards.
        let mut places: Vec<usize> =
            (0..count).map(|n| (2 * n + 1).saturating_mul(fit.len()) / (2 * count).max(1)).collect();
        let middle = fit.len() / 2;
        match order {
            Order::AsTheyArrive => {
                places = (0..count).map(|n| n.saturating_mul(fit.len()) / count.max(1)).collect();
            }
            Order::Any | Order::InTime => places.sort_by_key(|place| place.abs_diff(middle)),
        }
        let waiting = places.iter().filter_map(|place| fit.get(*place)).map(|(segment, part)| Window {
            segment: *segment,
            frames: frames.min(f64_to_u32(part.frames)).max(1),
        });
        let far = if short { SHORT_FAR } else { FAR };
        Self { waiting: waiting.collect(), far, ..Self::default() }
    }

    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.flying.is_empty()
    }

    /// The next window. The first is looked at alone, so that the others have a better CRF.
    pub(super) fn next(&mut self) -> Option<Window> {
        if self.first.is_none() && !self.flying.is_empty() {
            return None;
        }
        let window = self.waiting.pop_front()?;
        self.flying.push(window);
        Some(window)
    }

    /// Takes a window out of the air; `false` when it was not asked for.
    pub(super) fn landed(&mut self, segment: usize, packets: usize) -> bool {
        let Some(place) = self.flying.iter().position(|window| window.segment == segment) else {
            return false;
        };
        self.flying.swap_remove(place);
        self.frames = self.frames.saturating_add(u64::try_from(packets).unwrap_or(u64::MAX));
        true
    }

    /// Remembers the first window; gives it back when `seen` is the same window at another CRF.
    pub(super) fn compare(&mut self, seen: Seen) -> Option<Seen> {
        match self.first {
            None => {
                self.first = Some(seen);
                None
            }
            Some(first) => (first.segment == seen.segment && first.packets == seen.packets).then_some(first),
        }
    }

    /// Asks for the first window again when it was far from the CRF that is believed now.
    pub(super) fn reconsider(&mut self, crf: f64) {
        // Another window at the better CRF tells more.
        let only = self.waiting.is_empty() && self.flying.is_empty();
        let far = |first: &Seen| (first.crf - crf).abs() > self.far;
        let Some(first) = self.first.filter(|first| only && !self.repeated && far(first)) else {
            return;
        };
        self.repeated = true;
        let frames = u32::try_from(first.packets).unwrap_or(WINDOW).max(1);
        self.waiting.push_front(Window { segment: first.segment, frames });
    }
}
