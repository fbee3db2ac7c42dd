//! Claims on deliveries, from the moment a request is taken until its worker is done.
//!
//! A claim is made where a request comes in and released where its work ends. The queue between the two carries
//! requests only, so that they can be written to disk; the ownership waits here for whoever works on the delivery first,
//! which may be a request of an earlier run.

use std::sync::Arc;

use dashmap::DashMap;

use crate::clock::Instant;
use crate::dedup::{Claim, Delivered, InFlight, InFlightSettings, Ownership, Waiter};
use crate::domain::{DeliveryKey, Failure, RequestId};

/// How a delivery ended.
pub type Ended = Result<Delivered, Failure>;

/// The right to end a delivery.
pub type DeliveryOwnership = Ownership<DeliveryKey, Ended>;

/// The claims on deliveries of one process. Clones share them.
#[derive(Clone, Debug)]
pub struct Desk {
    in_flight: InFlight<DeliveryKey, Ended>,
    /// Each with the request that put it there.
    owned: Arc<DashMap<DeliveryKey, (RequestId, DeliveryOwnership)>>,
}

/// What a request found.
#[derive(Debug)]
pub enum Place {
    /// Nobody else works on the delivery: it waits here for the request's worker.
    First,
    /// Somebody works on it, and this is how to learn how it ended.
    Behind(Waiter<Ended>),
}

impl Desk {
    /// No claims.
    pub fn new(settings: InFlightSettings) -> Self {
        Self { in_flight: InFlight::new(settings), owned: Arc::default() }
    }

    /// Claims the delivery `key` for `request` at the moment `now`.
    pub fn claim(&self, key: &DeliveryKey, request: RequestId, now: Instant) -> Place {
        match self.in_flight.claim(key, now) {
            Claim::Owner(ownership) => {
                self.owned.insert(*key, (request, ownership));
                Place::First
            }
            Claim::Waiter(waiter) => Place::Behind(waiter),
        }
    }

    /// Hands the ownership to whoever works on the delivery now; `None` when it is not here.
    pub fn take(&self, key: &DeliveryKey) -> Option<DeliveryOwnership> {
        self.owned.remove(key).map(|(_, (_, ownership))| ownership)
    }

    /// The same, if this request put it here.
    pub fn take_own(&self, key: &DeliveryKey, request: RequestId) -> Option<DeliveryOwnership> {
        self.owned.remove_if(key, |_, (owner, _)| *owner == request).map(|(_, (_, ownership))| ownership)
    }

    /// Gives the claim up, if this request has it: whoever waits for it claims again.
    pub fn release(&self, key: &DeliveryKey, request: RequestId) {
        drop(self.take_own(key, request));
    }

    /// Puts the ownership back, for a request that is tried again later.
    pub fn put_back(&self, request: RequestId, ownership: DeliveryOwnership) {
        self.owned.insert(*ownership.key(), (request, ownership));
    }
}
