//! Random lives of a queue, beside the model: every answer, every state, every count, with deaths of the process and
//! disks that refuse among them.

use proptest::collection::vec;
use proptest::prelude::*;

use super::model::{At, Model, SETTINGS};
use super::*;
use crate::queue::{Filter, JobView};

#[derive(Clone, Debug)]
enum Op {
    Enqueue { key: u64, guild: u64, user: u64, background: bool, delay: u64, life: u64, watched: bool },
    LetGo { id: u64 },
    Engage { which: usize },
    Claim { most: usize, visibility: u64 },
    Extend { which: usize, visibility: u64 },
    Intend { which: usize },
    Complete { which: usize },
    Retry { which: usize, after: u64 },
    Bury { which: usize },
    Release { which: usize },
    Revive { id: u64, life: u64 },
    Forget { id: u64 },
    Tick,
    Wait { seconds: u64 },
    StepBack { seconds: u64 },
    Commit,
    RollBack,
    Crash,
}

fn ops() -> impl Strategy<Value = Op> {
    let delays = prop_oneof![3 => Just(0_u64), 1 => 1_u64..60];
    let lives = prop_oneof![3 => Just(1_000_u64), 1 => 0_u64..100];
    // Of all leases that were ever given, mostly the last ones.
    let which = || prop_oneof![4 => 0_usize..4, 1 => 4_usize..40];
    prop_oneof![
        8 => (1_u64..14, 0_u64..4, 1_u64..4, any::<bool>(), delays.clone(), lives.clone(), prop::bool::weighted(0.2))
            .prop_map(|(key, guild, user, background, delay, life, watched)| {
                Op::Enqueue { key, guild, user, background, delay, life, watched }
            }),
        1 => (1_u64..30).prop_map(|id| Op::LetGo { id }),
        2 => which().prop_map(|which| Op::Engage { which }),
        6 => (0_usize..4, 1_u64..80).prop_map(|(most, visibility)| Op::Claim { most, visibility }),
        2 => (which(), 1_u64..80).prop_map(|(which, visibility)| Op::Extend { which, visibility }),
        1 => which().prop_map(|which| Op::Intend { which }),
        3 => which().prop_map(|which| Op::Complete { which }),
        3 => (which(), delays).prop_map(|(which, after)| Op::Retry { which, after }),
        1 => which().prop_map(|which| Op::Bury { which }),
        2 => which().prop_map(|which| Op::Release { which }),
        1 => (1_u64..30, lives).prop_map(|(id, life)| Op::Revive { id, life }),
        1 => (1_u64..30).prop_map(|id| Op::Forget { id }),
        1 => Just(Op::Tick),
        5 => (0_u64..45).prop_map(|seconds| Op::Wait { seconds }),
        1 => (0_u64..20).prop_map(|seconds| Op::StepBack { seconds }),
        5 => Just(Op::Commit),
        2 => Just(Op::RollBack),
        2 => Just(Op::Crash),
    ]
}

/// A book, the model beside it, and what of both is safe.
struct Pair {
    wall: WallTime,
    book: Book,
    model: Model,
    /// As they were at the last commit, but for leases that were extended since.
    saved: (Book, Model),
    disk: Disk,
    leases: Vec<LeaseRef>,
}

/// What a file would hold.
#[derive(Default)]
struct Disk {
    jobs: BTreeMap<JobId, Arc<Entry>>,
    ended: BTreeMap<RequestId, Arc<Ended>>,
    counters: Counters,
}

impl Disk {
    fn store(&mut self, book: &Book) {
        for change in book.changes() {
            match change {
                Change::Job { id, before, after } => {
                    assert_eq!(self.jobs.get(&id).map(unextended), before.as_ref().map(unextended));
                    match after {
                        Some(after) => self.jobs.insert(id, after),
                        None => self.jobs.remove(&id),
                    };
                }
                Change::Ended { key, before, after } => {
                    assert_eq!(self.ended.get(&key), before.as_ref());
                    match after {
                        Some(after) => self.ended.insert(key, after),
                        None => self.ended.remove(&key),
                    };
                }
            }
        }
        self.counters = book.counters();
        // The file holds what the book holds, but for leases that were extended.
        assert!(self.jobs.values().map(unextended).eq(book.jobs.values().map(unextended)));
        assert_eq!(self.ended.len(), book.results.len());
    }

    fn load(&self, now: WallTime) -> Book {
        let entries = self.jobs.values().map(|entry| Entry::clone(entry)).collect();
        let ended = self.ended.values().map(|ended| Ended::clone(ended)).collect();
        Book::restore(SETTINGS, entries, ended, self.counters, now)
    }
}

/// The entry with a lease of which nobody knows how long it is.
fn unextended(entry: &Arc<Entry>) -> Entry {
    let mut entry = Entry::clone(entry);
    if let State::Leased { until, .. } = &mut entry.state {
        *until = NOW;
    }
    // Never stored.
    entry.watched = false;
    entry
}

