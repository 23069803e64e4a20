//! Atomics of the standard library, or of a library that controls the order of their steps:
//!
//! * loom tries every order, in small models and with weak memory ordering:
//!   `RUSTFLAGS="--cfg lowlat_loom" cargo test -p lowlat-ipc --lib loom_`
//! * shuttle tries random orders, in models of real size, and treats every access as sequentially consistent:
//!   `RUSTFLAGS="--cfg lowlat_shuttle" cargo test -p lowlat-ipc --lib shuttle_`

#[cfg(lowlat_loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(lowlat_shuttle)]
pub use self::in_shuttle::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(lowlat_shuttle)]
mod in_shuttle {
    pub use shuttle::sync::atomic::{AtomicU64, Ordering, fence};

    /// Has the size of a word of a region, so that a region can contain a bell.
    #[derive(Debug)]
    #[repr(transparent)]
    pub struct AtomicU32(AtomicU64);

    impl AtomicU32 {
        pub fn new(value: u32) -> Self {
            Self(AtomicU64::new(value.into()))
        }

        pub fn load(&self, ordering: Ordering) -> u32 {
            half(self.0.load(ordering))
        }

        pub fn store(&self, value: u32, ordering: Ordering) {
            self.0.store(value.into(), ordering);
        }

        pub fn swap(&self, value: u32, ordering: Ordering) -> u32 {
            half(self.0.swap(value.into(), ordering))
        }

        pub fn compare_exchange(
            &self,
            current: u32,
            new: u32,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u32, u32> {
            self.0.compare_exchange(current.into(), new.into(), success, failure).map(half).map_err(half)
        }
    }

    fn half(word: u64) -> u32 {
        u32::try_from(word).expect("only 32 bits are stored")
    }
}
