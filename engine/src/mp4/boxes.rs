//! Boxes, the nested length-and-name frames that an MP4 file is made of: writing and walking them.

/// A box's name.
pub(super) type FourCc = [u8; 4];

/// Writes nested boxes into memory.
#[derive(Debug, Default)]
pub(super) struct BoxWriter {
    out: Vec<u8>,
}

impl BoxWriter {
    /// Writes a box named `kind` around what `body` writes. A box must stay below 4 GiB.
    pub(super) fn boxed(&mut self, kind: &FourCc, body: impl FnOnce(&mut Self)) {
        let start = self.out.len();
        self.u32(0);
        self.bytes(kind);
        body(self);
        let length = u32::try_from(self.out.len().saturating_sub(start)).unwrap_or(u32::MAX);
        if let Some(slot) = self.out.get_mut(start..).and_then(<[u8]>::first_chunk_mut::<4>) {
            *slot = length.to_be_bytes();
        }
    }

    /// Writes a box that begins with a version and flags.
    pub(super) fn full_box(&mut self, kind: &FourCc, tag: VersionAndFlags, body: impl FnOnce(&mut Self)) {
        self.boxed(kind, |out| {
            out.u32(tag.0);
            body(out);
        });
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    /// Writes `value` in 8 bytes where `width` is wide and in 4 where it is not; what does not fit saturates.
    pub(super) fn uint(&mut self, value: u64, width: Width) {
        match width {
            Width::Narrow => self.u32(u32::try_from(value).unwrap_or(u32::MAX)),
            Width::Wide => self.u64(value),
        }
    }

    /// Writes how many entries follow; saturates, since no table is that long.
    pub(super) fn count(&mut self, entries: usize) {
        self.u32(u32::try_from(entries).unwrap_or(u32::MAX));
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn zeros(&mut self, count: usize) {
        self.out.resize(self.out.len().saturating_add(count), 0);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out
    }
}

/// The first word of a full box.
#[derive(Clone, Copy, Debug)]
pub(super) struct VersionAndFlags(u32);

impl VersionAndFlags {
    /// Version 0 with `flags` (24 bits).
    pub(super) const fn flags(flags: u32) -> Self {
        Self(flags & 0x00ff_ffff)
    }

    /// Version 0 for narrow and 1 for wide fields, with `flags` (24 bits).
    pub(super) const fn of_width(width: Width, flags: u32) -> Self {
        match width {
            Width::Narrow => Self::flags(flags),
            Width::Wide => Self(1 << 24 | flags & 0x00ff_ffff),
        }
    }
}

/// Whether a quantity is written in 4 or in 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Narrow,
    Wide,
}

impl Width {
    /// The width that `value` needs. All ones in 4 bytes means "unknown" in several boxes and counts as too big.
    pub(super) fn for_value(value: u64) -> Self {
        if value < u64::from(u32::MAX) { Self::Narrow } else { Self::Wide }
    }
}

/// The first bytes of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: FourCc,
    /// Bytes before the body: 8, or 16 with a long size.
    pub(super) length: u64,
    /// Bytes of the whole box, not less than `length`; `None` when it reaches to the end of what holds it.
    pub(super) size: Option<u64>,
}

impl Header {
    /// The most bytes that a header has.
    pub(super) const MAX: usize = 16;

    /// Reads the header at the start of `bytes`; `None` when it is cut short or its size is impossible.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let size = u32_at(bytes, 0)?;
        let kind = *bytes.get(4..)?.first_chunk::<4>()?;
        match size {
            0 => Some(Self { kind, length: 8, size: None }),
            1 => {
                let size = u64_at(bytes, 8)?;
                (size >= 16).then_some(Self { kind, length: 16, size: Some(size) })
            }
            _ => (size >= 8).then_some(Self { kind, length: 8, size: Some(u64::from(size)) }),
        }
    }
}

/// Walks the boxes in a piece of memory.
///
/// Ends at the first box that cannot be read; a box that runs past the end is given as far as it goes. In
/// both cases [`Boxes::is_sound`] is false afterwards. Each step takes at least 8 bytes, so a walk is linear.
#[derive(Debug)]
pub(super) struct Boxes<'a> {
    rest: &'a [u8],
    sound: bool,
}

impl<'a> Boxes<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, sound: true }
    }

    /// Whether all boxes so far were whole.
    pub(super) const fn is_sound(&self) -> bool {
        self.sound
    }
}

impl<'a> Iterator for Boxes<'a> {
    type Item = (FourCc, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let here = std::mem::take(&mut self.rest);
        // QuickTime ends some lists with a word of zero.
        if here.is_empty() || here == [0; 4] {
            return None;
        }
        let Some(header) = Header::parse(here) else {
            self.sound = false;
            return None;
        };
        let whole = match header.size {
            None => here,
            Some(size) => match usize::try_from(size).ok().and_then(|size| here.split_at_checked(size)) {
                Some((whole, rest)) => {
                    self.rest = rest;
                    whole
                }
                None => {
                    self.sound = false;
                    here
                }
            },
        };
        let body =
            usize::try_from(header.length).ok().and_then(|length| whole.get(length..)).unwrap_or_default();
        Some((header.kind, body))
    }
}

/// The big-endian number at `at`.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk::<2>()?))
}

/// The big-endian number at `at`.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk::<4>()?))
}

/// The big-endian number at `at`.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(*bytes.get(at..)?.first_chunk::<8>()?))
}
