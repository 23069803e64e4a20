//! Firmware, hypervisor, heat and hardware errors.

use super::{Advice, case::Case};
use lowlat_host::Reading;

/// Time without a kernel event while steal time or the SMI count increased.
pub(super) fn firmware_or_hypervisor(case: &Case<'_>) -> Advice {
    if case.is_virtual() {
        return case.elsewhere(
            "readiness.steal",
            "nothing inside a virtual machine can remove it: use dedicated physical CPUs, or a physical host",
        );
    }
    let what = match case.context.host.virtualization.is_virtual {
        Reading::Known(false) => "the firmware took the CPU (system-management interrupts)",
        _ => "firmware or a hypervisor took the CPU",
    };
    power_capping(case, what)
}

pub(super) fn unexplained(case: &Case<'_>) -> Advice {
    if case.is_virtual() {
        return case.elsewhere(
            "readiness.virtual_machine",
            "probably the hypervisor, which nothing inside a virtual machine can change: use a physical host",
        );
    }
    power_capping(
        case,
        "no event and no counter explains it, which leaves firmware (its interrupts are counted on Intel \
         processors only) and clock changes",
    )
}

fn power_capping(case: &Case<'_>, what: &str) -> Advice {
    let cpu = &case.context.host.cpu;
    let by_firmware = cpu.frequency.iter().any(|policy| policy.driver.text() == "pcc-cpufreq");
    if by_firmware {
        return Advice::Elsewhere(
            "firmware.collaborative_power_control",
            format!(
                "{what}: switch Collaborative Power Control off, through which pcc-cpufreq asks the firmware"
            ),
        );
    }
    Advice::Act(format!(
        "{what}: switch off power capping, then USB emulation and the firmware's reporting of corrected \
         errors, one at a time, and measure after each"
    ))
}
