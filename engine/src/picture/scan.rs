//! Reading numbers out of hostile bytes: every read may find that the bytes have ended.

/// The `N` bytes at `at`.
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}

/// A big-endian 16-bit number.
pub(super) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

/// A little-endian 16-bit number.
pub(super) fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

/// A big-endian 32-bit number.
pub(super) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

/// A little-endian 24-bit number.
pub(super) fn le24(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(|[low, middle, high]| u32::from_le_bytes([low, middle, high, 0]))
}

/// A little-endian 32-bit number.
pub(super) fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

/// A stored number as a length or position; one that this machine cannot address is beyond every end.
pub(super) fn length(stored: u32) -> usize {
    usize::try_from(stored).unwrap_or(usize::MAX)
}

/// A length as it is stored, saturating: no picture is that large.
pub(super) fn stored(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
