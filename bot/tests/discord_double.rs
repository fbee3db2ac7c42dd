//! The loopback Discord itself, driven by the real client: what it takes, what it refuses, what it tells.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

#[path = "support/discord/mod.rs"]
mod discord;

#[path = "discord_double/client.rs"]
mod client;
#[path = "discord_double/faults.rs"]
mod faults;
#[path = "discord_double/gateway.rs"]
mod gateway;
#[path = "discord_double/interactions.rs"]
mod interactions;
#[path = "discord_double/messages.rs"]
mod messages;
#[path = "discord_double/rights.rs"]
mod rights;
