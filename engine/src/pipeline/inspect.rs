//! Opens an input and learns what it is, without decoding.

use std::io::{Read, Seek};
use std::sync::Arc;

use bytes::Bytes;

use crate::error::Error;
use crate::libav::{Input, Medium, Pictures, StreamFacts, StreamKind};
use crate::limits::{LimitKind, Limits};
use crate::media::{Container, Orientation};
use crate::mp4::h264::{self, Sps};
use crate::mp4::{self, Layout};
use crate::picture::{self, PictureFacts};
use crate::pipeline::feed::clock_may_jump;
use crate::progress::Control;
use crate::sniff;
use crate::source::{Arrival, Reader, Source};
use crate::units::{ByteSize, Dimensions, Timestamp};

/// What an input turned out to be.
#[derive(Debug)]
pub(crate) enum Opened {
    /// A container with tracks.
    Tracks(Box<Tracks>),
    /// A picture file, still or animated, whole in memory.
    Picture(PictureFile),
}

/// An opened container.
#[derive(Debug)]
pub(crate) struct Tracks {
    pub(crate) input: Input,
    pub(crate) bytes: ByteSize,
    /// What of it has arrived, when it is still growing.
    pub(crate) arrival: Option<Arrival>,
    /// The track a viewer would watch.
    pub(crate) video: Option<StreamFacts>,
    /// Sound tracks that can be decoded, the one a listener would choose by the container's words first.
    pub(crate) sounds: Vec<StreamFacts>,
    /// The codec of the picture, when there is a picture and none that can be decoded.
    pub(crate) unknown_video: Option<String>,
    /// The codec of the sound, when there is sound and none that can be decoded.
    pub(crate) unknown_sound: Option<String>,
    pub(crate) streams: u32,
    pub(crate) audio_tracks: u32,
    /// Where an mp4's parts are.
    pub(crate) layout: Option<Layout>,
    /// The first sequence parameter set of an H.264 track.
    pub(crate) sps: Option<Sps>,
}

/// A picture file.
#[derive(Debug)]
pub(crate) struct PictureFile {
    pub(crate) container: Container,
    pub(crate) bytes: Bytes,
    pub(crate) facts: PictureFacts,
}

impl Medium for Reader {
    fn size(&mut self) -> std::io::Result<ByteSize> {
        Self::size(self)
    }

    fn another(&self) -> Option<Box<dyn Medium>> {
        Some(Box::new(Self::another(self)?))
    }
}

/// Opens `source` and tells what it is.
pub(crate) fn open(source: Source, limits: &Limits, control: &Arc<Control>) -> Result<Opened, Error> {
    control.stop()?;
    let mut reader = source.open(control)?;
    let head = read_head(&mut reader, control)?;
    let container = sniff::sniff(&head)?;
    let bytes = reader.size().map_err(|cause| unreadable(cause, control))?;
    if bytes > limits.input_bytes {
        let (found, allowed) = (bytes.get(), limits.input_bytes.get());
        return Err(Error::TooLarge { limit: LimitKind::InputBytes, found, allowed });
    }
    reader.rewind().map_err(|cause| unreadable(cause, control))?;
    match container {
        Container::Gif | Container::Png | Container::Jpeg | Container::Webp => {
            open_picture(reader, container, bytes, limits, control).map(Opened::Picture)
        }
        _ => open_tracks(reader, container, Pictures::All, bytes, limits, control)
            .map(|tracks| Opened::Tracks(Box::new(tracks))),
    }
}

/// Opens a picture file that libav can demux.
pub(crate) fn open_pictures(
    file: &PictureFile,
    pictures: Pictures,
    limits: &Limits,
    control: &Arc<Control>,
) -> Result<Tracks, Error> {
    let reader = Source::bytes(file.bytes.clone()).open(control)?;
    open_tracks(reader, file.container, pictures, ByteSize::of(&file.bytes), limits, control)
}

fn open_picture(
    mut reader: Reader,
    container: Container,
    size: ByteSize,
    limits: &Limits,
    control: &Arc<Control>,
) -> Result<PictureFile, Error> {
    if size > MOST_PICTURE_BYTES {
        let (found, allowed) = (size.get(), MOST_PICTURE_BYTES.get());
        return Err(Error::TooLarge { limit: LimitKind::InputBytes, found, allowed });
    }
    let mut bytes = Vec::new();
    (&mut reader)
        .take(MOST_PICTURE_BYTES.get())
        .read_to_end(&mut bytes)
        .map_err(|cause| unreadable(cause, control))?;
    let bytes = Bytes::from(bytes);
    let facts = picture::facts(container, &bytes)?;
    check_pixels(facts.dimensions, limits)?;
    Ok(PictureFile { container, bytes, facts })
}

