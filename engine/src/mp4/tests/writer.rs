use std::io::{self, Read, Seek, SeekFrom};

use bytes::Bytes;
use proptest::prelude::*;

use crate::error::ErrorKind;
use crate::mp4::boxes::{Boxes, u32_at, u64_at};
use crate::mp4::writer::head;
use crate::mp4::{Movie, Sample, Track, TrackKind, scan, size, write};
use crate::units::{ByteSize, Dimensions};

use super::{audio_format, movie, payload, picture, sound, video_format};

/// The bodies of all boxes at `path`.
fn find<'a>(file: &'a [u8], path: &[&[u8; 4]]) -> Vec<&'a [u8]> {
    let Some((first, rest)) = path.split_first() else { return vec![file] };
    Boxes::new(file).filter(|(kind, _)| kind == *first).flat_map(|(_, body)| find(body, rest)).collect()
}

fn track_box<'a>(file: &'a [u8], track: usize, path: &[&[u8; 4]]) -> Option<&'a [u8]> {
    find(find(file, &[b"moov", b"trak"])[track], path).first().copied()
}

fn table<'a>(file: &'a [u8], track: usize, name: &[u8; 4]) -> Option<&'a [u8]> {
    track_box(file, track, &[b"mdia", b"minf", b"stbl", name])
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32_at(word, 0).unwrap()).collect()
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap()
}

/// Duration, entry and rate of each edit.
fn edits(file: &[u8], track: usize) -> Vec<(u32, i32, u32)> {
    let body = track_box(file, track, &[b"edts", b"elst"]).unwrap();
    assert_eq!(body[0], 0, "short edits");
    words(&body[8..]).chunks(3).map(|edit| (edit[0], edit[1].cast_signed(), edit[2])).collect()
}

/// Samples in each chunk.
fn chunk_lengths(file: &[u8], track: usize) -> Vec<usize> {
    let runs = words(&table(file, track, b"stsc").unwrap()[8..]);
    let chunks = u32_at(table(file, track, b"stco").unwrap(), 4).unwrap();
    let length = |number| index(runs.chunks(3).rfind(|run| run[0] <= number).unwrap()[1]);
    (1..=chunks).map(length).collect()
}

/// The bytes of every sample, found through the tables.
fn stored(file: &[u8], track: usize) -> Vec<&[u8]> {
    let sizes = words(&table(file, track, b"stsz").unwrap()[12..]);
    let offsets = words(&table(file, track, b"stco").unwrap()[8..]);
    let mut sizes = sizes.into_iter();
    let mut samples = Vec::new();
    for (length, offset) in chunk_lengths(file, track).into_iter().zip(offsets) {
        let mut at = index(offset);
        for _ in 0..length {
            let size = index(sizes.next().unwrap());
            samples.push(&file[at..at + size]);
            at += size;
        }
    }
    assert_eq!(sizes.next(), None, "every sample is in a chunk");
    samples
}

/// Decoding and presentation times on the track's own time line.
fn times(file: &[u8], track: usize) -> Vec<(i64, i64)> {
    let expand = |name| {
        let runs = words(&table(file, track, name)?[8..]);
        Some(runs.chunks(2).flat_map(|run| vec![run[1]; index(run[0])]).collect::<Vec<_>>())
    };
    let deltas = expand(b"stts").unwrap();
    let offsets = expand(b"ctts").unwrap_or_else(|| vec![0; deltas.len()]);
    assert_eq!(deltas.len(), offsets.len());
    let mut now = 0;
    let mut times = Vec::new();
    for (delta, offset) in deltas.into_iter().zip(offsets) {
        times.push((now, now + i64::from(offset)));
        now += i64::from(delta);
    }
    times
}

fn single(samples: Vec<Sample>) -> Movie {
    movie(Some(Track { format: video_format(40), timescale: 1000, samples }), None)
}

fn sample(dts: i64, pts: i64) -> Sample {
    Sample { data: Bytes::from_static(b"abc"), dts, pts, duration: 40, sync: true }
}

#[test]
fn index_stands_before_the_samples() {
    let movie = movie(Some(picture(90_000, 3000, 90)), Some(sound(142)));
    let file = write(&movie).unwrap();
    let order: Vec<_> = Boxes::new(&file).map(|(kind, _)| kind).collect();
    assert_eq!(order, [*b"ftyp", *b"moov", *b"mdat"]);
    let layout = scan(&mut io::Cursor::new(&file), ByteSize::of(&file)).unwrap();
    assert!(layout.has_moov && layout.index_first);
    assert!(!layout.fragmented && !layout.cut_short && !layout.damaged && !layout.private_metadata);
    assert_eq!(&layout.brand, b"isom");
    assert_eq!((layout.video_tracks, layout.audio_tracks, layout.other_tracks), (1, 1, 0));
    assert_eq!(layout.tracks[0].kind, TrackKind::Video);
    assert_eq!((&layout.tracks[0].entry, &layout.tracks[1].entry), (b"avc1", b"mp4a"));
    assert_eq!((layout.tracks[0].samples, layout.tracks[1].samples), (90, 142));
    assert_eq!((layout.tracks[0].edit_start, layout.tracks[1].edit_start), (6000, 1024));
    assert!(layout.tracks.iter().all(|track| track.has_plain_edits() && !track.external_data));
}

