//! A running decoder that gives the pictures of one segment after the other.

use std::collections::VecDeque;
use std::time::Duration;

use crate::error::Error;
use crate::libav::Frame;
use crate::pipeline::material::Material;
use crate::pipeline::pictures::{Pictures, Treatment};
use crate::pipeline::segments::SegmentMap;

/// Pictures from some segment on.
pub(crate) struct Reel<'a> {
    pictures: Pictures<'a>,
    map: &'a SegmentMap,
    /// The segment whose pictures come next.
    at: usize,
    /// Whether the next picture is that segment's first.
    at_start: bool,
    /// Pictures that were decoded and not used.
    ahead: VecDeque<Frame>,
}

impl<'a> Reel<'a> {
    /// Begins at `segment`, or at the track's beginning where the material cannot seek.
    pub(crate) fn open(
        material: &'a mut dyn Material,
        map: &'a SegmentMap,
        treatment: Treatment,
        segment: usize,
    ) -> Result<Self, Error> {
        let place = map.place(segment).filter(|_| segment > 0);
        let (pictures, at) = match (place, map.phase()) {
            (Some(place), Some(phase)) => {
                let frames = material.start_near(place.start)?;
                let pictures = Pictures::new(frames, treatment);
                (pictures.starting_at(place.from, place.start, phase), segment)
            }
            _ => (Pictures::new(material.start()?, treatment), 0),
        };
        Ok(Self { pictures, map, at, at_start: true, ahead: VecDeque::new() })
    }

    /// Whether `segment` can be had by going on from here, without opening anew.
    pub(crate) fn reaches(&self, segment: usize) -> bool {
        match self.map.phase() {
            Some(_) => self.at_start && self.at == segment,
            None => segment > self.at || (self.at_start && segment == self.at),
        }
    }

    /// Goes on to the first picture of `segment`.
    pub(crate) fn go_to(&mut self, segment: usize) -> Result<(), Error> {
        while self.at < segment {
            while self.next()?.is_some() {}
        }
        Ok(())
    }

    /// The next picture of the segment; `None` at its end.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, Error> {
        let frame = match self.ahead.pop_front() {
            Some(frame) => Some(frame),
            None => self.pictures.next()?,
        };
        let until = self.map.place(self.at).and_then(|place| place.until);
        match (frame, until) {
            (Some(frame), Some(until)) if frame.ticks().is_some_and(|tick| tick >= until) => {
                self.ahead.push_front(frame);
                self.at += 1;
                self.at_start = true;
                Ok(None)
            }
            (Some(frame), _) => {
                self.at_start = false;
                Ok(Some(frame))
            }
            (None, _) => {
                self.at += 1;
                self.at_start = true;
                Ok(None)
            }
        }
    }

    /// Gives the first pictures of the segment back, so that they need not be decoded again. `ended` says that
    /// they are all of it.
    pub(crate) fn give_back(&mut self, frames: Vec<Frame>, ended: bool) {
        if ended {
            self.at = self.at.saturating_sub(1);
        }
        for frame in frames.into_iter().rev() {
            self.ahead.push_front(frame);
        }
        self.at_start = true;
    }

    pub(crate) fn damaged(&self) -> u64 {
        self.pictures.damaged()
    }

    pub(crate) const fn not_tone_mapped(&self) -> bool {
        self.pictures.not_tone_mapped()
    }

    /// Time spent with decoding and filtering since the last call.
    pub(crate) fn take_spent(&mut self) -> (Duration, Duration) {
        self.pictures.take_spent()
    }
}
