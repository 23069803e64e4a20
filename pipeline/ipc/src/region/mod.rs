//! Memory of a segment: words that two processes or threads access as atomics.

mod backing;
#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
mod handing;
mod heap;
mod held;
#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
mod memfd;

pub use backing::Backing;
pub use heap::Heap;
pub(crate) use held::CachedWords;
#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
pub use memfd::{Access, Memfd, RegionError};

use crate::atomics::AtomicU64;

/// Memory as words. Another process can write it at any moment, so it is accessed as atomics only, and no value
/// in it is trusted. It may be mapped read-only: then loads work, and a store ends the process with SIGSEGV.
///
/// # Safety
/// [`Region::words`] must return the same words at the same address each time, also after the value was moved.
/// They must stay mapped and readable as long as the value lives, and this process must not access them other
/// than as atomics.
pub unsafe trait Region: Send + Sync {
    /// Returns all words of the memory.
    fn words(&self) -> &[AtomicU64];
}

// SAFETY: the words are those of the region behind the reference, which outlives it.
unsafe impl<R: Region + ?Sized> Region for &R {
    #[inline]
    fn words(&self) -> &[AtomicU64] {
        (**self).words()
    }
}

// SAFETY: the words are those of the region that the pointer keeps alive.
unsafe impl<R: Region + ?Sized> Region for std::sync::Arc<R> {
    #[inline]
    fn words(&self) -> &[AtomicU64] {
        (**self).words()
    }
}
