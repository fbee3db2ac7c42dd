//! Files that are known by name and not taken: programs, archives, documents, and media of other kinds.

/// One way to recognise a file.
struct Signature {
    at: usize,
    magic: &'static [u8],
    what: &'static str,
}

const fn start(magic: &'static [u8], what: &'static str) -> Signature {
    Signature { at: 0, magic, what }
}

const fn at(at: usize, magic: &'static [u8], what: &'static str) -> Signature {
    Signature { at, magic, what }
}

/// Names a file by a signature that no text begins with by chance.
pub(super) fn by_long_signature(head: &[u8]) -> Option<&'static str> {
    find(&LONG, head)
}

/// Names a file that is known not to be a text by a signature that a text could begin with.
pub(super) fn by_short_signature(head: &[u8]) -> Option<&'static str> {
    find(&SHORT, head).or_else(|| picture_by_fields(head)).or_else(|| raw_video(head))
}

fn find(signatures: &[Signature], head: &[u8]) -> Option<&'static str> {
    signatures
        .iter()
        .find(|signature| head.get(signature.at..).is_some_and(|rest| rest.starts_with(signature.magic)))
        .map(|signature| signature.what)
}

/// Formats with a weak signature, confirmed by the fields after it.
fn picture_by_fields(head: &[u8]) -> Option<&'static str> {
    match head {
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, _, _, 0, 0, 12 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0, ..] => {
            Some("BMP pictures are not supported")
        }
        [0, 0, 1, 0, 1..=255, 0, _, _, _, 0, ..] => Some("icons (ICO) are not supported"),
        [0, 0, 2, 0, 1..=255, 0, _, _, _, 0, ..] => Some("cursors (CUR) are not supported"),
        [b'P', b'1'..=b'7', b' ' | b'\n' | b'\r' | b'\t', ..] => Some("PNM pictures are not supported"),
        [b'F' | b'C' | b'Z', b'W', b'S', 1..=0x3F, ..] => Some("Flash programs (SWF) are not supported"),
        [b'F', b'O', b'R', b'M', _, _, _, _, b'A', b'I', b'F', b'F' | b'C', ..] => {
            Some("AIFF sound is not supported")
        }
        [b'F', b'O', b'R', b'M', ..] => Some("an IFF file, which is not supported"),
        _ => None,
    }
}

/// Raw video streams: a start code, then a kind of unit that such streams begin with.
fn raw_video(head: &[u8]) -> Option<&'static str> {
    let unit = head.strip_prefix(&[0, 0, 0, 1]).or_else(|| head.strip_prefix(&[0, 0, 1]))?;
    match unit {
        // H.264: access unit delimiter, parameter sets, supplemental information.
        [0x09 | 0x06 | 0x27 | 0x28 | 0x47 | 0x67 | 0x68, ..] => Some("a raw H.264 stream is not supported"),
        // H.265: video parameter set, access unit delimiter.
        [0x40 | 0x46, 0x01, ..] => Some("a raw H.265 stream is not supported"),
        [0xB0 | 0xB3 | 0xB5 | 0xB6, ..] => Some("a raw MPEG video stream is not supported"),
        _ => None,
    }
}

