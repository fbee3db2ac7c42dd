//! Azalea's service: from a line of text to a delivered file.
//!
//! The rooms stand in `ARCHITECTURE.md` at the root of the repository; [`app`] joins them.

#![forbid(unsafe_code)]

pub mod app;
pub mod clock;
pub mod config;
pub mod dedup;
pub mod domain;
pub mod frontend;
pub mod guard;
pub mod http;
pub mod intake;
pub mod metrics;
pub mod pipeline;
pub mod queue;
pub mod source;
pub mod store;
