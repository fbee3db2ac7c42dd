//! The sources of posts, asked over a loopback web and by real processes.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on must fail")]

mod support;

#[path = "sources/web.rs"]
mod web;
#[path = "sources/ytdlp.rs"]
mod ytdlp;

use azalea_bot::clock::Clock;
use azalea_bot::domain::PostId;
use azalea_bot::metrics::Tracker;
use azalea_bot::source::{Resolver, SourceSettings};
use azalea_bot::store::Store;
use support::reply::Reply;
use support::server::Server;

fn id() -> PostId {
    PostId::x("20").unwrap()
}

/// A resolver that remembers in memory only, and may ask this server.
fn resolver(settings: &SourceSettings, server: &Server) -> Resolver {
    let http = support::http_to(&[server.base()]);
    Resolver::new(settings, &http, Store::none(), Clock::system(), Tracker::new(false)).unwrap()
}

/// A document with this content type.
fn page(status: u16, kind: &str, text: &str) -> Reply {
    Reply { status, ..Reply::ok(text.as_bytes()).header("Content-Type", kind) }
}

fn json(status: u16, text: &str) -> Reply {
    page(status, "application/json; charset=utf-8", text)
}