const LONG: [Signature; 44] = [
    start(b"%PDF-", "a PDF document, not a media file"),
    start(b"%!PS", "a PostScript document, not a media file"),
    start(b"{\\rtf", "a rich text document, not a media file"),
    start(b"PK\x03\x04", "a ZIP archive, not a media file"),
    start(b"PK\x05\x06", "an empty ZIP archive, not a media file"),
    start(b"PK\x07\x08", "a ZIP archive, not a media file"),
    start(b"\x1F\x8B\x08", "a gzip archive, not a media file"),
    start(b"\xFD7zXZ\x00", "an xz archive, not a media file"),
    start(b"\x28\xB5\x2F\xFD", "a zstd archive, not a media file"),
    start(b"7z\xBC\xAF\x27\x1C", "a 7z archive, not a media file"),
    start(b"Rar!\x1A\x07", "a RAR archive, not a media file"),
    at(257, b"ustar", "a tar archive, not a media file"),
    start(b"\x7FELF", "a program (ELF), not a media file"),
    start(b"\xCF\xFA\xED\xFE", "a program (Mach-O), not a media file"),
    start(b"\xCE\xFA\xED\xFE", "a program (Mach-O), not a media file"),
    start(b"\xCA\xFE\xBA\xBE", "a program, not a media file"),
    start(b"\x00asm", "a program (WebAssembly), not a media file"),
    start(b"SQLite format 3\x00", "a SQLite database, not a media file"),
    start(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "an Office document, not a media file"),
    start(b"bplist0", "a property list, not a media file"),
    start(b"\x30\x26\xB2\x75\x8E\x66\xCF\x11", "Windows Media (ASF, WMV, WMA) is not supported"),
    start(b"\xB7\xD8\x00\x20\x37\x49\xDA\x11", "Windows recorded TV (WTV) is not supported"),
    start(b".RMF\x00", "RealMedia is not supported"),
    start(b".ra\xFD", "RealAudio is not supported"),
    start(b"II*\x00", "TIFF and camera raw pictures are not supported"),
    start(b"MM\x00*", "TIFF and camera raw pictures are not supported"),
    start(b"II+\x00", "TIFF pictures are not supported"),
    start(b"MM\x00+", "TIFF pictures are not supported"),
    start(b"8BPS\x00", "Photoshop documents (PSD) are not supported"),
    start(b"\x00\x00\x00\x0CJXL ", "JPEG XL pictures are not supported"),
    start(b"\xFF\x0A", "JPEG XL pictures are not supported"),
    start(b"\x00\x00\x00\x0CjP  ", "JPEG 2000 pictures are not supported"),
    start(b"\xFF\x4F\xFF\x51", "JPEG 2000 pictures are not supported"),
    start(b"\x8AMNG\r\n\x1A\n", "MNG animations are not supported"),
    start(b"BPG\xFB", "BPG pictures are not supported"),
    start(b"\x76\x2F\x31\x01", "OpenEXR pictures are not supported"),
    start(b"#!AMR", "AMR sound is not supported"),
    start(b"MThd\x00\x00", "a MIDI file, which is not supported"),
    start(b"\x06\x0E\x2B\x34\x02\x05\x01\x01", "MXF is not supported"),
    start(b"YUV4MPEG2 ", "raw video (Y4M) is not supported"),
    start(b"DKIF\x00\x00", "IVF video is not supported"),
    start(b"nut/multimedia container\x00", "NUT is not supported"),
    start(b"riff\x2E\x91\xCF\x11", "Wave64 sound is not supported"),
    start(b"Creative Voice File\x1A", "Creative Voice sound is not supported"),
];

const SHORT: [Signature; 24] = [
    start(b"MZ", "a program (EXE), not a media file"),
    start(b"BZh", "a bzip2 archive, not a media file"),
    start(b"caff\x00", "CAF sound is not supported"),
    start(b"DSD ", "DSD sound (DSF) is not supported"),
    start(b"FRM8", "DSD sound (DFF) is not supported"),
    start(b".snd", "AU sound is not supported"),
    start(b"RIFX", "big-endian WAV is not supported"),
    start(b"MAC ", "Monkey's Audio is not supported"),
    start(b"wvpk", "WavPack sound is not supported"),
    start(b"TTA1", "True Audio sound is not supported"),
    start(b"tBaK", "TAK sound is not supported"),
    start(b"MPCK", "Musepack sound is not supported"),
    start(b"MP+", "Musepack sound is not supported"),
    start(b"\x0B\x77", "a raw AC-3 stream is not supported"),
    start(b"\x7F\xFE\x80\x01", "a raw DTS stream is not supported"),
    start(b"\x1F\x07\x00", "raw DV video is not supported"),
    start(b"BIKi", "Bink video is not supported"),
    start(b"KB2", "Bink video is not supported"),
    start(b"SMK2", "Smacker video is not supported"),
    start(b"SMK4", "Smacker video is not supported"),
    start(b"qoif", "QOI pictures are not supported"),
    start(b"DDS ", "DDS textures are not supported"),
    start(b"wOFF", "a font, not a media file"),
    start(b"wOF2", "a font, not a media file"),
];
