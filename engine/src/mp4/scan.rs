//! Judges an MP4 file by its boxes, without touching the samples.

use std::io::{self, Read, Seek, SeekFrom};

use crate::error::Error;
use crate::units::ByteSize;

use super::boxes::{Boxes, FourCc, Header};

mod index;

/// How a file is laid out. For a file that is no MP4 at all, nothing is set but `damaged` or `private_metadata`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Has an index (`moov`).
    pub(crate) has_moov: bool,
    /// The index stands before the first samples.
    pub(crate) index_first: bool,
    /// Samples are indexed piece by piece (`moof`, `mvex`).
    pub(crate) fragmented: bool,
    /// The file ends before something that it announces: a box at its top level, or a sample.
    pub(crate) cut_short: bool,
    /// Boxes contradict each other's sizes, or are too many or too large to be looked at.
    pub(crate) damaged: bool,
    /// Holds something that is no part of the presentation and may tell about a person: tags, dates, unknown
    /// boxes. The mere name of an encoder does not count.
    pub(crate) private_metadata: bool,
    /// The major brand; zeros when there is none.
    pub(crate) brand: [u8; 4],
    /// Number of picture tracks.
    pub(crate) video_tracks: u32,
    /// Number of sound tracks.
    pub(crate) audio_tracks: u32,
    /// Number of tracks that are neither: text, time codes, sensors, hints.
    pub(crate) other_tracks: u32,
    /// The tracks in file order.
    pub(crate) tracks: Vec<TrackLayout>,
}

/// How one track is laid out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrackLayout {
    /// What it holds.
    pub(crate) kind: TrackKind,
    /// Name of the first sample description, such as `avc1` or `mp4a`; zeros when there is none.
    pub(crate) entry: [u8; 4],
    /// Number of sample descriptions.
    pub(crate) entries: u32,
    /// Number of edits.
    pub(crate) edits: u32,
    /// Some edit presents nothing for a while.
    pub(crate) has_empty_edit: bool,
    /// Some edit is played at another rate than 1.
    pub(crate) has_rate_change: bool,
    /// Where the first edit that is not empty enters the track, in ticks of the track; 0 without edits.
    pub(crate) edit_start: i64,
    /// Samples are in another file.
    pub(crate) external_data: bool,
    /// Number of samples as the size table tells it.
    pub(crate) samples: u32,
    /// Each sample at which decoding can begin is shown as long after its decoding time as the first sample, which is
    /// one of them: nothing that is decoded after it is shown before it.
    pub(crate) closed_groups: bool,
}

impl TrackLayout {
    /// Whether the edits only say where the track begins: at most one that shows something, at normal rate, and
    /// none that is empty.
    pub(crate) const fn has_plain_edits(&self) -> bool {
        self.edits <= 1 && !self.has_empty_edit && !self.has_rate_change
    }
}

/// What a track holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TrackKind {
    /// Moving pictures.
    Video,
    /// Sound.
    Audio,
    /// Anything else.
    #[default]
    Other,
}

/// Walks the boxes of a file of `size` bytes. Reads the index, at most 64 MiB, and nothing else of note.
///
/// The position of `reader` is arbitrary afterwards.
///
/// # Errors
/// `Io` when reading fails. A strange file is no error: the answer tells.
pub(crate) fn scan(reader: &mut (impl Read + Seek), size: ByteSize) -> Result<Layout, Error> {
    let failed = |cause| Error::Io { what: "cannot read the input".to_owned(), cause };
    let mut scanner = Scanner { layout: Layout::default(), size: size.get(), seen_samples: false };
    scanner.file(reader).map_err(failed)?;
    Ok(scanner.layout)
}

/// Boxes at the top level at most: ten hours in fragments of half a second.
const MAX_TOP_LEVEL_BOXES: u32 = 1 << 17;

/// The largest index that is looked at: days of ordinary video.
const MAX_INDEX: u64 = 64 << 20;

/// The largest padding whose bytes are looked at; writers leave room for an index, not more.
const MAX_PADDING: u64 = 4 << 20;

/// Padding this short is too short to tell anything.
const SHORT_PADDING: u64 = 16;

struct Scanner {
    layout: Layout,
    /// Bytes of the file.
    size: u64,
    seen_samples: bool,
}

