use super::*;

/// A chunk of a RIFF file: its name, where its content begins, the content.
struct Chunk<'a> {
    name: &'a [u8],
    at: usize,
    content: &'a [u8],
}

/// The chunks of `file` from one place to another, which they fill exactly.
#[track_caller]
fn chunks(file: &[u8], mut at: usize, end: usize) -> Vec<Chunk<'_>> {
    let mut found = Vec::new();
    while at < end {
        let length = number(file, at + 4);
        assert!(
            length.is_multiple_of(2) && at + 8 + length <= end,
            "a chunk of {length} at {at} ends behind {end}"
        );
        found.push(Chunk { name: &file[at..at + 4], at: at + 8, content: &file[at + 8..at + 8 + length] });
        at += 8 + length;
    }
    assert_eq!(at, end);
    found
}

/// The chunks inside of a list.
fn parts<'a>(file: &'a [u8], list: &Chunk<'_>) -> Vec<Chunk<'a>> {
    chunks(file, list.at + 4, list.at + list.content.len())
}

fn number(bytes: &[u8], at: usize) -> usize {
    usize::try_from(u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())).unwrap()
}

fn names<'a>(chunks: &[Chunk<'a>]) -> Vec<&'a [u8]> {
    chunks.iter().map(|chunk| chunk.name).collect()
}

#[test]
fn sizes_counts_and_places_in_the_file_are_true() {
    let file = draw(1);
    assert_eq!((&file[..4], number(&file, 4), &file[8..12]), (&b"RIFF"[..], file.len() - 8, &b"AVI "[..]));

    let top = chunks(&file, 12, file.len());
    assert_eq!(names(&top), [b"LIST", b"LIST", b"idx1"]);
    let [head, contents, index] = top.as_slice() else { panic!("three chunks") };
    assert_eq!((&head.content[..4], &contents.content[..4]), (&b"hdrl"[..], &b"movi"[..]));

    let frames = parts(&file, contents);
    assert_eq!(frames.len(), 50);
    for pair in frames.chunks(2) {
        assert_eq!(names(pair), [b"00db", b"01wb"]);
        assert_eq!((pair[0].content.len(), pair[1].content.len()), (640 * 360 * 3 / 2, 48_000 / 25 * 4));
    }

    assert_eq!(index.content.len(), 50 * 16);
    for (entry, chunk) in index.content.chunks(16).zip(&frames) {
        assert_eq!((&entry[..4], number(entry, 12)), (chunk.name, chunk.content.len()));
        // Counted from the name of the list to the name of the chunk.
        assert_eq!(number(entry, 8), chunk.at - 8 - contents.at);
    }
}

#[test]
fn the_headers_say_what_the_file_holds() {
    let file = draw(2);
    let head = &chunks(&file, 12, file.len())[0];
    let head = parts(&file, head);
    assert_eq!(names(&head), [b"avih", b"LIST", b"LIST"]);
    let whole = head[0].content;
    assert_eq!(whole.len(), 56);
    assert_eq!([0, 16, 24, 32, 36].map(|at| number(whole, at)), [40_000, 50, 2, 640, 360]);

    let picture = parts(&file, &head[1]);
    assert_eq!(names(&picture), [b"strh", b"strf"]);
    let (stream, format) = (picture[0].content, picture[1].content);
    assert_eq!((&stream[..8], stream.len(), format.len()), (&b"vidsI420"[..], 56, 40));
    assert_eq!([20, 24, 32].map(|at| number(stream, at)), [1, 25, 50]);
    assert_eq!((number(format, 4), number(format, 8), &format[16..20]), (640, 360, &b"I420"[..]));

    let sound = parts(&file, &head[2]);
    let (stream, format) = (sound[0].content, sound[1].content);
    assert_eq!((&stream[..4], stream.len(), format.len()), (&b"auds"[..], 56, 16));
    assert_eq!([20, 24, 32, 44].map(|at| number(stream, at)), [4, 192_000, 96_000, 4]);
    assert_eq!((number(format, 4), number(format, 8)), (48_000, 192_000));
}

#[test]
fn the_longest_clip_stays_within_its_bound() {
    let second = u64::from((avi::PICTURE_BYTES + avi::SOUND_BYTES + 48) * FRAME_RATE);
    assert!(second * u64::from(MAX_SECONDS) < 150_000_000);
    assert_eq!(draw(0), draw(1));
}
