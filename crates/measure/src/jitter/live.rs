//! What a sampler shows of itself while it runs.

use std::sync::atomic::{AtomicU64, Ordering};

/// A sampler's line: written by it alone, read by the main thread a few times a second.
///
/// Aligned to 128 bytes, since processors fetch lines in pairs; so no sampler's write touches another's line.
/// Relaxed throughout: the three figures are shown, not reckoned with, and the record itself is handed over by a
/// channel.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Live {
    count: AtomicU64,
    ticks_total: AtomicU64,
    ticks_max: AtomicU64,
}

impl Live {
    /// Shows the figures. Called when they have changed only.
    #[inline]
    pub fn show(&self, count: u64, ticks_total: u64, ticks_max: u64) {
        self.count.store(count, Ordering::Relaxed);
        self.ticks_total.store(ticks_total, Ordering::Relaxed);
        self.ticks_max.store(ticks_max, Ordering::Relaxed);
    }

    /// Count, total and longest as last shown, in ticks.
    pub fn seen(&self) -> (u64, u64, u64) {
        (
            self.count.load(Ordering::Relaxed),
            self.ticks_total.load(Ordering::Relaxed),
            self.ticks_max.load(Ordering::Relaxed),
        )
    }
}
