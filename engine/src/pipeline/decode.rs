//! Decoded frames of one stream, one after the other, whatever is damaged left out.

use crate::error::Error;
use crate::libav::{Answer, Care, Decoder, Frame, Input, StreamFacts, errors_logged_here};
use crate::limits::{LimitKind, Limits};
use crate::pipeline::feed::Feed;
use crate::units::Timestamp;

/// Decodes one stream of an input from where it stands to its end.
#[derive(Debug)]
pub(crate) struct Decoding<'a> {
    feed: Feed<'a>,
    decoder: Decoder,
    stream: usize,
    /// Nothing after this time is wanted.
    until: Option<Timestamp>,
    draining: bool,
    /// Packets since the last frame.
    silent: u32,
    frames: u64,
    damaged: u64,
    most_pixels: u64,
    most_frames: u64,
    most_silent: u32,
}

impl<'a> Decoding<'a> {
    /// Decodes `stream` with one codec thread, so that libav logs damage on this thread.
    pub(crate) fn new(
        input: &'a mut Input,
        stream: &StreamFacts,
        care: Care,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let decoder = Decoder::open(input, stream, 1, care, limits)?;
        Ok(Self {
            feed: Feed::new(input)?,
            decoder,
            stream: stream.index,
            until: None,
            draining: false,
            silent: 0,
            frames: 0,
            damaged: 0,
            most_pixels: limits.frame_pixels,
            most_frames: limits.frames,
            most_silent: limits.silent_packets,
        })
    }

    /// Stops reading packets soon after `time`.
    pub(crate) const fn until(mut self, time: Option<Timestamp>) -> Self {
        self.until = time;
        self
    }

    /// Packets and frames that were damaged so far.
    pub(crate) const fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Counts damage anew.
    pub(crate) const fn forgive(&mut self) {
        self.damaged = 0;
    }

    /// The next frame; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, Error> {
        let logged = errors_logged_here();
        let frame = self.next_frame();
        // Concealed damage shows in the decoder's log alone.
        if errors_logged_here() > logged && self.damaged == 0 {
            self.damaged = 1;
        }
        frame
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, Error> {
        loop {
            match self.decoder.receive() {
                Ok(Answer::Item(frame)) => {
                    self.silent = 0;
                    if frame.is_damaged() {
                        self.damaged += 1;
                    }
                    self.check(&frame)?;
                    return Ok(Some(frame));
                }
                Ok(Answer::FeedMe) => self.give()?,
                Ok(Answer::Finished) => return Ok(None),
                Err(fault) => {
                    tracing::debug!(reason = fault.text(), "a frame could not be decoded");
                    self.damaged += 1;
                    if self.draining {
                        // A decoder that fails while it is drained may fail for ever.
                        self.silent += 1;
                        if self.silent > MOST_FAULTS_IN_DRAIN {
                            return Ok(None);
                        }
                    } else {
                        self.give()?;
                    }
                }
            }
        }
    }

    /// Gives the decoder its next packet, or the end.
    fn give(&mut self) -> Result<(), Error> {
        loop {
            let Some(packet) = self.feed.next()? else { return self.drain() };
            if packet.stream() != self.stream {
                continue;
            }
            let past = |until: Timestamp| {
                packet.dts().or_else(|| packet.pts()).is_some_and(|time| time > until.plus(REORDERING))
            };
            if self.until.is_some_and(past) {
                return self.drain();
            }
            // A piece of a packet decodes to a smeared picture.
            if packet.is_damaged() {
                self.damaged += 1;
                continue;
            }
            self.silent += 1;
            if self.silent > self.most_silent {
                return Err(Error::corrupt(
                    "the file is damaged: thousands of packets in a row give no frame",
                ));
            }
            if let Err(fault) = self.decoder.send(Some(packet)) {
                if fault.is_exit() {
                    continue;
                }
                tracing::debug!(reason = fault.text(), "a packet could not be decoded");
                self.damaged += 1;
                continue;
            }
            return Ok(());
        }
    }

    fn drain(&mut self) -> Result<(), Error> {
        if !self.draining {
            self.draining = true;
            self.silent = 0;
            // Some decoders look at what they still hold, and say that it is damaged, before they take the end.
            if let Err(fault) = self.decoder.send(None) {
                tracing::debug!(reason = fault.text(), "what the decoder still holds is damaged");
                self.damaged += 1;
            }
        }
        Ok(())
    }

    fn check(&mut self, frame: &Frame) -> Result<(), Error> {
        self.frames += 1;
        let pixels = frame.dimensions().pixels();
        if pixels > self.most_pixels {
            return Err(Error::TooLarge {
                limit: LimitKind::FramePixels,
                found: pixels,
                allowed: self.most_pixels,
            });
        }
        // Sound frames are short: sixteen of them to a picture is more than any file has.
        let most = if pixels == 0 { self.most_frames.saturating_mul(16) } else { self.most_frames };
        if self.frames > most {
            return Err(Error::TooLarge {
                limit: LimitKind::Frames,
                found: self.frames,
                allowed: self.most_frames,
            });
        }
        Ok(())
    }
}

/// Packets may come this much before the frames that are shown earlier.
const REORDERING: Timestamp = Timestamp::from_micros(2_000_000);
const MOST_FAULTS_IN_DRAIN: u32 = 64;
