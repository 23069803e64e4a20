//! Live figures of a sampler.

use std::sync::atomic::{AtomicU64, Ordering};

/// A sampler's line: written only by the sampler, read by the main thread a few times a second.
///
/// Aligned to 128 bytes, because processors fetch lines in pairs; so no sampler's write affects another's line.
/// Relaxed throughout: the three figures are only displayed, and the record itself is passed over a channel.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Live {
    count: AtomicU64,
    ticks_total: AtomicU64,
    ticks_max: AtomicU64,
}

impl Live {
    /// Updates the figures. Called only when they have changed.
    #[inline]
    pub fn show(&self, count: u64, ticks_total: u64, ticks_max: u64) {
        // Relaxed: each figure is only displayed.
        self.count.store(count, Ordering::Relaxed);
        self.ticks_total.store(ticks_total, Ordering::Relaxed);
        self.ticks_max.store(ticks_max, Ordering::Relaxed);
    }

    /// Count, total and longest as last updated, in ticks.
    pub fn seen(&self) -> (u64, u64, u64) {
        // Relaxed: each figure is only displayed, and they need not belong together.
        (
            self.count.load(Ordering::Relaxed),
            self.ticks_total.load(Ordering::Relaxed),
            self.ticks_max.load(Ordering::Relaxed),
        )
    }
}
