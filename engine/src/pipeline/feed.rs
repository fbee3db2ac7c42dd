//! Packets of an input in reading order, on one steady clock.

use crate::error::Error;
use crate::libav::{Answer, Input, Packet};
use crate::media::Container;
use crate::pipeline::timeline::{Moment, Timeline};

/// Reads an input from where it stands.
#[derive(Debug)]
pub(crate) struct Feed<'a> {
    input: &'a mut Input,
    packet: Packet,
    /// Only for containers whose clock may jump.
    timeline: Option<Timeline>,
}

impl<'a> Feed<'a> {
    pub(crate) fn new(input: &'a mut Input) -> Result<Self, Error> {
        let packet = Packet::new().map_err(|fault| fault.internal("cannot read packets"))?;
        let timeline = clock_may_jump(input.container()).then(Timeline::default);
        Ok(Self { input, packet, timeline })
    }

    /// The next packet; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<&Packet>, Error> {
        match self.input.read(&mut self.packet)? {
            Answer::Item(()) => {}
            Answer::FeedMe | Answer::Finished => return Ok(None),
        }
        if let Some(timeline) = &mut self.timeline
            && let Some(dts) = self.packet.dts().or_else(|| self.packet.pts())
        {
            let pts = self.packet.pts().unwrap_or(dts);
            let moment = Moment { dts, pts, duration: self.packet.duration() };
            let shift = timeline.shift(self.packet.stream(), moment);
            self.packet.shift(shift);
        }
        Ok(Some(&self.packet))
    }

    /// How often the input's clock jumped so far.
    pub(crate) fn jumps(&self) -> u32 {
        self.timeline.as_ref().map_or(0, Timeline::jumps)
    }
}

/// Whether files of this kind are joined or interrupted without their time stamps being made good.
pub(crate) const fn clock_may_jump(container: Container) -> bool {
    matches!(container, Container::MpegTs | Container::MpegPs | Container::Flv)
}
