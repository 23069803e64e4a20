//! System-management interrupts, which are invisible to the kernel: Intel processors count them.

use lowlat_host::{CpuId, CpuSet, Reading};
use lowlat_host_run::{Root, msr};
use std::collections::BTreeMap;

const CPUINFO: &str = "/proc/cpuinfo";
/// Bytes of /proc/cpuinfo that contain the first processor's vendor.
const VENDOR_BYTES: usize = 512;
/// Bits of the register that count.
const COUNT_BITS: u64 = 0xffff_ffff;

/// System-management interrupts of some CPUs since their reset, from MSR_SMI_COUNT (Intel only).
///
/// To be read before and after a run, never during it: the kernel interrupts a CPU to read its register. A
/// virtual machine sees the register as emulated by its hypervisor, not that of the host's firmware.
#[derive(Debug, Clone)]
pub struct SmiCounts {
    cpus: BTreeMap<CpuId, Reading<u64>>,
}

impl SmiCounts {
    /// Reads the register of each of these CPUs; absent on processors of other vendors.
    pub fn read(root: &Root, cpus: &CpuSet) -> Self {
        if !is_intel(root) {
            return Self { cpus: BTreeMap::new() };
        }
        let count = |cpu| msr::read(root, cpu, msr::SMI_COUNT).map(|value| value & COUNT_BITS);
        Self { cpus: cpus.iter().map(|cpu| (cpu, count(cpu))).collect() }
    }

    /// System-management interrupts of a CPU until the registers were read again. The register wraps at 32
    /// bits.
    pub fn count_until(&self, after: &Self, cpu: CpuId) -> Reading<u64> {
        let of = |counts: &Self| counts.cpus.get(&cpu).cloned().unwrap_or(Reading::Absent);
        of(self).and_then(|before| of(after).map(|after| after.wrapping_sub(before) & COUNT_BITS))
    }
}

fn is_intel(root: &Root) -> bool {
    let Reading::Known(mut cpuinfo) = root.open_to_poll(CPUINFO, VENDOR_BYTES) else { return false };
    let Reading::Known(bytes) = cpuinfo.read() else { return false };
    String::from_utf8_lossy(bytes)
        .lines()
        .filter_map(|line| line.split_once(':'))
        .any(|(key, value)| key.trim() == "vendor_id" && value.trim() == "GenuineIntel")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(vendor: &str, count: u64) -> SmiCounts {
        let cpuinfo = format!("processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: 6\n");
        let root = Root::in_memory(
            "test",
            [
                (CPUINFO.to_owned(), cpuinfo.into_bytes()),
                ("/.lowlat/interface/msr/1/0x34".to_owned(), count.to_le_bytes().to_vec()),
            ],
        );
        SmiCounts::read(&root, &CpuSet::first(3))
    }

    #[test]
    fn the_register_is_a_32_bit_count() {
        let until =
            |before, after| counts("GenuineIntel", before).count_until(&counts("GenuineIntel", after), 1);
        assert_eq!(until(40, 42), Reading::Known(2));
        assert_eq!(until(0xffff_ffff, 1), Reading::Known(2));
        assert_eq!(until(0x7_0000_0005, 5), Reading::Known(0), "higher bits are ignored");
    }

    #[test]
    fn other_processors_and_unreadable_registers_have_none() {
        let (before, after) = (counts("GenuineIntel", 1), counts("GenuineIntel", 2));
        assert!(before.count_until(&after, 2).is_absent());
        assert!(before.count_until(&after, 9).is_absent(), "not requested");
        let (before, after) = (counts("AuthenticAMD", 1), counts("AuthenticAMD", 2));
        assert!(before.count_until(&after, 1).is_absent());
    }

    #[test]
    fn this_host_can_be_read() {
        let counts = SmiCounts::read(&Root::live(), &CpuSet::of(0));
        let again = SmiCounts::read(&Root::live(), &CpuSet::of(0));
        eprintln!(
            "system-management interrupts of CPU 0 between two looks: {}",
            counts.count_until(&again, 0)
        );
    }
}
