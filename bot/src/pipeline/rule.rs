//! Lends the guard's judgement to the room that connects; the two do not know each other.

use std::sync::Arc;

use crate::guard::egress::{Egress, Reach};
use crate::http;

/// The rule for the HTTP room that asks this guard.
pub fn egress_rule(egress: Egress) -> http::EgressRule {
    let egress = Arc::new(egress);
    let for_addresses = Arc::clone(&egress);
    http::EgressRule {
        urls: Arc::new(move |url| match egress.check(url) {
            Ok(Reach::Public) => Ok(http::Reach::Public),
            Ok(Reach::Anywhere) => Ok(http::Reach::Anywhere),
            Err(refusal) => Err(refusal.to_string()),
        }),
        addresses: Arc::new(move |address| {
            for_addresses.check_address(address).map_err(|refusal| refusal.to_string())
        }),
    }
}
