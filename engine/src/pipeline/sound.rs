//! Makes a sound track: decoded, mixed to at most two channels, kept in time, encoded as AAC-LC.

use std::time::Duration;

use crate::error::Error;
use crate::libav::{Answer, Care, Encoder, Frame, Graph, SoundPath, SoundShape, SoundSpec, StreamFacts};
use crate::limits::Limits;
use crate::mp4::{AudioFormat, Sample, Track};
use crate::pipeline::decode::Decoding;
use crate::pipeline::inspect::Tracks;
use crate::pipeline::material::Span;
use crate::planner::budget::SoundPlan;
use crate::progress::Control;
use crate::units::{BitRate, ByteSize, Timestamp};

/// A finished sound track.
#[derive(Debug)]
pub(crate) struct SoundTrack {
    pub(crate) track: Track<AudioFormat>,
    pub(crate) damaged: u64,
}

/// Encodes `stream` of `tracks`, which is read from where it stands. `None` when nothing can be decoded.
pub(crate) fn encode(
    tracks: &mut Tracks,
    stream: &StreamFacts,
    plan: &SoundPlan,
    span: Span,
    limits: &Limits,
    control: &Control,
) -> Result<Option<SoundTrack>, Error> {
    tracks.narrow(&[stream.index]);
    if span.starts_late {
        tracks.seek_near(stream.index, span.start);
    }
    let until = span.ends_early.then_some(span.end);
    let mut decoding = Decoding::new(&mut tracks.input, stream, Care::Lenient, limits)?.until(until);
    let mut mixer = Mixer::new(plan, span)?;
    while let Some(frame) = decoding.next()? {
        control.stop()?;
        mixer.take(frame, control)?;
        // Making the sound is a small part of a job with pictures, and all of one without.
        control.advance(0.05 * mixer.seconds() / span.duration().seconds().max(0.1));
    }
    let damaged = decoding.damaged();
    mixer.finish(damaged)
}

/// Keeps decoded sound in time and hands it to the encoder in blocks.
struct Mixer {
    path: SoundPath,
    graph: Option<(SoundShape, Graph)>,
    encoder: Encoder,
    /// Samples of each channel that wait for a full block.
    waiting: Vec<Vec<f32>>,
    /// When the next decoded sample should come, on the source's clock.
    expected: Timestamp,
    begun: bool,
    /// Samples to leave out, since they belong to a time that is already filled.
    skip: usize,
    /// Samples given to the encoder.
    given: u64,
    /// Samples that the span is long.
    whole: u64,
    /// Samples after which nothing is taken any more.
    most: u64,
    samples: Vec<Sample>,
    bytes: u64,
}

impl Mixer {
    fn new(plan: &SoundPlan, span: Span) -> Result<Self, Error> {
        let encoder = Encoder::sound(&SoundSpec {
            sample_rate: plan.sample_rate,
            channels: plan.channels,
            bit_rate: plan.bit_rate,
        })?;
        let channels = usize::try_from(plan.channels).unwrap_or(2);
        let whole = u64::try_from(span.duration().ticks(plan.sample_rate, 1)).unwrap_or(0);
        // Where the source ends is the container's word, which may be too early.
        let most = if span.ends_early { whole } else { u64::MAX };
        Ok(Self {
            path: SoundPath { sample_rate: plan.sample_rate, channels: plan.channels },
            graph: None,
            encoder,
            waiting: vec![Vec::new(); channels],
            expected: span.start,
            begun: false,
            skip: 0,
            given: 0,
            whole,
            most,
            samples: Vec::new(),
            bytes: 0,
        })
    }

    fn seconds(&self) -> f64 {
        Timestamp::from_micros(i64::try_from(self.given).unwrap_or(i64::MAX)).seconds() * 1e6
            / f64::from(self.path.sample_rate)
    }

    fn take(&mut self, mut frame: Frame, control: &Control) -> Result<(), Error> {
        let shape = frame.sound_shape();
        if shape.sample_rate == 0 || shape.channels == 0 || frame.samples() == 0 {
            return Ok(());
        }
        let length = Timestamp::from_seconds(f64::from(frame.samples()) / f64::from(shape.sample_rate));
        let time = frame.pts().unwrap_or(self.expected);
        let off = time.minus(self.expected);
        // The first sample is put exactly; later ones may wander a little, since containers round.
        let tolerated = if self.begun { TOLERATED.micros() } else { 0 };
        self.begun = true;
        if off.micros() > tolerated {
            self.silence(off, control)?;
            self.expected = time;
        } else if off.micros() < -tolerated {
            self.skip = self.skip.saturating_add(self.samples_in(Timestamp::ZERO.minus(off)));
            self.expected = time;
        }
        self.expected = self.expected.plus(length);
        if self.graph.as_ref().is_none_or(|(known, _)| *known != shape) {
            self.finish_graph()?;
            self.graph = Some((shape.clone(), Graph::sound(&shape, &self.path)?));
        }
        frame.set_pts(time.micros());
        if let Some((_, graph)) = &mut self.graph {
            graph.send(Some(frame)).map_err(|fault| fault.internal("sound cannot be converted"))?;
        }
        self.collect()
    }

    fn samples_in(&self, time: Timestamp) -> usize {
        usize::try_from(time.ticks(self.path.sample_rate, 1)).unwrap_or(0)
    }

