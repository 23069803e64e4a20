//! Measurements of memory that threads share, on this host.

mod finder;
mod placement;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Two runs at a time would only measure each other.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