impl Scanner {
    fn file(&mut self, reader: &mut (impl Read + Seek)) -> io::Result<()> {
        let mut position = 0_u64;
        for _ in 0..MAX_TOP_LEVEL_BOXES {
            let left = self.size.saturating_sub(position);
            if left == 0 {
                return Ok(());
            }
            reader.seek(SeekFrom::Start(position))?;
            let mut start = Vec::with_capacity(Header::MAX);
            let wanted = left.min(u64::try_from(Header::MAX).unwrap_or(u64::MAX));
            reader.take(wanted).read_to_end(&mut start)?;
            if left < 8 {
                self.layout.cut_short |= start.iter().any(|byte| *byte != 0);
                return Ok(());
            }
            let Some(header) = Header::parse(&start) else {
                self.layout.damaged = true;
                return Ok(());
            };
            let size = header.size.unwrap_or(left);
            self.layout.cut_short |= size > left || header.length > left;
            let body = Body {
                start: position.saturating_add(header.length),
                length: size.min(left).saturating_sub(header.length),
            };
            self.top_level(header.kind, body, reader)?;
            position = position.saturating_add(size);
        }
        self.layout.damaged = true;
        Ok(())
    }

    fn top_level(&mut self, kind: FourCc, body: Body, reader: &mut (impl Read + Seek)) -> io::Result<()> {
        match &kind {
            b"ftyp" => {
                if let Some(brand) = body.read(reader, 4)?.first_chunk::<4>()
                    && self.layout.brand == [0; 4]
                {
                    self.layout.brand = *brand;
                }
            }
            b"moov" if self.layout.has_moov => self.layout.damaged = true,
            b"moov" => {
                self.layout.has_moov = true;
                self.layout.index_first = !self.seen_samples;
                if body.length > MAX_INDEX {
                    self.layout.damaged = true;
                } else {
                    let index = body.read(reader, MAX_INDEX)?;
                    self.index(&index);
                }
            }
            b"mdat" => self.seen_samples = true,
            b"moof" => self.layout.fragmented = true,
            b"styp" | b"sidx" | b"ssix" | b"mfra" | b"pdin" | b"wide" => {}
            b"free" | b"skip" => {
                if body.length > MAX_PADDING {
                    self.layout.private_metadata = true;
                } else if body.length > SHORT_PADDING {
                    self.padding(&body.read(reader, MAX_PADDING)?);
                }
            }
            _ => self.layout.private_metadata = true,
        }
        Ok(())
    }

    /// Bytes that mean nothing, unless somebody hid something in them.
    fn padding(&mut self, bytes: &[u8]) {
        let short = ByteSize::of(bytes).get() <= SHORT_PADDING;
        self.layout.private_metadata |= !short && bytes.iter().any(|byte| *byte != 0);
    }

    /// Calls `visit` for each box in `bytes`.
    fn each<'a>(&mut self, bytes: &'a [u8], mut visit: impl FnMut(&mut Self, FourCc, &'a [u8])) {
        let mut boxes = Boxes::new(bytes);
        for (kind, body) in boxes.by_ref() {
            visit(self, kind, body);
        }
        self.layout.damaged |= !boxes.is_sound();
    }

    /// A list of user data: harmless when empty or when it tells nothing but the encoder.
    fn user_data(&mut self, bytes: &[u8]) {
        self.each(bytes, |scanner, kind, body| match &kind {
            b"meta" => scanner.metadata(body),
            b"free" | b"skip" => scanner.padding(body),
            _ => scanner.layout.private_metadata = true,
        });
    }

    fn metadata(&mut self, bytes: &[u8]) {
        // ISO files have a version and flags before the boxes, QuickTime files do not.
        let boxes = bytes.strip_prefix(&[0; 4]).unwrap_or(bytes);
        self.each(boxes, |scanner, kind, body| match &kind {
            b"hdlr" => {}
            b"free" | b"skip" => scanner.padding(body),
            b"ilst" => scanner.each(body, |scanner, kind, body| {
                scanner.layout.private_metadata |= &kind != b"\xa9too" || body.len() > LONGEST_ENCODER_TAG;
            }),
            _ => scanner.layout.private_metadata = true,
        });
    }
}

/// An encoder's name with version fits; a diary does not.
const LONGEST_ENCODER_TAG: usize = 256;

/// A box's bytes behind its header, as far as the file has them.
#[derive(Clone, Copy)]
struct Body {
    start: u64,
    length: u64,
}

impl Body {
    /// The first bytes, `most` at most. Takes as much memory as the file really has bytes.
    fn read(self, reader: &mut (impl Read + Seek), most: u64) -> io::Result<Vec<u8>> {
        reader.seek(SeekFrom::Start(self.start))?;
        let mut bytes = Vec::new();
        reader.take(self.length.min(most)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
