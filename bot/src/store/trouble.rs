//! When a disk that failed is tried again, and what is said about it. Pure.

use std::time::Duration;

use crate::clock::Instant;

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// To open or to read: nothing can be had from the disk.
    Read,
    /// To write: what is there can perhaps still be read.
    Write,
}

/// What to tell the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing new.
    None,
    /// Persistence is suspended from now on.
    Suspended,
    /// It works again after it was suspended.
    Recovered,
}

/// The failures in a row and their consequences.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    failures: u32,
    /// When the last failure that counted was.
    since: Option<Instant>,
    reading_fails: bool,
    writing_fails: bool,
    error: Option<String>,
}

/// From this many failures in a row on, persistence is suspended.
const SUSPENDED_AT: u32 = 5;

/// A suspended disk is tried again after this long; no wait is longer.
const LONGEST: Duration = Duration::from_secs(300);

impl Trouble {
    /// Something failed. Failures before the next try is due count as one: they come of users side by side.
    pub(super) fn failed(&mut self, deed: Deed, error: String, now: Instant) -> News {
        match deed {
            Deed::Read => self.reading_fails = true,
            Deed::Write => self.writing_fails = true,
        }
        self.error = Some(error);
        if self.retry_at().is_some_and(|at| now < at) {
            return News::None;
        }
        self.failures = self.failures.saturating_add(1);
        self.since = Some(now);
        if self.failures == SUSPENDED_AT { News::Suspended } else { News::None }
    }

    /// Something worked. That the disk can be read does not mean that it can be written.
    pub(super) fn worked(&mut self, deed: Deed) -> News {
        self.reading_fails = false;
        if deed == Deed::Read && self.writing_fails {
            return News::None;
        }
        let suspended = self.is_suspended();
        self.writing_fails = false;
        self.failures = 0;
        self.since = None;
        if suspended { News::Recovered } else { News::None }
    }

    /// When to try again; `None` when nothing is wrong.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.since.and_then(|since| since.checked_add(pause(self.failures)))
    }

    /// Whether reading now is known to be in vain.
    pub(super) fn reads_in_vain(&self, now: Instant) -> bool {
        self.reading_fails && self.retry_at().is_some_and(|at| now < at)
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.failures >= SUSPENDED_AT
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    pub(super) fn last_error(&self) -> Option<&str> {
        self.error.as_deref()
    }
}

/// The wait after this many failures in a row: 1, 2, 4, 8 s, and 300 s once suspended.
fn pause(failures: u32) -> Duration {
    if failures >= SUSPENDED_AT {
        return LONGEST;
    }
    let doublings = failures.saturating_sub(1);
    Duration::from_secs(1_u64.checked_shl(doublings).unwrap_or(u64::MAX)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::instant;

    #[tokio::test(start_paused = true)]
    async fn five_failures_in_a_row_suspend_once_and_one_success_resumes() {
        let mut trouble = Trouble::default();
        let (mut now, mut waits, mut news) = (instant(), Vec::new(), Vec::new());
        for _ in 0..7 {
            news.push(trouble.failed(Deed::Write, "no space".into(), now));
            let next = trouble.retry_at().unwrap();
            waits.push((next - now).as_secs());
            now = next;
        }
        assert_eq!(waits, [1, 2, 4, 8, 300, 300, 300]);
        let said = news.iter().filter(|news| **news == News::Suspended).count();
        assert_eq!((said, news[4]), (1, News::Suspended));
        assert_eq!(trouble.worked(Deed::Write), News::Recovered);
        assert_eq!((trouble.failures(), trouble.retry_at()), (0, None));
        assert_eq!(trouble.last_error(), Some("no space"));
    }

    #[tokio::test(start_paused = true)]
    async fn users_side_by_side_fail_once() {
        let mut trouble = Trouble::default();
        let now = instant();
        for _ in 0..100 {
            trouble.failed(Deed::Read, "gone".into(), now);
        }
        trouble.failed(Deed::Write, "gone".into(), now);
        assert_eq!(trouble.failures(), 1);
        assert!(trouble.reads_in_vain(now));
        assert!(!trouble.reads_in_vain(now + Duration::from_secs(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_can_be_read_may_still_be_full() {
        let mut trouble = Trouble::default();
        trouble.failed(Deed::Write, "no space".into(), instant());
        assert!(!trouble.reads_in_vain(instant()));
        trouble.worked(Deed::Read);
        assert_eq!(trouble.failures(), 1);
    }
}
