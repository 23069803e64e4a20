//! Measurements of lowlat. Each produces a raw record; its evaluation is pure and in `lowlat-jitter`.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod affinity;
pub mod clock;
pub mod jitter;
pub mod net;
pub mod tick_proof;

pub use affinity::{AffinityError, pin_to};
