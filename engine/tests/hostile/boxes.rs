//! Where the boxes of an ISO media file (mp4, mov) are.

use std::ops::Range;

/// A box: its size and name are its first eight bytes.
#[derive(Clone, Debug)]
pub(crate) struct MediaBox {
    pub(crate) name: [u8; 4],
    pub(crate) place: Range<usize>,
    /// The boxes that hold it, outermost first, by where their sizes stand.
    pub(crate) within: Vec<usize>,
}

const HOLDERS: [&[u8; 4]; 10] =
    [b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"dinf", b"moof", b"traf", b"mvex"];

/// All boxes whose sizes make sense; none when this is another kind of file.
pub(crate) fn find(file: &[u8]) -> Vec<MediaBox> {
    let mut found = Vec::new();
    if file.get(4..8) == Some(b"ftyp") {
        walk(file, 0..file.len(), &[], &mut found);
    }
    found
}

fn walk(file: &[u8], range: Range<usize>, within: &[usize], found: &mut Vec<MediaBox>) {
    let mut at = range.start;
    while at + 8 <= range.end {
        let size = usize::try_from(u32::from_be_bytes(file[at..at + 4].try_into().unwrap())).unwrap();
        let name: [u8; 4] = file[at + 4..at + 8].try_into().unwrap();
        if size < 8 || at + size > range.end {
            return;
        }
        found.push(MediaBox { name, place: at..at + size, within: within.to_vec() });
        if HOLDERS.contains(&&name) {
            let holders: Vec<usize> = within.iter().copied().chain([at]).collect();
            walk(file, at + 8..at + size, &holders, found);
        }
        at += size;
    }
}
