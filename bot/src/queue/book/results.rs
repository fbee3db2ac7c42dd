//! How jobs ended, by key, by number and by age.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::clock::WallTime;
use crate::domain::RequestId;
use crate::queue::book::Ended;
use crate::queue::{JobId, JobResult};

#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub(super) struct Results {
    all: HashMap<RequestId, Arc<Ended>>,
    by_job: HashMap<JobId, RequestId>,
    by_age: BTreeMap<(WallTime, JobId), RequestId>,
    /// Those that are deliveries, by what was delivered and when.
    by_line: BTreeSet<(u64, WallTime, JobId)>,
}

impl Results {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn of(&self, key: RequestId) -> Option<&Arc<Ended>> {
        self.all.get(&key)
    }

    pub(super) fn of_job(&self, id: JobId) -> Option<&Arc<Ended>> {
        self.by_job.get(&id).and_then(|key| self.of(*key))
    }

    /// The newest delivery of this line.
    pub(super) fn of_line(&self, line: u64) -> Option<&Arc<Ended>> {
        let all =
            (line, WallTime::default(), JobId(0))..=(line, WallTime::from_millis(u64::MAX), JobId(u64::MAX));
        self.by_line.range(all).next_back().and_then(|(_, _, id)| self.of_job(*id))
    }

    /// All of them, the oldest first.
    pub(super) fn all_in_order(&self) -> impl Iterator<Item = &Arc<Ended>> {
        self.by_age.values().filter_map(|key| self.of(*key))
    }

    pub(super) fn oldest(&self) -> Option<Arc<Ended>> {
        self.by_age.first_key_value().and_then(|(_, key)| self.of(*key)).cloned()
    }

    /// Keeps a result, and gives the one of the same key that it replaces.
    pub(super) fn put(&mut self, ended: Arc<Ended>) -> Option<Arc<Ended>> {
        let before = self.remove(ended.key);
        self.by_job.insert(ended.id, ended.key);
        self.by_age.insert((ended.at, ended.id), ended.key);
        self.by_line.extend(place(&ended));
        self.all.insert(ended.key, ended);
        before
    }

    pub(super) fn remove(&mut self, key: RequestId) -> Option<Arc<Ended>> {
        let before = self.all.remove(&key)?;
        self.by_job.remove(&before.id);
        self.by_age.remove(&(before.at, before.id));
        if let Some(place) = place(&before) {
            self.by_line.remove(&place);
        }
        Some(before)
    }
}

/// Where a delivery stands among those of its line.
fn place(ended: &Ended) -> Option<(u64, WallTime, JobId)> {
    match ended.result {
        JobResult::Delivered { at, .. } => ended.line.map(|line| (line, at, ended.id)),
        JobResult::Answered { .. } => None,
    }
}
