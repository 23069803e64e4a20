//! Reads what CPUID reports about the TSC.

use core::arch::x86_64::{__cpuid_count, CpuidResult};

/// Plausible crystal frequencies: others are not those of a TSC (hypervisors fill in leaf 0x15 too).
const HZ_MIN: u64 = 100_000_000;
const HZ_MAX: u64 = 20_000_000_000;

/// Reads a leaf, or its first subleaf.
#[allow(unused_unsafe, reason = "newer compilers treat the intrinsic as safe")]
fn cpuid(leaf: u32) -> CpuidResult {
    // SAFETY: every x86-64 processor has CPUID; a missing leaf returns other numbers, nothing worse.
    unsafe { __cpuid_count(leaf, 0) }
}

/// Returns whether the TSC has a constant rate in all power states (leaf 0x8000_0007, EDX bit 8: "invariant TSC").
pub fn is_tsc_invariant() -> bool {
    let highest = cpuid(0x8000_0000).eax;
    highest >= 0x8000_0007 && cpuid(0x8000_0007).edx & 1 << 8 != 0
}

/// Frequency of the TSC from leaf 0x15: crystal (ECX, Hz) times EBX over EAX. `None` if the processor does not
/// report its crystal.
pub fn crystal_hz() -> Option<u64> {
    if cpuid(0).eax < 0x15 {
        return None;
    }
    let leaf = cpuid(0x15);
    ratio_hz(leaf.eax, leaf.ebx, leaf.ecx)
}

fn ratio_hz(denominator: u32, numerator: u32, crystal_hz: u32) -> Option<u64> {
    let product = u64::from(crystal_hz) * u64::from(numerator);
    plausible(product.checked_div(u64::from(denominator))?)
}

/// Frequency of the TSC from the hypervisor's timing leaf (0x4000_0010, EAX in kHz), if the hypervisor provides
/// it.
///
/// The leaf was introduced by VMware; KVM and others use the same format. Hyper-V numbers its leaves
/// differently.
pub fn hypervisor_hz() -> Option<u64> {
    if cpuid(1).ecx & 1 << 31 == 0 {
        return None;
    }
    let top = cpuid(0x4000_0000);
    let is_hyper_v = (top.ebx, top.ecx, top.edx) == (0x7263_694d, 0x666f_736f, 0x7648_2074);
    if is_hyper_v || top.eax < 0x4000_0010 {
        return None;
    }
    plausible(u64::from(cpuid(0x4000_0010).eax) * 1_000)
}

fn plausible(hz: u64) -> Option<u64> {
    (HZ_MIN..=HZ_MAX).contains(&hz).then_some(hz)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_follows_the_manual() {
        // A 24 MHz crystal times 168 over 2, as on Skylake clients.
        assert_eq!(ratio_hz(2, 168, 24_000_000), Some(2_016_000_000));
        assert_eq!(ratio_hz(0, 168, 24_000_000), None);
        assert_eq!(ratio_hz(2, 0, 24_000_000), None);
        assert_eq!(ratio_hz(2, 168, 0), None, "an unreported crystal");
        assert_eq!(ratio_hz(1, u32::MAX, u32::MAX), None);
    }
}
