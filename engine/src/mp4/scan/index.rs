//! The index of a file: its tracks, their edits and where their samples are.

use crate::mp4::boxes::{u16_at, u32_at, u64_at};

use super::{Scanner, TrackKind, TrackLayout};

/// Tracks at most; real files have less than ten.
const MAX_TRACKS: usize = 256;

impl Scanner {
    /// The body of `moov`.
    pub(super) fn index(&mut self, bytes: &[u8]) {
        self.each(bytes, |scanner, kind, body| match &kind {
            b"mvhd" => scanner.dates(body),
            b"trak" => scanner.track(body),
            b"mvex" => scanner.layout.fragmented = true,
            b"iods" => {}
            _ => scanner.extra(kind, body),
        });
    }

    /// A box that may stand in several places and is no part of the presentation.
    fn extra(&mut self, kind: [u8; 4], body: &[u8]) {
        match &kind {
            b"free" | b"skip" | b"wide" => self.padding(body),
            b"udta" => self.user_data(body),
            b"meta" => self.metadata(body),
            _ => self.layout.private_metadata = true,
        }
    }

    /// The head of `mvhd`, `tkhd` and `mdhd`: when it was made and last changed.
    fn dates(&mut self, body: &[u8]) {
        let dates = match body.first() {
            Some(1) => body.get(4..20),
            _ => body.get(4..12),
        };
        match dates {
            Some(dates) => self.layout.private_metadata |= dates.iter().any(|byte| *byte != 0),
            None => self.layout.damaged = true,
        }
    }

    fn track(&mut self, bytes: &[u8]) {
        if self.layout.tracks.len() >= MAX_TRACKS {
            self.layout.damaged = true;
            return;
        }
        let mut track = TrackLayout::default();
        self.each(bytes, |scanner, kind, body| match &kind {
            b"tkhd" => scanner.dates(body),
            b"edts" => scanner.each(body, |scanner, kind, body| match &kind {
                b"elst" => scanner.edit_list(body, &mut track),
                _ => scanner.extra(kind, body),
            }),
            b"mdia" => scanner.media(body, &mut track),
            b"tref" | b"trgr" | b"tapt" | b"load" | b"clip" | b"matt" => {}
            _ => scanner.extra(kind, body),
        });
        let count = match track.kind {
            TrackKind::Video => &mut self.layout.video_tracks,
            TrackKind::Audio => &mut self.layout.audio_tracks,
            TrackKind::Other => &mut self.layout.other_tracks,
        };
        *count = count.saturating_add(1);
        self.layout.tracks.push(track);
    }

    fn edit_list(&mut self, body: &[u8], track: &mut TrackLayout) {
        let wide = body.first() == Some(&1);
        let announced = u32_at(body, 4).unwrap_or(0);
        let mut edits = 0_u32;
        let mut entered = false;
        for edit in body.get(8..).unwrap_or_default().chunks_exact(if wide { 20 } else { 12 }) {
            if edits >= announced {
                break;
            }
            edits = edits.saturating_add(1);
            let (time, rate) = if wide {
                (u64_at(edit, 8).map(u64::cast_signed), u32_at(edit, 16))
            } else {
                (u32_at(edit, 4).map(u32::cast_signed).map(i64::from), u32_at(edit, 8))
            };
            track.has_rate_change |= rate != Some(0x0001_0000);
            match time {
                Some(time) if time >= 0 => {
                    if !entered {
                        track.edit_start = time;
                    }
                    entered = true;
                }
                _ => track.has_empty_edit = true,
            }
        }
        self.layout.damaged |= edits < announced;
        track.edits = track.edits.saturating_add(edits);
    }

    fn media(&mut self, bytes: &[u8], track: &mut TrackLayout) {
        self.each(bytes, |scanner, kind, body| match &kind {
            b"mdhd" => scanner.dates(body),
            b"hdlr" => {
                track.kind = match body.get(8..12) {
                    Some(b"vide") => TrackKind::Video,
                    Some(b"soun") => TrackKind::Audio,
                    _ => TrackKind::Other,
                };
            }
            b"elng" => {}
            b"minf" => scanner.media_information(body, track),
            _ => scanner.extra(kind, body),
        });
    }

