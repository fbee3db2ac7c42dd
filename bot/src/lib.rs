//! Azalea's service: from a line of text to a delivered file.
//!
//! The rooms stand in `ARCHITECTURE.md` at the root of the repository. So far the crate holds [`domain`], the plain
//! words that every later room speaks.

#![forbid(unsafe_code)]

pub mod domain;
