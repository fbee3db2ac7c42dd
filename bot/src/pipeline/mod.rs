//! From a post to a delivered file: resolve, download, optimize, upload.
//!
//! This room joins what stands below it and makes no choice of its own about policy or quality. It never knows a
//! front end by name.

pub mod activity;
mod attempt;
mod choose;
mod dead_letters;
pub mod delivery;
pub mod download;
mod fulfil;
pub mod optimize;
pub mod posting;
mod rule;
pub mod withdrawals;
pub mod worker;

pub use rule::egress_rule;
