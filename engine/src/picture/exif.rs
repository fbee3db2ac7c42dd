//! The one thing in EXIF data that changes what people see: how the picture must be turned.

use super::scan::{be16, be32, le16, le32, length};
use crate::media::Orientation;

/// The orientation in EXIF data, with or without its `Exif` prefix; `None` when it says nothing valid.
///
/// Only the first directory is looked at, as browsers do; thumbnails have their own.
pub(super) fn orientation(data: &[u8]) -> Option<Orientation> {
    const TAG: u16 = 0x0112;
    const SHORT: u16 = 3;
    let tiff = data.strip_prefix(b"Exif\0\0").unwrap_or(data);
    let (read16, read32): (Read<u16>, Read<u32>) = match tiff.get(..4)? {
        b"II*\0" => (le16, le32),
        b"MM\0*" => (be16, be32),
        _ => return None,
    };
    let directory = length(read32(tiff, 4)?);
    let entries = usize::from(read16(tiff, directory)?);
    for entry in 0..entries {
        // At most 65,535 entries of 12 bytes.
        let at = directory.checked_add(2 + entry * 12)?;
        if read16(tiff, at)? == TAG {
            let is_one_short = read16(tiff, at + 2)? == SHORT && read32(tiff, at + 4)? == 1;
            let value = u32::from(read16(tiff, at + 8)?);
            return (is_one_short && (1..=8).contains(&value)).then(|| Orientation::from_exif(value));
        }
    }
    None
}

type Read<N> = fn(&[u8], usize) -> Option<N>;
