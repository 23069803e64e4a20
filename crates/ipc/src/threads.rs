//! Threads and locks of the standard library, or of shuttle, as in [`crate::atomics`].

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

/// Whether a thread has ended; shuttle does not tell, and its threads do not end early.
pub fn is_finished(thread: &thread::JoinHandle<()>) -> bool {
    #[cfg(not(lowlat_shuttle))]
    return thread.is_finished();
    #[cfg(lowlat_shuttle)]
    {
        let _ = thread;
        false
    }
}
