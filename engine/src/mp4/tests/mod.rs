//! Tests of the room, and the movies that they share.

use bytes::Bytes;

use crate::units::{BitRate, ByteSize, Dimensions};

use super::{AudioFormat, ColorTags, Movie, Sample, Track, VideoFormat};

mod aac;
mod h264;
mod overhead;
mod scan;
mod writer;

/// A picture track of `frames` even frames with pyramids of three B-frames, decoded two frames ahead.
fn picture(timescale: u32, delta: u32, frames: u32) -> Track<VideoFormat> {
    let shown = std::iter::once(0)
        .chain((0..frames).step_by(4).flat_map(|base| [4, 2, 1, 3].map(|ahead| base + ahead)))
        .filter(|shown| *shown < frames);
    let samples = (0_i64..)
        .zip(shown)
        .map(|(decoded, shown)| Sample {
            data: Bytes::from(vec![
                u8::try_from(shown % 251).unwrap();
                40 + usize::try_from(shown % 13).unwrap()
            ]),
            dts: (decoded - 2) * i64::from(delta),
            pts: i64::from(shown) * i64::from(delta),
            duration: delta,
            sync: shown % 120 == 0,
        })
        .collect();
    Track { format: video_format(48), timescale, samples }
}

/// AAC at 48 kHz whose first packet is priming.
fn sound(packets: u32) -> Track<AudioFormat> {
    let samples = (0..packets)
        .map(|packet| Sample {
            data: Bytes::from(vec![0x80 | u8::try_from(packet % 100).unwrap(); 9]),
            dts: i64::from(packet) * 1024 - 1024,
            pts: i64::from(packet) * 1024 - 1024,
            duration: 1024,
            sync: true,
        })
        .collect();
    Track { format: audio_format(), timescale: 48_000, samples }
}

fn video_format(avcc: usize) -> VideoFormat {
    VideoFormat {
        avcc: Bytes::from(vec![1; avcc]),
        dimensions: Dimensions::new(1280, 720),
        color: Some(ColorTags { primaries: 1, transfer: 1, matrix: 1, full_range: false }),
    }
}

fn audio_format() -> AudioFormat {
    AudioFormat {
        specific_config: Bytes::from_static(&[0x11, 0x90]),
        channels: 2,
        sample_rate: 48_000,
        bit_rate: BitRate::kilobits(96),
    }
}

fn movie(video: Option<Track<VideoFormat>>, audio: Option<Track<AudioFormat>>) -> Movie {
    Movie { video, audio }
}

/// All samples' bytes together.
fn payload(movie: &Movie) -> u64 {
    let video = movie.video.iter().flat_map(|track| &track.samples);
    let audio = movie.audio.iter().flat_map(|track| &track.samples);
    video.chain(audio).map(|sample| ByteSize::of(&sample.data).get()).sum()
}