#[test]
fn brands_name_a_file_of_sound_alone() {
    let silent = write(&movie(Some(picture(90_000, 3000, 3)), None)).unwrap();
    assert_eq!(find(&silent, &[b"ftyp"]), [b"isom\0\0\x02\0isomiso2avc1mp41"]);
    let blind = write(&movie(None, Some(sound(3)))).unwrap();
    assert_eq!(find(&blind, &[b"ftyp"]), [b"isom\0\0\x02\0isomiso2avc1mp41M4A "]);
}

#[test]
fn time_zero_of_the_presentation_is_where_it_was() {
    let file = write(&movie(Some(picture(30_000, 1001, 300)), Some(sound(471)))).unwrap();
    // Entered behind the two frames of decoding ahead and behind the priming packet.
    assert_eq!(edits(&file, 0), [(300 * 1001 * 3, 2002, 0x10000)]);
    assert_eq!(edits(&file, 1), [(470 * 1024 * 90 / 48, 1024, 0x10000)]);
    assert_eq!(u32_at(find(&file, &[b"moov", b"mvhd"])[0], 12), Some(90_000));
    assert_eq!(u32_at(find(&file, &[b"moov", b"mvhd"])[0], 16), Some(470 * 1024 * 90 / 48));
    // The media lasts as long as all samples together; readers divide it by their number.
    assert_eq!(u32_at(track_box(&file, 0, &[b"mdia", b"mdhd"]).unwrap(), 16), Some(300 * 1001));
}

#[test]
fn decoding_times_last_as_long_as_the_pictures_are_shown() {
    let long = Sample { duration: 300, ..sample(40, 200) };
    let file = write(&single(vec![sample(0, 80), long, sample(80, 120)])).unwrap();
    assert_eq!(words(&table(&file, 0, b"stts").unwrap()[4..]), [2, 2, 40, 1, 500 - 80 - 80]);
    // Even pictures need no such stretch.
    let file = write(&movie(Some(picture(30_000, 1001, 300)), None)).unwrap();
    assert_eq!(times(&file, 0).last().map(|(decoding, _)| *decoding), Some(299 * 1001));
    assert_eq!(words(&table(&file, 0, b"stts").unwrap()[4..]), [1, 300, 1001]);
}

#[test]
fn late_track_begins_with_an_empty_edit() {
    let file = write(&single(vec![sample(500, 540), sample(540, 580), sample(580, 620)])).unwrap();
    assert_eq!(edits(&file, 0), [(540 * 90, -1, 0x10000), (120 * 90, 40, 0x10000)]);
    assert_eq!(u32_at(track_box(&file, 0, &[b"tkhd"]).unwrap(), 20), Some(660 * 90));
}

#[test]
fn offsets_and_sync_table_are_left_out_where_they_say_nothing() {
    let file = write(&single(vec![sample(0, 0), sample(40, 40)])).unwrap();
    assert!(table(&file, 0, b"ctts").is_none() && table(&file, 0, b"stss").is_none());
    let mut samples = vec![sample(0, 40), sample(40, 80), sample(80, 120)];
    samples[1].sync = false;
    let file = write(&single(samples)).unwrap();
    assert_eq!(words(&table(&file, 0, b"ctts").unwrap()[4..]), [1, 3, 40]);
    assert_eq!(words(&table(&file, 0, b"stss").unwrap()[4..]), [2, 1, 3]);
}

#[test]
fn tracks_alternate_about_once_a_second() {
    let file = write(&movie(Some(picture(90_000, 3000, 300)), Some(sound(470)))).unwrap();
    assert_eq!(words(&table(&file, 0, b"stsc").unwrap()[4..]), [1, 1, 30, 1]);
    assert_eq!(words(&table(&file, 1, b"stsc").unwrap()[4..]), [1, 1, 47, 1]);
    let [video, audio] = [0, 1].map(|track| words(&table(&file, track, b"stco").unwrap()[8..]));
    assert_eq!((video.len(), audio.len()), (10, 10));
    assert!(video.iter().zip(&audio).all(|(video, audio)| video < audio));
    assert!(audio.iter().zip(&video[1..]).all(|(audio, video)| audio < video));
}

