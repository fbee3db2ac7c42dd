//! What the service counts and how long its stages take.
//!
//! This room never knows the store, the network or a front end: whoever flushes says where the numbers go. Its
//! invariants:
//!
//! - Counting allocates nothing and locks nothing, and costs one branch when metrics are off.
//! - Totals only grow while the program runs. An interval is the difference of two totals, so nothing that is
//!   counted during a flush is lost or counted twice.
//! - What was done for a post is noted in words some times for each request, and never while something is counted.
//! - What is kept is bounded: the counters and buckets are fixed, the kinds of errors are at most
//!   [`MAX_ERROR_KINDS`].

mod counter;
mod diary;
mod export;
mod gauge;
mod histogram;
mod snapshot;
mod tracker;

pub use counter::Counter;
pub use diary::Note;
pub use export::prometheus;
pub use gauge::Gauge;
pub use histogram::Histogram;
pub use snapshot::{Interval, Snapshot, StageSnapshot};
pub use tracker::{MAX_ERROR_KINDS, Tracker};
