mod lives;
mod model;
mod rules;
mod turns;

use super::*;
use crate::domain::{Destination, FrontEnd, Link, Options, Request, RequestId};
use crate::queue::{NewJob, Priority};

const NOW: WallTime = WallTime::from_millis(1_800_000_000_000);
const LEASE: Duration = Duration::from_secs(60);

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn key(number: u64) -> RequestId {
    RequestId::new(FrontEnd::Console, number.to_string().parse().unwrap(), 0)
}

/// The post of this number. Requests of the same post stand in one line.
fn link(number: u64) -> Link {
    format!("https://x.com/a/status/{}", 20 + number).parse().unwrap()
}

/// A request of a person in a server; server 0 is a private message.
fn request(number: u64, guild: u64, user: u64) -> Request {
    Request {
        id: key(number),
        requester: user.to_string().parse().unwrap(),
        link: link(number),
        destination: Destination {
            front_end: FrontEnd::Console,
            guild: (guild > 0).then(|| guild.to_string().parse().unwrap()),
            channel: "3".parse().unwrap(),
            reply_to: None,
        },
        options: Options::default(),
    }
}

fn job(number: u64, guild: u64, user: u64) -> NewJob {
    NewJob {
        request: request(number, guild, user),
        priority: Priority::Interactive,
        not_before: NOW,
        deadline: NOW.plus(seconds(3_600)),
    }
}

fn answered(at: WallTime) -> JobResult {
    JobResult::Answered { code: "gone".to_owned(), at }
}

fn reason(code: &str) -> Reason {
    Reason { stage: None, code: code.to_owned(), chain: Vec::new() }
}

/// What is left of a book when its process dies: what was committed, which must be everything.
fn restarted(book: &Book, now: WallTime) -> Book {
    assert_eq!(book.changes(), [], "it was not committed");
    let entries = book.jobs.values().map(|entry| Entry::clone(entry)).collect();
    Book::restore(book.settings, entries, book.results.iter().cloned().collect(), book.counters(), now)
}

impl Results {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Ended> {
        self.all_in_order().map(|ended| &**ended)
    }
}

impl Book {
    /// Every job stands where its state belongs and nowhere else.
    #[track_caller]
    pub(super) fn check(&self) {
        let mut index = Index { clock: self.index.clock, ..Index::default() };
        for (id, entry) in &self.jobs {
            assert_eq!(*id, entry.id);
            assert_ne!(entry.state, State::Done);
            assert!(self.results.of(entry.key()).is_none(), "{id} has a result");
            assert!(entry.history.len() <= 20);
            index.insert(entry);
        }
        assert_eq!(index.fair.waiting(), self.index.fair.waiting());
        assert_eq!(index.fair.len(), self.index.fair.len());
        index.fair = self.index.fair.clone();
        assert_eq!(index, self.index);
        assert_eq!(self.index.keys.len(), self.jobs.len());
        let states = self.index.living() + self.index.dead.len();
        assert_eq!(states, self.jobs.len(), "a job is in one state");
        assert!(self.index.alone.is_none() || self.index.leased.len() == 1, "alone is alone");
    }

    /// Everything but the journal.
    #[track_caller]
    pub(super) fn assert_same(&self, other: &Self) {
        assert_eq!(self.jobs, other.jobs);
        assert_eq!(self.index, other.index);
        assert_eq!(self.results, other.results);
        assert_eq!((self.next_job, self.next_token), (other.next_job, other.next_token));
    }
}
