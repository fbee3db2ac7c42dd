//! What a job may take: a hostile file reaches a limit, never the host.

use std::time::Duration;

use crate::units::ByteSize;

/// Upper bounds for one job.
///
/// Each bound is checked from the file's own declarations before anything is decoded, and again while
/// packets and frames arrive, since both may lie. A breach ends the job with
/// [`Error::TooLarge`](crate::Error::TooLarge), which names the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of input. Strict. Default 4 GiB.
    pub input_bytes: ByteSize,
    /// Pixels of one decoded frame. Strict. Default 8192 × 8192 × 4, so that a 16,000 × 16,000 still passes.
    pub frame_pixels: u64,
    /// Length of the part that is asked for. Strict. Default 6 h.
    pub duration: Duration,
    /// Frames that are decoded in one pass. Strict. Default 2 million.
    pub frames: u64,
    /// Streams in the container. Strict. Default 64.
    pub streams: u32,
    /// Packets in a row that give no frame before the file counts as damaged. Default 5000.
    pub silent_packets: u32,
    /// Wall time from the start of work. Takes effect within 100 ms. Default 1 h.
    pub wall_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            input_bytes: ByteSize::mebibytes(4096),
            frame_pixels: 8192 * 8192 * 4,
            duration: Duration::from_secs(6 * 3600),
            frames: 2_000_000,
            streams: 64,
            silent_packets: 5000,
            wall_time: Duration::from_secs(3600),
        }
    }
}

/// The bound that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitKind {
    /// [`Limits::input_bytes`], in bytes.
    InputBytes,
    /// [`Limits::frame_pixels`], in pixels.
    FramePixels,
    /// [`Limits::duration`], in seconds.
    Duration,
    /// [`Limits::frames`], in frames.
    Frames,
    /// [`Limits::streams`], in streams.
    Streams,
}
