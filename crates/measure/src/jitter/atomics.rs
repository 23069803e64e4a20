//! The atomics of the ring: the real ones, or loom's, which try every order in which threads may see them.

#[cfg(lowlat_loom)]
pub use loom::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
#[cfg(not(lowlat_loom))]
pub use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
