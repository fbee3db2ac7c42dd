//! Who may do what: how often people may ask, what may be shown where, which addresses may be asked, and how often a
//! service may refuse us.
//!
//! This room decides; it asks nobody and moves no bytes. It never knows queues, sources, the store or a front end. Its
//! invariants:
//!
//! - A limit that is broken or makes no sense lets people through: it never stops the service.
//! - What protects people and the network does the opposite: what is not known to be allowed is not.
//! - An address that is judged is not connected to here: the room that connects asks for each hop and each address.

pub mod audience;
pub(crate) mod budget;
pub mod egress;
pub mod rate;
