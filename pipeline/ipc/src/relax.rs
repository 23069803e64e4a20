//! Pause between two polls of a spinning loop.

/// Pauses the core for a moment, where that pays.
///
/// On bare metal this is the processor's hint (PAUSE; ISB on aarch64): it saves power and yields to the core's
/// other thread. In an x86 virtual machine it does nothing: hypervisors preempt a guest that pauses often, to
/// run other guests (AMD APM volume 2, "Pause Intercept Filtering"; Intel SDM volume 3, "PAUSE-Loop Exiting").
/// The most eager spinner would then be the one that is preempted when a record arrives.
#[inline]
pub fn relax() {
    #[cfg(lowlat_loom)]
    loom::thread::yield_now();
    #[cfg(lowlat_shuttle)]
    shuttle::thread::yield_now();
    #[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
    if !pauses_leave_the_core() {
        std::hint::spin_loop();
    }
}

/// Returns true if a pause may give the core to a hypervisor.
#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
#[inline]
fn pauses_leave_the_core() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::sync::LazyLock;
        /// CPUID leaf 1, ECX bit 31: zero in every processor, set by hypervisors.
        const HYPERVISOR: u32 = 1 << 31;
        // CPUID itself exits to the hypervisor, so its result is cached.
        static IS_GUEST: LazyLock<bool> = LazyLock::new(|| {
            #[allow(unused_unsafe, reason = "newer compilers treat the intrinsic as safe")]
            // SAFETY: every x86-64 processor has CPUID and leaf 1.
            let leaf = unsafe { std::arch::x86_64::__cpuid(1) };
            leaf.ecx & HYPERVISOR != 0
        });
        *IS_GUEST
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}
