//! One encode of one segment: pictures in, packets out, the CRF moved as the planner says.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::libav::{Answer, Encoded, Encoder, Frame};
use crate::mp4::h264::{self, UnitSet};
use crate::pipeline::workers::{Shared, Stop};
use crate::planner::course::Advice;

/// One encode of one segment.
pub(super) struct Run<'a> {
    shared: &'a Shared<'a>,
    segment: usize,
    packets: Vec<Encoded>,
    /// Pictures given to the encoder.
    sent: usize,
    /// The last of them.
    last_tick: i64,
    /// The latest time of a packet.
    latest: i64,
    spent: Duration,
}

impl<'a> Run<'a> {
    pub(super) const fn new(shared: &'a Shared<'a>, segment: usize) -> Self {
        let (last_tick, latest) = (i64::MIN, i64::MIN);
        Self { shared, segment, packets: Vec::new(), sent: 0, last_tick, latest, spent: Duration::ZERO }
    }

    /// Whether nothing was given to the encoder yet.
    pub(super) const fn is_empty(&self) -> bool {
        self.sent == 0
    }

    /// The packets, and the time that was spent with the encoder.
    pub(super) fn finish(self) -> (Vec<Encoded>, Duration) {
        (self.packets, self.spent)
    }

    /// Gives a picture and takes what is ready; `false` when the segment is to begin again.
    pub(super) fn give(&mut self, encoder: &mut Encoder, frame: &Frame) -> Result<bool, Stop> {
        let began = Instant::now();
        send(encoder, Some(frame))?;
        self.sent += 1;
        self.last_tick = frame.ticks().unwrap_or(self.last_tick);
        let go_on = self.collect(encoder)?;
        self.spent += began.elapsed();
        self.shared.report_one();
        Ok(go_on)
    }

    /// Gets the pictures out that the encoder still looks ahead at; `false` when the segment is to begin again.
    ///
    /// While an encoder is drained, it takes no new CRF. Pictures that come after a forced key frame push out
    /// what is wanted instead, and are thrown away themselves: nothing before the key frame refers to them. They
    /// are grey, since the encoder would spend more on what it thinks will stay on the screen.
    pub(super) fn pad(&mut self, encoder: &mut Encoder) -> Result<bool, Stop> {
        let began = Instant::now();
        let mut board = self.shared.lock();
        board.course.counted(self.segment, u32::try_from(self.sent).unwrap_or(u32::MAX));
        let decides = board.course.decides(self.segment);
        drop(board);
        if decides {
            let mut grey = Frame::grey(self.shared.assignment.spec.dimensions)
                .map_err(|fault| fault.internal("a picture cannot be made"))?;
            grey.tag_bt709();
            for number in 1..=MOST_PADDING {
                if self.packets.len() >= self.sent {
                    break;
                }
                self.shared.assignment.context.control.stop().map_err(Error::from)?;
                let mut frame = grey.share().map_err(|fault| fault.internal("a picture cannot be made"))?;
                frame.set_pts(self.last_tick.saturating_add(number));
                if number == 1 {
                    frame.make_key();
                } else {
                    frame.forget_picture_type();
                }
                send(encoder, Some(&frame))?;
                if !self.collect(encoder)? {
                    return Ok(false);
                }
            }
        }
        if self.packets.len() < self.sent {
            send(encoder, None)?;
            if !self.collect(encoder)? {
                return Ok(false);
            }
        }
        self.spent += began.elapsed();
        Ok(true)
    }

    /// Takes the packets that are ready; `false` when the segment is to begin again.
    fn collect(&mut self, encoder: &mut Encoder) -> Result<bool, Stop> {
        while let Answer::Item(mut packet) = received(encoder)? {
            if packet.pts > self.last_tick && self.packets.len() >= self.sent {
                continue;
            }
            // Start codes become lengths of the same size, and the encoder's remark about itself goes.
            packet.data = h264::sample_from_annex_b(&packet.data, OWN_NOISE);
            let bytes = u32::try_from(packet.data.len()).unwrap_or(u32::MAX);
            let anchor = packet.pts > self.latest;
            self.latest = self.latest.max(packet.pts);
            self.packets.push(packet);
            tracing::trace!(n = self.packets.len(), bytes, anchor, "packet");
            let mut board = self.shared.lock();
            match board.course.packet(self.segment, bytes, anchor) {
                Advice::Keep => {}
                Advice::Change { crf } => {
                    tracing::trace!(segment = self.segment, packets = self.packets.len(), crf, "steered");
                    encoder.set_crf(crf).map_err(|fault| fault.internal("the CRF cannot be changed"))?;
                }
                Advice::Restart => {
                    board.spent.encode += self.spent;
                    tracing::debug!(segment = self.segment, packets = self.packets.len(), "begins again");
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

pub(super) fn send(encoder: &mut Encoder, frame: Option<&Frame>) -> Result<(), Error> {
    encoder.send(frame).map_err(|fault| fault.internal("a picture cannot be encoded"))
}

pub(super) fn received(encoder: &mut Encoder) -> Result<Answer<Encoded>, Error> {
    encoder.receive().map_err(|fault| fault.internal("a picture cannot be encoded"))
}

/// What an encoder adds that no player needs.
pub(super) const OWN_NOISE: UnitSet = UnitSet::REDUNDANT.with(h264::SEI);
/// x264 looks at most 250 pictures ahead, and holds a few more for its threads.
const MOST_PADDING: i64 = 300;
