//! Tells what an opened container holds, in facts and in words, and why a track cannot be kept as it is.

use crate::libav::StreamFacts;
use crate::media::{
    AudioTrack, Container, DynamicRange, H264Profile, MediaInfo, MediaKind, Orientation, PixelLayout,
    VideoTrack,
};
use crate::mp4::aac::SpecificConfig;
use crate::mp4::h264::Sps;
use crate::mp4::{self, Layout};
use crate::pipeline::inspect::{Tracks, display_size};
use crate::units::{Dimensions, FrameRate, Timestamp};

impl Tracks {
    /// Why the picture track cannot be kept as it is; `None` when it can.
    pub(crate) fn video_hindrance(&self) -> Option<String> {
        let video = self.video.as_ref()?;
        if video.codec != "h264" {
            return Some(format!("the video codec is {}, not H.264", video.codec));
        }
        let Some(sps) = self.sps else { return Some("the H.264 stream has no header".into()) };
        let layout = mp4_entry(self.layout.as_ref());
        if ![66, 77, 88, 100].contains(&sps.profile) || sps.chroma_format != 1 {
            Some(format!("the H.264 profile {} with {} is not played everywhere", sps.profile, chroma(&sps)))
        } else if sps.luma_depth != 8 || sps.chroma_depth != 8 {
            Some(format!("the video has {} bits a component", sps.luma_depth.max(sps.chroma_depth)))
        } else if sps.level > 51 {
            Some(format!("the H.264 level {}.{} is above 5.1", sps.level / 10, sps.level % 10))
        } else if !sps.frames_only || video.interlaced {
            Some("the video is interlaced".into())
        } else if self.pixel_aspect() != (1, 1) {
            Some("the pixels are not square".into())
        } else if video.orientation != Orientation::Upright {
            Some("the picture is stored turned".into())
        } else if sps.full_range == Some(true) || video.pixels.is_some_and(|pixels| pixels.full_range) {
            Some("the video uses the full range of values".into())
        } else if self.dynamic_range() != DynamicRange::Standard {
            Some("the video has a high dynamic range".into())
        } else if video.coded.is_none_or(|coded| coded.width % 2 != 0 || coded.height % 2 != 0) {
            Some("the picture has an odd size".into())
        } else if layout.is_some_and(|track| track.entries > 1) {
            Some("the video changes its format".into())
        } else {
            None
        }
    }

    fn dynamic_range(&self) -> DynamicRange {
        let video = self.video.as_ref().map_or(DynamicRange::Standard, |video| video.dynamic_range);
        // H.273 transfer characteristics 16 and 18.
        match self.sps.and_then(|sps| sps.color).map(|color| color.transfer) {
            Some(16) => DynamicRange::Pq,
            Some(18) => DynamicRange::Hlg,
            _ => video,
        }
    }

    /// Why the container does not play inline as it is; empty when it does.
    fn container_hindrances(&self) -> Vec<String> {
        let Some(layout) = &self.layout else {
            return vec![format!("the container is {}, not mp4", self.input.container())];
        };
        let mut hindrances = Vec::new();
        let mut unless = |fine: bool, what: &str| {
            if !fine {
                hindrances.push(what.to_owned());
            }
        };
        unless(!layout.fragmented, "the mp4 is fragmented");
        unless(layout.index_first, "the index is at the end");
        unless(!layout.private_metadata, "the file holds metadata that may be private");
        unless(&layout.brand != b"qt  ", "the container is QuickTime, not mp4");
        unless(layout.other_tracks == 0, "the file has tracks beside picture and sound");
        unless(
            layout.video_tracks <= 1 && layout.audio_tracks <= 1,
            "the file has several tracks of one kind",
        );
        unless(!layout.cut_short && !layout.damaged, "the file is damaged or cut short");
        unless(
            layout.tracks.iter().all(mp4::TrackLayout::has_plain_edits),
            "an edit list rearranges a track",
        );
        hindrances
    }

