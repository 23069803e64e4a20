//! Code that runs beside the samplers and receives each interruption as it happens.

use super::ring::Consumer;
use crate::clock::{CounterKind, TickScale};
use lowlat_host::CpuId;
use std::time::Duration;

/// A run that is about to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    pub counter: CounterKind,
    /// Conversion of its ticks to nanoseconds.
    pub scale: TickScale,
    /// A gap of at least this long is an interruption.
    pub threshold_ns: u64,
    /// Intended duration of the run.
    pub duration: Duration,
    /// Interval of calls of [`Companion::collect`].
    pub every: Duration,
    /// True if the companion must run on a measured CPU because no other is left: then its work counts as interruptions
    /// there.
    pub is_on_measured_cpu: bool,
}

/// One sampler as a companion sees it.
#[derive(Debug)]
pub struct Lane {
    /// The CPU to which it is pinned.
    pub cpu: CpuId,
    /// Its thread id, as in traces.
    pub thread_id: i32,
    /// Its interruptions: readings of the counter before and after each.
    pub ring: Consumer,
}

/// Takes interruptions from the samplers' rings during a run.
///
/// All calls come from one thread of ordinary priority, "lowlat-collect", on the CPUs that are not measured, if
/// any. Between [`Companion::start`] and [`Companion::finish`] no memory may be returned to the kernel (munmap,
/// mremap, madvise), because that interrupts every CPU with a sampler. The C library's allocator is configured
/// accordingly where possible; explicit mappings must be kept until `finish`.
pub trait Companion: Send {
    /// Called once before the samplers start, which wait for it. Lanes are in order of CPU, here and later.
    fn start(&mut self, started: &Started, lanes: &[Lane]);

    /// Called every [`Started::every`], and once more when all samplers are done; never if none started.
    /// `epoch` is the counter at their start.
    fn collect(&mut self, epoch: u64, lanes: &mut [Lane]);

    /// Called once after all samplers are done; the rings' counts of losses are then exact.
    fn finish(&mut self, lanes: &[Lane]);
}
