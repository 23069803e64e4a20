//! Atomics of the standard library, or of loom, which tries every order of their steps:
//! RUSTFLAGS="--cfg lowlat_loom" cargo test -p lowlat-ipc --lib loom_

#[cfg(lowlat_loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(not(lowlat_loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
