//! The parts of `azalea demo`: a clip that is drawn, a small X and CDN that serve it, a table that tells the story.
//!
//! This room never knows the network beyond loopback, nor the engine, nor what a terminal is. Its invariants:
//!
//! - Nothing here opens a connection; the server listens on loopback alone and ends when it is dropped.
//! - The same call gives the same clip and the same table, on every machine.

pub mod clip;
pub mod server;
pub mod table;
