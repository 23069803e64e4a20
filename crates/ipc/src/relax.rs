//! Between two looks of a loop that waits without sleeping.

/// Lets a core rest for a moment, where that does not cost more than it gives.
///
/// On bare metal this is the processor's own hint (PAUSE; ISB on aarch64): it saves power and leaves the core to its other
/// thread. In a virtual machine it is nothing on x86: hypervisors have processors leave the guest when it pauses often, to
/// let other guests run (AMD APM volume 2, "Pause Intercept Filtering"; Intel SDM volume 3, "PAUSE-Loop Exiting"), so that
/// who looks most eagerly is the one that is away when something comes.
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

/// Whether a pause may hand the core to a hypervisor.
#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
#[inline]
fn pauses_leave_the_core() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::sync::LazyLock;
        /// CPUID leaf 1, ECX bit 31: zero in every processor, set by hypervisors.
        const HYPERVISOR: u32 = 1 << 31;
        // CPUID leaves the guest itself, so it is asked once.
        static IS_GUEST: LazyLock<bool> =
            LazyLock::new(|| std::arch::x86_64::__cpuid(1).ecx & HYPERVISOR != 0);
        *IS_GUEST
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}
