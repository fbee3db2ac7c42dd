//! What has changed since the last commit, and how it was before.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::clock::WallTime;
use crate::domain::RequestId;
use crate::queue::book::results::Results;
use crate::queue::book::{Change, Ended, Entry};
use crate::queue::{JobId, LeaseRef, State};

#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    /// The jobs that were touched, as they were.
    pub(super) jobs: BTreeMap<JobId, Option<Arc<Entry>>>,
    pub(super) ended: BTreeMap<RequestId, Option<Arc<Ended>>>,
    /// The next job's number and the next lease's token.
    pub(super) counters_before: Option<(u64, u64)>,
    /// How late it was before the clock was put back.
    pub(super) clock_before: Option<WallTime>,
}

impl Journal {
    /// A job is about to change, and has been `before`. Only the first time counts.
    pub(super) fn job(&mut self, id: JobId, before: Option<&Arc<Entry>>) {
        self.jobs.entry(id).or_insert_with(|| before.cloned());
    }

    pub(super) fn ended(&mut self, key: RequestId, before: Option<&Arc<Ended>>) {
        self.ended.entry(key).or_insert_with(|| before.cloned());
    }

    pub(super) fn counters(&mut self, next_job: u64, next_token: u64) {
        self.counters_before.get_or_insert((next_job, next_token));
    }

    pub(super) fn clock(&mut self, before: WallTime) {
        self.clock_before.get_or_insert(before);
    }

    /// A lease was extended, which is not taken back with other changes of its job; but it is when the clock is, since
    /// it counts from the other time.
    pub(super) fn extend(&mut self, lease: LeaseRef, longer: State) {
        if self.clock_before.is_none()
            && let Some(Some(before)) = self.jobs.get_mut(&lease.job)
            && let State::Leased { token, .. } = before.state
            && token == lease.token
        {
            Arc::make_mut(before).state = longer;
        }
    }

    /// Nobody answers a job any more, which is not taken back with other changes of it.
    pub(super) fn let_go(&mut self, id: JobId) {
        if let Some(Some(before)) = self.jobs.get_mut(&id) {
            Arc::make_mut(before).watched = false;
        }
    }

    /// One change for each record that is not as it was.
    pub(super) fn changes(&self, jobs: &BTreeMap<JobId, Arc<Entry>>, results: &Results) -> Vec<Change> {
        let jobs = self.jobs.iter().map(|(id, before)| Change::Job {
            id: *id,
            before: before.clone(),
            after: jobs.get(id).cloned(),
        });
        let ended = self.ended.iter().map(|(key, before)| Change::Ended {
            key: *key,
            before: before.clone(),
            after: results.of(*key).cloned(),
        });
        jobs.chain(ended)
            .filter(|change| match change {
                Change::Job { before, after, .. } => before != after,
                Change::Ended { before, after, .. } => before != after,
            })
            .collect()
    }
}
