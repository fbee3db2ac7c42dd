//! What is written next: a bounded queue of changes that can be read while they wait. Pure.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::clock::WallTime;
use crate::store::Shelf;

/// Where a record stands.
pub(super) type Place = (Shelf, Arc<str>);

/// A change that waits to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The record shall have this value.
    Put { value: Arc<[u8]>, expires: WallTime },
    /// There shall be no record.
    Remove,
}

impl Change {
    fn bytes(&self) -> usize {
        match self {
            Self::Put { value, .. } => value.len(),
            Self::Remove => 0,
        }
    }
}

/// A change with its place and its number, as it is handed to the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) change: Change,
    number: u64,
}

/// The queue. A later change of the same place takes the earlier one's turn.
///
/// Bounds, both strict: `most` changes, and [`MOST_BYTES`] bytes of values. What does not fit pushes the oldest out.
#[derive(Debug)]
pub(super) struct Queue {
    most: usize,
    waiting: HashMap<Place, (u64, Change)>,
    turns: VecDeque<Place>,
    bytes: usize,
    next: u64,
    dropped: u64,
    closed: bool,
}

/// The values that wait take at most this many bytes: some thousand posts with all their variants.
pub(super) const MOST_BYTES: usize = 32 << 20;

/// A value may have this many bytes. Records are facts about media, never media.
pub(super) const MOST_VALUE_BYTES: usize = 256 << 10;

impl Queue {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            waiting: HashMap::new(),
            turns: VecDeque::new(),
            bytes: 0,
            next: 0,
            dropped: 0,
            closed: false,
        }
    }

    /// Takes a change, at the price of the oldest when there is no room.
    pub(super) fn push(&mut self, place: Place, change: Change) {
        if self.closed || change.bytes() > MOST_VALUE_BYTES {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        self.bytes = self.bytes.saturating_add(change.bytes());
        self.next = self.next.saturating_add(1);
        match self.waiting.insert(place.clone(), (self.next, change)) {
            Some((_, earlier)) => self.bytes = self.bytes.saturating_sub(earlier.bytes()),
            None => self.turns.push_back(place),
        }
        while self.turns.len() > self.most || self.bytes > MOST_BYTES {
            let Some(oldest) = self.turns.pop_front() else { break };
            if let Some((_, change)) = self.waiting.remove(&oldest) {
                self.bytes = self.bytes.saturating_sub(change.bytes());
                self.dropped = self.dropped.saturating_add(1);
            }
        }
    }

    /// What waits to be done at a place.
    pub(super) fn peek(&self, place: &Place) -> Option<&Change> {
        self.waiting.get(place).map(|(_, change)| change)
    }

    /// The oldest changes, at most `most`. They stay, so that they can be read, until they are [settled](Self::settle).
    pub(super) fn batch(&self, most: usize) -> Vec<Entry> {
        let oldest = self.turns.iter().take(most);
        let entries = oldest.filter_map(|place| {
            let (number, change) = self.waiting.get(place)?;
            Some(Entry { place: place.clone(), change: change.clone(), number: *number })
        });
        entries.collect()
    }

    /// Lets go of what was written, except where another change has come meanwhile.
    pub(super) fn settle(&mut self, written: &[Entry]) {
        for entry in written {
            if self.waiting.get(&entry.place).is_some_and(|(number, _)| *number == entry.number) {
                self.waiting.remove(&entry.place);
                self.bytes = self.bytes.saturating_sub(entry.change.bytes());
            }
        }
        // Turns whose change is gone; they stand near the front, as batches are taken from there.
        let waiting = &self.waiting;
        self.turns.retain(|place| waiting.contains_key(place));
    }

    /// Takes nothing more.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Gives up what still waits.
    pub(super) fn abandon(&mut self) -> usize {
        let lost = self.turns.len();
        self.dropped = self.dropped.saturating_add(u64::try_from(lost).unwrap_or(u64::MAX));
        self.waiting.clear();
        self.turns.clear();
        self.bytes = 0;
        lost
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn len(&self) -> usize {
        self.turns.len()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(key: &str) -> Place {
        (Shelf::Processed, key.into())
    }

    fn put(value: &[u8]) -> Change {
        Change::Put { value: value.into(), expires: WallTime::from_millis(1) }
    }

    #[test]
    fn the_oldest_is_dropped_and_counted_when_there_is_no_room() {
        let mut queue = Queue::new(2);
        for key in ["a", "b", "c"] {
            queue.push(place(key), put(key.as_bytes()));
        }
        assert_eq!((queue.len(), queue.dropped()), (2, 1));
        assert_eq!(queue.peek(&place("a")), None);
        assert_eq!(queue.peek(&place("c")), Some(&put(b"c")));
    }

    #[test]
    fn a_change_that_came_while_its_place_was_written_stays() {
        let mut queue = Queue::new(9);
        queue.push(place("a"), put(b"1"));
        queue.push(place("b"), put(b"1"));
        let batch = queue.batch(9);
        queue.push(place("a"), Change::Remove);
        queue.settle(&batch);
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.peek(&place("a")), Some(&Change::Remove));
    }

    #[test]
    fn bytes_are_bounded_as_well_as_changes() {
        let mut queue = Queue::new(usize::MAX);
        let large = vec![7; MOST_VALUE_BYTES];
        for key in 0..200 {
            queue.push(place(&key.to_string()), put(&large));
        }
        assert_eq!(queue.len(), MOST_BYTES / MOST_VALUE_BYTES);
        queue.push(place("too large"), put(&vec![7; MOST_VALUE_BYTES + 1]));
        assert_eq!(queue.peek(&place("too large")), None);
    }

    #[test]
    fn a_closed_queue_counts_what_it_refuses() {
        let mut queue = Queue::new(2);
        queue.close();
        queue.push(place("a"), Change::Remove);
        assert_eq!((queue.len(), queue.dropped()), (0, 1));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_uncounted(
            keys in prop::collection::vec(0_u8..20, 0..200),
            most in 1_usize..12,
            size in 1_usize..5,
            every in 1_usize..9,
        ) {
            let mut queue = Queue::new(most);
            let (mut replaced, mut written) = (0, 0);
            for (turn, key) in keys.iter().enumerate() {
                let place = place(&key.to_string());
                replaced += usize::from(queue.peek(&place).is_some());
                queue.push(place, put(&[*key]));
                prop_assert!(queue.len() <= most);
                prop_assert_eq!(queue.len(), queue.bytes);
                if turn % every == 0 {
                    let batch = queue.batch(size);
                    prop_assert!(batch.len() <= size);
                    queue.settle(&batch);
                    written += batch.len();
                }
            }
            let dropped = usize::try_from(queue.dropped()).unwrap();
            prop_assert_eq!(keys.len(), queue.len() + replaced + written + dropped);
        }
    }
}
