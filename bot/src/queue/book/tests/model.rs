//! The same queue written once more as plainly as can be: a list of jobs that is gone through from end to end. It
//! shares no line with the book, and does not say who comes next: it says whether who came was right.

use std::collections::BTreeMap;

use super::*;
use crate::domain::UserId;
use crate::queue::Stats;

pub(super) const SETTINGS: BookSettings = BookSettings {
    capacity: 8,
    max_attempts: 3,
    max_alone_crashes: 2,
    max_spared: 2,
    results_for: seconds(200),
    results_most: 3,
    dead_for: seconds(300),
    dead_most: 3,
};

#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) now: WallTime,
    pub(super) jobs: Vec<Job>,
    /// Key, number, moment.
    pub(super) results: Vec<(RequestId, JobId, WallTime)>,
    next_job: u64,
    next_token: u64,
    turns: Turns,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) id: JobId,
    pub(super) key: RequestId,
    guild: Option<u64>,
    user: UserId,
    priority: Priority,
    pub(super) at: At,
    pub(super) attempts: u32,
    pub(super) suspicion: u32,
    spared: u32,
    engaged: bool,
    /// Of which delivery.
    post: u64,
    begun: bool,
    watched: bool,
    pub(super) generation: u32,
    pub(super) deadline: WallTime,
    pub(super) codes: Vec<String>,
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Waits { from: WallTime, alone: bool },
    Held { token: u64, until: WallTime, alone: bool },
    Dead { why: DeadReason, since: WallTime },
}

/// What was served when, to say who was passed over.
#[derive(Clone, Debug, Default)]
struct Turns {
    count: u64,
    streak: u32,
    /// For each server and each person that has a job: since which turn it waits.
    waiting: BTreeMap<Who, u64>,
    /// In which turn it was served last.
    served: BTreeMap<Who, u64>,
}

/// A server, or a person in it.
type Who = (Priority, (Option<u64>, u64), Option<UserId>);

impl Job {
    fn party(&self) -> (Option<u64>, u64) {
        (self.guild, if self.guild.is_some() { 0 } else { self.user.get() })
    }

    fn ready(&self, now: WallTime) -> bool {
        matches!(self.at, At::Waits { from, .. } if from <= now)
    }

    fn who(&self) -> [Who; 2] {
        [(self.priority, self.party(), None), (self.priority, self.party(), Some(self.user))]
    }
}

impl Model {
    pub(super) fn new() -> Self {
        Self {
            now: NOW,
            jobs: Vec::new(),
            results: Vec::new(),
            next_job: 1,
            next_token: 1,
            turns: Turns::default(),
        }
    }

    pub(super) fn tick(&mut self, now: WallTime) {
        self.now = self.now.max(now);
        let now = self.now;
        for job in &mut self.jobs {
            if let At::Held { until, alone, .. } = job.at
                && until <= now
            {
                job.codes.push("expired".to_owned());
                come_back(job, until, alone, now);
            }
            if matches!(job.at, At::Waits { .. }) && job.deadline <= now {
                job.at = At::Dead { why: DeadReason::Deadline, since: now };
            }
        }
        self.trim();
        self.see();
    }

    /// Keeps the newest ones, and none that is too old.
    pub(super) fn trim(&mut self) {
        let now = self.now;
        let mut dead: Vec<_> = self
            .jobs
            .iter()
            .filter_map(|job| match job.at {
                At::Dead { since, .. } => Some((since, job.id)),
                _ => None,
            })
            .collect();
        dead.sort();
        dead.reverse();
        let kept: Vec<JobId> = dead
            .into_iter()
            .take(SETTINGS.dead_most)
            .filter(|(since, _)| now.since(*since) < SETTINGS.dead_for)
            .map(|(_, id)| id)
            .collect();
        self.jobs.retain(|job| !matches!(job.at, At::Dead { .. }) || kept.contains(&job.id));
        self.results.sort_by_key(|(_, id, at)| (*at, *id));
        let too_many = self.results.len().saturating_sub(SETTINGS.results_most);
        self.results.drain(..too_many);
        self.results.retain(|(_, _, at)| now.since(*at) < SETTINGS.results_for);
    }

