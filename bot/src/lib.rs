//! Azalea's service.
#![forbid(unsafe_code)]
