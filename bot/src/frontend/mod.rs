//! Where requests come from and results go to.
//!
//! A front end turns what people write into [`Incoming`](crate::intake::Incoming) messages and implements
//! [`Delivery`](crate::pipeline::delivery::Delivery). It never resolves, downloads or decides. The operator's has no
//! messages: it looks after what is in the queue.

pub mod console;
pub mod demo;
pub mod discord;
pub mod names;
pub mod operator;
pub mod terminal;
mod words;

pub use words::words;
