//! Functions that another CPU has run here, and the kernel's own watchdogs.

use super::{Advice, by_program, case::Case, isolation::isolate, memory, ticks};

/// A memory barrier that a program asks of other CPUs.
pub(super) fn membarrier(_: &Case<'_>) -> Advice {
    Advice::Act(
        "a program with threads here calls membarrier (garbage collectors, liburcu, rseq): let no thread of it do so \
         while trading".into())
}

/// The kernel rewrites its own code.
pub(super) fn code_patch(_: &Case<'_>) -> Advice {
    Advice::Act(
        "another CPU rewrote kernel code, which each CPU must notice: switch no tracing, BPF programs, perf events or \
         firewall rules on or off while trading".into())
}

/// A tool that reads or writes registers of this CPU.
pub(super) fn registers(_: &Case<'_>) -> Advice {
    Advice::Act("a tool on another CPU reads or writes this CPU's registers (turbostat, powertop, an MSR exporter): stop it".into())
}

/// A perf event of this CPU.
pub(super) fn perf(_: &Case<'_>) -> Advice {
    Advice::Act("a perf event is open on this CPU: stop perf and whatever collects its counters".into())
}

/// The clock was set.
pub(super) fn clock_step(_: &Case<'_>) -> Advice {
    Advice::Act(
        "the host's clock was stepped, which every CPU must notice: let the clock service slew and step at its start \
         only"
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

/// Caches of a file system or block device are dropped.
pub(super) fn block_caches(_: &Case<'_>) -> Advice {
    Advice::Act(
        "a block device was closed or unmounted, which drops caches of every CPU: do so before trading"
            .into(),
    )
}

/// The interrupt between CPUs, when no function is known.
pub(super) fn call(case: &Case<'_>) -> Advice {
    // The functions themselves are causes of their own where the kernel traces them; the call alone does not tell.
    if let Some(Advice::Elsewhere(setting, action)) = memory::mover(case) {
        return Advice::Elsewhere(
            setting,
            format!("another CPU had a function run here, perhaps since {action}"),
        );
    }
    if ticks::is_rcu_normal(case) {
        return by_program(
            "another CPU had a function run here: the call functions in this list tell which, as far as this kernel \
             traces them",
        );
    }
    Advice::Act(
        "another CPU had a function run here: where the call functions in this list name rcu_exp_handler, or none \
         are named, boot with rcupdate.rcu_normal_after_boot=1"
            .into(),
    )
}

/// Any function that has no rule.
pub(super) fn other_function(case: &Case<'_>) -> Advice {
    Advice::Act(format!(
        "another CPU had {} run here: find who asks for it, on the CPUs that keep house",
        case.function()
    ))
}

/// Work that was put off to an interrupt of its own.
pub(super) fn irq_work(case: &Case<'_>) -> Advice {
    if case.is_tickless() {
        return by_program(
            "the kernel interrupted itself, as perf events, printk, RCU and the return of the tick do: look at what \
             else this list holds",
        );
    }
    Advice::Act(format!(
        "the kernel interrupted itself, as perf events, printk and RCU do: boot with nohz_full={} and stop perf",
        case.isolated_list()
    ))
}

/// The soft lockup detector.
pub(super) fn soft_watchdog(case: &Case<'_>) -> Advice {
    let mask = case.knob("/proc/sys/kernel/watchdog_cpumask").map(str::trim);
    let holds = mask.and_then(|text| lowlat_host::CpuSet::parse_list(text).ok());
    match (holds, case.housekeeping_list()) {
        (Some(cpus), _) if cpus.is_disjoint(&case.cpus) => {
            Advice::Act(format!("kernel.watchdog_cpumask keeps off {} now: measure again", case.on()))
        }
        (_, Some(list)) => Advice::Act(format!("sysctl -w kernel.watchdog_cpumask={list}")),
        (_, None) => Advice::Elsewhere("sysctl.kernel.watchdog", "sysctl -w kernel.watchdog=0".into()),
    }
}

/// Non-maskable interrupts.
pub(super) fn nmi(case: &Case<'_>) -> Advice {
    match case.sysctl("kernel.nmi_watchdog") {
        Some(0) => by_program(
            "kernel.nmi_watchdog is 0 already: look for perf or another profiler, and in the firmware's log for \
             hardware errors",
        ),
        _ => Advice::Act(
            "sysctl -w kernel.nmi_watchdog=0, and stop profilers, which count with the same interrupt".into(),
        ),
    }
}

/// A signal to the measured thread.
pub(super) fn signal(case: &Case<'_>) -> Advice {
    Advice::Act(format!(
        "the program's own signal: arm no timer that sends {0} to the thread that trades, or block {0} there and take \
         it in a thread on {1} (pthread_sigmask, sigwait or signalfd)",
        case.label(),
        case.housekeeping()
    ))
}

/// A signal that stops the measured thread or lets it go on.
pub(super) fn stopped(case: &Case<'_>) -> Advice {
    Advice::Act(format!(
        "{} comes from job control, a debugger or a supervisor: let none of them stop the program while it trades",
        case.label()
    ))
}

/// Polling for corrected hardware errors.
pub(super) fn machine_check(case: &Case<'_>) -> Advice {
    const DIR: &str = "/sys/devices/system/machinecheck/machinecheck0";
    match case.knob(&format!("{DIR}/check_interval")).map(str::trim) {
        Some("0") => Advice::Act(format!("{DIR}/check_interval is 0 already: measure again")),
        _ => Advice::Act(format!(
            "echo 0 > {DIR}/check_interval ends the polling, and errors that raise no interrupt then go unseen"
        )),
    }
}
