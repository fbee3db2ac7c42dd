//! What keeps work from being done twice: claims on what is being done, and the memory of what was done.
//!
//! It never does the work itself, and knows neither queue nor front end. Its invariants:
//!
//! - **A claim is released by its owner only.** An owner whose claim expired and was taken over releases nothing.
//! - Who waits holds no worker and is woken when the work ends.
//! - When anything here is broken or full, everybody may work: twice is better than never.
//!
//! Ask in this order: claim, then look at what was done. An owner records what it did before it completes its claim.
//! So whoever gets the next claim on the same key finds the record.

mod desk;
mod inflight;
mod processed;
mod recent;

pub use self::desk::{DeliveryOwnership, Desk, Ended, Place};
pub use self::inflight::{
    Claim, ClaimKey, InFlight, InFlightSettings, Ownership, Token, WaitOutcome, Waiter, WorkTimes,
};
pub use self::processed::{Delivered, Processed, ProcessedSettings, Recall};
pub(crate) use self::recent::Recent;