    pub(super) fn enqueue(&mut self, new: &NewJob, watched: bool) -> Result<Enqueued, QueueError> {
        let key = new.request.id;
        if let Some(job) = self.jobs.iter().find(|job| job.key == key) {
            return Ok(Enqueued::Duplicate(job.id, self.kind(job)));
        }
        if let Some((_, id, _)) = self.results.iter().find(|result| result.0 == key) {
            return Ok(Enqueued::Duplicate(*id, StateKind::Done));
        }
        if self.jobs.iter().filter(|job| !matches!(job.at, At::Dead { .. })).count() >= SETTINGS.capacity {
            return Err(QueueError::Full { capacity: SETTINGS.capacity });
        }
        let id = JobId(self.next_job);
        self.next_job += 1;
        self.jobs.push(Job {
            id,
            key,
            guild: new.request.destination.guild.map(|guild| guild.get()),
            user: new.request.requester,
            priority: new.priority,
            at: At::Waits { from: new.not_before.max(self.now), alone: false },
            attempts: 0,
            suspicion: 0,
            spared: 0,
            engaged: false,
            post: new.request.post().number(),
            begun: false,
            watched,
            generation: 0,
            deadline: new.deadline,
            codes: Vec::new(),
        });
        Ok(Enqueued::New(id))
    }

    /// Whether a job may be worked on: its moment has come, and of all that wait for the same it is the first.
    fn ready(&self, job: &Job) -> bool {
        job.ready(self.now) && self.is_first(job)
    }

    pub(super) fn is_first(&self, job: &Job) -> bool {
        let before = |other: &Job| match other.at {
            At::Held { .. } => true,
            At::Waits { .. } => !other.watched && (!other.begun, other.id) < (!job.begun, job.id),
            At::Dead { .. } => false,
        };
        !job.watched
            && !self.jobs.iter().any(|other| other.post == job.post && other.id != job.id && before(other))
    }

    pub(super) fn let_go(&mut self, id: JobId) {
        for job in self.jobs.iter_mut().filter(|job| job.id == id) {
            job.watched = false;
        }
    }

    pub(super) fn engage(&mut self, lease: LeaseRef) {
        if let Some((job, _)) = self.held(lease) {
            job.engaged = true;
        }
    }

    pub(super) fn intend(&mut self, lease: LeaseRef) {
        if let Some((job, _)) = self.held(lease) {
            (job.engaged, job.begun) = (false, true);
        }
    }

    /// Whether these leases are right, one after the other, and none is missing.
    pub(super) fn claimed(&mut self, most: usize, visibility: Duration, leases: &[Lease]) {
        assert!(leases.len() <= most);
        for lease in leases {
            self.see();
            assert!(self.may_lease().contains(&lease.lease.job), "{lease:?} must wait");
            assert_eq!(lease.lease.token.0, self.next_token);
            self.next_token += 1;
            let until = self.now.plus(visibility);
            let job = self.jobs.iter_mut().find(|job| job.id == lease.lease.job).unwrap();
            let At::Waits { alone, .. } = job.at else { panic!("{job:?} does not wait") };
            let served = job.clone();
            job.attempts += 1;
            job.engaged = false;
            job.at = At::Held { token: lease.lease.token.0, until, alone };
            assert_eq!((lease.attempt, lease.generation), (job.attempts, job.generation));
            assert_eq!((lease.until, lease.alone), (until, alone));
            if !alone {
                self.served(&served);
            }
        }
        self.see();
        assert!(
            leases.len() == most || self.may_lease().is_empty(),
            "{:?} is kept waiting",
            self.may_lease()
        );
    }

