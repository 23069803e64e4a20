//! Memory that holds a segment: words that two processes, or two threads, read and write as atomics.

mod backing;
mod heap;
mod held;
#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
mod memfd;

pub use backing::Backing;
pub use heap::Heap;
pub(crate) use held::Held;
#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
pub use memfd::{Access, Memfd, RegionError};

use crate::atomics::AtomicU64;

/// Memory as words. Nobody may hold a plain reference into it: another process can write at any moment, and only atomic
/// accesses are sound then.
///
/// # Safety
/// [`Region::words`] must give the same words at the same place each time, also after the value was moved, and they must stay
/// mapped as long as the value lives.
pub unsafe trait Region: Send + Sync {
    /// All of the memory.
    fn words(&self) -> &[AtomicU64];
}

// SAFETY: the words are those of the region behind the reference, which lives longer than it.
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
