use std::io::Cursor;

use proptest::prelude::*;

use crate::mp4::boxes::{BoxWriter, VersionAndFlags};
use crate::mp4::{Layout, TrackKind, scan, write};
use crate::units::ByteSize;

use super::{movie, picture, sound};

#[track_caller]
fn layout(file: &[u8]) -> Layout {
    scan(&mut Cursor::new(file), ByteSize::of(file)).unwrap()
}

fn valid() -> Vec<u8> {
    write(&movie(Some(picture(90_000, 3000, 40)), Some(sound(60)))).unwrap().to_vec()
}

fn boxed(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut out = BoxWriter::default();
    out.boxed(kind, |out| out.bytes(body));
    out.into_bytes()
}

/// An index with `extra` boxes in it.
fn index_with(extra: &[u8]) -> Vec<u8> {
    boxed(b"moov", &[&boxed(b"mvhd", &[0; 100])[..], extra].concat())
}

/// The body of an `ilst` entry.
fn tagged(kind: &[u8; 4], text: &[u8]) -> Vec<u8> {
    let entry = boxed(kind, &boxed(b"data", &[&[0, 0, 0, 1, 0, 0, 0, 0], text].concat()));
    let handler = boxed(b"hdlr", b"\0\0\0\0\0\0\0\0mdirappl\0\0\0\0\0\0\0\0\0");
    boxed(b"udta", &boxed(b"meta", &[&[0; 4][..], &handler, &boxed(b"ilst", &entry)].concat()))
}

#[track_caller]
fn check_private(file: &[u8], private: bool) {
    let layout = layout(file);
    assert_eq!((layout.private_metadata, layout.damaged, layout.cut_short), (private, false, false));
}

#[test]
fn name_of_the_encoder_is_no_secret() {
    check_private(&index_with(&tagged(b"\xa9too", b"Lavf59.27.100")), false);
    check_private(&index_with(&tagged(b"\xa9too", &[b'x'; 300])), true);
    check_private(&index_with(&boxed(b"udta", &[])), false);
    check_private(&index_with(&boxed(b"udta", &[0; 4])), false);
}

#[test]
fn tags_tell_about_a_person() {
    check_private(&index_with(&tagged(b"\xa9nam", b"me")), true);
    check_private(&index_with(&boxed(b"udta", &boxed(b"\xa9xyz", b"+35.6586+139.7454/"))), true);
    check_private(&index_with(&boxed(b"udta", &boxed(b"XMP_", b"<x/>"))), true);
    check_private(&index_with(&boxed(b"uuid", &[7; 16])), true);
    check_private(&index_with(&boxed(b"meta", &boxed(b"keys", &[0; 8]))), true);
    check_private(&index_with(&boxed(b"trak", &boxed(b"udta", &boxed(b"name", b"cam")))), true);
    check_private(&index_with(&boxed(b"what", &[])), true);
    for kind in [b"uuid", b"meta", b"udta", b"abcd"] {
        check_private(&[valid(), boxed(kind, b"diary")].concat(), true);
    }
}

#[test]
fn dates_tell_when_a_person_filmed() {
    for (at, version) in [(4, 0), (8, 0), (11, 1), (19, 1)] {
        let mut header = vec![0; 112];
        header[0] = version;
        header[at] = 1;
        for body in [boxed(b"mvhd", &header), boxed(b"trak", &boxed(b"tkhd", &header))] {
            check_private(&boxed(b"moov", &body), true);
        }
        check_private(&boxed(b"moov", &boxed(b"trak", &boxed(b"mdia", &boxed(b"mdhd", &header)))), true);
    }
}

#[test]
fn padding_is_harmless_while_it_is_empty_or_short() {
    check_private(&[valid(), boxed(b"free", &[0; 5000])].concat(), false);
    check_private(&[valid(), boxed(b"free", &[1; 16])].concat(), false);
    check_private(&[valid(), boxed(b"skip", &[1; 17])].concat(), true);
    check_private(&index_with(&boxed(b"free", &[1; 17])), true);
    check_private(&[valid(), boxed(b"wide", &[])].concat(), false);
}

#[test]
fn index_behind_the_samples_is_told() {
    let file = [boxed(b"ftyp", b"qt  \0\0\0\0"), boxed(b"mdat", &[1; 20]), index_with(&[])].concat();
    let layout = layout(&file);
    assert!(layout.has_moov && !layout.index_first);
    assert_eq!(&layout.brand, b"qt  ");
}