#[test]
fn chunks_of_a_slow_show_stay_short() {
    let slow = (0..20).map(|i| sample(i * 5000, i * 5000));
    let fast = (0..400).map(|i| sample(100_000 + i * 16, 100_000 + i * 16));
    let file = write(&single(slow.chain(fast).collect())).unwrap();
    let times = times(&file, 0);
    let mut first = 0;
    for samples in chunk_lengths(&file, 0) {
        assert!(times[first + samples - 1].0 - times[first].0 < 1500);
        first += samples;
    }
    assert_eq!(first, 420);
}

#[test]
fn sound_above_64_khz_keeps_its_rate_in_the_configuration() {
    let mut audio = sound(3);
    audio.format.sample_rate = 96_000;
    let file = write(&movie(None, Some(audio))).unwrap();
    let entry = &table(&file, 0, b"stsd").unwrap()[8..];
    assert_eq!(u32_at(entry, 8 + 24), Some(0));
    let esds = find(&entry[8 + 28..], &[b"esds"])[0];
    assert_eq!(
        esds[4..],
        *b"\x03\x19\0\0\0\x04\x11\x40\x15\0\0\0\0\x01\x77\0\0\x01\x77\0\x05\x02\x11\x90\x06\x01\x02"
    );
}

#[test]
fn impossible_movies_are_refused() {
    let mut bare = single(vec![sample(0, 0)]);
    bare.video.as_mut().unwrap().format.avcc = Bytes::new();
    let mut flat = single(vec![sample(0, 0)]);
    flat.video.as_mut().unwrap().format.dimensions = Dimensions::new(70_000, 2);
    let mut still = single(vec![sample(0, 0)]);
    still.video.as_mut().unwrap().timescale = 0;
    let cases = [
        ("no track", movie(None, None)),
        ("no sample", single(vec![])),
        ("no timescale", still),
        ("no configuration", bare),
        ("too wide", flat),
        ("shown before decoded", single(vec![sample(10, 9)])),
        ("time stands still", single(vec![sample(0, 0), sample(0, 40)])),
        ("time goes back", single(vec![sample(0, 0), sample(-1, 40)])),
        ("never shown", single(vec![sample(-100, -90), sample(-60, -50)])),
        ("out of range", single(vec![sample(i64::MIN, i64::MAX)])),
        ("gap too wide", single(vec![sample(0, 0), sample(1 << 31, 1 << 31)])),
    ];
    for (what, movie) in cases {
        assert_eq!(write(&movie).map_err(|error| error.kind()), Err(ErrorKind::Internal), "{what}");
        assert_eq!(size(&movie), ByteSize::new(u64::MAX), "{what}");
    }
}

#[test]
fn long_times_take_wide_fields() {
    let day = 24 * 3600 * 1000;
    let ticks = Some((24 * 3600 * 1000 + 40) * 90);
    let file = write(&single(vec![sample(0, 0), sample(day, day)])).unwrap();
    let header = find(&file, &[b"moov", b"mvhd"])[0];
    assert_eq!((header[0], u64_at(header, 24)), (1, ticks));
    let list = track_box(&file, 0, &[b"edts", b"elst"]).unwrap();
    assert_eq!((list[0], u64_at(list, 8), u64_at(list, 16)), (1, ticks, Some(0)));
    assert_eq!(track_box(&file, 0, &[b"mdia", b"mdhd"]).unwrap()[0], 0);
    assert_eq!(size(&single(vec![sample(0, 0), sample(day, day)])), ByteSize::of(&file));
}

/// A file whose samples are zeros that nobody stores.
struct Sparse {
    head: Vec<u8>,
    size: u64,
    position: u64,
}

impl Read for Sparse {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(usize::try_from(self.size.saturating_sub(self.position)).unwrap());
        for byte in &mut buffer[..count] {
            *byte =
                usize::try_from(self.position).ok().and_then(|at| self.head.get(at)).copied().unwrap_or(0);
            self.position += 1;
        }
        Ok(count)
    }
}

impl Seek for Sparse {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(position) = to else { return Err(io::ErrorKind::Unsupported.into()) };
        self.position = position;
        Ok(position)
    }
}

