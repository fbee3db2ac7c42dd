//! What is asked of a book without changing it.

use crate::clock::WallTime;
use crate::domain::{DeliveryKey, RequestId};
use crate::queue::book::{Book, Entry};
use crate::queue::{Filter, JobId, JobResult, JobView, State, Stats};

impl Book {
    /// Where the media of a delivery stand, as far as a result of it is kept: the newest one.
    pub(crate) fn delivered(&self, key: &DeliveryKey, now: WallTime) -> Option<JobResult> {
        let ended = self.results.of_line(key.digest())?;
        let kept = ended.at.plus(self.settings.results_for) > self.at(now);
        kept.then(|| ended.result.clone())
    }

    /// How the job of this request ended.
    pub(crate) fn result(&self, key: RequestId, now: WallTime) -> Option<JobResult> {
        let ended = self.results.of(key)?;
        let kept = ended.at.plus(self.settings.results_for) > self.at(now);
        kept.then(|| ended.result.clone())
    }

    /// The jobs that are meant, the oldest first. Of those that are done only the result is kept, so they are never
    /// among them.
    pub(crate) fn list(&self, filter: &Filter, now: WallTime) -> Vec<JobView> {
        let now = self.at(now);
        let most = if filter.most == 0 { MOST_LISTED } else { filter.most };
        self.jobs
            .values()
            .map(|entry| (entry, self.waits(entry)))
            .filter(|(entry, waits)| meant(filter, entry, *waits, now))
            .take(most)
            .map(|(entry, _)| self.view(entry))
            .collect()
    }

    /// One job that is not done.
    pub(crate) fn show(&self, id: JobId, _now: WallTime) -> Option<JobView> {
        self.jobs.get(&id).map(|entry| self.view(entry))
    }

    /// Dead jobs whose requesters were not told, the oldest first.
    pub(crate) fn unanswered(&self, most: usize) -> Vec<JobView> {
        let untold = self.index.unanswered.iter().take(most);
        untold.filter_map(|(_, id)| self.jobs.get(id)).map(|entry| self.view(entry)).collect()
    }

    /// How many jobs there are of each kind.
    pub(crate) fn stats(&self, now: WallTime) -> Stats {
        let now = self.at(now);
        let ready = self.index.ready(now);
        let waiting = self.index.scheduled.len().saturating_add(self.index.suspects.len());
        let first = [self.index.next.first(), self.index.next_suspects.first()];
        Stats {
            ready: count(ready),
            delayed: count(waiting.saturating_sub(ready)),
            leased: count(self.index.leased.len()),
            dead: count(self.index.dead.len()),
            oldest_ready: first.into_iter().flatten().map(|(at, _)| *at).min().filter(|at| *at <= now),
            trouble: None,
        }
    }

    /// When [`tick`](Book::tick) has something to do next, or a job becomes ready. It is not after the moment when it
    /// really does, and in the past when it is due.
    pub(crate) fn next_event(&self) -> Option<WallTime> {
        let first = |set: &std::collections::BTreeSet<(WallTime, JobId)>| set.first().map(|(at, _)| *at);
        let results = self.results.oldest().map(|ended| ended.at.plus(self.settings.results_for));
        let dead = first(&self.index.dead).map(|at| at.plus(self.settings.dead_for));
        [first(&self.index.leased), first(&self.index.deadlines), self.index.next_delayed(), results, dead]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether a [`claim`](Book::claim) may give something.
    pub(crate) fn anything_ready(&self, now: WallTime) -> bool {
        let now = self.at(now);
        let due = self.index.leased.first().is_some_and(|(until, _)| *until <= now);
        let suspect = self.index.next_suspects.first().is_some_and(|(run_at, _)| *run_at <= now);
        due || self.index.turn().is_some()
            || (self.index.alone.is_none() && self.index.any_come(now))
            || (self.index.leased.is_empty() && suspect)
    }

    /// Whether a job that is not held waits for another one of its delivery.
    fn waits(&self, entry: &Entry) -> bool {
        matches!(entry.state, State::Scheduled { .. } | State::Suspect { .. })
            && !self.index.lines.is_next(entry)
    }

    fn view(&self, entry: &Entry) -> JobView {
        let waits = self.waits(entry);
        let behind = if waits { self.index.lines.ahead_of(entry) } else { None };
        view(entry, waits, behind)
    }

    /// How late it is for the book when the clock says `now`.
    fn at(&self, now: WallTime) -> WallTime {
        now.max(self.index.clock)
    }
}

fn meant(filter: &Filter, entry: &Entry, waits: bool, now: WallTime) -> bool {
    let Filter { state, guild, user, request, older_than, reason, most: _ } = filter;
    state.is_none_or(|wanted| wanted == entry.state.kind_of(waits, now))
        && guild.is_none_or(|guild| entry.request.destination.guild == Some(guild))
        && user.is_none_or(|user| entry.request.requester == user)
        && request.is_none_or(|request| entry.key() == request)
        && older_than.is_none_or(|age| now.since(entry.enqueued_at) >= age)
        && reason.as_ref().is_none_or(|code| {
            entry.history.last().is_some_and(|attempt| attempt.code == *code)
                || matches!(entry.state, State::Dead { reason, .. } if reason.name() == code)
        })
}

fn view(entry: &Entry, waits: bool, behind: Option<JobId>) -> JobView {
    JobView {
        id: entry.id,
        request: (*entry.request).clone(),
        priority: entry.priority,
        state: entry.state,
        waits,
        behind,
        attempts: entry.attempts,
        suspicion: entry.suspicion,
        generation: entry.generation,
        enqueued_at: entry.enqueued_at,
        deadline: entry.deadline,
        history: entry.history.clone(),
        result: None,
    }
}

/// Jobs are counted in a type of the same size or a smaller one.
fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// When nobody says how many.
const MOST_LISTED: usize = 100;
