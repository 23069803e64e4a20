//! A library that a host loads and unloads.

use lowlat_counter::PerCpuCounter;
use std::sync::OnceLock;

static COUNTER: OnceLock<PerCpuCounter> = OnceLock::new();

/// Adds both ways, and returns the sum.
#[unsafe(no_mangle)]
pub extern "C" fn bump(times: i64) -> i64 {
    let counter = COUNTER.get_or_init(PerCpuCounter::new);
    for _ in 0..times {
        counter.add_local(1);
        counter.add(1);
    }
    counter.sum()
}

/// 1 if this thread has an area.
#[unsafe(no_mangle)]
pub extern "C" fn is_restartable() -> i32 {
    lowlat_counter::is_restartable().into()
}