#[test]
fn files_above_4_gib_take_wide_offsets() {
    let block = Bytes::from(vec![0; 32 << 20]);
    let samples = |count: i64| {
        (0..count).map(|i| Sample { data: block.clone(), ..sample(i * 1000, i * 1000) }).collect::<Vec<_>>()
    };
    let narrow = single(samples(127));
    assert_eq!(size(&narrow).get() - payload(&narrow), ByteSize::of(&head(&narrow).unwrap()).get());
    let wide = single(samples(130));
    let (head, size) = (head(&wide).unwrap(), size(&wide));
    let head_bytes = ByteSize::of(&head).get();
    assert_eq!(size.get() - payload(&wide), head_bytes);
    assert!(table(&head, 0, b"stco").is_none());
    let offsets = table(&head, 0, b"co64").unwrap();
    assert_eq!(u64_at(offsets, 8), Some(head_bytes));
    // Two blocks in each of 65 chunks.
    assert_eq!(u64_at(offsets, 8 + 64 * 8), Some(head_bytes + (128 << 25)));
    let layout = scan(&mut Sparse { head: head.clone(), size: size.get(), position: 0 }, size).unwrap();
    assert!(!layout.cut_short && !layout.damaged && layout.index_first);
    let short = ByteSize::new(size.get() - 1);
    assert!(scan(&mut Sparse { head, size: short.get(), position: 0 }, short).unwrap().cut_short);
}

/// Any samples that may be written, beginning up to a second before or ten after the presentation.
pub(super) fn any_samples(timescale: u32) -> impl Strategy<Value = Vec<Sample>> {
    let scale = i64::from(timescale);
    let steps = prop_oneof![Just(1..=scale / 10), Just(scale / 25..=scale / 25), Just(1..=scale * 3)];
    (steps, -scale..scale * 10, prop_oneof![Just(0), Just(scale / 8)]).prop_flat_map(
        move |(steps, start, ahead)| {
            let part = (steps, 0..=ahead, 0_u8..40, any::<bool>());
            prop::collection::vec(part, 1..120).prop_map(move |parts| {
                let mut dts = start;
                let mut samples = Vec::new();
                for (step, ahead, bytes, sync) in parts {
                    samples.push(Sample {
                        data: Bytes::from(vec![bytes; usize::from(bytes)]),
                        dts,
                        pts: dts + ahead,
                        duration: u32::try_from(step).unwrap(),
                        sync,
                    });
                    dts += step;
                }
                if dts <= 0 {
                    samples.iter_mut().for_each(|sample| {
                        sample.dts += scale;
                        sample.pts += scale;
                    });
                }
                samples
            })
        },
    )
}

fn any_movie() -> impl Strategy<Value = Movie> {
    let video = prop_oneof![Just(1000), Just(30_000), Just(90_000)]
        .prop_flat_map(|timescale| (Just(timescale), any_samples(timescale)))
        .prop_map(|(timescale, samples)| Track { format: video_format(60), timescale, samples });
    let audio =
        any_samples(44_100).prop_map(|samples| Track { format: audio_format(), timescale: 44_100, samples });
    (prop::option::of(video), prop::option::of(audio))
        .prop_filter("some track", |(video, audio)| video.is_some() || audio.is_some())
        .prop_map(|(video, audio)| movie(video, audio))
}

/// Checks that what is stored for a track is what was given.
#[track_caller]
fn check_track(file: &[u8], number: usize, samples: &[Sample], timescale: u32) {
    let stored = stored(file, number);
    assert_eq!(stored, samples.iter().map(|sample| &sample.data[..]).collect::<Vec<_>>());
    let mut shift = 0;
    let mut delay = 0;
    for (duration, entry, _) in edits(file, number) {
        if entry < 0 {
            delay = i64::from(duration);
        } else {
            shift = i64::from(entry);
        }
    }
    for ((dts, pts), sample) in times(file, number).into_iter().zip(samples) {
        assert_eq!(pts - dts, sample.pts - sample.dts);
        let shown = (pts - shift) * 90_000 + delay * i64::from(timescale);
        let error = (shown - sample.pts * 90_000).abs();
        assert!(error * 2 <= i64::from(timescale), "{} is shown {error} off", sample.pts);
    }
}

proptest! {
    #[test]
    fn size_is_what_is_written(movie in any_movie()) {
        let file = write(&movie).unwrap();
        prop_assert_eq!(size(&movie), ByteSize::of(&file));
        prop_assert_eq!(ByteSize::of(&head(&movie).unwrap()).get() + payload(&movie), ByteSize::of(&file).get());
    }

    #[test]
    fn every_sample_is_found_again_at_its_time(movie in any_movie()) {
        let file = write(&movie).unwrap();
        let layout = scan(&mut io::Cursor::new(&file), ByteSize::of(&file)).unwrap();
        prop_assert!(!layout.cut_short && !layout.damaged && !layout.private_metadata && layout.index_first);
        let mut number = 0;
        if let Some(track) = &movie.video {
            check_track(&file, number, &track.samples, track.timescale);
            number += 1;
        }
        if let Some(track) = &movie.audio {
            check_track(&file, number, &track.samples, track.timescale);
        }
    }
}
