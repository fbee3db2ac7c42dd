//! Recognises a file by its first bytes, before libav sees any of them.
//!
//! Only what is recognised here is ever opened, with the one demuxer that belongs to it. Everything else gets
//! an error that names it, so that a playlist in disguise, a web page or an archive is refused in plain words.

mod foreign;
mod frames;
mod text;

use crate::error::Error;
use crate::media::Container;

/// How many of a file's first bytes [`sniff`] wants to see; fewer when the file is shorter.
///
/// Enough for several packets or frames of any stream without a header, and for most tags before a sound.
pub const fn head_bytes() -> usize {
    16 << 10
}

/// The container of a file that begins with `head`.
///
/// # Errors
/// `Corrupt` when the file is empty or blank, `Unsupported` when it is something else than media or media of a
/// kind that is not taken. The text names what it is.
pub fn sniff(head: &[u8]) -> Result<Container, Error> {
    if head.is_empty() {
        return Err(Error::corrupt("the file is empty (0 bytes)"));
    }
    if head.iter().all(|&byte| byte == 0) {
        return Err(Error::corrupt("the file begins with nothing but zero bytes, which is no media file"));
    }
    if let Some(found) = by_signature(head) {
        return found;
    }
    if let Some(what) = foreign::by_long_signature(head).or_else(|| text::name(head)) {
        return Err(Error::unsupported(what));
    }
    // From here on the head is no text, so that short signatures of letters mean what they say.
    if let Some(found) = iso_media(head) {
        return found;
    }
    if let Some(what) = foreign::by_short_signature(head) {
        return Err(Error::unsupported(what));
    }
    bare_stream(head).ok_or_else(|| Error::unsupported("not a media file that Azalea knows"))
}

