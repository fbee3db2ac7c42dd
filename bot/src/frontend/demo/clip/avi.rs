//! An AVI file of raw pictures and raw sound, in the order that a player reads it.
//!
//! Every chunk has the same length each time, so all sizes are known before the first picture is drawn and nothing
//! is written twice.

use super::tune::{CHANNELS, SAMPLE_RATE, SAMPLES_A_FRAME};
use super::{FRAME_RATE, SIZE};

/// Bytes of one picture: a byte of brightness a pixel, and two of colour for each four.
pub(super) const PICTURE_BYTES: u32 = SIZE.width * SIZE.height * 3 / 2;

/// Bytes of the sound that belongs to one picture.
pub(super) const SOUND_BYTES: u32 = SAMPLES_A_FRAME * BLOCK_BYTES;

/// Bytes of one moment of sound, all channels.
const BLOCK_BYTES: u32 = 2 * CHANNELS;

/// What a chunk has before its content: its name and its length.
const CHUNK_HEAD: u32 = 8;

/// What one picture with its sound takes in the list of contents.
const FRAME_BYTES: u32 = CHUNK_HEAD + PICTURE_BYTES + CHUNK_HEAD + SOUND_BYTES;

/// What one picture with its sound takes in the index.
const FRAME_INDEX_BYTES: u32 = 2 * 16;

const PICTURE: &[u8; 4] = b"00db";
const SOUND: &[u8; 4] = b"01wb";

/// Writes a file of so many pictures.
#[derive(Debug)]
pub(super) struct Writer {
    bytes: Vec<u8>,
    index: Vec<u8>,
    /// Where the next chunk lies, from the name of the list of contents.
    offset: u32,
}

impl Writer {
    /// Begins a file that will be given exactly `frames` pictures; so few that it stays far below 2 GiB.
    pub(super) fn new(frames: u32) -> Self {
        let head = head(frames);
        let contents = 4 + frames * FRAME_BYTES;
        let index = frames * FRAME_INDEX_BYTES;
        // The file's kind, the head, and two more chunks.
        let whole = 4 + length(&head) + CHUNK_HEAD + contents + CHUNK_HEAD + index;
        let room = usize::try_from(CHUNK_HEAD + whole).unwrap_or_default();
        let mut bytes = Vec::with_capacity(room);
        begin(&mut bytes, b"RIFF", whole);
        bytes.extend_from_slice(b"AVI ");
        bytes.extend_from_slice(&head);
        begin(&mut bytes, b"LIST", contents);
        bytes.extend_from_slice(b"movi");
        Self { bytes, index: Vec::new(), offset: 4 }
    }

    /// Adds a picture of [`PICTURE_BYTES`] and its sound of [`SOUND_BYTES`].
    pub(super) fn push(&mut self, picture: &[u8], sound: &[u8]) {
        for (name, content) in [(PICTURE, picture), (SOUND, sound)] {
            // Each picture stands by itself.
            const KEY_FRAME: u32 = 0x10;
            self.index.extend_from_slice(name);
            let entry = words([KEY_FRAME, self.offset, length(content)]);
            self.index.extend_from_slice(&entry);
            self.offset += CHUNK_HEAD + length(content);
            begin(&mut self.bytes, name, length(content));
            self.bytes.extend_from_slice(content);
        }
    }

    /// The whole file, once all pictures are in it.
    pub(super) fn finish(mut self) -> Vec<u8> {
        begin(&mut self.bytes, b"idx1", length(&self.index));
        self.bytes.extend_from_slice(&self.index);
        self.bytes
    }
}

/// The list of headers: of the file, of the pictures, of the sound.
fn head(frames: u32) -> Vec<u8> {
    const HAS_INDEX: u32 = 0x10;
    const INTERLEAVED: u32 = 0x100;
    let file = words([
        1_000_000 / FRAME_RATE,
        FRAME_BYTES * FRAME_RATE,
        0,
        HAS_INDEX | INTERLEAVED,
        frames,
        0,
        2,
        FRAME_BYTES,
        SIZE.width,
        SIZE.height,
        0,
        0,
        0,
        0,
    ]);
    let pictures = list(b"strl", &[chunk(b"strh", &picture_stream(frames)), chunk(b"strf", &bitmap())]);
    let sound = list(b"strl", &[chunk(b"strh", &sound_stream(frames)), chunk(b"strf", &pcm())]);
    list(b"hdrl", &[chunk(b"avih", &file), pictures, sound])
}

/// What one stream is; its time runs at `rate` in `scale`.
struct Stream {
    kind: [u8; 8],
    scale: u32,
    rate: u32,
    length: u32,
    chunk: u32,
    /// Bytes of the smallest part; 0 where each chunk is one.
    sample: u32,
    frame: [u32; 2],
}

impl Stream {
    fn bytes(&self) -> Vec<u8> {
        const ANY_QUALITY: u32 = u32::MAX;
        let [right, bottom] = self.frame;
        let mut bytes = self.kind.to_vec();
        // Flags, priority with language, and a start before the pictures: none.
        bytes.extend(words([0, 0, 0, self.scale, self.rate, 0, self.length, self.chunk]));
        bytes.extend(words([ANY_QUALITY, self.sample]));
        // The place of the picture, in 16 bits each: left and top, right and bottom.
        bytes.extend(words([0, bottom << 16 | right]));
        bytes
    }
}

fn picture_stream(frames: u32) -> Vec<u8> {
    Stream {
        kind: *b"vidsI420",
        scale: 1,
        rate: FRAME_RATE,
        length: frames,
        chunk: PICTURE_BYTES,
        sample: 0,
        frame: [SIZE.width, SIZE.height],
    }
    .bytes()
}

fn sound_stream(frames: u32) -> Vec<u8> {
    Stream {
        kind: *b"auds\0\0\0\0",
        scale: BLOCK_BYTES,
        rate: SAMPLE_RATE * BLOCK_BYTES,
        length: frames * SAMPLES_A_FRAME,
        chunk: SOUND_BYTES,
        sample: BLOCK_BYTES,
        frame: [0, 0],
    }
    .bytes()
}

/// What the pictures are: 12 bits a pixel in three planes, brightness first, the top line first.
fn bitmap() -> Vec<u8> {
    const PLANES_AND_BITS: u32 = 12 << 16 | 1;
    let mut bytes = words([40, SIZE.width, SIZE.height, PLANES_AND_BITS]);
    bytes.extend_from_slice(b"I420");
    bytes.extend(words([PICTURE_BYTES, 0, 0, 0, 0]));
    bytes
}

/// What the sound is: 16 bits a sample.
fn pcm() -> Vec<u8> {
    const PCM: u32 = 1;
    const BITS: u32 = 16;
    words([CHANNELS << 16 | PCM, SAMPLE_RATE, SAMPLE_RATE * BLOCK_BYTES, BITS << 16 | BLOCK_BYTES])
}

fn list(kind: &[u8; 4], parts: &[Vec<u8>]) -> Vec<u8> {
    let mut content = kind.to_vec();
    content.extend(parts.iter().flatten());
    chunk(b"LIST", &content)
}

/// A chunk whose content has an even length, as all here have; others would need a byte behind them.
fn chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    begin(&mut bytes, name, length(content));
    bytes.extend_from_slice(content);
    bytes
}

fn begin(bytes: &mut Vec<u8>, name: &[u8; 4], length: u32) {
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(&length.to_le_bytes());
}

fn words<const N: usize>(values: [u32; N]) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn length(content: &[u8]) -> u32 {
    u32::try_from(content.len()).unwrap_or(u32::MAX)
}
