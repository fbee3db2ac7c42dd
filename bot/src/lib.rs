//! Azalea's service: from a line of text to a delivered file.
//!
//! The rooms stand in `ARCHITECTURE.md` at the root of the repository.

#![forbid(unsafe_code)]

pub mod clock;
pub mod config;
pub mod dedup;
pub mod domain;
pub mod guard;
pub mod http;
pub mod metrics;
pub mod source;
pub mod store;
