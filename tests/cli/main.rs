//! The built program, run as people run it: each test in a folder of its own, with files that `ffmpeg` makes.
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "a test has no readers of its documentation")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod answers;
mod config;
mod console;
mod demo;
mod errors;
mod fit;
mod get;
mod kill;
mod queue;
mod stop;
mod support;
mod usage;
mod x;
