//! Streams without a file header: MPEG audio, ADTS, and MPEG transport packets.

/// A frame header that makes sense.
pub(super) struct Frame {
    /// Bytes from this header to the next.
    length: usize,
    /// The header bits that stay the same through a stream.
    constant: u32,
}

/// Reads a frame header at the beginning of the bytes.
pub(super) type Parse = fn(&[u8]) -> Option<Frame>;

/// Whether `bytes` begin with two frames in a row, or with as many as the file has room for.
pub(super) fn begins_with(parse: Parse, bytes: &[u8]) -> bool {
    let run = run(parse, bytes, 2);
    run.frames >= 2 || (run.frames == 1 && run.reached_end)
}

/// Whether frames follow one another somewhere after damaged or foreign bytes.
pub(super) fn contains(parse: Parse, bytes: &[u8]) -> bool {
    // Four agreeing headers do not meet by chance in a few kilobytes.
    const ENOUGH: usize = 4;
    (1..bytes.len()).any(|at| {
        bytes.get(at) == Some(&0xFF)
            && run(parse, bytes.get(at..).unwrap_or_default(), ENOUGH).frames >= ENOUGH
    })
}

struct Run {
    frames: usize,
    reached_end: bool,
}

/// Follows frames from the first byte on, at most `enough` of them.
fn run(parse: Parse, mut bytes: &[u8], enough: usize) -> Run {
    let mut frames = 0;
    let mut constant = None;
    while frames < enough {
        let Some(frame) = parse(bytes) else { break };
        if constant.is_some_and(|constant| constant != frame.constant) {
            break;
        }
        constant = Some(frame.constant);
        frames += 1;
        bytes = bytes.get(frame.length..).unwrap_or_default();
    }
    Run { frames, reached_end: bytes.len() < HEADER }
}

/// Bytes of the longest header.
const HEADER: usize = 7;

/// An MPEG audio frame of layer I, II or III; free-format frames have no length and do not count.
pub(super) fn mpeg_audio(bytes: &[u8]) -> Option<Frame> {
    /// kbit/s by bit rate index, for MPEG-1 layers I to III, MPEG-2 layer I, MPEG-2 layers II and III.
    const RATES: [[usize; 14]; 5] = [
        [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
        [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
        [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
        [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
        [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    ];
    let header = u32::from_be_bytes(*bytes.first_chunk::<4>()?);
    let field = |shift: u32, mask: u32| usize::try_from((header >> shift) & mask).unwrap_or_default();
    if header >> 21 != 0x7FF {
        return None;
    }
    // Version: 0 is 2.5, 1 reserved, 2 is MPEG-2, 3 is MPEG-1. Layer: 3 is I, 2 is II, 1 is III, 0 reserved.
    let (version, layer) = (field(19, 3), field(17, 3));
    let first = version == 3;
    let row = match (layer, first) {
        (3, true) => 0,
        (2, true) => 1,
        (1, true) => 2,
        (3, false) => 3,
        (1 | 2, false) => 4,
        _ => return None,
    };
    let halvings = match version {
        3 => 0,
        2 => 1,
        0 => 2,
        _ => return None,
    };
    let kilobits = *RATES.get(row)?.get(field(12, 15).checked_sub(1)?)?;
    let sample_rate = [44_100_usize, 48_000, 32_000].get(field(10, 3))? >> halvings;
    let padding = field(9, 1);
    let length = match layer {
        3 => (12_000 * kilobits / sample_rate + padding) * 4,
        1 if !first => 72_000 * kilobits / sample_rate + padding,
        _ => 144_000 * kilobits / sample_rate + padding,
    };
    // Sync, version, layer and sample rate stay; protection, rate, padding and stereo mode may change.
    (length > 4).then_some(Frame { length, constant: header & 0xFFFE_0C00 })
}

/// A frame of AAC with its ADTS header.
pub(super) fn adts(bytes: &[u8]) -> Option<Frame> {
    let header = bytes.first_chunk::<7>()?.iter().fold(0_u64, |bits, &byte| (bits << 8) | u64::from(byte));
    let field = |shift: u32, mask: u64| (header >> shift) & mask;
    let synchronised = field(44, 0xFFF) == 0xFFF && field(41, 3) == 0;
    let sample_rate_index = field(34, 15);
    let length = usize::try_from(field(13, 0x1FFF)).ok()?;
    let header_length = if field(40, 1) == 0 { 9 } else { 7 };
    if !synchronised || sample_rate_index > 12 || length < header_length {
        return None;
    }
    // Sync, version, layer, protection, profile, sample rate and channels stay; the private and copyright bits
    // may change.
    let constant = u32::try_from(field(28, 0xFFF_FFDC)).ok()?;
    Some(Frame { length, constant })
}

/// Whether MPEG transport packets follow one another: of 188 bytes, of 192 with a time code before each, or
/// of 204 with check bytes after each.
pub(super) fn is_transport_stream(head: &[u8]) -> bool {
    [188, 192, 204].into_iter().any(|size| (0..head.len()).any(|start| packets_from(head, start, size)))
}

fn packets_from(head: &[u8], start: usize, size: usize) -> bool {
    /// Packets that are looked at.
    const LOOK: usize = 8;
    // A stream that begins where it should needs no more than a second packet; one that is found after
    // garbage needs as many as chance does not give.
    let needed = match start {
        0 => 2,
        4 if size == 192 => 2,
        1..=204 => 5,
        _ => LOOK,
    };
    let mut present = 0;
    for at in (start..head.len()).step_by(size).take(LOOK) {
        // A packet with neither adaptation field nor payload is reserved.
        let sync = head.get(at) == Some(&0x47);
        let used = head.get(at.saturating_add(3)).is_none_or(|flags| flags & 0x30 != 0);
        if !sync || !used {
            return false;
        }
        present += 1;
    }
    present >= needed
}
