//! A file that is made of parts of another one.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

/// What remains of a source when parts are left out or replaced. Costs memory only for what is new.
#[derive(Debug)]
pub(super) struct Rebuilt<'a> {
    source: &'a [u8],
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    Kept(Range<usize>),
    Made(Vec<u8>),
}

impl<'a> Rebuilt<'a> {
    /// Nothing of `source` yet.
    pub(super) const fn new(source: &'a [u8]) -> Self {
        Self { source, pieces: Vec::new() }
    }

    /// What it is made of.
    pub(super) const fn source(&self) -> &'a [u8] {
        self.source
    }

    /// Goes on with a part of the source; a part that goes beyond its end is cut there.
    pub(super) fn keep(&mut self, range: Range<usize>) {
        let range = range.start..range.end.min(self.source.len());
        if range.is_empty() {
            return;
        }
        match self.pieces.last_mut() {
            Some(Piece::Kept(last)) if last.end == range.start => last.end = range.end,
            _ => self.pieces.push(Piece::Kept(range)),
        }
    }

    /// Goes on with `new` in the place of a part of the source, which is kept if it says the same.
    pub(super) fn replace(&mut self, range: Range<usize>, new: &[u8]) {
        if self.source.get(range.clone()) == Some(new) {
            self.keep(range);
        } else {
            self.pieces.push(Piece::Made(new.to_vec()));
        }
    }

    /// Goes on with everything of `other`, which has the same source.
    pub(super) fn append(&mut self, other: Self) {
        for piece in other.pieces {
            match piece {
                Piece::Kept(range) => self.keep(range),
                made @ Piece::Made(_) => self.pieces.push(made),
            }
        }
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.pieces.iter().map(|piece| self.bytes_of(piece).len()).sum()
    }

    /// Whether it is the source, byte by byte.
    pub(super) fn is_unchanged(&self) -> bool {
        match self.pieces.as_slice() {
            [] => self.source.is_empty(),
            [Piece::Kept(range)] => *range == (0..self.source.len()),
            _ => false,
        }
    }

    /// The file in one piece.
    pub(super) fn to_bytes(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(self.len());
        for piece in &self.pieces {
            bytes.extend_from_slice(self.bytes_of(piece));
        }
        bytes.freeze()
    }

    fn bytes_of<'b>(&'b self, piece: &'b Piece) -> &'b [u8] {
        match piece {
            Piece::Kept(range) => self.source.get(range.clone()).unwrap_or_default(),
            Piece::Made(made) => made,
        }
    }
}
