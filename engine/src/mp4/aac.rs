//! AAC's headers: the AudioSpecificConfig of MPEG-4 and the frame header of ADTS.

use super::bits::BitReader;

/// What an AudioSpecificConfig says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpecificConfig {
    /// MPEG-4 audio object type of the core: 2 is AAC-LC, 1 Main, 42 xHE-AAC.
    pub(crate) object_type: u8,
    /// Samples per second of the core.
    pub(crate) sample_rate: u32,
    /// Channels of the core; `None` when the configuration does not tell.
    pub(crate) channels: Option<u8>,
    /// Samples of one channel in a packet of the core: 1024 or 960.
    pub(crate) frame_length: u16,
    /// Signals spectral band replication (HE-AAC). Its absence proves nothing: it may be signalled in packets.
    pub(crate) sbr: bool,
    /// Signals parametric stereo (HE-AAC version 2).
    pub(crate) ps: bool,
    /// Samples per second with band replication, where it is signalled.
    pub(crate) extension_rate: Option<u32>,
}

impl SpecificConfig {
    /// Reads a configuration; `None` when it is cut short or uses reserved values.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut bits = BitReader::new(bytes);
        let mut object_type = read_object_type(&mut bits)?;
        let sample_rate = read_sample_rate(&mut bits)?;
        let channel_configuration = bits.bits(4)?;
        let mut config = Self {
            object_type,
            sample_rate,
            channels: channels_of(channel_configuration),
            frame_length: 1024,
            sbr: object_type == SBR || object_type == PS,
            ps: object_type == PS,
            extension_rate: None,
        };
        if config.sbr {
            config.extension_rate = Some(read_sample_rate(&mut bits)?);
            object_type = read_object_type(&mut bits)?;
            config.object_type = object_type;
        }
        if GENERAL_AUDIO.contains(&object_type) {
            if bits.flag()? {
                config.frame_length = 960;
            }
            if bits.flag()? {
                bits.skip(14)?;
            }
            let extended = bits.flag()?;
            if channel_configuration == 0 {
                config.channels = Some(program_channels(&mut bits)?);
            }
            // What follows in error-resilient types is of no interest, and band replication is not added there.
            if !extended && object_type < 17 && !config.sbr {
                config.read_appended_extension(&mut bits);
            }
        }
        Some(config)
    }

    /// Whether it is plain AAC-LC that every player knows, as far as the configuration tells.
    pub(crate) const fn is_plain_lc(&self) -> bool {
        self.object_type == 2 && !self.sbr && !self.ps && self.frame_length == 1024
    }

    /// The extension that old decoders do not see, because it stands behind everything they read.
    fn read_appended_extension(&mut self, bits: &mut BitReader<'_>) -> Option<()> {
        if bits.bits(11)? != 0x2b7 || read_object_type(bits)? != SBR || !bits.flag()? {
            return None;
        }
        self.sbr = true;
        self.extension_rate = Some(read_sample_rate(bits)?);
        self.ps = bits.bits(11)? == 0x548 && bits.flag()?;
        Some(())
    }
}

/// What the header of an ADTS frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdtsHeader {
    /// MPEG-4 audio object type, 1 to 4; 2 is AAC-LC.
    pub(crate) object_type: u8,
    /// Samples per second of one channel.
    pub(crate) sample_rate: u32,
    /// Number of channels; `None` when the frame itself describes them.
    pub(crate) channels: Option<u8>,
    /// Bytes of the header: 7, or 9 with a checksum.
    pub(crate) header_bytes: usize,
    /// Bytes of the whole frame, not less than `header_bytes`.
    pub(crate) frame_bytes: usize,
    /// Packets in the frame, 1 to 4. Only a frame with one packet can be stored in a file as it is.
    pub(crate) packets: u8,
    rate_index: u8,
    channel_configuration: u8,
}