#[test]
fn fragments_are_told() {
    assert!(layout(&index_with(&boxed(b"mvex", &[]))).fragmented);
    assert!(layout(&[index_with(&[]), boxed(b"moof", &[])].concat()).fragmented);
    assert!(!layout(&valid()).fragmented);
}

#[test]
fn every_cut_of_a_file_is_seen() {
    let file = valid();
    for length in 1..file.len() {
        let layout = layout(&file[..length]);
        assert!(layout.cut_short || layout.damaged || !layout.has_moov, "{length}");
    }
}

fn sample_bytes(file: &[u8]) -> usize {
    let at = file.windows(4).rposition(|window| window == b"mdat").unwrap();
    file.len() - at - 4
}

#[test]
fn samples_past_the_end_are_seen_where_no_box_tells() {
    let mut file = valid();
    let samples = file.len() - sample_bytes(&file) - 8;
    // A box that reaches to the end of the file, however long it is.
    file[samples..samples + 4].fill(0);
    assert!(!layout(&file).cut_short);
    file.pop();
    assert!(layout(&file).cut_short);
}

#[test]
fn impossible_sizes_are_damage() {
    for size in [2_u32, 7] {
        let mut file = valid();
        file[..4].copy_from_slice(&size.to_be_bytes());
        assert!(layout(&file).damaged);
    }
    let long = |size: u64| [&[0, 0, 0, 1][..], b"mdat", &size.to_be_bytes(), &[0; 8]].concat();
    assert!(layout(&long(15)).damaged);
    assert!(layout(&long(u64::MAX)).cut_short);
    assert!(!layout(&long(24)).cut_short && !layout(&long(24)).damaged);
    assert!(layout(&long(24)[..12]).damaged);
    // A child that is larger than what holds it.
    assert!(layout(&boxed(b"moov", b"\0\0\0\x09trak")).damaged);
    assert!(layout(&boxed(b"moov", b"\0\0\0\x07trak")).damaged);
    // More edits than there is room for.
    let edits = boxed(b"edts", &boxed(b"elst", b"\0\0\0\0\xff\xff\xff\xff"));
    assert!(layout(&index_with(&boxed(b"trak", &edits))).damaged);
}

#[test]
fn announced_sizes_cost_no_memory() {
    let file = [&0xffff_fff0_u32.to_be_bytes()[..], b"moov", &[0; 32]].concat();
    let layout = scan(&mut Cursor::new(&file), ByteSize::new(1 << 40)).unwrap();
    assert!(layout.has_moov && layout.damaged);
    let second = [index_with(&[]), index_with(&[])].concat();
    assert!(self::layout(&second).damaged);
}

#[test]
fn many_boxes_end_the_walk() {
    let file = boxed(b"wide", &[]).repeat((1 << 17) + 1);
    assert!(layout(&file).damaged);
    let tracks = boxed(b"trak", &[]).repeat(300);
    let layout = layout(&index_with(&tracks));
    assert!(layout.damaged);
    assert_eq!(layout.other_tracks, 256);
}

#[test]
fn edits_are_described() {
    let mut list = BoxWriter::default();
    list.boxed(b"edts", |out| {
        out.full_box(b"elst", VersionAndFlags::flags(0), |out| {
            out.count(3);
            for (time, rate) in [(u32::MAX, 0x10000), (4096, 0x10000), (9, 0x20000)] {
                out.u32(100);
                out.u32(time);
                out.u32(rate);
            }
        });
    });
    let layout = layout(&index_with(&boxed(b"trak", &list.into_bytes())));
    let [track] = &layout.tracks[..] else { panic!("{layout:?}") };
    assert_eq!((track.edits, track.edit_start, track.kind), (3, 4096, TrackKind::Other));
    assert!(track.has_empty_edit && track.has_rate_change && !track.has_plain_edits());
}

