//! Functions requested by other CPUs, and the kernel's own watchdogs.

use super::{Advice, by_program, case::Case, memory, ticks};

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
    case.say(
        "another CPU requested a function to run here: if the call functions in this list name \
         rcu_exp_handler, or there are none, boot with rcupdate.rcu_normal_after_boot=1",
    )
}

/// Work that was deferred to a separate interrupt.
pub(super) fn irq_work(case: &Case<'_>) -> Advice {
    if case.is_tickless() {
        return by_program(
            "the kernel interrupted itself, as perf events, printk, RCU and restarts of the tick do: check \
             the other causes in this list",
        );
    }
    case.say(
        "the kernel interrupted itself, as perf events, printk and RCU do: boot with nohz_full={isolated} and stop perf",
    )
}

/// The kernel's soft lockup detector.
pub(super) fn soft_watchdog(case: &Case<'_>) -> Advice {
    match (case.watchdog_cpus(), case.housekeeping_list()) {
        (Some(cpus), _) if cpus.is_disjoint(&case.cpus) => {
            case.say("kernel.watchdog_cpumask excludes {on} now: measure again")
        }
        (_, Some(list)) => Advice::Act(format!("sysctl -w kernel.watchdog_cpumask={list}")),
        (_, None) => case.elsewhere("sysctl.kernel.watchdog", "sysctl -w kernel.watchdog=0"),
    }
}

pub(super) fn nmi(case: &Case<'_>) -> Advice {
    match case.sysctl("kernel.nmi_watchdog") {
        Some(0) => by_program(
            "kernel.nmi_watchdog is 0 already: check for perf or another profiler, and for hardware errors \
             in the firmware's log",
        ),
        _ => case.say("sysctl -w kernel.nmi_watchdog=0, and stop profilers, which use the same interrupt"),
    }
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
