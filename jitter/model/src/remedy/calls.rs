//! Functions requested by other CPUs, and the kernel's own watchdogs.

use super::{Advice, by_program, case::Case, isolation::isolate, memory, ticks};

/// A memory barrier that a program requested on other CPUs.
pub(super) fn membarrier(_: &Case<'_>) -> Advice {
    Advice::Act(
        "a program with threads here calls membarrier (garbage collectors, liburcu, rseq): none of its \
         threads may do so while trading"
            .into(),
    )
}

/// The kernel rewrote its own code.
pub(super) fn code_patch(_: &Case<'_>) -> Advice {
    Advice::Act(
        "another CPU rewrote kernel code, which affects each CPU: do not switch tracing, BPF programs, perf \
         events or firewall rules on or off while trading"
            .into(),
    )
}

/// A tool that reads or writes registers of this CPU.
pub(super) fn registers(_: &Case<'_>) -> Advice {
    Advice::Act(
        "a tool on another CPU reads or writes this CPU's registers (turbostat, powertop, an MSR \
                 exporter): stop it"
            .into(),
    )
}

/// A perf event of this CPU.
pub(super) fn perf(_: &Case<'_>) -> Advice {
    Advice::Act(
        "a perf event is open on this CPU: stop perf and other tools that collect its counters".into(),
    )
}

pub(super) fn clock_step(_: &Case<'_>) -> Advice {
    Advice::Act(
        "the host's clock was stepped, which affects every CPU: configure the clock service to slew, and to \
         step only when it starts"
            .into(),
    )
}

/// A thread was queued to be woken here.
pub(super) fn remote_wakeup(case: &Case<'_>) -> Advice {
    isolate(
        case,
        "another CPU woke a thread that may run here",
        "the threads in this list are pinned here by their own affinity, so move them",
    )
}

/// Caches of a file system or block device were dropped.
pub(super) fn block_caches(_: &Case<'_>) -> Advice {
    Advice::Act(
        "a block device was closed or unmounted, which drops caches on every CPU: do so before trading"
            .into(),
    )
}

/// The interrupt between CPUs, if the function is unknown.
pub(super) fn call(case: &Case<'_>) -> Advice {
    // The functions are separate causes if the kernel traces them; the call alone does not identify them.
    if let Some(Advice::Elsewhere(setting, action)) = memory::mover(case) {
        return Advice::Elsewhere(
            setting,
            format!("another CPU requested a function to run here, perhaps because {action}"),
        );
    }
    if ticks::is_rcu_normal(case) {
        return by_program(
            "another CPU requested a function to run here: the call functions in this list name it, if this \
             kernel traces them",
        );
    }
    Advice::Act(
        "another CPU requested a function to run here: if the call functions in this list name \
         rcu_exp_handler, or there are none, boot with rcupdate.rcu_normal_after_boot=1"
            .into(),
    )
}

/// Any function without a rule.
pub(super) fn other_function(case: &Case<'_>) -> Advice {
    Advice::Act(format!(
        "another CPU requested {} to run here: find the caller on the housekeeping CPUs",
        case.function()
    ))
}

/// Work that was deferred to a separate interrupt.
pub(super) fn irq_work(case: &Case<'_>) -> Advice {
    if case.is_tickless() {
        return by_program(
            "the kernel interrupted itself, as perf events, printk, RCU and restarts of the tick do: check \
             the other causes in this list",
        );
    }
    Advice::Act(format!(
        "the kernel interrupted itself, as perf events, printk and RCU do: boot with nohz_full={} and stop perf",
        case.isolated_list()
    ))
}

/// The kernel's soft lockup detector.
pub(super) fn soft_watchdog(case: &Case<'_>) -> Advice {
    let mask = case.knob("/proc/sys/kernel/watchdog_cpumask").map(str::trim);
    let holds = mask.and_then(|text| lowlat_host::CpuSet::parse_list(text).ok());
    match (holds, case.housekeeping_list()) {
        (Some(cpus), _) if cpus.is_disjoint(&case.cpus) => {
            Advice::Act(format!("kernel.watchdog_cpumask excludes {} now: measure again", case.on()))
        }
        (_, Some(list)) => Advice::Act(format!("sysctl -w kernel.watchdog_cpumask={list}")),
        (_, None) => Advice::Elsewhere("sysctl.kernel.watchdog", "sysctl -w kernel.watchdog=0".into()),
    }
}

pub(super) fn nmi(case: &Case<'_>) -> Advice {
    match case.sysctl("kernel.nmi_watchdog") {
        Some(0) => by_program(
            "kernel.nmi_watchdog is 0 already: check for perf or another profiler, and for hardware errors \
             in the firmware's log",
        ),
        _ => Advice::Act(
            "sysctl -w kernel.nmi_watchdog=0, and stop profilers, which use the same interrupt".into(),
        ),
    }
}

/// A signal to the measured thread.
pub(super) fn signal(case: &Case<'_>) -> Advice {
    Advice::Act(format!(
        "the program's own signal: arm no timer that sends {0} to the trading thread, or block {0} there and \
         receive it in a thread on {1} (pthread_sigmask, sigwait or signalfd)",
        case.label(),
        case.housekeeping()
    ))
}

/// A signal that stops or resumes the measured thread.
pub(super) fn stopped(case: &Case<'_>) -> Advice {
    Advice::Act(format!(
        "{} comes from job control, a debugger or a supervisor: none of them may stop the program while it \
         trades",
        case.label()
    ))
}

/// Polling for corrected hardware errors.
pub(super) fn machine_check(case: &Case<'_>) -> Advice {
    const DIR: &str = "/sys/devices/system/machinecheck/machinecheck0";
    match case.knob(&format!("{DIR}/check_interval")).map(str::trim) {
        Some("0") => Advice::Act(format!("{DIR}/check_interval is 0 already: measure again")),
        _ => Advice::Act(format!(
            "echo 0 > {DIR}/check_interval stops the polling, and errors that raise no interrupt then go \
             unnoticed"
        )),
    }
}
