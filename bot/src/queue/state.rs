//! When a job may be taken, held, given back, ended or put aside.
//!
//! One pure function, [`step`]: from where a job is in its life and what happens to where it is then, or why nothing
//! happens. `docs/queue.md` has the whole table, and a test compares the two.

use crate::clock::WallTime;
use crate::queue::{DeadReason, LeaseToken, State};

/// What of a job decides what may happen to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// Where it is.
    pub(crate) state: State,
    /// Attempts that were begun and are charged.
    pub(crate) attempts: u32,
    /// How often the process died while it was at the engine.
    pub(crate) suspicion: u32,
    /// How often the process died while it was held and had not come to the engine.
    pub(crate) spared: u32,
    /// Of one that is held: its media have come to the engine, and are not posted yet.
    pub(crate) engaged: bool,
    /// How often a person had it run again.
    pub(crate) generation: u32,
    /// From then on it is not tried any more.
    pub(crate) deadline: WallTime,
}

/// How much a job is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Attempts.
    pub(crate) max_attempts: u32,
    /// Deaths of the process while the job was alone.
    pub(crate) max_alone_crashes: u32,
    /// Deaths of the process before the job came to the engine that prove nothing.
    pub(crate) max_spared: u32,
}

/// What happens to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A worker takes it.
    Lease { token: LeaseToken, until: WallTime },
    /// Its worker makes progress.
    Extend { token: LeaseToken, until: WallTime },
    /// Its worker gives its media to the engine, which can end the process.
    Engage { token: LeaseToken },
    /// Its worker is about to post, or has posted a part.
    Intend { token: LeaseToken },
    /// Its worker has answered the person.
    Complete { token: LeaseToken },
    /// Its worker failed and wants it tried again.
    Retry { token: LeaseToken, run_at: WallTime },
    /// Its worker failed for good.
    Bury { token: LeaseToken, why: DeadReason },
    /// Its worker stops before it is through.
    Release { token: LeaseToken, run_at: WallTime },
    /// Its lease runs out.
    Expire,
    /// The process died.
    Crash,
    /// Its deadline passes.
    Deadline,
    /// A person wants it run again.
    Revive { deadline: WallTime },
    /// A person does not want it any more.
    Forget,
}

/// Why nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The lease that is named is not held, or not any more.
    Lost,
    /// The moment has not come.
    Early,
    /// The moment is over.
    Late,
    /// That does not happen to such a job.
    Unfit,
}

/// What comes of `event` at `now`: the job's new life, `None` when it is forgotten.
///
/// # Errors
/// Why nothing happens.
pub(crate) fn step(life: Life, event: Event, now: WallTime, rules: Rules) -> Result<Option<Life>, Refusal> {
    match event {
        Event::Lease { token, until } => life.leased(token, until, now),
        Event::Extend { token, until } => {
            life.held(token, now).map(|alone| life.with(State::Leased { token, until, alone }))
        }
        Event::Engage { token } => life.held(token, now).map(|_| Life { engaged: true, ..life }),
        // What is posted is made: the engine is done with it.
        Event::Intend { token } => life.held(token, now).map(|_| Life { engaged: false, ..life }),
        Event::Complete { token } => life.held(token, now).map(|_| life.with(State::Done)),
        Event::Retry { token, run_at } => {
            life.held(token, now).map(|alone| life.back(alone, run_at, now, rules))
        }
        Event::Bury { token, why } => life.held(token, now).map(|_| life.dead(why, now)),
        Event::Release { token, run_at } => {
            life.held(token, now).map(|alone| life.uncharged().waiting(alone, run_at.max(now)))
        }
        Event::Expire => life.expired(now, rules),
        Event::Crash => life.crashed(now, rules),
        Event::Deadline => life.late(now),
        Event::Revive { deadline } => life.revived(deadline, now),
        Event::Forget => match life.state {
            State::Scheduled { .. } | State::Suspect { .. } | State::Dead { .. } => return Ok(None),
            State::Leased { .. } | State::Done => Err(Refusal::Unfit),
        },
    }
    .map(Some)
}

impl Life {
    /// Whether the job is alone under this lease, which must be the current one.
    fn held(self, named: LeaseToken, now: WallTime) -> Result<bool, Refusal> {
        match self.state {
            State::Leased { token, until, alone } if token == named && now < until => Ok(alone),
            _ => Err(Refusal::Lost),
        }
    }