type Tables<'a> = &'a [(&'a [u8; 4], Vec<u8>)];

#[test]
fn groups_are_closed_when_all_key_frames_are_shown_as_late_as_the_first() {
    let list = |numbers: &[u32], width: usize| -> Vec<u8> {
        let count = u32::try_from(numbers.len() / width).unwrap();
        [0, count].iter().chain(numbers).flat_map(|number| number.to_be_bytes()).collect()
    };
    let closed = |tables: Tables<'_>| {
        let tables: Vec<u8> = tables.iter().flat_map(|(kind, body)| boxed(kind, body)).collect();
        let media = boxed(b"mdia", &boxed(b"minf", &boxed(b"stbl", &tables)));
        layout(&index_with(&boxed(b"trak", &media))).tracks[0].closed_groups
    };
    // Runs of a number of samples and their distance.
    let offsets = list(&[1, 2, 3, 5, 1, 2, 3, 0], 2);
    let keys = |keys: &[u32]| list(keys, 1);
    assert!(closed(&[(b"ctts", offsets.clone()), (b"stss", keys(&[1, 5]))]));
    assert!(closed(&[(b"stss", keys(&[1, 5]))]), "all are shown when they are decoded");
    assert!(closed(&[(b"ctts", list(&[8, 2], 2))]), "decoding can begin everywhere");
    let open: [(&str, Tables<'_>); 6] = [
        ("one is shown later", &[(b"ctts", offsets.clone()), (b"stss", keys(&[1, 3]))]),
        ("one is shown sooner", &[(b"ctts", offsets.clone()), (b"stss", keys(&[1, 5, 7]))]),
        ("one has no distance", &[(b"ctts", offsets.clone()), (b"stss", keys(&[1, 5, 9]))]),
        ("the first is none", &[(b"ctts", offsets.clone()), (b"stss", keys(&[5]))]),
        ("all are, at distances of their own", &[(b"ctts", offsets)]),
        ("the file says so", &[(b"stss", keys(&[1])), (b"stps", keys(&[5]))]),
    ];
    for (what, tables) in open {
        assert!(!closed(tables), "{what}");
    }
    assert!(!closed(&[(b"sbgp", b"\0\0\0\0rap \0\0\0\0".to_vec())]), "a group of random access points");
    assert!(closed(&[(b"sbgp", b"\0\0\0\0roll\0\0\0\0".to_vec())]));
    let written = |frames| layout(&write(&movie(Some(picture(90_000, 3000, frames)), None)).unwrap());
    assert!(written(120).tracks[0].closed_groups);
    // The key frame after four seconds is decoded before pictures that are shown before it.
    assert!(!written(200).tracks[0].closed_groups);
}

#[test]
fn samples_in_another_file_are_told() {
    let with = |reference: &[u8]| {
        let list = boxed(b"dref", &[&[0, 0, 0, 0, 0, 0, 0, 1], reference].concat());
        let media = boxed(b"mdia", &boxed(b"minf", &boxed(b"dinf", &list)));
        layout(&index_with(&boxed(b"trak", &media))).tracks[0].external_data
    };
    assert!(!with(&boxed(b"url ", &[0, 0, 0, 1])));
    assert!(with(&boxed(b"url ", b"\0\0\0\0file:///etc/passwd\0")));
    assert!(with(&boxed(b"alis", &[0, 0, 0, 0])));
    assert!(with(&boxed(b"url ", &[])));
}

#[test]
fn what_is_no_mp4_has_nothing() {
    let page = layout(b"<!DOCTYPE html><html><body>404</body></html>");
    assert!(!page.has_moov && page.brand == [0; 4]);
    assert!(page.cut_short || page.damaged);
    assert_eq!(layout(b""), Layout::default());
    assert!(layout(&[0xff; 3]).cut_short);
}

proptest! {
    #[test]
    fn scanning_never_panics_on_noise(noise in prop::collection::vec(any::<u8>(), 0..400)) {
        layout(&noise);
        layout(&boxed(b"moov", &noise));
        for kind in [b"udta", b"meta", b"mvhd", b"trak"] {
            layout(&index_with(&boxed(kind, &noise)));
        }
        for kind in [b"ctts", b"stss", b"sbgp", b"stsd", b"stsc", b"stsz", b"stz2", b"stco", b"co64"] {
            let tables = boxed(b"minf", &boxed(b"stbl", &boxed(kind, &noise)));
            layout(&index_with(&boxed(b"trak", &boxed(b"mdia", &tables))));
        }
    }

    #[test]
    fn scanning_never_panics_on_damage(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
        size in prop_oneof![Just(None), any::<u64>().prop_map(Some)],
    ) {
        let mut file = valid();
        let head = file.len() - sample_bytes(&file);
        for (at, byte) in damage {
            file[at.index(head)] = byte;
        }
        file.truncate(cut.index(file.len()).max(1));
        let size = size.map_or(ByteSize::of(&file), ByteSize::new);
        let _ = scan(&mut Cursor::new(&file), size);
    }
}
