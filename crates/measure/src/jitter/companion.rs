//! What may run beside the samplers: something that takes each interruption as it comes.

use super::ring::Consumer;
use crate::clock::{CounterKind, TickScale};
use lowlat_host::CpuId;
use std::time::Duration;

/// A run that is about to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// The counter that the samplers read.
    pub counter: CounterKind,
    /// Its ticks in nanoseconds.
    pub scale: TickScale,
    /// A gap of at least this long is an interruption.
    pub threshold_ns: u64,
    /// How long the run is to be.
    pub duration: Duration,
    /// Between two calls of [`Companion::collect`].
    pub every: Duration,
    /// Whether the companion must run on a measured CPU, since no other is left: then all it does counts as an
    /// interruption there.
    pub is_on_measured_cpu: bool,
}

/// One sampler as a companion sees it.
#[derive(Debug)]
pub struct Lane {
    /// The CPU that it is pinned to.
    pub cpu: CpuId,
    /// Its thread id, as traces name it.
    pub thread_id: i32,
    /// Its interruptions: readings of the counter before and after each.
    pub ring: Consumer,
}

/// Takes interruptions out of the samplers' rings while they run.
///
/// All calls come from one thread of ordinary priority, "lowlat-collect", on the CPUs that are not measured when
/// there are any. From [`Companion::start`] to [`Companion::finish`] no memory may go back to the kernel (munmap,
/// mremap, madvise): that interrupts every CPU that runs a sampler. The C library's allocator is told so where it
/// can be; mappings of one's own must be kept until `finish`.
pub trait Companion: Send {
    /// Called once before the samplers begin, which wait for it. Lanes are by rising CPU, here and later on.
    fn start(&mut self, started: &Started, lanes: &[Lane]);

    /// Called every [`Started::every`], and once more when all samplers are done; not at all when none began.
    /// `epoch` is the counter when they began.
    fn collect(&mut self, epoch: u64, lanes: &mut [Lane]);

    /// Called once after all samplers are done; the rings' counts of losses are exact by then.
    fn finish(&mut self, lanes: &[Lane]);
}
