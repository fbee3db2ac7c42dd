//! Who may do what.

pub mod egress;
