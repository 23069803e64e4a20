//! Helpers shared by tests of several modules.

#[cfg(any(lowlat_loom, lowlat_shuttle))]
pub use mortal::{Mortal, unless_it_ends};

/// Number of random cases; under Miri only a few, since each takes seconds.
#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
pub fn cases(count: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config::with_cases(if cfg!(miri) { 2 } else { count })
}

#[cfg(any(lowlat_loom, lowlat_shuttle))]
mod mortal {
    use crate::{
        atomics::AtomicU64,
        region::{Heap, Region},
    };
    use std::{
        panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
        sync::{Arc, atomic},
    };

    /// The memory of a process that dies at some access to it.
    #[derive(Debug)]
    pub struct Mortal {
        heap: Arc<Heap>,
        /// Accesses left. Nothing else reads it, so loom and shuttle need not model it.
        left: atomic::AtomicU64,
    }

    impl Mortal {
        pub fn new(heap: &Arc<Heap>, left: u64) -> Arc<Self> {
            Arc::new(Self { heap: Arc::clone(heap), left: atomic::AtomicU64::new(left) })
        }
    }

    // SAFETY: the words are those of the heap that the value keeps alive; this returns them or does not return.
    unsafe impl Region for Mortal {
        fn words(&self) -> &[AtomicU64] {
            if self.left.fetch_sub(1, atomic::Ordering::Relaxed) == 0 {
                resume_unwind(Box::new(Ended));
            }
            self.heap.words()
        }
    }

    /// Panic payload of a dying process.
    struct Ended;

    /// Result of a process; `None` if it died.
    pub fn unless_it_ends<T>(process: impl FnOnce() -> T) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(process)) {
            Ok(result) => Some(result),
            Err(thrown) if thrown.is::<Ended>() => None,
            Err(thrown) => resume_unwind(thrown),
        }
    }
}
