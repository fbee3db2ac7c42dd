//! The engine as its users see it: files that `ffmpeg` makes go in, and `ffmpeg` judges what comes out.
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "a test has no readers of its documentation")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod budget;
mod colour;
mod confined;
mod damage;
mod failures;
mod forms;
mod geometry;
mod growing;
mod jobs;
mod segments;
mod support;
mod time;
mod tracks;
