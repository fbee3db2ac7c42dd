//! Tells what a file is without decoding it.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::limits::Limits;
use crate::media::{DynamicRange, MediaInfo, MediaKind, Orientation, PixelLayout, VideoTrack};
use crate::picture;
use crate::pipeline::inspect::{self, Opened, PictureFile};
use crate::progress::Control;
use crate::source::Source;
use crate::units::{ByteSize, FrameRate};

/// Looks at `source` on the calling thread.
pub(crate) fn probe(source: Source, limits: &Limits, control: &Arc<Control>) -> Result<MediaInfo, Error> {
    match inspect::open(source, limits, control)? {
        Opened::Tracks(tracks) => Ok(tracks.describe()),
        Opened::Picture(file) => describe_picture(&file),
    }
}

fn describe_picture(file: &PictureFile) -> Result<MediaInfo, Error> {
    let facts = &file.facts;
    let kind = if facts.animated { MediaKind::Animation } else { MediaKind::Still };
    let duration: Option<Duration> = if facts.animated {
        Some(picture::frame_delays(file.container, &file.bytes)?.iter().sum())
    } else {
        None
    };
    let frames = facts.frames.unwrap_or(1);
    let frame_rate = duration.and_then(|duration| {
        let millis = u32::try_from(duration.as_millis()).ok()?;
        FrameRate::new(frames.checked_mul(1000)?, millis)
    });
    let display = if facts.orientation.swaps_sides() { facts.dimensions.turned() } else { facts.dimensions };
    let mut hindrances = Vec::new();
    if facts.animated {
        hindrances.push(format!("an animated {} is larger than the same as a silent video", file.container));
    }
    if facts.has_metadata {
        hindrances.push("the file holds metadata that may be private".to_owned());
    }
    if facts.orientation != Orientation::Upright {
        hindrances.push("the picture is stored turned".to_owned());
    }
    if !facts.whole {
        hindrances.push("the file is damaged or cut short".to_owned());
    }
    Ok(MediaInfo {
        container: file.container,
        kind,
        bytes: Some(ByteSize::of(&file.bytes)),
        duration,
        video: Some(VideoTrack {
            codec: file.container.name().to_owned(),
            h264: None,
            coded: facts.dimensions,
            display,
            orientation: facts.orientation,
            square_pixels: true,
            frame_rate,
            frames: Some(u64::from(frames)),
            pixels: Some(PixelLayout {
                bit_depth: facts.bit_depth,
                chroma_420: false,
                alpha: facts.alpha,
                full_range: true,
            }),
            dynamic_range: DynamicRange::Standard,
            interlaced: false,
            bit_rate: None,
            start: Duration::ZERO,
            duration,
        }),
        audio: None,
        streams: 1,
        audio_tracks: 0,
        plays_inline: hindrances.is_empty(),
        hindrances,
    })
}