    /// Everything known about the file, in words for people.
    pub(crate) fn describe(&self) -> MediaInfo {
        let video = self.video.as_ref().map(|stream| self.describe_video(stream));
        let audio = self.sounds.first().map(describe_sound);
        let mut hindrances = self.container_hindrances();
        hindrances.extend(self.video_hindrance());
        hindrances.extend(self.sounds.first().and_then(sound_hindrance));
        let unknown = [("video", &self.unknown_video), ("sound", &self.unknown_sound)];
        hindrances.extend(unknown.into_iter().filter_map(|(what, codec)| {
            codec.as_ref().map(|codec| format!("the {what} codec {codec} is not supported"))
        }));
        if let Some(rate) = self.video.as_ref().and_then(|stream| stream.average_rate)
            && rate.as_f64() > MOST_FRAMES_A_SECOND
        {
            hindrances.push(format!("the video has {rate}"));
        }
        let kind = match (self.input.container(), &self.video) {
            (Container::Gif | Container::Png | Container::Webp, Some(_)) => MediaKind::Animation,
            (_, Some(_)) => MediaKind::Video,
            (_, None) => MediaKind::Audio,
        };
        MediaInfo {
            container: self.input.container(),
            kind,
            bytes: Some(self.bytes),
            duration: self.duration().map(Timestamp::since_zero),
            video,
            audio,
            streams: self.streams,
            audio_tracks: self.audio_tracks,
            plays_inline: hindrances.is_empty(),
            hindrances,
        }
    }

    /// Length of the presentation as the container states it.
    pub(crate) fn duration(&self) -> Option<Timestamp> {
        let longest = self.video.iter().chain(&self.sounds).filter_map(|stream| stream.duration).max();
        self.input.duration().or(longest)
    }

    fn describe_video(&self, stream: &StreamFacts) -> VideoTrack {
        let coded = stream.coded.unwrap_or(Dimensions::new(0, 0));
        let pixels = self.sps.map(|sps| PixelLayout {
            bit_depth: sps.luma_depth,
            chroma_420: sps.chroma_format == 1,
            alpha: false,
            full_range: sps.full_range == Some(true),
        });
        VideoTrack {
            codec: stream.codec.clone(),
            h264: self.sps.map(|sps| H264Profile { profile: sps.profile, level: sps.level }),
            coded,
            display: display_size(coded, self.pixel_aspect(), stream.orientation),
            orientation: stream.orientation,
            square_pixels: self.pixel_aspect() == (1, 1),
            frame_rate: stream.average_rate.or_else(|| rate_of(stream)),
            frames: stream.frames,
            pixels: pixels.or(stream.pixels),
            dynamic_range: self.dynamic_range(),
            interlaced: stream.interlaced,
            bit_rate: stream.bit_rate,
            start: stream.start.unwrap_or_default().since_zero(),
            duration: stream.duration.map(Timestamp::since_zero),
        }
    }
}

/// Frames over duration, where the container gives both.
fn rate_of(stream: &StreamFacts) -> Option<FrameRate> {
    let duration = stream.duration?;
    let millis = u32::try_from(duration.micros() / 1000).ok()?;
    FrameRate::new(u32::try_from(stream.frames?).ok()?.checked_mul(1000)?, millis)
}

fn describe_sound(stream: &StreamFacts) -> AudioTrack {
    AudioTrack {
        codec: stream.codec.clone(),
        aac_lc: is_plain_aac(stream),
        channels: stream.channels,
        sample_rate: stream.sample_rate,
        language: stream.language.clone(),
        bit_rate: stream.bit_rate,
        start: stream.start.unwrap_or_default().since_zero(),
        duration: stream.duration.map(Timestamp::since_zero),
    }
}

/// Why a sound track cannot be kept as it is; `None` when it can.
pub(crate) fn sound_hindrance(stream: &StreamFacts) -> Option<String> {
    if stream.codec != "aac" {
        Some(format!("the sound codec is {}, not AAC", stream.codec))
    } else if !is_plain_aac(stream) {
        Some("the sound is not plain AAC-LC".into())
    } else if stream.channels > 2 {
        Some(format!("the sound has {} channels", stream.channels))
    } else if stream.sample_rate > 48_000 {
        Some(format!("the sound has {} samples a second", stream.sample_rate))
    } else {
        None
    }
}

fn is_plain_aac(stream: &StreamFacts) -> bool {
    if stream.codec != "aac" {
        return false;
    }
    // Without a config the stream is in ADTS frames, which are looked at when they are copied.
    stream.extradata.is_empty()
        || SpecificConfig::parse(&stream.extradata).is_some_and(|config| config.is_plain_lc())
}

fn chroma(sps: &Sps) -> &'static str {
    match sps.chroma_format {
        0 => "grey",
        1 => "4:2:0",
        2 => "4:2:2",
        _ => "4:4:4",
    }
}

fn mp4_entry(layout: Option<&Layout>) -> Option<&mp4::TrackLayout> {
    layout?.tracks.iter().find(|track| track.kind == mp4::TrackKind::Video)
}

/// Discord's players show no more.
pub(crate) const MOST_FRAMES_A_SECOND: f64 = 60.5;
