//! Where requests come from and results go to.
//!
//! A front end turns what people write into [`Incoming`](crate::intake::Incoming) messages and implements
//! [`Delivery`](crate::pipeline::delivery::Delivery). It never resolves, downloads or decides.

pub mod console;
pub mod demo;
pub mod names;
pub mod terminal;
mod words;

pub use words::words;
