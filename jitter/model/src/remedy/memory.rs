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