    /// Those that may be leased now, by all that the model knows.
    pub(super) fn may_lease(&self) -> Vec<JobId> {
        let ready = |alone: bool| {
            self.jobs.iter().filter(move |job| {
                self.ready(job) && matches!(job.at, At::Waits { alone: is, .. } if is == alone)
            })
        };
        let held = self.jobs.iter().filter(|job| matches!(job.at, At::Held { .. })).count();
        if self.jobs.iter().any(|job| matches!(job.at, At::Held { alone: true, .. })) {
            return Vec::new();
        }
        let since = |job: &Job| match job.at {
            At::Waits { from, .. } => (from, job.id),
            _ => unreachable!(),
        };
        if let Some(suspect) = ready(true).min_by_key(|job| since(job)) {
            if held == 0 {
                return vec![suspect.id];
            }
            if self.now.since(since(suspect).0) >= seconds(30) {
                return Vec::new();
            }
        }
        let background = ready(false).any(|job| job.priority == Priority::Background);
        let interactive = ready(false).any(|job| job.priority == Priority::Interactive);
        let lane = if interactive && !(background && self.turns.streak >= 15) {
            Priority::Interactive
        } else {
            Priority::Background
        };
        let in_lane = || ready(false).filter(|job| job.priority == lane);
        in_lane()
            .filter(|job| {
                let first = in_lane()
                    .filter(|other| (other.party(), other.user) == (job.party(), job.user))
                    .map(|other| other.id)
                    .min();
                let passed_over = job
                    .who()
                    .into_iter()
                    .any(|me| in_lane().flat_map(Job::who).any(|other| self.turns.passes_over(me, other)));
                first == Some(job.id) && !passed_over
            })
            .map(|job| job.id)
            .collect()
    }

    fn served(&mut self, job: &Job) {
        let background = self.jobs.iter().any(|other| {
            other.priority == Priority::Background
                && self.ready(other)
                && matches!(other.at, At::Waits { alone: false, .. })
        });
        let waits = job.priority == Priority::Interactive && background;
        self.turns.streak = if waits { self.turns.streak + 1 } else { 0 };
        self.turns.count += 1;
        for who in job.who() {
            self.turns.served.insert(who, self.turns.count);
            self.turns.waiting.insert(who, self.turns.count);
        }
    }

    /// Who waits for a turn now.
    fn see(&mut self) {
        let ready: Vec<Who> = self
            .jobs
            .iter()
            .filter(|job| self.ready(job) && matches!(job.at, At::Waits { alone: false, .. }))
            .flat_map(Job::who)
            .collect();
        self.turns.waiting.retain(|who, _| ready.contains(who));
        for who in ready {
            self.turns.waiting.entry(who).or_insert(self.turns.count);
        }
    }

    pub(super) fn held(&mut self, lease: LeaseRef) -> Option<(&mut Job, bool)> {
        self.jobs.iter_mut().find_map(|job| match job.at {
            At::Held { token, alone, .. } if (job.id, token) == (lease.job, lease.token.0) => {
                Some((job, alone))
            }
            _ => None,
        })
    }

    pub(super) fn extend(&mut self, lease: LeaseRef, until: WallTime) -> bool {
        let now = self.now;
        let Some((job, alone)) = self.held(lease) else { return false };
        if matches!(job.at, At::Held { until, .. } if until <= now) {
            return false;
        }
        job.at = At::Held { token: lease.token.0, until, alone };
        true
    }

    pub(super) fn complete(&mut self, lease: LeaseRef) -> Option<bool> {
        if self.results.iter().any(|result| result.1 == lease.job) {
            return None;
        }
        let Some((job, _)) = self.held(lease) else { return Some(false) };
        let (id, key) = (job.id, job.key);
        self.jobs.retain(|job| job.id != id);
        self.results.push((key, id, self.now));
        self.trim();
        Some(true)
    }

    pub(super) fn retry(&mut self, lease: LeaseRef, after: Duration, code: &str) -> Retried {
        let now = self.now;
        let Some((job, alone)) = self.held(lease) else { return Retried::Lost };
        job.codes.push(code.to_owned());
        come_back(job, now.plus(after), alone, now);
        let at = job.at;
        self.trim();
        match at {
            At::Waits { from, .. } => Retried::At(from),
            At::Dead { why, .. } => Retried::Dead(why),
            At::Held { .. } => unreachable!(),
        }
    }

    pub(super) fn bury(&mut self, lease: LeaseRef, code: &str) -> bool {
        let now = self.now;
        let Some((job, _)) = self.held(lease) else { return false };
        job.codes.push(code.to_owned());
        job.at = At::Dead { why: DeadReason::Permanent, since: now };
        self.trim();
        true
    }

