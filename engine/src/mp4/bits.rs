//! Reading numbers of any width from a row of bits.

/// Reads bits, most significant first. Every method gives `None` past the end and stays there.
#[derive(Clone, Debug)]
pub(super) struct BitReader<'a> {
    data: &'a [u8],
    /// Bits already read.
    position: usize,
}

impl<'a> BitReader<'a> {
    pub(super) const fn new(data: &'a [u8]) -> Self {
        Self { data, position: 0 }
    }

    /// Bits not yet read.
    pub(super) fn left(&self) -> usize {
        self.data.len().saturating_mul(8).saturating_sub(self.position)
    }

    /// One bit.
    pub(super) fn flag(&mut self) -> Option<bool> {
        let byte = self.data.get(self.position / 8)?;
        let bit = byte >> (7 - self.position % 8) & 1;
        self.position = self.position.saturating_add(1);
        Some(bit == 1)
    }

    /// A number of `width` bits, at most 32.
    pub(super) fn bits(&mut self, width: u32) -> Option<u32> {
        let mut value = 0_u32;
        for _ in 0..width.min(32) {
            value = value << 1 | u32::from(self.flag()?);
        }
        Some(value)
    }

    /// A number of 8 bits.
    pub(super) fn byte(&mut self) -> Option<u8> {
        u8::try_from(self.bits(8)?).ok()
    }

    /// Leaves out `count` bits.
    pub(super) fn skip(&mut self, count: usize) -> Option<()> {
        (count <= self.left()).then(|| self.position = self.position.saturating_add(count))
    }

    /// Goes to the next whole byte.
    pub(super) fn align(&mut self) -> Option<()> {
        self.skip(self.position.wrapping_neg() % 8)
    }

    /// An unsigned Exp-Golomb number; `None` as well when it needs more than 32 bits.
    pub(super) fn unsigned(&mut self) -> Option<u32> {
        let mut zeros = 0_u32;
        while !self.flag()? {
            zeros = zeros.saturating_add(1);
            if zeros > 31 {
                return None;
            }
        }
        let base = (1_u32 << zeros).saturating_sub(1);
        base.checked_add(self.bits(zeros)?)
    }

    /// A signed Exp-Golomb number.
    pub(super) fn signed(&mut self) -> Option<i64> {
        let code = i64::from(self.unsigned()?);
        let magnitude = code.saturating_add(1) / 2;
        Some(if code % 2 == 0 { magnitude.saturating_neg() } else { magnitude })
    }
}