    fn media_information(&mut self, bytes: &[u8], track: &mut TrackLayout) {
        self.each(bytes, |scanner, kind, body| match &kind {
            b"vmhd" | b"smhd" | b"nmhd" | b"hmhd" | b"sthd" | b"gmhd" | b"hdlr" => {}
            b"dinf" => scanner.each(body, |scanner, kind, body| match &kind {
                b"dref" => scanner.data_references(body, track),
                _ => scanner.extra(kind, body),
            }),
            b"stbl" => scanner.sample_tables(body, track),
            _ => scanner.extra(kind, body),
        });
    }

    fn data_references(&mut self, body: &[u8], track: &mut TrackLayout) {
        self.each(body.get(8..).unwrap_or_default(), |_, _, reference| {
            let own_file = reference.get(3).is_some_and(|flags| flags & 1 == 1);
            track.external_data |= !own_file;
        });
    }

    fn sample_tables(&mut self, bytes: &[u8], track: &mut TrackLayout) {
        let mut tables = Tables::default();
        let mut groups = Groups::default();
        self.each(bytes, |scanner, kind, body| match &kind {
            b"stsd" => scanner.descriptions(body, track),
            b"stsc" => tables.runs = body.get(8..).unwrap_or_default(),
            b"stsz" => {
                tables.sizes = SampleSizes {
                    bits: 32,
                    same: u32_at(body, 4).unwrap_or(0),
                    table: body.get(12..).unwrap_or_default(),
                };
                track.samples = u32_at(body, 8).unwrap_or(0);
            }
            b"stz2" => {
                tables.sizes = SampleSizes {
                    bits: body.get(7).copied().unwrap_or(0),
                    same: 0,
                    table: body.get(12..).unwrap_or_default(),
                };
                track.samples = u32_at(body, 8).unwrap_or(0);
            }
            b"stco" => {
                tables.offsets = ChunkOffsets { wide: false, table: body.get(8..).unwrap_or_default() }
            }
            b"co64" => tables.offsets = ChunkOffsets { wide: true, table: body.get(8..).unwrap_or_default() },
            b"ctts" => groups.offsets = body.get(8..).unwrap_or_default(),
            b"stss" => groups.keys = Some(body.get(8..).unwrap_or_default()),
            // Samples at which decoding can begin although what is shown before them cannot be decoded then.
            b"stps" => groups.open = true,
            b"sbgp" => groups.open |= body.get(4..8) == Some(b"rap "),
            b"stts" | b"cslg" | b"sgpd" | b"csgp" | b"sdtp" | b"subs" | b"stdp" | b"padb" | b"saiz"
            | b"saio" => {}
            _ => scanner.extra(kind, body),
        });
        track.closed_groups = groups.are_closed();
        self.layout.cut_short |= tables.end() > self.size;
    }

    fn descriptions(&mut self, body: &[u8], track: &mut TrackLayout) {
        self.each(body.get(8..).unwrap_or_default(), |scanner, kind, body| {
            if track.entries == 0 {
                track.entry = kind;
            }
            track.entries = track.entries.saturating_add(1);
            // Boxes follow a fixed part in the entries of pictures and, but for QuickTime's, of sounds.
            let fixed = match track.kind {
                TrackKind::Video => 78,
                TrackKind::Audio if u16_at(body, 8) == Some(0) => 28,
                TrackKind::Audio | TrackKind::Other => return,
            };
            scanner.each(body.get(fixed..).unwrap_or_default(), |scanner, kind, _| {
                scanner.layout.private_metadata |= &kind == b"uuid" || &kind == b"udta" || &kind == b"meta";
            });
        });
    }
}

