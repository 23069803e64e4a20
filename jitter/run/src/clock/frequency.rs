//! Frequency of the counter, from the best available source.

use super::{ArchCounter, CounterKind, calibrate, perf_page};
use lowlat_host_run::Root;
use std::sync::OnceLock;
use thiserror::Error;

/// An out-of-tree module publishes the kernel's calibrated frequency here.
const TSC_FREQ_KHZ: &str = "/sys/devices/system/cpu/cpu0/tsc_freq_khz";

/// A frequency and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frequency {
    pub hz: u64,
    pub source: &'static str,
}

/// Error of a counter that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ClockError {
    /// The counter did not advance while the kernel's clock did.
    #[error("cannot measure time: the counter {0} does not advance on this host\nhint: boot without notsc")]
    StandsStill(&'static str),
}

/// The frequency of a counter of this host.
///
/// # Errors
/// [`ClockError`] if no source reports it and it cannot be measured because the counter does not advance.
pub fn frequency_of(kind: CounterKind, root: &Root) -> Result<Frequency, ClockError> {
    // Measuring takes 0.2 s, and a comparison makes many runs. The frequency is the same until the next boot.
    static MEASURED_HZ: OnceLock<Option<u64>> = OnceLock::new();
    let measure = || *MEASURED_HZ.get_or_init(|| calibrate::measure_hz(&ArchCounter));
    let named = match kind {
        // By definition.
        CounterKind::MonotonicRaw => Some((1_000_000_000, "definition (counts nanoseconds)")),
        CounterKind::Cntvct => counter_register().map(|hz| (hz, "cntfrq_el0")),
        CounterKind::Tsc => tsc(root),
    };
    let measured = "measured against CLOCK_MONOTONIC_RAW (median of five windows of 200 ms)";
    named
        .or_else(|| measure().map(|hz| (hz, measured)))
        .map(|(hz, source)| Frequency { hz, source })
        .ok_or(ClockError::StandsStill(kind.name()))
}

/// The frequency of the TSC and its source, the best first.
fn tsc(root: &Root) -> Option<(u64, &'static str)> {
    cpuid()
        .or_else(|| perf_page::counter_hz().map(|hz| (hz, "kernel (perf mmap)")))
        .or_else(|| sysfs_hz(root).map(|hz| (hz, "kernel (tsc_freq_khz)")))
}

#[cfg(target_arch = "x86_64")]
fn cpuid() -> Option<(u64, &'static str)> {
    use super::cpuid;
    let hypervisor = || cpuid::hypervisor_hz().map(|hz| (hz, "hypervisor (cpuid 0x40000010)"));
    cpuid::crystal_hz().map(|hz| (hz, "cpuid 0x15")).or_else(hypervisor)
}

#[cfg(not(target_arch = "x86_64"))]
fn cpuid() -> Option<(u64, &'static str)> {
    None
}

fn sysfs_hz(root: &Root) -> Option<u64> {
    let khz: u64 = root.read_as(TSC_FREQ_KHZ, "kHz as a number").into_known()?;
    khz.checked_mul(1_000).filter(|hz| *hz > 0)
}

#[cfg(target_arch = "aarch64")]
fn counter_register() -> Option<u64> {
    let hz: u64;
    // SAFETY: Linux lets EL0 read CNTFRQ_EL0; the instruction touches no memory.
    unsafe { core::arch::asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags)) };
    // Firmware that did not set it leaves zero.
    (hz > 0).then_some(hz)
}

#[cfg(not(target_arch = "aarch64"))]
fn counter_register() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the source, the counter must match it against the kernel's clock.
    #[test]
    fn the_reported_frequency_matches_the_measured_one() {
        let named = frequency_of(ArchCounter::KIND, &Root::live()).unwrap();
        let measured = calibrate::measure_hz(&ArchCounter).unwrap();
        eprintln!("{} Hz by {}; measured {measured}", named.hz, named.source);
        assert!(named.hz.abs_diff(measured) < named.hz / 1_000, "{named:?}, measured {measured}");
    }

    #[test]
    fn the_file_is_read_in_khz() {
        let root =
            |text: &str| Root::in_memory("test", [(TSC_FREQ_KHZ.to_owned(), text.as_bytes().to_vec())]);
        assert_eq!(sysfs_hz(&root("2596132\n")), Some(2_596_132_000));
        for junk in ["", "0", "-3", "18446744073709551615", "fast"] {
            assert_eq!(sysfs_hz(&root(junk)), None, "{junk}");
        }
    }
}