impl AdtsHeader {
    /// Reads the header at the start of `bytes`; `None` when there is none.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut bits = BitReader::new(bytes);
        if bits.bits(12)? != 0xfff {
            return None;
        }
        bits.skip(1)?;
        if bits.bits(2)? != 0 {
            return None;
        }
        let header_bytes = if bits.flag()? { 7 } else { 9 };
        let object_type = u8::try_from(bits.bits(2)?.saturating_add(1)).ok()?;
        let rate_index = u8::try_from(bits.bits(4)?).ok()?;
        let sample_rate = *SAMPLE_RATES.get(usize::from(rate_index))?;
        bits.skip(1)?;
        let channel_configuration = u8::try_from(bits.bits(3)?).ok()?;
        bits.skip(4)?;
        let frame_bytes = usize::try_from(bits.bits(13)?).ok()?;
        bits.skip(11)?;
        let packets = u8::try_from(bits.bits(2)?.saturating_add(1)).ok()?;
        (frame_bytes >= header_bytes).then_some(Self {
            object_type,
            sample_rate,
            channels: channels_of(u32::from(channel_configuration)),
            header_bytes,
            frame_bytes,
            packets,
            rate_index,
            channel_configuration,
        })
    }

    /// The AudioSpecificConfig that says the same. When `channels` is `None` it says so too and is no use to a
    /// decoder.
    pub(crate) fn specific_config(&self) -> [u8; 2] {
        let value = u16::from(self.object_type) << 11
            | u16::from(self.rate_index) << 7
            | u16::from(self.channel_configuration) << 3;
        value.to_be_bytes()
    }
}

const SBR: u8 = 5;
const PS: u8 = 29;

/// Object types whose configuration has the fields of general audio coding.
const GENERAL_AUDIO: [u8; 12] = [1, 2, 3, 4, 6, 7, 17, 19, 20, 21, 22, 23];

const SAMPLE_RATES: [u32; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];

fn read_object_type(bits: &mut BitReader<'_>) -> Option<u8> {
    let value = match bits.bits(5)? {
        31 => bits.bits(6)?.saturating_add(32),
        value => value,
    };
    u8::try_from(value).ok().filter(|value| *value > 0)
}

fn read_sample_rate(bits: &mut BitReader<'_>) -> Option<u32> {
    match bits.bits(4)? {
        15 => bits.bits(24).filter(|rate| *rate > 0),
        index => SAMPLE_RATES.get(usize::try_from(index).ok()?).copied(),
    }
}

/// Channels of a channel configuration; `None` for 0, where the stream describes them, and for reserved ones.
fn channels_of(configuration: u32) -> Option<u8> {
    match configuration {
        1 => Some(1),
        2 => Some(2),
        3 => Some(3),
        4 => Some(4),
        5 => Some(5),
        6 => Some(6),
        7 | 12 | 14 => Some(8),
        11 => Some(7),
        13 => Some(24),
        _ => None,
    }
}

/// Channels of a program configuration element.
fn program_channels(bits: &mut BitReader<'_>) -> Option<u8> {
    bits.skip(10)?;
    let [front, side, back] = [bits.bits(4)?, bits.bits(4)?, bits.bits(4)?];
    let low = bits.bits(2)?;
    let [data, coupling] = [bits.bits(3)?, bits.bits(4)?];
    for mix_down_bits in [4, 4, 3] {
        if bits.flag()? {
            bits.skip(mix_down_bits)?;
        }
    }
    // Low-frequency channels are single.
    let mut channels = low;
    for _ in 0..front.saturating_add(side).saturating_add(back) {
        let pair = bits.flag()?;
        bits.skip(4)?;
        channels = channels.saturating_add(if pair { 2 } else { 1 });
    }
    for _ in 0..low.saturating_add(data) {
        bits.skip(4)?;
    }
    for _ in 0..coupling {
        bits.skip(5)?;
    }
    bits.align()?;
    let comment = usize::try_from(bits.bits(8)?).ok()?;
    bits.skip(comment.saturating_mul(8))?;
    u8::try_from(channels).ok()
}
