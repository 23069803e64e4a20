//! Measurements of lowlat. Each gives a raw record; the study of it is pure and lives in `lowlat-jitter`.

pub mod affinity;
pub mod clock;
pub mod jitter;
pub mod tick_proof;

pub use affinity::{AffinityError, pin_to};