fn open_tracks(
    mut reader: Reader,
    container: Container,
    pictures: Pictures,
    bytes: ByteSize,
    limits: &Limits,
    control: &Arc<Control>,
) -> Result<Tracks, Error> {
    let layout = if container == Container::Mp4 {
        let layout = mp4::scan(&mut reader, bytes)?;
        if !layout.has_moov {
            return Err(Error::corrupt(
                "the mp4 file has no index (moov): it is cut short or was never finished",
            ));
        }
        if layout.tracks.iter().any(|track| track.external_data) {
            return Err(Error::unsupported(
                "the file refers to external files: only self-contained files are opened",
            ));
        }
        reader.rewind().map_err(|cause| unreadable(cause, control))?;
        Some(layout)
    } else {
        None
    };
    let arrival = reader.arrival();
    let mut input = Input::open(Box::new(reader), container, pictures, limits, control)?;
    let mut streams = input.streams();
    if !told_up_front(container, &streams) {
        input.look_ahead()?;
        streams = input.streams();
    }
    let video = choose_video(&streams);
    let sounds = rank_sounds(&streams);
    if let Some(coded) = video.as_ref().and_then(|stream| stream.coded) {
        check_pixels(coded, limits)?;
    }
    refuse_what_has_nothing(container, &streams, video.is_some() || !sounds.is_empty())?;
    let sps = video
        .as_ref()
        .filter(|stream| stream.codec == "h264")
        .and_then(|stream| first_sps(&stream.extradata));
    let keep: Vec<usize> = video.iter().chain(&sounds).map(|stream| stream.index).collect();
    input.keep_only(&keep);
    let count = |kind| streams.iter().filter(|stream| stream.kind == kind).count();
    Ok(Tracks {
        input,
        bytes,
        arrival,
        unknown_video: unknown_codec(&streams, StreamKind::Video).filter(|_| video.is_none()),
        unknown_sound: unknown_codec(&streams, StreamKind::Audio).filter(|_| sounds.is_empty()),
        video,
        sounds,
        streams: u32::try_from(streams.len()).unwrap_or(u32::MAX),
        audio_tracks: u32::try_from(count(StreamKind::Audio)).unwrap_or(u32::MAX),
        layout,
        sps,
    })
}

impl Tracks {
    /// The same container opened once more, for another thread; `None` where one alone can read it.
    pub(crate) fn another(&self, limits: &Limits) -> Result<Option<Self>, Error> {
        let Some(mut input) = self.input.another(limits)? else { return Ok(None) };
        input.keep_only(&self.chosen());
        Ok(Some(Self {
            input,
            bytes: self.bytes,
            arrival: self.arrival.clone(),
            video: self.video.clone(),
            sounds: self.sounds.clone(),
            unknown_video: self.unknown_video.clone(),
            unknown_sound: self.unknown_sound.clone(),
            streams: self.streams,
            audio_tracks: self.audio_tracks,
            layout: None,
            sps: self.sps,
        }))
    }

    /// Closes the demuxer and opens it again at the beginning.
    pub(crate) fn rewind(&mut self, limits: &Limits) -> Result<(), Error> {
        self.input.reopen(limits)?;
        self.input.keep_only(&self.chosen());
        Ok(())
    }

    /// From here on packets of other streams need not be read, unless all of them together make the clock.
    pub(crate) fn narrow(&mut self, streams: &[usize]) {
        if !clock_may_jump(self.input.container()) {
            self.input.keep_only(streams);
        }
    }

    fn chosen(&self) -> Vec<usize> {
        self.video.iter().chain(&self.sounds).map(|stream| stream.index).collect()
    }

    /// Goes near `time` where the container has an index to go by; elsewhere reading goes on from here.
    pub(crate) fn seek_near(&mut self, stream: usize, time: Timestamp) {
        if matches!(self.input.container(), Container::Mp4 | Container::Matroska) {
            self.input.seek(stream, time);
        }
    }

    /// Upright size with square pixels.
    pub(crate) fn display(&self) -> Option<Dimensions> {
        let video = self.video.as_ref()?;
        Some(display_size(video.coded?, self.pixel_aspect(), video.orientation))
    }

    /// Width to height of one stored pixel.
    pub(crate) fn pixel_aspect(&self) -> (u32, u32) {
        let container = self.video.as_ref().map_or((1, 1), |video| video.pixel_aspect);
        let own = self.sps.and_then(|sps| sps.sample_aspect).map(|(w, h)| (u32::from(w), u32::from(h)));
        if container == (1, 1) {
            own.filter(|(w, h)| *w > 0 && *h > 0).unwrap_or(container)
        } else {
            container
        }
    }
}

/// The first sequence parameter set in an H.264 header of either form.
pub(crate) fn first_sps(header: &[u8]) -> Option<Sps> {
    if let Some(config) = h264::DecoderConfig::parse(header) {
        return config.sequence.first().and_then(|unit| Sps::parse(unit));
    }
    h264::annex_b_units(header)
        .find(|unit| h264::unit_type(unit) == Some(h264::SEQUENCE_PARAMETERS))
        .and_then(Sps::parse)
}

