//! From a post to a delivered file: resolve, download, optimize, upload.
//!
//! This room joins what stands below it and makes no choice of its own about policy or quality. It never knows a
//! front end by name.

mod choose;
pub mod delivery;
pub mod download;
pub mod optimize;
mod rule;
pub mod worker;

pub use rule::egress_rule;
