//! Picture files: what they are, and how to drop what they tell about people without touching a pixel.
//!
//! This room walks the structure of GIF, PNG, JPEG and WebP files. It never decodes and knows no libav.
//!
//! - **No bytes make it panic, loop without end, or take more memory than a small multiple of the file.**
//!   Nothing is allocated from declared sizes.
//! - **`strip` keeps what is needed to show the picture and nothing else**, by lists of what is kept: a kind of
//!   metadata that is invented tomorrow goes too. Colour profiles stay, they change what people see.
//! - **`strip` is idempotent**, and `has_metadata` says exactly whether it would change the file.

mod exif;
mod gif;
mod jpeg;
mod png;
mod rebuilt;
mod scan;
mod webp;

use std::time::Duration;

use bytes::Bytes;

use self::rebuilt::Rebuilt;
use crate::error::Error;
use crate::limits::LimitKind;
use crate::media::{Container, Orientation};
use crate::units::Dimensions;

pub(crate) use self::webp::{WebpAnimation, WebpFrame, webp_frames};

/// What a picture file says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PictureFacts {
    /// Stored size, before `orientation` is applied.
    pub(crate) dimensions: Dimensions,
    /// Whether more than one frame is there to be shown.
    pub(crate) animated: bool,
    /// Frames that are there; `None` when the file is not built as an animation. An animation of one frame is
    /// a still to people, but may need an animation's decoder.
    pub(crate) frames: Option<u32>,
    /// Whether pixels may be transparent.
    pub(crate) alpha: bool,
    /// Bits of one component, or of the palette's colours.
    pub(crate) bit_depth: u8,
    /// How the stored picture must be turned, by its EXIF data.
    pub(crate) orientation: Orientation,
    /// Whether [`strip`] would change the file.
    pub(crate) has_metadata: bool,
    /// Whether the file goes on to its end marker; `false` when it was cut short or is damaged.
    pub(crate) whole: bool,
}

/// Frames of one animation that are listed; beyond it the file counts as an attack.
const MAX_FRAMES: u32 = 20_000;

/// What the picture file `bytes` is, by its structure alone.
///
/// # Errors
/// `Corrupt` when no picture is in it, `Internal` when `container` is none of picture files.
pub(crate) fn facts(container: Container, bytes: &[u8]) -> Result<PictureFacts, Error> {
    let walk = walk(container, bytes)?;
    Ok(PictureFacts { has_metadata: !walk.rebuilt.is_unchanged(), ..walk.facts })
}

/// The file without EXIF, XMP, IPTC, comments, times, thumbnails and whatever follows its end; the pixel data
/// stays byte by byte. The same bytes, not a copy, if nothing had to go.
///
/// A picture whose `orientation` is not upright loses the note that says so: its pixels must be turned instead.
///
/// # Errors
/// As [`facts`].
pub(crate) fn strip(container: Container, bytes: &Bytes) -> Result<Bytes, Error> {
    let walk = walk(container, bytes)?;
    Ok(if walk.rebuilt.is_unchanged() { bytes.clone() } else { walk.rebuilt.to_bytes() })
}

/// How long each frame is shown, in order, as browsers do it: what asks for 10 ms or less gets 100 ms.
/// Empty when the file is not built as an animation, except that a GIF always is.
///
/// # Errors
/// As [`facts`], and `TooLarge` for more than 20,000 frames.
pub(crate) fn frame_delays(container: Container, bytes: &[u8]) -> Result<Vec<Duration>, Error> {
    let delays = walk(container, bytes)?.delays;
    check_frames(delays.len())?;
    Ok(delays)
}

/// One pass over a file's structure.
struct Walk<'a> {
    /// All but `has_metadata`.
    facts: PictureFacts,
    /// What is left when everything dispensable is dropped.
    rebuilt: Rebuilt<'a>,
    /// How long each frame is shown.
    delays: Vec<Duration>,
}

fn walk(container: Container, bytes: &[u8]) -> Result<Walk<'_>, Error> {
    match container {
        Container::Gif => gif::walk(bytes),
        Container::Png => png::walk(bytes),
        Container::Jpeg => jpeg::walk(bytes),
        Container::Webp => webp::walk(bytes),
        Container::Mp4
        | Container::Matroska
        | Container::Avi
        | Container::Flv
        | Container::MpegTs
        | Container::MpegPs
        | Container::Ogg
        | Container::Mp3
        | Container::Adts
        | Container::Wav
        | Container::Flac => Err(Error::internal(format!("{container} was taken for a picture"))),
    }
}

fn check_frames(count: usize) -> Result<(), Error> {
    let found = scan::stored(count);
    if found <= MAX_FRAMES {
        return Ok(());
    }
    Err(Error::TooLarge { limit: LimitKind::Frames, found: u64::from(found), allowed: u64::from(MAX_FRAMES) })
}

/// The delay that browsers use in place of what a file asks for.
fn browser_delay(asked: Duration) -> Duration {
    const NO_MORE_THAN: Duration = Duration::from_millis(10);
    const INSTEAD: Duration = Duration::from_millis(100);
    if asked <= NO_MORE_THAN { INSTEAD } else { asked }
}

#[cfg(test)]
mod tests;
