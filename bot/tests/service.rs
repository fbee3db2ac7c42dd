//! The service as a whole, from a line of text to a delivered file: the real engine, the real store, and loopback
//! doubles of X and its media server.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod support;

#[path = "service/crowd.rs"]
mod crowd;
#[path = "service/durable.rs"]
mod durable;
#[path = "service/films.rs"]
mod films;
#[path = "service/fuse.rs"]
mod fuse;
#[path = "service/guards.rs"]
mod guards;
#[path = "service/house.rs"]
mod house;
#[path = "service/memory.rs"]
mod memory;
#[path = "service/posts.rs"]
mod posts;
#[path = "service/recorder.rs"]
mod recorder;
#[path = "service/retries.rs"]
mod retries;
#[path = "service/stopping.rs"]
mod stopping;
