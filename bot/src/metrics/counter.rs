//! What is counted: a closed list.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Defines the counters with the name that stores and Prometheus know them by, and what each counts.
macro_rules! counters {
    ($($variant:ident = $name:literal, $help:literal;)+) => {
        /// Something that is counted. The names are stored and exported: they do not change their meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Counter {
            $(#[doc = concat!("Counts ", $help, ".")] $variant,)+
        }

        impl Counter {
            /// All counters, in the order in which they are exported.
            pub const ALL: [Self; COUNTERS] = [$(Self::$variant),+];

            /// Its stable name, in snake case and without prefix or `_total`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// What it counts: a noun, without full stop.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help),+ }
            }
        }

        /// How many counters there are.
        const COUNTERS: usize = [$($name),+].len();
    };
}

counters! {
    Links = "links", "links found in messages";
    Requests = "requests", "requests made of them, before any guard";
    RateLimited = "rate_limited", "requests refused by a rate limit";
    Refused = "refused", "requests refused for their audience";
    Deduplicated = "deduplicated", "requests that joined work already in flight";
    Pointers = "pointers", "requests answered with a link to an earlier delivery";
    Delivered = "delivered", "requests delivered as media";
    Failed = "failed", "requests that ended without media";
    Retries = "retries", "jobs put back to be tried again";
    DeadLetters = "dead_letters", "jobs given up after their last attempt";
    ResolverHits = "resolver_hits", "posts found in the resolver cache";
    ResolverMisses = "resolver_misses", "posts that had to be asked for";
    ResolverNegativeHits = "resolver_negative_hits", "failures found in the resolver cache";
    ArtifactHits = "artifact_hits", "files found in the artifact cache";
    ArtifactMisses = "artifact_misses", "files that had to be made";
    DownloadBytes = "download_bytes", "bytes downloaded";
    UploadBytes = "upload_bytes", "bytes uploaded";
    Transcodes = "transcodes", "files of which something was encoded anew";
    QueueSpills = "queue_spills", "requests kept in memory only, since the queue could not store them";
    StoreDrops = "store_drops", "records dropped because the store could not keep up";
    StoreFailures = "store_failures", "flushes that the store failed at";
}

impl Counter {
    /// Its place among all counters.
    const fn index(self) -> usize {
        // The value of a variant, not a number that could be cut.
        self as usize
    }
}

/// All counters, counting.
#[derive(Debug, Default)]
pub(super) struct Cells([AtomicU64; COUNTERS]);

impl Cells {
    pub(super) fn add(&self, counter: Counter, n: u64) {
        if let Some(cell) = self.0.get(counter.index()) {
            // Relaxed: the counters say nothing about each other.
            cell.fetch_add(n, Ordering::Relaxed);
        }
    }

    pub(super) fn read(&self) -> Counts {
        Counts(std::array::from_fn(|at| self.0.get(at).map_or(0, |cell| cell.load(Ordering::Relaxed))))
    }
}

/// All counters, counted. Stored by name, so that a list which has grown reads what a shorter one wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, u64>", into = "BTreeMap<String, u64>")]
pub(super) struct Counts([u64; COUNTERS]);

impl Counts {
    pub(super) fn get(&self, counter: Counter) -> u64 {
        self.0.get(counter.index()).copied().unwrap_or(0)
    }

    pub(super) fn combine(&mut self, other: &Self, with: impl Fn(u64, u64) -> u64) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = with(*mine, theirs);
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.iter().all(|n| *n == 0)
    }
}

impl From<BTreeMap<String, u64>> for Counts {
    fn from(names: BTreeMap<String, u64>) -> Self {
        Self(Counter::ALL.map(|counter| names.get(counter.name()).copied().unwrap_or(0)))
    }
}

impl From<Counts> for BTreeMap<String, u64> {
    fn from(counts: Counts) -> Self {
        let counted =
            Counter::ALL.into_iter().map(|counter| (counter.name().to_owned(), counts.get(counter)));
        counted.filter(|(_, n)| *n > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_place_and_a_name_of_its_own() {
        let mut names = Vec::new();
        for (index, counter) in Counter::ALL.into_iter().enumerate() {
            assert_eq!(counter.index(), index);
            assert!(counter.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
            assert!(!names.contains(&counter.name()), "{}", counter.name());
            names.push(counter.name());
        }
    }

    #[test]
    fn counts_are_read_by_name_whatever_else_was_stored() {
        let counts: Counts = serde_json::from_str(r#"{"links":3,"something_of_old":9}"#).unwrap();
        assert_eq!(counts.get(Counter::Links), 3);
        assert_eq!(counts.get(Counter::Delivered), 0);
        assert_eq!(serde_json::to_string(&counts).unwrap(), r#"{"links":3}"#);
    }
}
