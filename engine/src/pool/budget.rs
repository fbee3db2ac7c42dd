//! How many codec threads may run at once over all jobs.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::{lock, wait_at_most};
use crate::error::Error;
use crate::progress::Control;

/// Codec threads for all jobs of an engine.
///
/// **The sum of all grants never exceeds the total.** A stage must give its grant back before the same job
/// takes another, else the job may wait for itself.
#[derive(Debug)]
pub(crate) struct ThreadBudget {
    total: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Jobs at work, whether they use codec threads now or not.
    seats: usize,
    grants: usize,
    /// Those that wait, first come first served: one that asks for little must not starve by bad luck.
    line: VecDeque<u64>,
    next: u64,
}

impl ThreadBudget {
    /// A budget of `total` threads; zero counts as one.
    pub(crate) fn new(total: usize) -> Arc<Self> {
        let total = total.max(1);
        let state = State { free: total, seats: 0, grants: 0, line: VecDeque::new(), next: 0 };
        Arc::new(Self { total, state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Counts a job in, so that others leave it its share before it asks.
    pub(crate) fn seat(self: &Arc<Self>) -> Seat {
        let mut state = lock(&self.state);
        state.seats = state.seats.saturating_add(1);
        drop(state);
        Seat { budget: Arc::clone(self) }
    }

    /// How many threads a job may count on: the total over the jobs at work, at least one.
    pub(crate) fn share_of_a_job(&self) -> usize {
        let seats = lock(&self.state).seats;
        (self.total / seats.max(1)).max(1)
    }

    /// Waits until at least one thread is free, then takes up to `most` (zero counts as one) of those, but no
    /// more than an equal share: the total over the jobs that run or wait, at least one.
    ///
    /// # Errors
    /// `Cancelled` or `Deadline`, within 50 ms of the stop.
    pub(crate) fn take(self: &Arc<Self>, most: usize, control: &Control) -> Result<ThreadGrant, Error> {
        let mut state = lock(&self.state);
        let place = state.next;
        state.next = place.wrapping_add(1);
        state.line.push_back(place);
        let threads = loop {
            if let Err(reason) = control.stop() {
                break Err(reason);
            }
            if state.free > 0 && state.line.front() == Some(&place) {
                break Ok(most.max(1).min(state.free).min(state.share(self.total)));
            }
            state = wait_at_most(&self.changed, state, STOP_CHECK);
        };
        state.line.retain(|other| *other != place);
        if let Ok(threads) = threads {
            state.free = state.free.saturating_sub(threads);
            state.grants = state.grants.saturating_add(1);
        }
        drop(state);
        // The next in line may go now: this one left it, and there may be threads left.
        self.changed.notify_all();
        Ok(ThreadGrant { budget: Arc::clone(self), threads: threads? })
    }
}

impl State {
    fn share(&self, total: usize) -> usize {
        let jobs = self.seats.max(self.grants.saturating_add(self.line.len()));
        total.checked_div(jobs).unwrap_or(total).max(1)
    }
}

/// Threads held by one stage of one job; given back on drop.
#[derive(Debug)]
#[must_use]
pub(crate) struct ThreadGrant {
    budget: Arc<ThreadBudget>,
    threads: usize,
}

impl ThreadGrant {
    /// How many codec threads the holder may run, at least one.
    pub(crate) const fn threads(&self) -> usize {
        self.threads
    }
}

impl Drop for ThreadGrant {
    fn drop(&mut self) {
        let mut state = lock(&self.budget.state);
        state.free = state.free.saturating_add(self.threads);
        state.grants = state.grants.saturating_sub(1);
        drop(state);
        self.budget.changed.notify_all();
    }
}

/// A job that counts when threads are shared out; dropping it counts the job out.
#[derive(Debug)]
#[must_use]
pub(crate) struct Seat {
    budget: Arc<ThreadBudget>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = lock(&self.budget.state);
        state.seats = state.seats.saturating_sub(1);
    }
}

/// How often a waiter looks for a stop, which has no bell: half of the 100 ms in which a stop must take effect.
const STOP_CHECK: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lone_job_may_take_all_codec_threads_and_no_more() {
        let budget = ThreadBudget::new(4);
        let control = Control::new();
        assert_eq!(budget.take(16, &control).unwrap().threads(), 4);
        assert_eq!(budget.take(3, &control).unwrap().threads(), 3);
        assert_eq!(budget.take(0, &control).unwrap().threads(), 1);
    }

    #[test]
    fn seated_jobs_get_equal_shares_in_any_order() {
        let budget = ThreadBudget::new(8);
        let control = Control::new();
        let seats = [budget.seat(), budget.seat(), budget.seat()];
        let grants = [(); 3].map(|()| budget.take(8, &control).unwrap());
        assert_eq!(grants.each_ref().map(|grant| grant.threads()), [2, 2, 2]);
        drop(grants);
        drop(seats);
        assert_eq!(budget.take(8, &control).unwrap().threads(), 8);
    }

    #[test]
    fn codec_threads_given_back_wake_who_waits() {
        let budget = ThreadBudget::new(2);
        let all = budget.take(2, &Control::new()).unwrap();
        let waiter = {
            let budget = Arc::clone(&budget);
            thread::Builder::new()
                .spawn(move || budget.take(2, &Control::new()).map(|g| g.threads()))
                .unwrap()
        };
        drop(all);
        assert_eq!(waiter.join().unwrap().unwrap(), 2);
    }

    #[test]
    fn stop_ends_the_wait_for_codec_threads() {
        let budget = ThreadBudget::new(1);
        let all = budget.take(1, &Control::new()).unwrap();
        let control = Arc::new(Control::new());
        let waiter = {
            let (budget, control) = (Arc::clone(&budget), Arc::clone(&control));
            thread::Builder::new().spawn(move || budget.take(1, &control).map(|g| g.threads())).unwrap()
        };
        control.cancel();
        assert!(matches!(waiter.join().unwrap(), Err(Error::Cancelled)));
        drop(all);
        assert_eq!(budget.take(1, &Control::new()).unwrap().threads(), 1, "the waiter left the line");
    }

    #[test]
    fn grants_of_many_threads_never_exceed_the_total() {
        const TOTAL: usize = 3;
        let budget = ThreadBudget::new(TOTAL);
        let held = Arc::new(AtomicUsize::new(0));
        let takers: Vec<_> = (1..=6)
            .map(|most| {
                let (budget, held) = (Arc::clone(&budget), Arc::clone(&held));
                let take = move || {
                    let control = Control::new();
                    for _ in 0..200 {
                        let grant = budget.take(most, &control).unwrap();
                        assert!((1..=most).contains(&grant.threads()));
                        let sum = held.fetch_add(grant.threads(), Ordering::SeqCst) + grant.threads();
                        assert!(sum <= TOTAL, "{sum} threads are held");
                        thread::yield_now();
                        held.fetch_sub(grant.threads(), Ordering::SeqCst);
                    }
                };
                thread::Builder::new().spawn(take).unwrap()
            })
            .collect();
        for taker in takers {
            taker.join().unwrap();
        }
        assert_eq!(budget.take(TOTAL, &Control::new()).unwrap().threads(), TOTAL);
    }

    proptest! {
        #[test]
        fn grants_are_within_wish_share_and_total(
            total in 1_usize..12,
            seats in 0_usize..5,
            wishes in proptest::collection::vec((0_usize..12, any::<bool>()), 1..40),
        ) {
            let budget = ThreadBudget::new(total);
            let control = Control::new();
            let _seats: Vec<_> = (0..seats).map(|_| budget.seat()).collect();
            let mut grants = VecDeque::new();
            for (most, give_back) in wishes {
                let held = |grants: &VecDeque<_>| {
                    grants.iter().map(ThreadGrant::threads).sum::<usize>()
                };
                if give_back || held(&grants) == total {
                    grants.pop_front();
                }
                if held(&grants) == total {
                    continue;
                }
                let share = (total / seats.max(grants.len() + 1)).max(1);
                let expected = most.max(1).min(share).min(total - held(&grants));
                let grant = budget.take(most, &control).unwrap();
                prop_assert_eq!(grant.threads(), expected);
                grants.push_back(grant);
                prop_assert!(held(&grants) <= total);
            }
        }
    }
}
