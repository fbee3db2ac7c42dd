//! Decides: what may be kept, how many bytes each part gets, how large the picture is, which CRF comes next.
//!
//! Pure: the same facts give the same plan on every machine. It knows no libav, file, thread, clock or random
//! source. The pipeline carries plans out and makes no choice about quality.

pub(crate) mod animation;
pub(crate) mod budget;
pub(crate) mod course;
pub(crate) mod cut;
pub(crate) mod division;
pub(crate) mod guess;
pub(crate) mod ladder;
pub(crate) mod route;
pub(crate) mod still;