/// Containers whose signature no text begins with by chance.
fn by_signature(head: &[u8]) -> Option<Result<Container, Error>> {
    let container = match head {
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Container::Gif,
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Container::Png,
        [0xFF, 0xD8, 0xFF, ..] => Container::Jpeg,
        [0x1A, 0x45, 0xDF, 0xA3, ..] => Container::Matroska,
        [b'F', b'L', b'V', 0..=4, ..] => Container::Flv,
        [b'O', b'g', b'g', b'S', 0, ..] => Container::Ogg,
        [b'f', b'L', b'a', b'C', 0 | 0x80, ..] => Container::Flac,
        [0, 0, 1, 0xBA, ..] => Container::MpegPs,
        [b'R', b'I', b'F', b'F', _, _, _, _, form @ ..] => return riff(form),
        [b'R' | b'B', b'F' | b'W', b'6', b'4', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Container::Wav,
        _ => return after_id3(head).map(Ok),
    };
    Some(Ok(container))
}

/// What a RIFF file of this form is.
fn riff(form: &[u8]) -> Option<Result<Container, Error>> {
    Some(match form.first_chunk::<4>()? {
        b"AVI " => Ok(Container::Avi),
        b"WAVE" => Ok(Container::Wav),
        b"WEBP" => Ok(Container::Webp),
        b"CDXA" => Err(Error::unsupported("a Video CD track, which is not supported")),
        b"RMID" => Err(Error::unsupported("a MIDI file, which is not supported")),
        b"ACON" => Err(Error::unsupported("an animated cursor (ANI), which is not supported")),
        _ => Err(Error::unsupported("a RIFF file that is neither AVI, WAV nor WebP, which is not supported")),
    })
}

/// The sound that follows one or more ID3 tags; MP3 when the tag is longer than the head.
fn after_id3(head: &[u8]) -> Option<Container> {
    let mut rest = head;
    while let Some(length) = id3_length(rest) {
        rest = rest.get(length..).unwrap_or_default();
    }
    if rest.len() == head.len() {
        return None;
    }
    // Some taggers leave more padding than the tag's length says.
    let padding = rest.iter().take_while(|&&byte| byte == 0).count();
    let sound = rest.get(padding..).unwrap_or_default();
    Some(match sound {
        [b'f', b'L', b'a', b'C', ..] => Container::Flac,
        _ if frames::begins_with(frames::adts, sound) => Container::Adts,
        _ => Container::Mp3,
    })
}

/// Length in bytes of the ID3v2 tag that `bytes` begin with, at least ten.
fn id3_length(bytes: &[u8]) -> Option<usize> {
    let [b'I', b'D', b'3', 2..=4, revision, flags, size @ ..] = bytes.first_chunk::<10>()? else {
        return None;
    };
    if *revision == 0xFF || flags & 0x0F != 0 || size.iter().any(|byte| byte & 0x80 != 0) {
        return None;
    }
    let body = size.iter().fold(0_usize, |sum, &byte| (sum << 7) | usize::from(byte));
    let footer = if flags & 0x10 == 0 { 0 } else { 10 };
    Some(body.saturating_add(10 + footer))
}

/// A file of the ISO family (mp4, mov, HEIF), by its first box.
fn iso_media(head: &[u8]) -> Option<Result<Container, Error>> {
    let (size, rest) = head.split_first_chunk::<4>()?;
    let size = u32::from_be_bytes(*size);
    let whole = |limit: u32| (8..=limit).contains(&size);
    let plausible = match rest.first_chunk::<4>()? {
        b"ftyp" if whole(1 << 20) => return Some(branded(head, size)),
        b"styp" => whole(1 << 20),
        b"wide" | b"pnot" => whole(1 << 10),
        // Padding can be as large as an index, but not absurdly so.
        b"free" | b"skip" => whole(1 << 29),
        // 0 means "to the end of the file", 1 that a 64-bit size follows.
        b"mdat" => !(2..8).contains(&size),
        b"moov" => size < 2 || whole(1 << 30),
        b"moof" | b"sidx" | b"emsg" | b"prft" if whole(1 << 30) => {
            return Some(Err(Error::unsupported(
                "a piece of a segmented MP4 without its beginning, which is not supported",
            )));
        }
        _ => false,
    };
    plausible.then_some(Ok(Container::Mp4))
}

/// Sorts an ISO file by the brands of its `ftyp` box of `size` bytes.
fn branded(head: &[u8], size: u32) -> Result<Container, Error> {
    const HEIC: [&[u8]; 8] = [b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"];
    let end = usize::try_from(size).unwrap_or(usize::MAX).min(head.len());
    let payload = head.get(8..end).unwrap_or_default();
    let major = payload.get(..4).unwrap_or_default();
    let compatible = || payload.get(8..).unwrap_or_default().chunks_exact(4);
    let avif = |brand: &[u8]| brand == b"avif" || brand == b"avis";
    // A film may list picture brands as compatible too (live photos do), so the major brand decides.
    match major {
        brand if avif(brand) => Err(Error::unsupported("AVIF pictures are not supported")),
        b"mif1" | b"msf1" | b"miaf" if compatible().any(avif) => {
            Err(Error::unsupported("AVIF pictures are not supported"))
        }
        b"mif1" | b"msf1" | b"miaf" => Err(Error::unsupported("HEIC pictures (HEIF) are not supported")),
        brand if HEIC.contains(&brand) => Err(Error::unsupported("HEIC pictures (HEIF) are not supported")),
        b"crx " => Err(Error::unsupported("Canon raw pictures (CR3) are not supported")),
        _ => Ok(Container::Mp4),
    }
}

/// Streams that have no header of their own, only frames or packets one after the other.
fn bare_stream(head: &[u8]) -> Option<Container> {
    if frames::begins_with(frames::adts, head) {
        Some(Container::Adts)
    } else if frames::begins_with(frames::mpeg_audio, head) {
        Some(Container::Mp3)
    } else if frames::is_transport_stream(head) {
        Some(Container::MpegTs)
    } else if frames::contains(frames::adts, head) {
        Some(Container::Adts)
    } else if frames::contains(frames::mpeg_audio, head) {
        Some(Container::Mp3)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