/// Where a track's samples are.
#[derive(Default)]
struct Tables<'a> {
    /// Triples of the first chunk, samples in each chunk from there, description.
    runs: &'a [u8],
    sizes: SampleSizes<'a>,
    offsets: ChunkOffsets<'a>,
}

/// How samples are decoded and shown.
#[derive(Default)]
struct Groups<'a> {
    /// Pairs of a number of samples and their presentation minus decoding time.
    offsets: &'a [u8],
    /// Numbers, from 1, of the samples at which decoding can begin; `None` when it can everywhere.
    keys: Option<&'a [u8]>,
    /// The file itself says that some groups are not closed.
    open: bool,
}

impl Groups<'_> {
    /// See [`TrackLayout::closed_groups`]. Takes time in proportion to the tables' bytes.
    fn are_closed(&self) -> bool {
        let runs = || self.offsets.chunks_exact(8).filter_map(|run| Some((u32_at(run, 0)?, u32_at(run, 4)?)));
        let Some((_, usual)) = runs().next() else { return !self.open };
        let Some(keys) = self.keys else { return !self.open && runs().all(|(_, offset)| offset == usual) };
        let mut keys = keys.chunks_exact(4).filter_map(|key| u32_at(key, 0)).peekable();
        if self.open || keys.peek() != Some(&1) {
            return false;
        }
        let mut last = 0_u32;
        for (count, offset) in runs() {
            last = last.saturating_add(count);
            let mut any = false;
            while keys.next_if(|key| *key <= last).is_some() {
                any = true;
            }
            if any && offset != usual {
                return false;
            }
        }
        keys.next().is_none()
    }
}

/// Where each chunk begins in the file.
#[derive(Default)]
struct ChunkOffsets<'a> {
    wide: bool,
    table: &'a [u8],
}

#[derive(Default)]
struct SampleSizes<'a> {
    /// Width of a table's entry: 4, 8, 16 or 32.
    bits: u8,
    /// Bytes of every sample; zero when they stand in the table.
    same: u32,
    table: &'a [u8],
}

impl ChunkOffsets<'_> {
    fn iter(&self) -> impl Iterator<Item = u64> {
        let width = if self.wide { 8 } else { 4 };
        let read = |entry| if self.wide { u64_at(entry, 0) } else { u32_at(entry, 0).map(u64::from) };
        self.table.chunks_exact(width).filter_map(read)
    }
}

impl Tables<'_> {
    /// The end of the sample that ends last. Takes time in proportion to the tables' bytes.
    fn end(&self) -> u64 {
        let mut runs = self.runs.chunks_exact(12).peekable();
        let mut per_chunk = 0_u32;
        let mut sample = 0_usize;
        let mut end = 0_u64;
        for (number, offset) in (1_u32..).zip(self.offsets.iter()) {
            while let Some(run) = runs.next_if(|run| u32_at(run, 0).is_some_and(|first| first <= number)) {
                per_chunk = u32_at(run, 4).unwrap_or(0);
            }
            let bytes = if self.sizes.same > 0 {
                u64::from(self.sizes.same).saturating_mul(u64::from(per_chunk))
            } else {
                let mut bytes = 0_u64;
                for _ in 0..per_chunk {
                    let Some(size) = self.sizes.of(sample) else { break };
                    bytes = bytes.saturating_add(size);
                    sample = sample.saturating_add(1);
                }
                bytes
            };
            end = end.max(offset.saturating_add(bytes));
        }
        end
    }
}

impl SampleSizes<'_> {
    /// Bytes of a sample as the table tells it.
    fn of(&self, sample: usize) -> Option<u64> {
        match self.bits {
            4 => {
                let pair = *self.table.get(sample / 2)?;
                Some(u64::from(if sample.is_multiple_of(2) { pair >> 4 } else { pair & 0x0f }))
            }
            8 => self.table.get(sample).copied().map(u64::from),
            16 => u16_at(self.table, sample.checked_mul(2)?).map(u64::from),
            32 => u32_at(self.table, sample.checked_mul(4)?).map(u64::from),
            _ => None,
        }
    }
}