    pub(super) fn release(&mut self, lease: LeaseRef) -> bool {
        let now = self.now;
        let Some((job, alone)) = self.held(lease) else { return false };
        job.attempts -= 1;
        job.at = At::Waits { from: now, alone };
        true
    }

    pub(super) fn revive(&mut self, id: JobId, deadline: WallTime) -> bool {
        let now = self.now;
        let Some(job) = self.jobs.iter_mut().find(|job| job.id == id && matches!(job.at, At::Dead { .. }))
        else {
            return false;
        };
        let alone = job.suspicion > 0;
        (job.attempts, job.suspicion, job.generation) = (0, u32::from(alone), job.generation + 1);
        job.spared = 0;
        (job.at, job.deadline) = (At::Waits { from: now, alone }, deadline);
        true
    }

    pub(super) fn forget(&mut self, id: JobId) -> bool {
        let before = self.jobs.len();
        self.jobs.retain(|job| job.id != id || matches!(job.at, At::Held { .. }));
        self.jobs.len() < before
    }

    /// The process dies and comes back.
    pub(super) fn crash(&mut self, now: WallTime) {
        self.now = self.now.max(now);
        let now = self.now;
        for job in &mut self.jobs {
            job.watched = false;
            let At::Held { alone, .. } = job.at else { continue };
            job.codes.push("crashed".to_owned());
            if !job.engaged && job.spared < SETTINGS.max_spared {
                job.spared += 1;
                job.attempts -= 1;
                job.at = At::Waits { from: now, alone };
                continue;
            }
            job.suspicion += 1;
            job.at = At::Waits { from: now, alone: true };
            if !alone {
                job.attempts -= 1;
            } else if job.suspicion > SETTINGS.max_alone_crashes {
                job.at = At::Dead { why: DeadReason::Poison, since: now };
            } else if job.attempts >= SETTINGS.max_attempts {
                job.at = At::Dead { why: DeadReason::Attempts, since: now };
            }
        }
        self.turns = Turns::default();
        self.tick(now);
    }

    pub(super) fn stats(&self) -> Stats {
        let count = |kind: fn(&Self, &Job) -> bool| {
            u64::try_from(self.jobs.iter().filter(|job| kind(self, job)).count()).unwrap()
        };
        Stats {
            ready: count(Self::ready),
            delayed: count(|model, job| matches!(job.at, At::Waits { .. }) && !model.ready(job)),
            leased: count(|_, job| matches!(job.at, At::Held { .. })),
            dead: count(|_, job| matches!(job.at, At::Dead { .. })),
            trouble: None,
            oldest_ready: self
                .jobs
                .iter()
                .filter(|job| self.ready(job))
                .filter_map(|job| match job.at {
                    At::Waits { from, .. } if from <= self.now => Some(from),
                    _ => None,
                })
                .min(),
        }
    }

    fn kind(&self, job: &Job) -> StateKind {
        match job.at {
            At::Waits { alone: true, .. } => StateKind::Suspect,
            At::Waits { from, .. } if from <= self.now => StateKind::Ready,
            At::Waits { .. } => StateKind::Delayed,
            At::Held { .. } => StateKind::Leased,
            At::Dead { .. } => StateKind::Dead,
        }
    }
}

fn come_back(job: &mut Job, from: WallTime, alone: bool, now: WallTime) {
    job.at = if job.attempts >= SETTINGS.max_attempts {
        At::Dead { why: DeadReason::Attempts, since: now }
    } else if job.deadline <= from || job.deadline <= now {
        At::Dead { why: DeadReason::Deadline, since: now }
    } else {
        At::Waits { from, alone }
    };
}

impl Turns {
    /// Whether it would be `me` a second time while `other`, of the same kind, waits since before the first.
    fn passes_over(&self, me: Who, other: Who) -> bool {
        let alike =
            me.0 == other.0 && me.2.is_some() == other.2.is_some() && (me.2.is_none() || me.1 == other.1);
        alike
            && me != other
            && matches!((self.served.get(&me), self.waiting.get(&other)), (Some(served), Some(since)) if since < served)
    }
}
