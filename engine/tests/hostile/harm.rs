//! What is done to a whole file.

use fastrand::Rng;

use crate::boxes::{self, MediaBox};

/// How many lengths a file is cut at before anything else is done to it.
pub(crate) const CUTS: usize = 200;

/// What numbers become: nothing, next to nothing, and just below and above what signed and unsigned numbers can hold.
const EXTREMES: [u64; 10] = [
    0,
    1,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0xffff_fff0,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
    0x0001_0000,
];

/// The file in the damage of this number, the same one on every run, and what it is.
pub(crate) fn harm(whole: &[u8], case: usize) -> (Vec<u8>, &'static str) {
    if case < CUTS {
        return (whole[..whole.len() * case / CUTS].to_vec(), "cut");
    }
    let mut rng = Rng::with_seed(u64::try_from(case).unwrap());
    let mut file = whole.to_vec();
    let what = match case % 6 {
        0 => flip(&mut file, &mut rng),
        1 => change_number(&mut file, &mut rng),
        2 => change_a_box(&mut file, &mut rng),
        3 => repeat(&mut file, &mut rng),
        4 => change_times(&mut file, &mut rng),
        // Several at once, and cut as well.
        _ => {
            for _ in 0..rng.usize(2..6) {
                match rng.u8(..5) {
                    0 => flip(&mut file, &mut rng),
                    1 => change_number(&mut file, &mut rng),
                    2 => change_a_box(&mut file, &mut rng),
                    3 => repeat(&mut file, &mut rng),
                    _ => change_times(&mut file, &mut rng),
                };
            }
            file.truncate(rng.usize(file.len() / 2..=file.len()));
            "several"
        }
    };
    (file, what)
}

/// A place in the file: every other one is where the headers are, in the first bytes or the last.
fn somewhere(file: &[u8], rng: &mut Rng) -> usize {
    let near = file.len().min(1500);
    match rng.u8(..8) {
        0..=2 => rng.usize(..near),
        3 => file.len() - 1 - rng.usize(..near),
        _ => rng.usize(..file.len()),
    }
}

fn flip(file: &mut [u8], rng: &mut Rng) -> &'static str {
    for _ in 0..rng.usize(1..12) {
        let at = somewhere(file, rng);
        if rng.bool() {
            file[at] ^= 1 << rng.u8(..8);
        } else {
            file[at] = rng.u8(..);
        }
    }
    "flip"
}

fn write(file: &mut [u8], at: usize, number: u64, bytes: usize, big: bool) {
    for place in 0..bytes {
        let shift = 8 * if big { bytes - 1 - place } else { place };
        if let Some(byte) = file.get_mut(at + place) {
            *byte = u8::try_from((number >> shift) & 0xff).unwrap();
        }
    }
}

fn change_number(file: &mut [u8], rng: &mut Rng) -> &'static str {
    for _ in 0..rng.usize(1..4) {
        let at = somewhere(file, rng);
        let number = EXTREMES[rng.usize(..EXTREMES.len())];
        let bytes = [1, 2, 3, 4, 4, 4, 8, 8][rng.usize(..8)];
        write(file, at, number, bytes, rng.u8(..4) > 0);
    }
    "number"
}

/// A size, a name, or a number inside; in files without boxes a number.
fn change_a_box(file: &mut [u8], rng: &mut Rng) -> &'static str {
    let found = boxes::find(file);
    if found.is_empty() {
        return change_number(file, rng);
    }
    let MediaBox { place, .. } = &found[rng.usize(..found.len())];
    let number = EXTREMES[rng.usize(..EXTREMES.len())];
    match rng.u8(..4) {
        0 => write(file, place.start, number, 4, true),
        1 => {
            // The size stands in eight bytes behind the name.
            write(file, place.start, 1, 4, true);
            write(file, place.start + 8, number, 8, true);
        }
        2 => {
            let other = found[rng.usize(..found.len())].name;
            file[place.start + 4..place.start + 8].copy_from_slice(&other);
        }
        _ => {
            let at = place.start + 8 + 4 * rng.usize(..=(place.len() - 8).min(64) / 4);
            write(file, at, number, 4, true);
        }
    }
    "box"
}

/// A track or another box twice, a thousand times, or away; in files without boxes a piece of them.
fn repeat(file: &mut Vec<u8>, rng: &mut Rng) -> &'static str {
    let found = boxes::find(file);
    let (place, within) = if found.is_empty() {
        let start = somewhere(file, rng);
        let length = rng.usize(1..=2000);
        (start..(start + length).min(file.len()), Vec::new())
    } else {
        let tracks: Vec<&MediaBox> = found.iter().filter(|found| &found.name == b"trak").collect();
        let chosen = if rng.bool() && !tracks.is_empty() {
            tracks[rng.usize(..tracks.len())]
        } else {
            &found[rng.usize(..found.len())]
        };
        (chosen.place.clone(), chosen.within.clone())
    };
    let times = [0, 2, 2, 3, 70, 1000][rng.usize(..6)];
    let before = place.len();
    let times = times.min(1 + (1 << 20) / before.max(1));
    let many = file[place.clone()].repeat(times);
    file.splice(place, many.iter().copied());
    for holder in within {
        let size = u32::from_be_bytes(file[holder..holder + 4].try_into().unwrap());
        let size = u64::from(size) + u64::try_from(many.len()).unwrap() - u64::try_from(before).unwrap();
        write(file, holder, size, 4, true);
    }
    if file.is_empty() {
        file.push(0);
    }
    "repeat"
}

/// Numbers in the boxes that hold times; in files without boxes runs of eight bytes.
fn change_times(file: &mut [u8], rng: &mut Rng) -> &'static str {
    const TIMES: [&[u8; 4]; 12] = [
        b"mvhd", b"tkhd", b"mdhd", b"elst", b"stts", b"ctts", b"stss", b"stsz", b"stsc", b"stco", b"tfdt",
        b"trun",
    ];
    let found: Vec<MediaBox> =
        boxes::find(file).into_iter().filter(|found| TIMES.contains(&&found.name)).collect();
    if found.is_empty() {
        let at = somewhere(file, rng);
        write(file, at, EXTREMES[rng.usize(..EXTREMES.len())], 8, rng.bool());
        return "time";
    }
    for _ in 0..rng.usize(1..4) {
        let MediaBox { place, .. } = &found[rng.usize(..found.len())];
        let at = place.start + 12 + 4 * rng.usize(..=place.len().saturating_sub(16).min(100) / 4);
        let number = EXTREMES[rng.usize(..EXTREMES.len())];
        write(file, at, number, if rng.u8(..4) == 0 { 8 } else { 4 }, true);
    }
    "time"
}
