//! Writes a movie as an MP4 file with the index before the samples.

use bytes::Bytes;

use crate::error::Error;
use crate::units::ByteSize;

use super::boxes::{BoxWriter, VersionAndFlags, Width};
use super::entries::{audio_entry, video_entry};
use super::movie::{AudioFormat, Movie, Sample, VideoFormat};
use super::tables::{MOVIE_TIMESCALE, Run, Tables};

/// The exact size of the file that [`pieces`] makes of `movie`, without touching the samples' bytes.
///
/// A movie that cannot be written is larger than any limit; [`pieces`] says why.
pub(crate) fn size(movie: &Movie) -> ByteSize {
    Plan::new(movie).map_or(ByteSize::new(u64::MAX), |plan| ByteSize::new(plan.total()))
}

/// Lays `movie` out as a file: brand and index in the first piece, then the samples, which are shared and not
/// copied. Tracks alternate about once a second.
///
/// # Errors
/// `Internal` when there is no track, when the samples break a rule of [`Sample`], or when a format is
/// impossibly large.
pub(crate) fn pieces(movie: &Movie) -> Result<Vec<Bytes>, Error> {
    let plan = Plan::new(movie)?;
    let mut head = Vec::new();
    plan.write_head(&mut head);
    let samples = plan.tracks.iter().fold(1_usize, |sum, track| sum.saturating_add(track.samples.len()));
    let mut pieces = Vec::with_capacity(samples);
    let mut written = ByteSize::of(&head);
    pieces.push(Bytes::from(head));
    for &Place { track, chunk } in &plan.order {
        let Some(track) = plan.tracks.get(track) else { continue };
        let Some(chunk) = track.tables.chunks.get(chunk) else { continue };
        let count = usize::try_from(chunk.samples).unwrap_or(usize::MAX);
        for sample in track.samples.iter().skip(chunk.first).take(count) {
            written = written.saturating_add(ByteSize::of(&sample.data));
            pieces.push(sample.data.clone());
        }
    }
    if written.get() != plan.total() {
        let (written, planned) = (written.get(), plan.total());
        return Err(Error::internal(format!("{written} bytes were written where {planned} were planned")));
    }
    Ok(pieces)
}

/// All of [`pieces`] in one.
#[cfg(test)]
pub(crate) fn write(movie: &Movie) -> Result<Bytes, Error> {
    pieces(movie).map(|pieces| Bytes::from(pieces.concat()))
}

/// Everything that [`pieces`] puts before the first sample.
#[cfg(test)]
pub(super) fn head(movie: &Movie) -> Result<Vec<u8>, Error> {
    let mut head = Vec::new();
    Plan::new(movie)?.write_head(&mut head);
    Ok(head)
}

/// Bytes of a decoder configuration at most; real ones have about fifty.
const MAX_CONFIG: usize = 1 << 20;

/// A movie whose every byte has its place.
struct Plan<'a> {
    tracks: Vec<TrackPlan<'a>>,
    /// All chunks in file order.
    order: Vec<Place>,
    /// Bytes of all samples.
    payload: u64,
    /// Bytes before the first sample.
    head: u64,
    /// How chunk offsets are written.
    offsets: Width,
}

struct TrackPlan<'a> {
    format: Format<'a>,
    timescale: u32,
    samples: &'a [Sample],
    tables: Tables,
}

