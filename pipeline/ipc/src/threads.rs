//! Threads and locks of the standard library, or of shuttle, like [`crate::atomics`].

#[cfg(lowlat_shuttle)]
pub use shuttle::{
    sync::{Mutex, atomic::AtomicBool},
    thread,
};

#[cfg(not(lowlat_shuttle))]
pub use std::{
    sync::{Mutex, atomic::AtomicBool},
    thread,
};

/// Returns true if a thread has ended. Always false in shuttle, whose threads do not end early.
pub fn is_finished(thread: &thread::JoinHandle<()>) -> bool {
    #[cfg(not(lowlat_shuttle))]
    return thread.is_finished();
    #[cfg(lowlat_shuttle)]
    {
        let _ = thread;
        false
    }
}
