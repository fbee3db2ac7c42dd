//! Keeps compressed streams: packets out of any container into samples of an mp4.

use std::time::Duration;

use bytes::Bytes;

use crate::error::Error;
use crate::libav::{StreamFacts, TimeBase};
use crate::mp4::aac::{AdtsHeader, SpecificConfig};
use crate::mp4::h264::{self, UnitSet};
use crate::mp4::{AudioFormat, ColorTags, Sample, Track, VideoFormat};
use crate::pipeline::feed::Feed;
use crate::pipeline::inspect::Tracks;
use crate::pipeline::reorder::rebuild_dts;
use crate::pipeline::sound::SoundTrack;
use crate::units::{ByteSize, Timestamp};

/// Kept tracks; a track that was asked for and is not here could not be kept.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) video: Option<Track<VideoFormat>>,
    pub(crate) audio: Option<SoundTrack>,
}

/// What is to be kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) video: Option<&'a StreamFacts>,
    pub(crate) audio: Option<&'a StreamFacts>,
    /// The moment of the source that becomes the presentation's beginning.
    pub(crate) origin: Timestamp,
}

/// Reads `tracks` from where it stands and keeps what `wish` names.
///
/// # Errors
/// `Corrupt` when a stream turns out to be no such stream; the caller then encodes it.
pub(crate) fn copy(tracks: &mut Tracks, wish: Wish<'_>) -> Result<Kept, Error> {
    let keep: Vec<usize> = wish.video.iter().chain(&wish.audio).map(|stream| stream.index).collect();
    tracks.narrow(&keep);
    let color = tracks.sps.and_then(|sps| sps.color).map(|color| ColorTags {
        primaries: u16::from(color.primaries),
        transfer: u16::from(color.transfer),
        matrix: u16::from(color.matrix),
        full_range: false,
    });
    let mut video = wish.video.map(|stream| VideoCopy::new(stream, wish.origin)).transpose()?;
    let mut audio = wish.audio.map(|stream| AudioCopy::new(stream, wish.origin));
    let mut feed = Feed::new(&mut tracks.input)?;
    while let Some(packet) = feed.next()? {
        if let Some(video) = video.as_mut().filter(|video| video.stream == packet.stream()) {
            video.add(packet)?;
        } else if let Some(audio) = audio.as_mut().filter(|audio| audio.stream == packet.stream()) {
            audio.add(packet)?;
        }
    }
    Ok(Kept {
        video: video.map(|video| video.finish(color)).transpose()?,
        audio: audio.map(AudioCopy::finish).transpose()?,
    })
}

/// Times in a stream's own ticks, so that copying rounds nothing.
#[derive(Clone, Copy, Debug)]
struct Clock {
    base: TimeBase,
    origin: i64,
}

impl Clock {
    fn new(base: TimeBase, origin: Timestamp) -> Self {
        Self { base, origin: base.ticks(origin) }
    }

    /// Ticks per second when the time base is one over a whole number, else microseconds.
    fn timescale(&self) -> u32 {
        if self.base.numerator == 1 {
            u32::try_from(self.base.denominator).unwrap_or(1_000_000)
        } else {
            1_000_000
        }
    }

    fn time(&self, raw: i64) -> i64 {
        let ticks = raw.saturating_sub(self.origin);
        if self.base.numerator == 1 { ticks } else { self.base.timestamp(ticks).micros() }
    }

    fn length(&self, raw: i64) -> u32 {
        let ticks = if self.base.numerator == 1 { raw } else { self.base.timestamp(raw).micros() };
        u32::try_from(ticks).unwrap_or(0)
    }
}

#[derive(Debug)]
struct VideoCopy {
    stream: usize,
    clock: Clock,
    dimensions: crate::units::Dimensions,
    avcc: Bytes,
    /// Bytes of a unit's length, or `None` for start codes.
    length_size: Option<usize>,
    sequence: Vec<Bytes>,
    samples: Vec<Sample>,
}

impl VideoCopy {
    fn new(stream: &StreamFacts, origin: Timestamp) -> Result<Self, Error> {
        let config = h264::DecoderConfig::parse(&stream.extradata);
        let length_size = config.as_ref().map(|config| config.length_size);
        let avcc = match length_size {
            // The record is kept but for its length size, which becomes 4 as the samples' does.
            Some(_) => with_long_lengths(&stream.extradata),
            None => h264::avcc_from_annex_b(&stream.extradata)?,
        };
        let sequence = h264::DecoderConfig::parse(&avcc)
            .map(|config| config.sequence.iter().map(|unit| Bytes::copy_from_slice(unit)).collect())
            .unwrap_or_default();
        Ok(Self {
            stream: stream.index,
            clock: Clock::new(stream.time_base, origin),
            dimensions: stream.coded.ok_or_else(|| Error::corrupt("the video has no size"))?,
            avcc,
            length_size,
            sequence,
            samples: Vec::new(),
        })
    }