impl Pair {
    fn new() -> Self {
        let (mut book, model) = (Book::new(SETTINGS), Model::new());
        book.tick(NOW);
        let saved = (book.clone(), model.clone());
        Self { wall: NOW, book, model, saved, disk: Disk::default(), leases: Vec::new() }
    }

    /// Does the same to both.
    fn run(&mut self, op: &Op) {
        let now = self.wall;
        match *op {
            Op::Enqueue { key, guild, user, background, delay, life, watched } => {
                let new = NewJob {
                    priority: if background { Priority::Background } else { Priority::Interactive },
                    not_before: now.plus(seconds(delay)),
                    deadline: now.plus(seconds(life)),
                    request: Request { link: link(key % 6), ..request(key, guild, user) },
                };
                self.model.tick(now);
                let answer = if watched {
                    self.book.enqueue_behind(new.clone(), now)
                } else {
                    self.book.enqueue(new.clone(), now)
                };
                assert_eq!(answer, self.model.enqueue(&new, watched));
            }
            Op::Claim { most, visibility } => {
                self.model.tick(now);
                let leases = self.book.claim(most, seconds(visibility), now);
                self.model.claimed(most, seconds(visibility), &leases);
                for lease in leases {
                    self.leases.insert(0, lease.lease);
                }
            }
            Op::Wait { seconds: count } => self.wall = now.plus(seconds(count)),
            Op::StepBack { seconds } => {
                // Not so far that it would be taken for a clock that was wrong.
                let least = self.model.now.as_millis() - 50_000;
                self.wall = WallTime::from_millis((now.as_millis() - seconds * 1_000).max(least));
            }
            Op::Tick => {
                self.model.tick(now);
                assert_eq!(self.book.tick(now), self.model.now);
            }
            Op::Revive { id, life } => {
                self.model.tick(now);
                let deadline = now.plus(seconds(life));
                assert_eq!(
                    self.book.revive(JobId(id), deadline, now),
                    self.model.revive(JobId(id), deadline)
                );
            }
            Op::Forget { id } => {
                self.model.tick(now);
                assert_eq!(self.book.forget(JobId(id), now), self.model.forget(JobId(id)));
            }
            Op::LetGo { id } => {
                self.model.now = self.model.now.max(now);
                self.book.let_go(JobId(id), now);
                self.model.let_go(JobId(id));
                // Not what is stored, and not taken back.
                self.saved.0.let_go(JobId(id), self.model.now);
                self.saved.0.index.fair.commit();
                self.saved.1.now = self.model.now;
                self.saved.1.let_go(JobId(id));
            }
            Op::Commit => self.commit(),
            Op::RollBack => self.roll_back(),
            Op::Crash => self.crash(),
            Op::Extend { which, .. }
            | Op::Engage { which }
            | Op::Intend { which }
            | Op::Complete { which }
            | Op::Retry { which, .. }
            | Op::Bury { which }
            | Op::Release { which } => {
                if let Some(lease) = self.leases.get(which).copied() {
                    self.run_leased(op, lease);
                }
            }
        }
    }

    /// What a holder does, or somebody who was one.
    fn run_leased(&mut self, op: &Op, lease: LeaseRef) {
        let now = self.wall;
        if let Op::Extend { visibility, .. } = *op {
            self.model.now = self.model.now.max(now);
            let until = self.model.now.plus(seconds(visibility));
            let held = self.model.extend(lease, until);
            let answer = self.book.extend(lease, seconds(visibility), now);
            assert_eq!(answer, if held { Held::Until(until) } else { Held::Lost });
            if held {
                // Not what is stored, and not taken back.
                self.saved.0.extend(lease, seconds(visibility), self.model.now);
                self.saved.1.now = self.model.now;
                self.saved.1.extend(lease, until);
            }
            return;
        }
        self.model.tick(now);
        match *op {
            Op::Intend { .. } => {
                let until = self.model.held(lease).map(|(job, _)| job.at);
                let held = match until {
                    Some(At::Held { until, .. }) => Held::Until(until),
                    _ => Held::Lost,
                };
                let intent =
                    Intent { started_at: now, channel: "3".parse().unwrap(), parts: 1, posted: Vec::new() };
                assert_eq!(self.book.intend(lease, intent, now), held);
                self.model.intend(lease);
            }
            Op::Engage { .. } => {
                let held = self.model.held(lease).is_some();
                assert_eq!(matches!(self.book.engage(lease, now), Held::Until(_)), held);
                self.model.engage(lease);
            }
            Op::Complete { .. } => {
                let answer = self.book.complete(lease, answered(now), now);
                match self.model.complete(lease) {
                    None => assert!(matches!(answer, Completed::Already(_)), "{answer:?}"),
                    Some(true) => assert_eq!(answer, Completed::Done),
                    Some(false) => assert_eq!(answer, Completed::Lost),
                }
            }
            Op::Retry { after, .. } => {
                let answer = self.book.retry(lease, seconds(after), reason("transient"), now);
                assert_eq!(answer, self.model.retry(lease, seconds(after), "transient"));
            }
            Op::Bury { .. } => {
                let answer = self.book.bury(lease, reason("gone"), DeadReason::Permanent, now);
                let at = self.model.now;
                assert_eq!(answer, if self.model.bury(lease, "gone") { Held::Until(at) } else { Held::Lost });
            }
            Op::Release { .. } => {
                let answer = self.book.release(lease, Duration::ZERO, now);
                let at = self.model.now;
                assert_eq!(answer, if self.model.release(lease) { Held::Until(at) } else { Held::Lost });
            }
            _ => unreachable!(),
        }
    }

