//! Memory that moves: NUMA balancing, huge pages, merging, compaction, statistics, page faults.

use super::{Advice, by_program, case::Case};
use lowlat_host::Reading;

const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const KSM: &str = "/sys/kernel/mm/ksm/run";

/// Returns advice about what moves a program's pages on this host, if anything does.
pub(super) fn mover(case: &Case<'_>) -> Option<Advice> {
    if case.sysctl("kernel.numa_balancing").is_some_and(|mode| mode != 0) {
        let action = "automatic NUMA balancing is on and unmaps pages of running programs: sysctl -w kernel.numa_balancing=0";
        return Some(case.elsewhere("sysctl.kernel.numa_balancing", action));
    }
    if case.context.host.memory.thp_enabled.text() == "always" {
        let action = format!(
            "the kernel assembles huge pages from a program's memory while it runs: echo madvise > {THP}"
        );
        return Some(Advice::Elsewhere("memory.thp_enabled", action));
    }
    if case.context.host.memory.ksm_run == Reading::Known(1) {
        let action = format!("identical pages are merged while programs run: echo 2 > {KSM}");
        return Some(Advice::Elsewhere("memory.ksm", action));
    }
    None
}

/// A page fault of the measured thread.
pub(super) fn page_fault(case: &Case<'_>) -> Advice {
    mover(case).unwrap_or_else(|| {
        case.say(
            "lock and touch all memory before trading starts: mlockall(MCL_CURRENT | MCL_FUTURE), then write each page",
        )
    })
}

/// A TLB flush that another CPU requested.
pub(super) fn flush(case: &Case<'_>) -> Advice {
    mover(case).unwrap_or_else(|| {
        case.say(
            "a thread on another CPU changed memory that it shares with this program: no thread of the \
             program may unmap, protect or free memory while it trades",
        )
    })
}

/// Pages cached per CPU are returned at the request of another CPU.
pub(super) fn drain(case: &Case<'_>) -> Advice {
    if let Some(advice) = case.by_sender("compaction") {
        return advice;
    }
    if case.context.host.memory.thp_enabled.text() == "never" {
        return by_program(
            "a program elsewhere makes the kernel drain the page lists of every CPU: check for \
             posix_fadvise(DONTNEED), compaction and changes of huge page pools",
        );
    }
    Advice::Act(format!(
        "khugepaged and compaction drain the page lists of every CPU: echo never > {THP} if no program needs \
         it"
    ))
}

/// The thread that assembles huge pages.
pub(super) fn khugepaged(case: &Case<'_>) -> Advice {
    if case.context.host.memory.thp_enabled.text() == "never" {
        return Advice::Act(format!("{THP} is never already: khugepaged stops after its current scan"));
    }
    Advice::Act(format!("echo never > {THP}, or madvise if a program requests huge pages"))
}

/// The thread that merges identical pages.
pub(super) fn ksmd(case: &Case<'_>) -> Advice {
    match case.context.host.memory.ksm_run {
        Reading::Known(0 | 2) => {
            Advice::Act(format!("{KSM} is off already: ksmd stops after its current scan"))
        }
        _ => Advice::Act(format!("echo 2 > {KSM}, which also separates merged pages")),
    }
}

/// The thread that compacts memory.
pub(super) fn kcompactd(case: &Case<'_>) -> Advice {
    case.set_sysctl(
        "vm.compaction_proactiveness",
        0,
        "kcompactd is woken by requests for huge pages, so reserve them at boot",
    )
}

/// The rate of the memory statistics.
pub(super) fn vmstat(case: &Case<'_>) -> Advice {
    const KEY: &str = "vm.stat_interval";
    match case.sysctl(KEY) {
        Some(seconds) if seconds >= 10 => Advice::Act(format!(
            "{KEY} is {seconds} s already: a CPU that makes no system calls has no counters to fold"
        )),
        _ => Advice::Act(format!("sysctl -w {KEY}=10, and in /etc/sysctl.d to keep it")),
    }
}

/// Advice to isolate the CPUs, or `when_isolated` if they are.
pub(super) fn isolate(case: &Case<'_>, why: &str, when_isolated: &str) -> Advice {
    if case.is_isolated() {
        return Advice::Act(format!("{why}, although {} {} isolated: {when_isolated}", case.on(), case.is()));
    }
    Advice::Act(format!(
        "{why}: boot with {}, or put {} into an isolated cpuset partition, so that no other thread runs \
         there",
        case.isolcpus(),
        case.on()
    ))
}

/// Another CPU woke a thread on this one.
pub(super) const RESCHEDULE: [&str; 2] = [
    "another CPU woke a thread that may run here",
    "the threads in this list are pinned here by their own affinity, so move them",
];
/// Load balancing by the scheduler.
pub(super) const BALANCE: [&str; 2] = [
    "the scheduler balances load here",
    "a cpuset with cpuset.sched_load_balance may still contain them (control groups version 1)",
];
/// Work of the block layer: a request completes on the CPU that submitted it.
pub(super) const BLOCK: [&str; 2] = [
    "a disk request completes here, usually one that was submitted here",
    "submit no disk requests on these CPUs (log and record from threads on housekeeping CPUs)",
];
/// A soft high-resolution timer, and other timers without a separate rule.
pub(super) const OTHER_TIMER: [&str; 2] = [
    "{function} was armed by code that ran here",
    "a system call or an interrupt on these CPUs arms it; the timeline shows which",
];

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
