//! Measurements on this host.

#[path = "../../../pipeline/trade/tests/common/allocator.rs"]
mod allocator;
mod jitter;
mod memory;
mod truth;

use lowlat_jitter::JitterRecord;
use lowlat_jitter_run::jitter::JitterError;
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// Two runs at a time would only measure each other.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Measures again if the machine was too busy to calibrate the loop.
fn calibrated(run: impl Fn() -> Result<JitterRecord, JitterError>) -> JitterRecord {
    for _ in 0..50 {
        match run() {
            Err(JitterError::Busy { .. }) => thread::sleep(Duration::from_millis(100)),
            other => return other.unwrap(),
        }
    }
    panic!("the machine is too busy to calibrate the loop");
}
