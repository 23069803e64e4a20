//! Threads that took the CPU.

use super::{Advice, case::Case, memory::isolate};
use crate::CauseKind;

/// A thread of a process, or a kernel thread without a separate rule.
pub(super) fn any(case: &Case<'_>) -> Advice {
    let pid = case.cause.number;
    let is_bound = case.context.host.tasks.kernel_threads.iter().any(|thread| {
        pid == Some(i64::from(thread.pid)) && thread.comm == case.cause.name && thread.is_bound
    });
    if is_bound {
        return case.elsewhere(
            "",
            "{label} is bound to its CPU by the kernel: stop what wakes it, which the timeline shows",
        );
    }
    let online = &case.context.host.topology.online;
    let own = case.found().and_then(|found| found.allowed_cpus.as_ref());
    // Isolation keeps away threads that inherited their affinity, but not one with its own affinity.
    let is_pinned = own.is_some_and(|own| !online.is_subset(own));
    if !case.is_isolated() && !is_pinned {
        return isolate(case, &format!("{} may run here", case.label()), "");
    }
    Advice::Elsewhere(
        "sysfs.cpuset.partition",
        format!("{} may run here because of its own affinity: {}", case.label(), taskset(case)),
    )
}

/// The command that moves a thread away, with its ID if known.
fn taskset(case: &Case<'_>) -> String {
    match (case.housekeeping_list(), case.cause.number) {
        (Some(list), Some(pid)) => format!("taskset -pc {list} {pid}"),
        (Some(list), None) => format!("taskset -pc {list} PID, for each thread of this name"),
        (None, _) => "taskset -pc HOUSEKEEPING_CPUS PID".into(),
    }
}

/// A kernel thread that may be moved and has a separate setting.
pub(super) fn movable(case: &Case<'_>) -> Advice {
    Advice::Act(format!("move {} to {}: {}", case.label(), case.housekeeping(), taskset(case)))
}

/// The stopper thread of a CPU.
pub(super) fn migration(case: &Case<'_>) -> Advice {
    if let Some(advice) = case.by_sender("thread moved") {
        return advice;
    }
    let what = format!("{} is bound to its CPU and runs requests from other CPUs", case.name());
    let watches = case.knob("/proc/sys/kernel/watchdog") != Some("0")
        && case.watchdog_cpus().is_some_and(|cpus| !cpus.is_disjoint(&case.cpus));
    if watches {
        let list = case.housekeeping_list().unwrap_or_else(|| "HOUSEKEEPING_CPUS".into());
        return Advice::Elsewhere(
            "sysctl.kernel.watchdog_cpumask",
            format!(
                "{what}, including the lockup detector's check: sysctl -w kernel.watchdog_cpumask={list}"
            ),
        );
    }
    isolate(
        case,
        &format!("{what}, such as moving a thread away"),
        "changes of affinity, of clock source or of kernel code (modules, tracing) use it",
    )
}

/// A worker bound to a CPU.
pub(super) fn bound_worker(case: &Case<'_>) -> Advice {
    let is_drain = case.beside(CauseKind::Work).next().is_some_and(|work| work.cause.name.contains("drain_"));
    if let Some(advice) = case.by_sender("compaction").filter(|_| is_drain) {
        return advice;
    }
    let why = format!("{} runs work that was queued on its CPU", case.label());
    isolate(case, &why, "the work functions in this list name it")
}

/// A worker of unbound work.
pub(super) fn unbound_worker(case: &Case<'_>) -> Advice {
    let path = "/sys/devices/virtual/workqueue/cpumask";
    if case.context.host.tasks.workqueue_cpus.known().is_some_and(|cpus| cpus.is_disjoint(&case.cpus)) {
        let queues = &case.context.host.tasks.workqueues;
        let own = queues.iter().find(|q| q.cpus.known().is_some_and(|cpus| !cpus.is_disjoint(&case.cpus)));
        let name = own.map_or("*", |queue| queue.name.as_str());
        return Advice::Act(format!(
            "{path} excludes {} already: check the masks of single queues, \
             /sys/bus/workqueue/devices/{name}/cpumask",
            case.on()
        ));
    }
    let housekeeping = &case.context.allocation.housekeeping;
    if housekeeping.is_empty() {
        return Advice::Act(format!("write the mask of the housekeeping CPUs to {path}"));
    }
    Advice::Act(format!("echo {} > {path}", housekeeping.to_mask()))
}