/// Stored size to upright size with square pixels. The longer side that a pixel aspect asks for is made
/// longer, so that nothing is lost.
pub(crate) fn display_size(coded: Dimensions, aspect: (u32, u32), orientation: Orientation) -> Dimensions {
    let stretched = match aspect {
        (w, h) if w > h && h > 0 => Dimensions::new(stretch(coded.width, w, h), coded.height),
        (w, h) if w < h && w > 0 => Dimensions::new(coded.width, stretch(coded.height, h, w)),
        _ => coded,
    };
    if orientation.swaps_sides() { stretched.turned() } else { stretched }
}

fn stretch(side: u32, numerator: u32, denominator: u32) -> u32 {
    let scaled =
        (u64::from(side) * u64::from(numerator) + u64::from(denominator) / 2) / u64::from(denominator);
    // A pixel aspect beyond any real format would make an absurd picture.
    u32::try_from(scaled).unwrap_or(u32::MAX).min(side.saturating_mul(16)).max(1)
}

/// Whether the container's header tells all that is needed, so that nothing has to be decoded to find out.
fn told_up_front(container: Container, streams: &[StreamFacts]) -> bool {
    matches!(container, Container::Mp4 | Container::Matroska | Container::Gif)
        && !streams.is_empty()
        && streams.iter().filter(|stream| stream.decodable && !stream.is_attached_picture).all(|stream| {
            match stream.kind {
                StreamKind::Video => stream.coded.is_some(),
                StreamKind::Audio => stream.channels > 0 && stream.sample_rate > 0,
                StreamKind::Other => true,
            }
        })
}

fn choose_video(streams: &[StreamFacts]) -> Option<StreamFacts> {
    streams
        .iter()
        .filter(|stream| stream.kind == StreamKind::Video && stream.decodable && !stream.is_attached_picture)
        .filter(|stream| stream.coded.is_some())
        // The first of the largest: max_by_key takes the last of equals, so the order is turned.
        .rev()
        .max_by_key(|stream| (stream.is_default, stream.coded.map_or(0, Dimensions::pixels)))
        .cloned()
}

/// As a listener would choose: the default track, then more channels up to stereo, then the first. Whether a
/// track can be heard at all is found by decoding, where there are several.
fn rank_sounds(streams: &[StreamFacts]) -> Vec<StreamFacts> {
    let mut sounds: Vec<StreamFacts> = streams
        .iter()
        .filter(|stream| stream.kind == StreamKind::Audio && stream.decodable)
        .cloned()
        .collect();
    sounds
        .sort_by_key(|stream| (!stream.is_default, std::cmp::Reverse(stream.channels.min(2)), stream.index));
    sounds
}

fn refuse_what_has_nothing(container: Container, streams: &[StreamFacts], usable: bool) -> Result<(), Error> {
    if usable {
        return Ok(());
    }
    let unknown =
        [StreamKind::Video, StreamKind::Audio].into_iter().find_map(|kind| unknown_codec(streams, kind));
    if let Some(codec) = unknown {
        return Err(Error::unsupported(format!("the codec {codec} is not supported")));
    }
    Err(Error::corrupt(format!("the {container} file has no video and no audio stream that can be decoded")))
}

/// The codec of the first track of this kind that cannot be decoded.
fn unknown_codec(streams: &[StreamFacts], kind: StreamKind) -> Option<String> {
    let unknown =
        |stream: &&StreamFacts| stream.kind == kind && !stream.decodable && !stream.is_attached_picture;
    streams.iter().find(unknown).map(|stream| stream.codec.clone())
}

fn check_pixels(dimensions: Dimensions, limits: &Limits) -> Result<(), Error> {
    if dimensions.pixels() > limits.frame_pixels {
        let (found, allowed) = (dimensions.pixels(), limits.frame_pixels);
        return Err(Error::TooLarge { limit: LimitKind::FramePixels, found, allowed });
    }
    Ok(())
}

fn read_head(reader: &mut Reader, control: &Control) -> Result<Vec<u8>, Error> {
    let wanted = u64::try_from(sniff::head_bytes()).unwrap_or(u64::MAX);
    let mut head = Vec::new();
    reader.take(wanted).read_to_end(&mut head).map_err(|cause| unreadable(cause, control))?;
    Ok(head)
}

/// A read that failed; a stop explains itself.
pub(crate) fn unreadable(cause: std::io::Error, control: &Control) -> Error {
    match control.stop() {
        Err(reason) => reason.into(),
        Ok(()) => Error::Io { what: "cannot read the input".into(), cause },
    }
}

/// A picture file is held in memory whole.
const MOST_PICTURE_BYTES: ByteSize = ByteSize::mebibytes(256);
