//! Sample descriptions: what a decoder must know before the first sample of a track.

use super::boxes::{BoxWriter, VersionAndFlags};
use super::movie::{AudioFormat, VideoFormat};

/// The description of H.264 samples. The picture's sides must have 16 bits.
pub(super) fn video_entry(out: &mut BoxWriter, video: &VideoFormat) {
    out.boxed(b"avc1", |out| {
        out.zeros(6);
        out.u16(1);
        out.zeros(16);
        for side in [video.dimensions.width, video.dimensions.height] {
            out.u16(u16::try_from(side).unwrap_or(u16::MAX));
        }
        out.u32(SCREEN_RESOLUTION);
        out.u32(SCREEN_RESOLUTION);
        out.u32(0);
        out.u16(1);
        // The compressor's name.
        out.zeros(32);
        out.u16(COLOR_WITHOUT_ALPHA);
        out.u16(u16::MAX);
        out.boxed(b"avcC", |out| out.bytes(&video.avcc));
        if let Some(color) = video.color {
            out.boxed(b"colr", |out| {
                out.bytes(b"nclx");
                out.u16(color.primaries);
                out.u16(color.transfer);
                out.u16(color.matrix);
                out.u8(u8::from(color.full_range) << 7);
            });
        }
    });
}

/// The description of AAC samples.
pub(super) fn audio_entry(out: &mut BoxWriter, audio: &AudioFormat) {
    out.boxed(b"mp4a", |out| {
        out.zeros(6);
        out.u16(1);
        out.zeros(8);
        out.u16(audio.channels);
        out.u16(16);
        out.zeros(4);
        // Fixed point with 16 bits before the point: higher rates stand in the AudioSpecificConfig alone.
        out.u16(u16::try_from(audio.sample_rate).unwrap_or(0));
        out.u16(0);
        out.full_box(b"esds", VersionAndFlags::flags(0), |out| out.bytes(&elementary_stream(audio)));
    });
}

/// The elementary stream descriptor of MPEG-4 part 1.
fn elementary_stream(audio: &AudioFormat) -> Vec<u8> {
    let rate = u32::try_from(audio.bit_rate.get()).unwrap_or(u32::MAX);
    let mut config = BoxWriter::default();
    // MPEG-4 audio; an audio stream, reserved bit set; a buffer of unknown size; greatest and average rate.
    config.bytes(&[0x40, 0x15, 0, 0, 0]);
    config.u32(rate);
    config.u32(rate);
    config.bytes(&descriptor(5, &audio.specific_config));
    let mut stream = BoxWriter::default();
    // No number and no flags: the track is its own name.
    stream.bytes(&[0, 0, 0]);
    stream.bytes(&descriptor(4, &config.into_bytes()));
    stream.bytes(&descriptor(6, &[2]));
    descriptor(3, &stream.into_bytes())
}

/// A descriptor with as few length bytes as it needs, seven bits in each.
fn descriptor(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let mut length = Vec::new();
    let mut rest = body.len();
    loop {
        let more = if length.is_empty() { 0 } else { 0x80 };
        length.push(more | u8::try_from(rest & 0x7f).unwrap_or(0));
        rest >>= 7;
        if rest == 0 {
            break;
        }
    }
    out.extend(length.into_iter().rev());
    out.extend_from_slice(body);
    out
}

/// 72 dots per inch, the format's template value.
const SCREEN_RESOLUTION: u32 = 0x0048_0000;
const COLOR_WITHOUT_ALPHA: u16 = 0x0018;