#[derive(Clone, Copy)]
enum Format<'a> {
    Video(&'a VideoFormat),
    Audio(&'a AudioFormat),
}

/// A chunk, by the indexes of its track and of itself within it.
struct Place {
    track: usize,
    chunk: usize,
}

impl<'a> Plan<'a> {
    fn new(movie: &'a Movie) -> Result<Self, Error> {
        let mut tracks = Vec::with_capacity(2);
        if let Some(track) = &movie.video {
            tracks.push(TrackPlan::new(Format::Video(&track.format), track.timescale, &track.samples)?);
        }
        if let Some(track) = &movie.audio {
            tracks.push(TrackPlan::new(Format::Audio(&track.format), track.timescale, &track.samples)?);
        }
        if tracks.is_empty() {
            return Err(Error::internal("a movie without tracks was to be written"));
        }
        let order = interleave(&tracks);
        let mut payload = 0_u64;
        for place in &order {
            let chunk =
                tracks.get_mut(place.track).and_then(|track| track.tables.chunks.get_mut(place.chunk));
            if let Some(chunk) = chunk {
                chunk.offset = payload;
                payload = payload.saturating_add(chunk.bytes);
            }
        }
        let mut plan = Self { tracks, order, payload, head: 0, offsets: Width::Narrow };
        plan.head = plan.head_size();
        if Width::for_value(plan.total()) == Width::Wide {
            plan.offsets = Width::Wide;
            plan.head = plan.head_size();
        }
        Ok(plan)
    }

    fn write_head(&self, file: &mut Vec<u8>) {
        file.extend_from_slice(&self.brand());
        file.extend_from_slice(&self.index(self.head));
        file.extend_from_slice(&self.samples_header());
    }

    /// Bytes before the first sample. No field's width depends on the offsets' values.
    fn head_size(&self) -> u64 {
        let parts = [self.brand().len(), self.index(0).len(), self.samples_header().len()];
        parts.into_iter().fold(0, |sum, part| sum.saturating_add(u64::try_from(part).unwrap_or(u64::MAX)))
    }

    const fn total(&self) -> u64 {
        self.head.saturating_add(self.payload)
    }

    fn brand(&self) -> Vec<u8> {
        let mut out = BoxWriter::default();
        out.boxed(b"ftyp", |out| {
            out.bytes(b"isom");
            out.u32(512);
            out.bytes(b"isomiso2avc1mp41");
            if !self.tracks.iter().any(|track| matches!(track.format, Format::Video(_))) {
                out.bytes(b"M4A ");
            }
        });
        out.into_bytes()
    }

    fn samples_header(&self) -> Vec<u8> {
        let mut out = BoxWriter::default();
        match u32::try_from(self.payload.saturating_add(8)) {
            Ok(size) => {
                out.u32(size);
                out.bytes(b"mdat");
            }
            Err(_) => {
                out.u32(1);
                out.bytes(b"mdat");
                out.u64(self.payload.saturating_add(16));
            }
        }
        out.into_bytes()
    }

    /// The index, for samples that begin at the file's byte `head`.
    fn index(&self, head: u64) -> Vec<u8> {
        let mut out = BoxWriter::default();
        out.boxed(b"moov", |out| {
            let duration = self.tracks.iter().map(|track| track.tables.edits.end()).max().unwrap_or(0);
            let width = Width::for_value(duration);
            out.full_box(b"mvhd", VersionAndFlags::of_width(width, 0), |out| {
                no_times(out, width);
                out.u32(MOVIE_TIMESCALE);
                out.uint(duration, width);
                out.u32(NORMAL_RATE);
                out.u16(FULL_VOLUME);
                out.zeros(10);
                identity_matrix(out);
                out.zeros(24);
                out.count(self.tracks.len().saturating_add(1));
            });
            for (id, track) in (1..).zip(&self.tracks) {
                track.write(out, id, ChunkOffsets { head, width: self.offsets });
            }
        });
        out.into_bytes()
    }
}

/// Puts all chunks in the order of their first decoding times, picture before sound where they are equal.
fn interleave(tracks: &[TrackPlan<'_>]) -> Vec<Place> {
    let mut timed = Vec::new();
    for (index, track) in tracks.iter().enumerate() {
        for (chunk, facts) in track.tables.chunks.iter().enumerate() {
            timed.push((facts.start, track.timescale, Place { track: index, chunk }));
        }
    }
    timed.sort_by(|(a, a_scale, _), (b, b_scale, _)| {
        let a = i128::from(*a).saturating_mul(i128::from(*b_scale));
        let b = i128::from(*b).saturating_mul(i128::from(*a_scale));
        a.cmp(&b)
    });
    timed.into_iter().map(|(_, _, place)| place).collect()
}

#[derive(Clone, Copy)]
struct ChunkOffsets {
    head: u64,
    width: Width,
}

impl<'a> TrackPlan<'a> {
    fn new(format: Format<'a>, timescale: u32, samples: &'a [Sample]) -> Result<Self, Error> {
        let config = match format {
            Format::Video(video) => &video.avcc,
            Format::Audio(audio) => &audio.specific_config,
        };
        if config.is_empty() || config.len() > MAX_CONFIG {
            return Err(Error::internal(format!("a decoder configuration has {} bytes", config.len())));
        }
        if let Format::Video(video) = format {
            picture_side(video.dimensions.width)?;
            picture_side(video.dimensions.height)?;
        }
        Ok(Self { format, timescale, samples, tables: Tables::new(samples, timescale)? })
    }

    fn write(&self, out: &mut BoxWriter, id: u32, offsets: ChunkOffsets) {
        out.boxed(b"trak", |out| {
            self.track_header(out, id);
            out.boxed(b"edts", |out| self.edit_list(out));
            out.boxed(b"mdia", |out| {
                self.media_header(out);
                out.full_box(b"hdlr", VersionAndFlags::flags(0), |out| {
                    out.u32(0);
                    out.bytes(match self.format {
                        Format::Video(_) => b"vide",
                        Format::Audio(_) => b"soun",
                    });
                    // Reserved words, then a name that is empty: it would be shown to nobody.
                    out.zeros(13);
                });
                out.boxed(b"minf", |out| {
                    match self.format {
                        Format::Video(_) => {
                            out.full_box(b"vmhd", VersionAndFlags::flags(1), |out| out.zeros(8));
                        }
                        Format::Audio(_) => {
                            out.full_box(b"smhd", VersionAndFlags::flags(0), |out| out.zeros(4));
                        }
                    }
                    out.boxed(b"dinf", |out| {
                        out.full_box(b"dref", VersionAndFlags::flags(0), |out| {
                            out.count(1);
                            out.full_box(b"url ", VersionAndFlags::flags(SELF_CONTAINED), |_| {});
                        });
                    });
                    out.boxed(b"stbl", |out| self.sample_tables(out, offsets));
                });
            });
        });
    }

    fn track_header(&self, out: &mut BoxWriter, id: u32) {
        let duration = self.tables.edits.end();
        let width = Width::for_value(duration);
        out.full_box(b"tkhd", VersionAndFlags::of_width(width, ENABLED_IN_MOVIE), |out| {
            no_times(out, width);
            out.u32(id);
            out.u32(0);
            out.uint(duration, width);
            // Reserved, layer, alternate group.
            out.zeros(12);
            match self.format {
                Format::Video(_) => out.u16(0),
                Format::Audio(_) => out.u16(FULL_VOLUME),
            }
            out.u16(0);
            identity_matrix(out);
            match self.format {
                Format::Video(video) => {
                    // Fixed point with 16 bits after the point; sides were checked to have 16 bits.
                    out.u32(video.dimensions.width << 16);
                    out.u32(video.dimensions.height << 16);
                }
                Format::Audio(_) => out.zeros(8),
            }
        });
    }

    fn edit_list(&self, out: &mut BoxWriter) {
        let edits = self.tables.edits;
        // The entry point is signed: -1 marks the empty edit.
        let longest = edits.delay.max(edits.duration).max(edits.media_time.saturating_mul(2));
        let width = Width::for_value(longest);
        out.full_box(b"elst", VersionAndFlags::of_width(width, 0), |out| {
            out.count(if edits.delay > 0 { 2 } else { 1 });
            if edits.delay > 0 {
                out.uint(edits.delay, width);
                match width {
                    Width::Narrow => out.u32(u32::MAX),
                    Width::Wide => out.u64(u64::MAX),
                }
                out.u32(NORMAL_RATE);
            }
            out.uint(edits.duration, width);
            out.uint(edits.media_time, width);
            out.u32(NORMAL_RATE);
        });
    }

    fn media_header(&self, out: &mut BoxWriter) {
        let duration = self.tables.media_duration;
        let width = Width::for_value(duration);
        out.full_box(b"mdhd", VersionAndFlags::of_width(width, 0), |out| {
            no_times(out, width);
            out.u32(self.timescale);
            out.uint(duration, width);
            out.u16(LANGUAGE_UNDETERMINED);
            out.u16(0);
        });
    }

    fn sample_tables(&self, out: &mut BoxWriter, offsets: ChunkOffsets) {
        let plain = VersionAndFlags::flags(0);
        let tables = &self.tables;
        out.full_box(b"stsd", plain, |out| {
            out.count(1);
            match self.format {
                Format::Video(video) => video_entry(out, video),
                Format::Audio(audio) => audio_entry(out, audio),
            }
        });
        out.full_box(b"stts", plain, |out| runs(out, &tables.deltas));
        if !tables.offsets.is_empty() {
            out.full_box(b"ctts", plain, |out| runs(out, &tables.offsets));
        }
        if let Some(sync) = &tables.sync {
            out.full_box(b"stss", plain, |out| {
                out.count(sync.len());
                sync.iter().for_each(|number| out.u32(*number));
            });
        }
        out.full_box(b"stsc", plain, |out| {
            let mut changes: Vec<(u32, u32)> = Vec::new();
            for (number, chunk) in (1_u32..).zip(&tables.chunks) {
                if changes.last().is_none_or(|(_, samples)| *samples != chunk.samples) {
                    changes.push((number, chunk.samples));
                }
            }
            out.count(changes.len());
            for (first_chunk, samples) in changes {
                out.u32(first_chunk);
                out.u32(samples);
                out.u32(1);
            }
        });
        out.full_box(b"stsz", plain, |out| {
            out.u32(0);
            out.count(tables.sizes.len());
            tables.sizes.iter().for_each(|size| out.u32(*size));
        });
        let kind = match offsets.width {
            Width::Narrow => b"stco",
            Width::Wide => b"co64",
        };
        out.full_box(kind, plain, |out| {
            out.count(tables.chunks.len());
            for chunk in &tables.chunks {
                out.uint(offsets.head.saturating_add(chunk.offset), offsets.width);
            }
        });
    }
}

fn picture_side(pixels: u32) -> Result<u16, Error> {
    u16::try_from(pixels)
        .ok()
        .filter(|pixels| *pixels > 0)
        .ok_or_else(|| Error::internal(format!("a picture side of {pixels} pixels cannot be written")))
}

fn runs(out: &mut BoxWriter, runs: &[Run]) {
    out.count(runs.len());
    for run in runs {
        out.u32(run.count);
        out.u32(run.value);
    }
}

/// Creation and modification time: unknown, so that no file tells when it was made.
fn no_times(out: &mut BoxWriter, width: Width) {
    out.uint(0, width);
    out.uint(0, width);
}

fn identity_matrix(out: &mut BoxWriter) {
    for value in [0x0001_0000, 0, 0, 0, 0x0001_0000, 0, 0, 0, 0x4000_0000] {
        out.u32(value);
    }
}

const NORMAL_RATE: u32 = 0x0001_0000;
const FULL_VOLUME: u16 = 0x0100;
const ENABLED_IN_MOVIE: u32 = 3;
const SELF_CONTAINED: u32 = 1;
/// "und" in three times five bits.
const LANGUAGE_UNDETERMINED: u16 = 0x55c4;
