//! Firmware, hypervisor, heat and hardware errors.

use super::{Advice, case::Case};
use lowlat_host::Reading;

/// Time without a kernel event while steal time or the SMI count increased.
pub(super) fn firmware_or_hypervisor(case: &Case<'_>) -> Advice {
    if case.is_virtual() {
        return Advice::Elsewhere(
            "readiness.steal",
            "nothing inside a virtual machine can remove it: use dedicated physical CPUs, or a physical host"
                .into(),
        );
    }
    let is_physical = case.context.host.virtualization.is_virtual == Reading::Known(false);
    power_capping(
        case,
        if is_physical {
            "the firmware took the CPU (system-management interrupts)"
        } else {
            "firmware or a hypervisor took the CPU"
        },
    )
}

pub(super) fn unexplained(case: &Case<'_>) -> Advice {
    if case.is_virtual() {
        return Advice::Elsewhere(
            "readiness.virtual_machine",
            "probably the hypervisor, which nothing inside a virtual machine can change: use a physical host"
                .into(),
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

/// The hypervisor notifies its guest.
pub(super) fn hypervisor(_: &Case<'_>) -> Advice {
    Advice::Act(
        "the hypervisor interrupts its guest, which nothing inside can prevent: use a physical host".into(),
    )
}

/// The processor ran too hot.
pub(super) fn thermal(_: &Case<'_>) -> Advice {
    Advice::Act(
        "a processor reached its temperature limit: increase the cooling, and check for blocked airflow"
            .into(),
    )
}

pub(super) fn corrected_errors(_: &Case<'_>) -> Advice {
    Advice::Act(
        "the hardware corrected errors: find the memory module or device in rasdaemon's log and replace it"
            .into(),
    )
}

/// Interrupts of the processor that do not occur on a sound host.
pub(super) fn stray(case: &Case<'_>) -> Advice {
    Advice::Act(format!(
        "{} is rare on a sound host: check the kernel log and update the firmware",
        case.label()
    ))
}
