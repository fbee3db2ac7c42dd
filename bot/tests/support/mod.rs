//! Doubles of what the service talks to, on loopback.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod reply;
pub(crate) mod server;

use std::sync::Arc;

use azalea_bot::guard::egress::{Egress, EgressSettings};
use azalea_bot::http::{Http, HttpSettings};
use azalea_bot::pipeline::egress_rule;
use url::Url;

/// A client that may ask these origins and nothing else.
pub(crate) fn http_to(always: &[Url]) -> Http {
    http_with(&EgressSettings { always: always.to_vec(), ..EgressSettings::default() })
}

/// A client with this guard.
pub(crate) fn http_with(settings: &EgressSettings) -> Http {
    let egress = Egress::new(settings).unwrap();
    Http::new(HttpSettings::new(egress_rule(egress))).unwrap()
}

/// Bytes that differ from place to place, so that a shifted or doubled part is seen.
pub(crate) fn pattern(length: usize) -> Arc<[u8]> {
    let mut state: u32 = 0x9e37_79b9;
    let byte = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[1]
    };
    (0..length).map(byte).collect()
}
