//! Beginning with a download before it is whole: which pictures have arrived, by the index that came first.

use std::sync::Arc;

use crate::pipeline::survey::TrackSurvey;
use crate::source::Arrival;
use crate::units::{ByteSize, Timestamp};

/// What of a picture track has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Early {
    arrival: Arrival,
    /// For each picture in the order of time the bytes of the file that are needed up to it.
    needed: Arc<[(Timestamp, ByteSize)]>,
}

impl Early {
    /// `None` when everything is there, or when only reading it would tell where the pictures are.
    pub(crate) fn of(arrival: Option<&Arrival>, video: &TrackSurvey) -> Option<Self> {
        let arrival = arrival?;
        let misses = arrival.bytes().is_some();
        (misses && !video.needed.is_empty())
            .then(|| Self { arrival: arrival.clone(), needed: video.needed.as_slice().into() })
    }

    /// The bytes of the file with which all pictures before `time` are there.
    pub(crate) fn needed_until(&self, time: Timestamp) -> ByteSize {
        let after = self.needed.partition_point(|(shown, _)| *shown < time);
        let last = after.checked_sub(1).and_then(|last| self.needed.get(last));
        last.map_or(ByteSize::ZERO, |(_, bytes)| *bytes)
    }

    /// The bytes that have arrived; `None` when nothing more is waited for.
    pub(crate) fn arrived(&self) -> Option<ByteSize> {
        self.arrival.bytes()
    }
}
