//! How far a run is.

use super::live::Live;
use crate::clock::TickScale;
use lowlat_host::CpuId;
use std::{sync::Arc, time::Duration};

/// How far a run is, as its samplers last showed it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JitterProgress {
    /// Since the samplers began.
    pub elapsed: Duration,
    /// How long the run is to be.
    pub duration: Duration,
    /// Samplers at work.
    pub cpu_count: usize,
    /// Interruptions so far, on all CPUs.
    pub interruption_count: u64,
    /// Per CPU, by rising number.
    pub cpus: Vec<CpuProgress>,
}

/// What one CPU's sampler last showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuProgress {
    /// The CPU.
    pub cpu: CpuId,
    /// Interruptions so far.
    pub interruption_count: u64,
    /// Time they took.
    pub interruption_ns_total: u64,
    /// The longest.
    pub interruption_ns_max: u64,
}

impl JitterProgress {
    pub(super) fn of(lines: &[(CpuId, Arc<Live>)], duration: Duration) -> Self {
        let cpus = lines.iter().map(|(cpu, _)| CpuProgress { cpu: *cpu, ..CpuProgress::default() }).collect();
        Self { duration, cpu_count: lines.len(), cpus, ..Self::default() }
    }

    /// Brings the figures up to date in place: memory given back to the kernel during a run would interrupt every
    /// core that runs a sampler.
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