    fn add(&mut self, packet: &crate::libav::Packet) -> Result<(), Error> {
        let damaged = || Error::corrupt("an H.264 packet is damaged");
        if packet.is_damaged() {
            return Err(damaged());
        }
        let raw = packet.raw_pts().ok_or_else(|| Error::corrupt("an H.264 packet has no time"))?;
        let data = match self.length_size {
            Some(size) => {
                let data = packet.to_bytes();
                if !h264::nal_lengths_are_sound(&data, size) {
                    return Err(damaged());
                }
                h264::sample_from_prefixed(&data, size, NOISE)?
            }
            None => {
                let changed = h264::annex_b_units(packet.data())
                    .filter(|unit| h264::unit_type(unit) == Some(h264::SEQUENCE_PARAMETERS))
                    .any(|unit| !self.sequence.iter().any(|known| known == unit));
                if changed {
                    return Err(Error::corrupt("the H.264 stream changes its format"));
                }
                h264::sample_from_annex_b(packet.data(), NOISE)
            }
        };
        if data.is_empty() {
            return Err(damaged());
        }
        let duration = self.clock.length(packet.raw_duration());
        self.samples.push(Sample {
            data,
            dts: 0,
            pts: self.clock.time(raw),
            duration,
            sync: packet.is_key(),
        });
        Ok(())
    }

    fn finish(mut self, color: Option<ColorTags>) -> Result<Track<VideoFormat>, Error> {
        if self.samples.is_empty() {
            return Err(Error::corrupt("the video has no packets"));
        }
        rebuild_dts(&mut self.samples)?;
        is_shown(&self.samples)?;
        let format = VideoFormat { avcc: self.avcc, dimensions: self.dimensions, color };
        Ok(Track { format, timescale: self.clock.timescale(), samples: self.samples })
    }
}

/// A track that is over before the presentation begins is no part of it, and an mp4 cannot say so.
fn is_shown(samples: &[Sample]) -> Result<(), Error> {
    let shown = samples.iter().any(|sample| sample.pts.saturating_add(i64::from(sample.duration)) > 0);
    if shown { Ok(()) } else { Err(Error::corrupt("the stream ends before the presentation begins")) }
}

/// Units that a player does not need: besides the redundant ones, SEI, which may hold anything.
const NOISE: UnitSet = UnitSet::REDUNDANT.with(h264::SEI);

/// A decoder configuration whose samples have lengths of 4 bytes.
fn with_long_lengths(avcc: &Bytes) -> Bytes {
    let mut record = avcc.to_vec();
    if let Some(length) = record.get_mut(4) {
        *length |= 3;
    }
    Bytes::from(record)
}

#[derive(Debug)]
struct AudioCopy {
    stream: usize,
    clock: Clock,
    sample_rate: u32,
    channels: u32,
    config: Option<Bytes>,
    samples: Vec<Sample>,
}

impl AudioCopy {
    fn new(stream: &StreamFacts, origin: Timestamp) -> Self {
        Self {
            stream: stream.index,
            clock: Clock::new(stream.time_base, origin),
            sample_rate: stream.sample_rate,
            channels: stream.channels,
            config: (!stream.extradata.is_empty()).then(|| stream.extradata.clone()),
            samples: Vec::new(),
        }
    }

    fn add(&mut self, packet: &crate::libav::Packet) -> Result<(), Error> {
        if packet.is_damaged() {
            return Err(Error::corrupt("an AAC packet is damaged"));
        }
        let raw = packet.raw_pts().ok_or_else(|| Error::corrupt("an AAC packet has no time"))?;
        let header = AdtsHeader::parse(packet.data())
            .filter(|header| self.config.is_none() || header.frame_bytes == packet.data().len());
        let data = match (&header, &self.config) {
            (Some(header), config) => {
                let own = Bytes::copy_from_slice(&header.specific_config());
                match config {
                    None if header.packets == 1 => self.config = Some(own),
                    Some(known) if *known == own => {}
                    _ => return Err(Error::corrupt("the AAC stream changes its format")),
                }
                Bytes::copy_from_slice(packet.data().get(header.header_bytes..).unwrap_or_default())
            }
            (None, Some(_)) => packet.to_bytes(),
            (None, None) => return Err(Error::corrupt("the AAC stream has no header")),
        };
        let pts = self.clock.time(raw);
        let duration = self.clock.length(packet.raw_duration());
        // A packet that repeats a time, as joined files have, cannot be kept.
        if self.samples.last().is_some_and(|last| last.pts >= pts) {
            return Err(Error::corrupt("the AAC stream's times do not grow"));
        }
        self.samples.push(Sample { data, dts: pts, pts, duration, sync: true });
        Ok(())
    }

    fn finish(self) -> Result<SoundTrack, Error> {
        let config = self.config.ok_or_else(|| Error::corrupt("the AAC stream has no header"))?;
        let parsed = SpecificConfig::parse(&config)
            .filter(SpecificConfig::is_plain_lc)
            .ok_or_else(|| Error::corrupt("the sound is not plain AAC-LC"))?;
        let timescale = self.clock.timescale();
        let (Some(first), Some(last)) = (self.samples.first(), self.samples.last()) else {
            return Err(Error::corrupt("the sound has no packets"));
        };
        is_shown(&self.samples)?;
        let ticks = last.pts.saturating_add(i64::from(last.duration)).saturating_sub(first.pts.max(0));
        let seconds = Timestamp::from_micros(ticks.max(0)).seconds() * 1e6 / f64::from(timescale.max(1));
        let duration = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let bytes = ByteSize::new(self.samples.iter().map(|sample| ByteSize::of(&sample.data).get()).sum());
        let format = AudioFormat {
            specific_config: config,
            channels: parsed.channels.map_or_else(|| u16::try_from(self.channels).unwrap_or(2), u16::from),
            sample_rate: if parsed.sample_rate > 0 { parsed.sample_rate } else { self.sample_rate },
            bit_rate: bytes.over(duration),
        };
        let track = Track { format, timescale, samples: self.samples };
        Ok(SoundTrack { track, damaged: 0 })
    }
}
