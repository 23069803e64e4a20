//! Atomics of the ring: the standard ones, or loom's, which try every order in which threads may see them.

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

/// The right to write or read a slot. Under loom, a test fails if a write and a read, or two writes, are not
/// ordered by the atomics; otherwise it does nothing.
#[derive(Debug, Default)]
pub struct Claim(#[cfg(lowlat_loom)] loom::cell::UnsafeCell<()>);

#[cfg(lowlat_loom)]
// SAFETY: it contains nothing that could be shared wrongly; loom tracks accesses itself.
unsafe impl Sync for Claim {}

impl Claim {
    /// Marks the slot as written from here on.
    #[inline]
    #[cfg_attr(not(lowlat_loom), expect(clippy::unused_self, reason = "loom needs it"))]
    pub fn write(&self) {
        #[cfg(lowlat_loom)]
        self.0.with_mut(|_| ());
    }

    /// Marks the slot as read from here on.
    #[inline]
    #[cfg_attr(not(lowlat_loom), expect(clippy::unused_self, reason = "loom needs it"))]
    pub fn read(&self) {
        #[cfg(lowlat_loom)]
        self.0.with(|_| ());
    }
}