    fn commit(&mut self) {
        self.disk.store(&self.book);
        self.book.commit();
        assert_eq!(self.book.changes(), []);
        self.saved = (self.book.clone(), self.model.clone());
    }

    fn roll_back(&mut self) {
        self.book.roll_back();
        assert_eq!(self.book.changes(), []);
        // Whatever is taken back, it does not get earlier.
        let clock = self.book.counters().clock;
        let (saved, model) = &mut self.saved;
        saved.index.advance(clock, &saved.jobs);
        self.book.assert_same(saved);
        model.now = self.model.now;
        self.model = model.clone();
    }

    fn crash(&mut self) {
        self.book = self.disk.load(self.wall);
        let mut model = self.saved.1.clone();
        model.now = self.disk.counters.clock;
        model.crash(self.wall);
        self.model = model;
        self.commit();
    }

    /// Both know the same.
    fn compare(&self) {
        self.book.check();
        let now = self.model.now;
        let all = Filter { most: 1_000, ..Filter::default() };
        let views = self.book.list(&all, now);
        assert_eq!(views.len(), self.model.jobs.len());
        for (view, job) in views.iter().zip(&self.model.jobs) {
            assert_eq!((view.id, view.request.id, at(view)), (job.id, job.key, job.at));
            assert_eq!(
                (view.attempts, view.suspicion, view.generation),
                (job.attempts, job.suspicion, job.generation)
            );
            assert_eq!(view.deadline, job.deadline);
            let waits = matches!(job.at, At::Waits { .. }) && !self.model.is_first(job);
            assert_eq!(view.waits, waits, "{view:?}, {job:?}");
            assert!(view.behind != Some(view.id) && (waits || view.behind.is_none()), "{view:?}");
            let codes = job.codes[job.codes.len().saturating_sub(20)..].iter();
            assert!(view.history.iter().map(|attempt| &attempt.code).eq(codes), "{view:?}, {job:?}");
            assert!(view.attempts <= SETTINGS.max_attempts);
        }
        assert_eq!(self.book.stats(now), self.model.stats());
        for number in 1..14 {
            // After a change was taken back, what is too old may still be there.
            let kept = |at: WallTime| now.since(at) < SETTINGS.results_for;
            let known = self.model.results.iter().any(|(done, _, at)| *done == key(number) && kept(*at));
            assert_eq!(self.book.result(key(number), now).is_some(), known);
        }
        // What is told to those who wait.
        let mut later = self.book.clone();
        later.tick(now);
        assert_eq!(later.anything_ready(now), !later.clone().claim(1, LEASE, now).is_empty());
        if let Some(event) = later.next_event() {
            assert!(event > now, "it is done already");
            let mut quiet = later.clone();
            let just_before = WallTime::from_millis(event.as_millis() - 1);
            quiet.tick(just_before);
            let ready = later.anything_ready(now);
            // But that a suspect has waited so long that nothing else is leased any more.
            let waited = later
                .index
                .next_suspects
                .first()
                .is_some_and(|(at, _)| just_before.since(*at) >= seconds(30));
            assert!(quiet.anything_ready(just_before) == ready || (ready && waited));
            assert_eq!(quiet.jobs, later.jobs, "nothing happens before it");
        }
    }
}

fn at(view: &JobView) -> At {
    match view.state {
        State::Scheduled { run_at } => At::Waits { from: run_at, alone: false },
        State::Suspect { run_at } => At::Waits { from: run_at, alone: true },
        State::Leased { token, until, alone } => At::Held { token: token.0, until, alone },
        State::Dead { reason, at } => At::Dead { why: reason, since: at },
        State::Done => panic!("{view:?}"),
    }
}

proptest! {
    #[test]
    fn random_lives_are_as_the_model_says(ops in vec(ops(), 1..120)) {
        let mut pair = Pair::new();
        for op in &ops {
            pair.run(op);
            pair.compare();
        }
    }
}