    fn leased(self, token: LeaseToken, until: WallTime, now: WallTime) -> Result<Self, Refusal> {
        let (run_at, alone) = match self.state {
            State::Scheduled { run_at } => (run_at, false),
            State::Suspect { run_at } => (run_at, true),
            State::Leased { .. } | State::Done | State::Dead { .. } => return Err(Refusal::Unfit),
        };
        if now < run_at {
            return Err(Refusal::Early);
        }
        if now >= self.deadline {
            return Err(Refusal::Late);
        }
        let attempts = self.attempts.saturating_add(1);
        Ok(Self { attempts, engaged: false, ..self.with(State::Leased { token, until, alone }) })
    }

    fn expired(self, now: WallTime, rules: Rules) -> Result<Self, Refusal> {
        match self.state {
            State::Leased { until, .. } if now < until => Err(Refusal::Early),
            State::Leased { until, alone, .. } => Ok(self.back(alone, until, now, rules)),
            _ => Err(Refusal::Unfit),
        }
    }

    /// What a process that died leaves. What can end it is the engine, so a job that had not come there, or was
    /// through, goes on as if it had not been leased; but not for ever, since it may be something else. Of several at the
    /// engine it is not known which one it was, so none is charged and all are run alone; one that was alone is known.
    fn crashed(self, now: WallTime, rules: Rules) -> Result<Self, Refusal> {
        let State::Leased { alone, .. } = self.state else { return Err(Refusal::Unfit) };
        if !self.engaged && self.spared < rules.max_spared {
            let spared = Self { spared: self.spared.saturating_add(1), ..self };
            return Ok(spared.uncharged().waiting(alone, now));
        }
        let suspected = Self { suspicion: self.suspicion.saturating_add(1), ..self };
        if !alone {
            return Ok(suspected.uncharged().waiting(true, now));
        }
        // The first suspicion was that of a bystander, and from then on a job is only ever alone.
        if self.suspicion >= rules.max_alone_crashes {
            return Ok(suspected.dead(DeadReason::Poison, now));
        }
        if self.attempts >= rules.max_attempts {
            return Ok(suspected.dead(DeadReason::Attempts, now));
        }
        Ok(suspected.waiting(true, now))
    }

    fn late(self, now: WallTime) -> Result<Self, Refusal> {
        match self.state {
            State::Scheduled { .. } | State::Suspect { .. } if now < self.deadline => Err(Refusal::Early),
            State::Scheduled { .. } | State::Suspect { .. } => Ok(self.dead(DeadReason::Deadline, now)),
            // Whoever holds it may still finish; it is not tried again after that.
            State::Leased { .. } | State::Done | State::Dead { .. } => Err(Refusal::Unfit),
        }
    }

    /// What was suspected stays so, with all its tries alone before it.
    fn revived(self, deadline: WallTime, now: WallTime) -> Result<Self, Refusal> {
        let State::Dead { .. } = self.state else { return Err(Refusal::Unfit) };
        let again = Self {
            attempts: 0,
            suspicion: self.suspicion.min(1),
            spared: 0,
            generation: self.generation.saturating_add(1),
            deadline,
            ..self
        };
        Ok(again.waiting(again.suspicion > 0, now))
    }

    /// After an attempt that is charged.
    fn back(self, alone: bool, run_at: WallTime, now: WallTime, rules: Rules) -> Self {
        if self.attempts >= rules.max_attempts {
            self.dead(DeadReason::Attempts, now)
        } else if run_at.max(now) >= self.deadline {
            self.dead(DeadReason::Deadline, now)
        } else {
            self.waiting(alone, run_at)
        }
    }

    /// Whoever was alone stays so until it is over: that it failed early does not clear it.
    const fn waiting(self, alone: bool, run_at: WallTime) -> Self {
        self.with(if alone { State::Suspect { run_at } } else { State::Scheduled { run_at } })
    }

    const fn dead(self, reason: DeadReason, at: WallTime) -> Self {
        self.with(State::Dead { reason, at })
    }

    const fn uncharged(self) -> Self {
        Self { attempts: self.attempts.saturating_sub(1), ..self }
    }

    const fn with(self, state: State) -> Self {
        Self { state, ..self }
    }
}

#[cfg(test)]
mod tests;
