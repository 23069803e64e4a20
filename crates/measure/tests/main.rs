//! Measurements on this host.

#[path = "../../trade/tests/common/allocator.rs"]
mod allocator;
mod finder;
mod jitter;
mod memory;
mod net;
mod truth;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Two runs at a time would only measure each other.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
