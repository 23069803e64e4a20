//! Sleeping on a word, and waking the sleeper.

use crate::atomics::AtomicU32;
use std::time::Duration;

/// A way to sleep and wake.
pub trait Park {
    /// Sleeps while `word` has `value`, for `longest` at most. May return early.
    fn sleep(&self, word: &AtomicU32, value: u32, longest: Duration);

    /// Wakes a sleeper on `word`.
    fn wake(&self, word: &AtomicU32);
}

/// futex(2), over memory that processes share.
#[derive(Debug, Clone, Copy, Default)]
pub struct Futex;

#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
impl Park for Futex {
    fn sleep(&self, word: &AtomicU32, value: u32, longest: Duration) {
        use rustix::thread::futex::{Flags, Timespec, wait};
        let timeout = Timespec {
            tv_sec: i64::try_from(longest.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(longest.subsec_nanos()),
        };
        // Whatever the result, the caller checks again: woken, changed before, a signal, a timeout.
        let _ = wait(word, Flags::empty(), value, Some(&timeout));
    }

    fn wake(&self, word: &AtomicU32) {
        let _ = rustix::thread::futex::wake(word, rustix::thread::futex::Flags::empty(), 1);
    }
}
