//! Measurements of cores and caches.

mod bounce;
pub mod c2c;
pub mod clock;
pub mod clusters;
pub mod finder;
pub mod memory;
pub mod sharing;

pub use bounce::{BounceError, Rounds, bounce};
