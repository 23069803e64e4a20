//! Progress of a run, from the live figures of its samplers.

use crate::clock::TickScale;
use lowlat_host::CpuId;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

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

/// Progress of a run, as last reported by its samplers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JitterProgress {
    /// Time since the samplers started.
    pub elapsed: Duration,
    /// Intended duration of the run.
    pub duration: Duration,
    /// Number of samplers in the run.
    pub cpu_count: usize,
    /// Interruptions so far, on all CPUs.
    pub interruption_count: u64,
    /// Figures of each CPU, in order of CPU.
    pub cpus: Vec<CpuProgress>,
}

/// Figures that one CPU's sampler last reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuProgress {
    pub cpu: CpuId,
    pub interruption_count: u64,
    pub interruption_ns_total: u64,
    pub interruption_ns_max: u64,
}

impl JitterProgress {
    pub(super) fn of(lines: &[(CpuId, Arc<Live>)], duration: Duration) -> Self {
        let cpus = lines.iter().map(|(cpu, _)| CpuProgress { cpu: *cpu, ..CpuProgress::default() }).collect();
        Self { duration, cpu_count: lines.len(), cpus, ..Self::default() }
    }

    /// Updates the figures in place: freeing memory during a run would interrupt every core with a sampler.
    pub(super) fn update(&mut self, lines: &[(CpuId, Arc<Live>)], scale: TickScale, elapsed: Duration) {
        self.elapsed = elapsed.min(self.duration);
        self.interruption_count = 0;
        for (shown, (_, line)) in self.cpus.iter_mut().zip(lines) {
            let (count, ticks_total, ticks_max) = line.seen();
            shown.interruption_count = count;
            shown.interruption_ns_total = scale.ns(ticks_total);
            shown.interruption_ns_max = scale.ns(ticks_max);
            self.interruption_count = self.interruption_count.saturating_add(count);
        }
    }
}