    /// Fills a gap, a second at a time so that a long one needs no memory. Only up to the end: what claims to be later
    /// than that has a wrong time stamp, and comes next.
    fn silence(&mut self, length: Timestamp, control: &Control) -> Result<(), Error> {
        let gap = self.samples_in(length);
        // A gap in what is left out is left out with it.
        let skipped = self.skip.min(gap);
        self.skip -= skipped;
        let held = self.waiting.first().map_or(0, Vec::len);
        let filled = self.given.saturating_add(u64::try_from(held).unwrap_or(u64::MAX));
        let room = usize::try_from(self.whole.saturating_sub(filled)).unwrap_or(usize::MAX);
        let mut left = (gap - skipped).min(room);
        let second = usize::try_from(self.path.sample_rate).unwrap_or(48_000);
        while left > 0 && self.given < self.most {
            control.stop()?;
            let now = left.min(second);
            for channel in &mut self.waiting {
                channel.resize(channel.len().saturating_add(now), 0.0);
            }
            left -= now;
            self.encode_blocks(false)?;
        }
        Ok(())
    }

    fn finish_graph(&mut self) -> Result<(), Error> {
        if let Some((_, graph)) = &mut self.graph {
            graph.send(None).map_err(|fault| fault.internal("the sound filters cannot be drained"))?;
            self.collect()?;
            self.graph = None;
        }
        Ok(())
    }

    fn collect(&mut self) -> Result<(), Error> {
        while let Some((_, graph)) = &mut self.graph {
            match graph.receive().map_err(|fault| fault.internal("sound cannot be converted"))? {
                Answer::Item(frame) => {
                    let skipped = self.skip.min(usize::try_from(frame.samples()).unwrap_or(0));
                    self.skip -= skipped;
                    for (number, channel) in self.waiting.iter_mut().enumerate() {
                        if let Some(samples) =
                            frame.channel(number).and_then(|samples| samples.get(skipped..))
                        {
                            // Damaged streams decode to absurd numbers, which an encoder refuses.
                            channel.extend(samples.iter().map(|sample| {
                                if sample.is_finite() { sample.clamp(-4.0, 4.0) } else { 0.0 }
                            }));
                        }
                    }
                    self.encode_blocks(false)?;
                }
                Answer::FeedMe | Answer::Finished => return Ok(()),
            }
        }
        Ok(())
    }

    /// Encodes full blocks, and at the end the rest.
    fn encode_blocks(&mut self, rest: bool) -> Result<(), Error> {
        let block = self.encoder.block();
        let mut from = 0;
        let available = self.waiting.iter().map(Vec::len).min().unwrap_or(0);
        while self.given < self.most {
            let room = usize::try_from(self.most - self.given).unwrap_or(usize::MAX);
            let count = block.min(available - from).min(room);
            if count == 0 || (count < block && count < room && !rest) {
                break;
            }
            let channels: Vec<&[f32]> =
                self.waiting.iter().filter_map(|channel| channel.get(from..from + count)).collect();
            let mut frame = Frame::from_samples(self.path.sample_rate, &channels)
                .map_err(|fault| fault.internal("a block of sound cannot be made"))?;
            frame.set_pts(i64::try_from(self.given).unwrap_or(i64::MAX));
            self.encoder.send(Some(&frame)).map_err(|fault| fault.internal("sound cannot be encoded"))?;
            self.given = self.given.saturating_add(u64::try_from(count).unwrap_or(0));
            from += count;
            self.take_packets()?;
        }
        if self.given >= self.most {
            from = available;
        }
        for channel in &mut self.waiting {
            channel.drain(..from.min(channel.len()));
        }
        Ok(())
    }

    fn take_packets(&mut self) -> Result<(), Error> {
        loop {
            match self.encoder.receive().map_err(|fault| fault.internal("sound cannot be encoded"))? {
                Answer::Item(packet) => {
                    self.bytes = self.bytes.saturating_add(u64::try_from(packet.data.len()).unwrap_or(0));
                    let duration = u32::try_from(self.encoder.block()).unwrap_or(1024);
                    let (pts, data) = (packet.pts, packet.data);
                    self.samples.push(Sample { data, dts: pts, pts, duration, sync: true });
                }
                Answer::FeedMe | Answer::Finished => return Ok(()),
            }
        }
    }

    fn finish(mut self, damaged: u64) -> Result<Option<SoundTrack>, Error> {
        self.finish_graph()?;
        self.encode_blocks(true)?;
        if self.given == 0 {
            return Ok(None);
        }
        self.encoder.send(None).map_err(|fault| fault.internal("the sound encoder cannot be drained"))?;
        self.take_packets()?;
        let end = i64::try_from(self.given).unwrap_or(i64::MAX);
        // A packet that holds nothing but padding is no part of the presentation.
        self.samples.retain(|sample| sample.pts < end);
        if let Some(last) = self.samples.last_mut() {
            last.duration =
                u32::try_from(end.saturating_sub(last.pts)).unwrap_or(last.duration).min(last.duration);
        }
        let bytes: u64 = self.samples.iter().map(|sample| ByteSize::of(&sample.data).get()).sum();
        let duration = Duration::from_secs_f64(self.seconds());
        let bytes = ByteSize::new(bytes);
        let format = AudioFormat {
            specific_config: self.encoder.header(),
            channels: u16::try_from(self.path.channels).unwrap_or(2),
            sample_rate: self.path.sample_rate,
            bit_rate: if duration.is_zero() { BitRate::new(0) } else { bytes.over(duration) },
        };
        let track = Track { format, timescale: self.path.sample_rate, samples: self.samples };
        Ok(Some(SoundTrack { track, damaged }))
    }
}

/// How far decoded sound may be from its time stamp before it is put right. Audible sync errors begin at 45 ms
/// (ITU-R BT.1359); containers round by up to a frame of MP3 (26 ms).
const TOLERATED: Timestamp = Timestamp::from_micros(40_000);
