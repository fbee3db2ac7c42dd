//! The bot in Discord: a loopback Discord, X and media server, and everything real between them.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod support;

#[path = "discord/asking.rs"]
mod asking;
#[path = "discord/bot.rs"]
mod bot;
#[path = "discord/commands.rs"]
mod commands;
#[path = "support/discord/mod.rs"]
mod double;
#[path = "service/films.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod films;
#[path = "service/house.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod house;
#[path = "discord/limits.rs"]
mod limits;
#[path = "discord/places.rs"]
mod places;
#[path = "service/recorder.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod recorder;
#[path = "discord/removal.rs"]
mod removal;
#[path = "discord/rush.rs"]
mod rush;
#[path = "discord/trouble.rs"]
mod trouble;
