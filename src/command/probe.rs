//! `azalea probe`: what a media file is.

use std::path::Path;
use std::thread;
use std::time::Duration;

use azalea_engine::{
    AudioTrack, BitRate, ByteSize, Dimensions, DynamicRange, Engine, Limits, MediaInfo, Orientation,
    PixelLayout, VideoTrack,
};
use serde_json::{Value, json};

use crate::cli::Format;
use crate::command::Ready;
use crate::exit::{Exit, OutputError};
use crate::settings::ProbeSettings;
use crate::terminal::{self, Screen};

pub(crate) fn run(settings: &ProbeSettings, screen: &Screen) -> anyhow::Result<Exit> {
    let limits = Limits::default();
    let ready = Ready::new(&settings.input, &limits)?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let info = Engine::builder().threads(threads).queue_depth(1).build()?.probe(ready.source(), &limits)?;
    let name = settings.input.name();
    let answer = match settings.format {
        Format::Json => object(name, &info).to_string(),
        Format::Text => lines(name, &info),
    };
    screen.print(&answer).map_err(|cause| OutputError::stdout(&cause))?;
    Ok(Exit::Done)
}

fn lines(name: &Path, info: &MediaInfo) -> String {
    let mut lines =
        vec![("file", terminal::path(name)), ("is", format!("{} in {}", info.kind, info.container))];
    lines.extend(info.bytes.map(|bytes| ("size", bytes.to_string())));
    lines.extend(info.duration.map(|duration| ("length", terminal::clock(duration))));
    lines.push(("video", info.video.as_ref().map_or("none".to_owned(), video_words)));
    lines.push(("audio", info.audio.as_ref().map_or("none".to_owned(), audio_words)));
    lines.push(("streams", format!("{}, {} of them sound", info.streams, info.audio_tracks)));
    lines.push((
        "inline",
        if info.plays_inline { "plays as it is" } else { "does not play as it is" }.to_owned(),
    ));
    lines.extend(info.hindrances.iter().map(|reason| ("", terminal::escape(reason))));
    let width = lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let lines = lines.iter().map(|(label, text)| format!("{label:width$}  {text}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn video_words(video: &VideoTrack) -> String {
    let mut words = vec![terminal::escape(&video.codec)];
    words.extend(
        video.h264.map(|h264| format!("profile {} level {}", h264.profile, f64::from(h264.level) / 10.0)),
    );
    words.push(video.display.to_string());
    if video.coded != video.display {
        words.push(format!("stored as {}", video.coded));
    }
    words.extend(video.frame_rate.map(|rate| rate.to_string()));
    words.extend(video.bit_rate.map(|rate| rate.to_string()));
    if let Some(pixels) = video.pixels {
        let chroma = if pixels.chroma_420 { " 4:2:0" } else { "" };
        words.push(format!("{} bit{chroma}", pixels.bit_depth));
        words.extend(pixels.alpha.then(|| "with transparency".to_owned()));
        words.extend(pixels.full_range.then(|| "full range".to_owned()));
    }
    words.extend(
        (video.orientation != Orientation::Upright).then(|| orientation(video.orientation).replace('_', " ")),
    );
    words.extend((!video.square_pixels).then(|| "pixels not square".to_owned()));
    words.extend(
        (video.dynamic_range != DynamicRange::Standard)
            .then(|| dynamic_range(video.dynamic_range).to_owned()),
    );
    words.extend(video.interlaced.then(|| "interlaced".to_owned()));
    words.extend(late(video.start));
    words.join(", ")
}

fn audio_words(audio: &AudioTrack) -> String {
    let mut words = vec![terminal::escape(&audio.codec)];
    words.push(if audio.channels == 1 {
        "1 channel".to_owned()
    } else {
        format!("{} channels", audio.channels)
    });
    words.push(format!("{} Hz", audio.sample_rate));
    words.extend(audio.bit_rate.map(|rate| rate.to_string()));
    words.extend(audio.language.as_deref().map(terminal::escape));
    words.extend(late(audio.start));
    words.join(", ")
}

fn late(start: Duration) -> Option<String> {
    (start > Duration::ZERO).then(|| format!("begins at {:.3} s", start.as_secs_f64()))
}

fn object(name: &Path, info: &MediaInfo) -> Value {
    json!({
        "input": name.to_string_lossy(),
        "container": info.container.name(),
        "kind": info.kind.name(),
        "bytes": info.bytes.map(ByteSize::get),
        "duration": info.duration.map(|d| d.as_secs_f64()),
        "video": info.video.as_ref().map(video_object),
        "audio": info.audio.as_ref().map(audio_object),
        "streams": info.streams,
        "audio_tracks": info.audio_tracks,
        "plays_inline": info.plays_inline,
        "hindrances": info.hindrances,
    })
}

fn video_object(video: &VideoTrack) -> Value {
    json!({
        "codec": video.codec,
        "h264": video.h264.map(|h264| json!({ "profile": h264.profile, "level": h264.level })),
        "coded": dimensions(video.coded),
        "display": dimensions(video.display),
        "orientation": orientation(video.orientation),
        "square_pixels": video.square_pixels,
        "fps": video.frame_rate.map(|rate| rate.as_f64()),
        "frame_rate": video.frame_rate.map(|rate| format!("{}/{}", rate.numerator(), rate.denominator())),
        "frames": video.frames,
        "pixels": video.pixels.map(pixel_layout),
        "dynamic_range": dynamic_range(video.dynamic_range),
        "interlaced": video.interlaced,
        "bit_rate": video.bit_rate.map(BitRate::get),
        "start": video.start.as_secs_f64(),
        "duration": video.duration.map(|d| d.as_secs_f64()),
    })
}

fn audio_object(audio: &AudioTrack) -> Value {
    json!({
        "codec": audio.codec,
        "aac_lc": audio.aac_lc,
        "channels": audio.channels,
        "sample_rate": audio.sample_rate,
        "language": audio.language,
        "bit_rate": audio.bit_rate.map(BitRate::get),
        "start": audio.start.as_secs_f64(),
        "duration": audio.duration.map(|d| d.as_secs_f64()),
    })
}

fn dimensions(size: Dimensions) -> Value {
    json!({ "width": size.width, "height": size.height })
}

fn pixel_layout(pixels: PixelLayout) -> Value {
    json!({
        "bit_depth": pixels.bit_depth,
        "chroma_420": pixels.chroma_420,
        "alpha": pixels.alpha,
        "full_range": pixels.full_range,
    })
}

fn orientation(orientation: Orientation) -> &'static str {
    match orientation {
        Orientation::Upright => "upright",
        Orientation::Mirrored => "mirrored",
        Orientation::Turned180 => "turned_180",
        Orientation::Flipped => "flipped",
        Orientation::Transposed => "transposed",
        Orientation::Turned90 => "turned_90",
        Orientation::Transversed => "transversed",
        Orientation::Turned270 => "turned_270",
    }
}

fn dynamic_range(range: DynamicRange) -> &'static str {
    match range {
        DynamicRange::Standard => "sdr",
        DynamicRange::Pq => "pq",
        DynamicRange::Hlg => "hlg",
    }
}
