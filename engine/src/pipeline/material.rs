//! Where decoded pictures come from: a track of a container, or an animation that is taken apart here.

use std::borrow::BorrowMut;

use crate::error::Error;
use crate::libav::{Care, Frame, StreamFacts};
use crate::limits::Limits;
use crate::media::Container;
use crate::pipeline::decode::Decoding;
use crate::pipeline::feed::Feed;
use crate::pipeline::inspect::Tracks;
use crate::units::Timestamp;

/// Decoded pictures in the order they are shown.
pub(crate) trait Frames {
    /// The next picture with its time; `None` at the end.
    fn next(&mut self) -> Result<Option<Frame>, Error>;

    /// Packets and frames that were damaged so far.
    fn damaged(&self) -> u64;

    /// Forgets about damage so far: decoding began in mid-track, where some frames refer to what was not decoded.
    fn forgive(&mut self) {}
}

/// Something whose pictures can be gone through more than once.
pub(crate) trait Material {
    /// Begins at the first picture.
    fn start(&mut self) -> Result<Box<dyn Frames + '_>, Error>;

    /// Whether [`Material::start_near`] goes anywhere.
    fn can_seek(&self) -> bool {
        false
    }

    /// Begins with the last key frame at or before `time`, where there is an index to go by; else at the first
    /// picture.
    fn start_near(&mut self, time: Timestamp) -> Result<Box<dyn Frames + '_>, Error> {
        let _ = time;
        self.start()
    }

    /// Says whether the pictures will be made much smaller, so that they need not be decoded to the last detail.
    fn will_shrink(&mut self, shrinks: bool) {
        let _ = shrinks;
    }

    /// When the key frame that decoding near `time` begins with is shown. An index tells decoding times alone.
    fn key_frame_near(&mut self, time: Timestamp) -> Result<Option<Timestamp>, Error> {
        let _ = time;
        Ok(None)
    }

    /// The same material once more, for another thread; `None` when it can be read by one at a time.
    fn another(&self) -> Result<Option<Box<dyn Material + Send>>, Error> {
        Ok(None)
    }
}

impl Frames for Decoding<'_> {
    fn next(&mut self) -> Result<Option<Frame>, Error> {
        Self::next(self)
    }

    fn damaged(&self) -> u64 {
        Self::damaged(self)
    }

    fn forgive(&mut self) {
        Self::forgive(self);
    }
}

/// The picture track of an opened container, borrowed or owned.
#[derive(Debug)]
pub(crate) struct TrackMaterial<T> {
    tracks: T,
    stream: StreamFacts,
    limits: Limits,
    /// The part that is wanted, on the source's clock.
    span: Span,
    care: Care,
}

/// A part of a presentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    /// Whether `start` is later than the source's own beginning.
    pub(crate) starts_late: bool,
    /// Whether `end` is earlier than the source's own end.
    pub(crate) ends_early: bool,
}

impl Span {
    pub(crate) fn duration(&self) -> Timestamp {
        self.end.minus(self.start).max(Timestamp::ZERO)
    }
}

impl<T: BorrowMut<Tracks>> TrackMaterial<T> {
    pub(crate) fn new(tracks: T, stream: &StreamFacts, limits: &Limits, span: Span) -> Self {
        Self { tracks, stream: stream.clone(), limits: *limits, span, care: Care::Lenient }
    }

    fn decode(&mut self) -> Result<Box<dyn Frames + '_>, Error> {
        let until = self.span.ends_early.then_some(self.span.end);
        let tracks = self.tracks.borrow_mut();
        let decoding = Decoding::new(&mut tracks.input, &self.stream, self.care, &self.limits)?;
        Ok(Box::new(decoding.until(until)))
    }
}

impl<T: BorrowMut<Tracks>> Material for TrackMaterial<T> {
    fn start(&mut self) -> Result<Box<dyn Frames + '_>, Error> {
        let tracks = self.tracks.borrow_mut();
        tracks.rewind(&self.limits)?;
        tracks.narrow(&[self.stream.index]);
        if self.span.starts_late {
            tracks.seek_near(self.stream.index, self.span.start);
        }
        self.decode()
    }

    fn will_shrink(&mut self, shrinks: bool) {
        self.care = if shrinks { Care::Coarse } else { Care::Lenient };
    }

    fn can_seek(&self) -> bool {
        matches!(self.tracks.borrow().input.container(), Container::Mp4 | Container::Matroska)
    }

    fn start_near(&mut self, time: Timestamp) -> Result<Box<dyn Frames + '_>, Error> {
        if !self.can_seek() {
            return self.start();
        }
        let tracks = self.tracks.borrow_mut();
        tracks.narrow(&[self.stream.index]);
        tracks.seek_near(self.stream.index, time);
        self.decode()
    }

    fn key_frame_near(&mut self, time: Timestamp) -> Result<Option<Timestamp>, Error> {
        if !self.can_seek() {
            return Ok(None);
        }
        let tracks = self.tracks.borrow_mut();
        tracks.narrow(&[self.stream.index]);
        tracks.seek_near(self.stream.index, time);
        let mut feed = Feed::new(&mut tracks.input)?;
        while let Some(packet) = feed.next()? {
            if packet.stream() == self.stream.index {
                let good = packet.is_key() && !packet.is_hidden() && !packet.is_damaged();
                return Ok(packet.pts().filter(|_| good));
            }
        }
        Ok(None)
    }

    fn another(&self) -> Result<Option<Box<dyn Material + Send>>, Error> {
        let Some(tracks) = self.tracks.borrow().another(&self.limits)? else { return Ok(None) };
        let Self { stream, limits, span, care, .. } = self;
        let (stream, limits, span, care) = (stream.clone(), *limits, *span, *care);
        Ok(Some(Box::new(TrackMaterial { tracks, stream, limits, span, care })))
    }
}
