//! Reads the counter: the TSC on x86-64, the architected counter on aarch64, CLOCK_MONOTONIC_RAW elsewhere.

use lowlat_host::CpuId;

/// A monotonic counter, and the CPU on which it is read.
///
/// The sampler is generic over it, so that a test can supply a sequence of readings.
pub trait MonotonicCounter {
    /// The present value, in ticks.
    fn now(&self) -> u64;

    /// The CPU that runs this, if known. Called only outside the loop's turns.
    fn cpu(&self) -> Option<CpuId> {
        // SAFETY: sched_getcpu takes no argument and touches no memory of ours.
        CpuId::try_from(unsafe { libc::sched_getcpu() }).ok()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterKind {
    /// The time stamp counter of x86-64.
    Tsc,
    /// The virtual count of the architected timer of aarch64.
    Cntvct,
    /// The kernel's raw monotonic clock, in nanoseconds.
    MonotonicRaw,
}

impl CounterKind {
    /// Its name in result documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::Cntvct => "cntvct",
            Self::MonotonicRaw => "clock_monotonic_raw",
        }
    }
}

/// The processor's counter, read with one instruction; on other architectures the kernel's raw clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct ArchCounter;

/// `CLOCK_MONOTONIC_RAW` through the vDSO, in nanoseconds: no adjustment by NTP.
#[derive(Debug, Clone, Copy, Default)]
pub struct MonotonicRaw;

impl ArchCounter {
    /// The counter of this architecture.
    pub const KIND: CounterKind = if cfg!(target_arch = "x86_64") {
        CounterKind::Tsc
    } else if cfg!(target_arch = "aarch64") {
        CounterKind::Cntvct
    } else {
        CounterKind::MonotonicRaw
    };
}

/// Waits until all earlier loads are complete. A counter that is read without this may be read while they are under
/// way, and then shows a chain of misses as faster than the nearest cache.
#[inline]
pub fn complete_loads() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the barrier, which touches no stack and no flags. It may order any memory.
    unsafe {
        core::arch::asm!("lfence", options(nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: every aarch64 has the barrier, which touches no stack and no flags. It may order any memory.
    unsafe {
        core::arch::asm!("dsb ishld", options(nostack, preserves_flags));
    }
}

#[cfg(target_arch = "x86_64")]
impl MonotonicCounter for ArchCounter {
    /// A plain RDTSC, neither RDTSCP nor fenced.
    ///
    /// Out of order, RDTSC can read some tens of nanoseconds early or late, depending on instructions in
    /// flight. It cannot miss an interruption: interrupts, NMIs, SMIs and faults are precise. If one is taken
    /// between two readings, the older has retired, and the younger is discarded and executed again after the
    /// return. So the gap between them covers the whole interruption. A fence would only make the turn longer,
    /// and with it the shortest detectable interruption.
    #[expect(clippy::inline_always, reason = "a call would be part of the turn")]
    #[inline(always)]
    fn now(&self) -> u64 {
        // SAFETY: RDTSC is part of x86-64 and reads no memory. A process that disabled it with
        // prctl(PR_SET_TSC) would get SIGSEGV; this one does not.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
}

#[cfg(target_arch = "aarch64")]
impl MonotonicCounter for ArchCounter {
    /// ISB, then the virtual count: without the barrier the counter may be read ahead of earlier instructions
    /// (Arm ARM, CNTVCT_EL0), and the core could merge successive readings.
    #[expect(clippy::inline_always, reason = "a call would be part of the turn")]
    #[inline(always)]
    fn now(&self) -> u64 {
        let count: u64;
        // SAFETY: Linux lets EL0 read CNTVCT_EL0; neither instruction touches memory, the stack or the flags.
        unsafe {
            core::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags));
        }
        count
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
impl MonotonicCounter for ArchCounter {
    #[expect(clippy::inline_always, reason = "a call would be part of the turn")]
    #[inline(always)]
    fn now(&self) -> u64 {
        MonotonicRaw.now()
    }
}

impl MonotonicCounter for MonotonicRaw {
    #[expect(clippy::inline_always, reason = "a call would be part of the turn")]
    #[inline(always)]
    fn now(&self) -> u64 {
        nanoseconds(rustix::time::ClockId::MonotonicRaw)
    }
}

/// A kernel clock in nanoseconds.
pub fn nanoseconds(clock: rustix::time::ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    // Monotonic clocks count from boot and are never negative.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_advance() {
        for _ in 0..3 {
            let (tick, raw) = (ArchCounter.now(), MonotonicRaw.now());
            std::thread::sleep(std::time::Duration::from_millis(1));
            assert!(ArchCounter.now() > tick);
            assert!(MonotonicRaw.now() >= raw + 1_000_000);
        }
    }
}
