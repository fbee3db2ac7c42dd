//! The command-line program.
#![forbid(unsafe_code)]
fn main() {}
