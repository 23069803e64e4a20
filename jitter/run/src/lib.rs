//! Measurements of lowlat. Each produces a raw record; its evaluation is pure and in `lowlat-jitter`.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod clock;
pub mod jitter;
pub mod tick_proof;
pub mod tracefs;
