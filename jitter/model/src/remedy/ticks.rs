//! Ticks, timers and RCU.

use super::{Advice, by_program, case::Case, isolation::isolate};
use crate::{CauseKind, CauseStudy, attribution::DEADLINE};
use lowlat_host::{CpuId, kernel_version::KernelVersion};
use lowlat_settings::change::servers;

/// The first kernel with the fair server.
const FAIR_SERVER_SINCE: KernelVersion = KernelVersion::new(6, 12);

pub(super) fn tick(case: &Case<'_>) -> Advice {
    let (list, on) = (case.isolated_list(), case.on());
    if case.is_built_without("NO_HZ_FULL") {
        return Advice::Act(format!(
            "this kernel is built without CONFIG_NO_HZ_FULL and cannot stop the tick: boot one that has it, \
             with nohz_full={list}"
        ));
    }
    if case.context.host.kernel.tokens().last("nohz") == Some("off") {
        return Advice::Act(format!(
            "nohz=off keeps the tick on every CPU: remove it from the kernel command line and boot with \
             nohz_full={list}"
        ));
    }
    if !case.is_tickless() {
        return Advice::Act(format!(
            "boot with nohz_full={list}, which stops the tick of {on} while one thread runs there"
        ));
    }
    if let Some(advice) = fair_server(case) {
        return advice;
    }
    let clock = case.context.host.cpu.clocksource.text();
    if !clock.is_empty() && clock != "tsc" && case.context.host.kernel.machine.text() == "x86_64" {
        return Advice::Elsewhere(
            "sysfs.clocksource",
            format!(
                "{on} {} in nohz_full but the clock source is {clock}: an unstable TSC keeps the tick",
                case.is()
            ),
        );
    }
    Advice::Act(format!(
        "{on} {} in nohz_full already: check for a second runnable thread, a timer on CPU time (RLIMIT_CPU, \
         ITIMER_PROF) or a perf event there, each of which keeps the tick",
        case.is()
    ))
}

/// The fair server of kernels since 6.12, unless it is known to be off on the CPUs of the case.
fn fair_server(case: &Case<'_>) -> Option<Advice> {
    let version = case.context.host.kernel.version.known()?;
    let runtime = |cpu| case.knob(&servers::runtime_path("fair_server", cpu));
    let on = case.cpus.iter().find(|cpu| runtime(*cpu).map(str::trim) != Some("0"))?;
    (*version >= FAIR_SERVER_SINCE || runtime(on).is_some()).then(|| {
        Advice::Elsewhere(
            "debugfs.sched.fair_server",
            format!(
                "{} {} in nohz_full already, but the fair server can start the tick again: {}",
                case.on(),
                case.is(),
                fair_server_off(case, on)
            ),
        )
    })
}

/// The timer of a deadline server, which the fair server is.
pub(super) fn deadline_timer(case: &Case<'_>) -> Advice {
    // The threads of schedutil have the class without its timers.
    let is_deadline = |of: &&CauseStudy| {
        of.cause.priority.as_deref() == Some(DEADLINE) && !of.cause.name.starts_with("sugov:")
    };
    let thread = case.beside(CauseKind::Thread).find(is_deadline);
    if thread.is_some() || fair_server(case).is_none() {
        let name = thread.map_or("a thread", |of| &of.cause.name);
        let (on, keep) = (case.on(), case.housekeeping());
        return by_program(format!("{name} is SCHED_DEADLINE and runs on {on}: keep it on {keep}"));
    }
    let cpu = case.cpus.lowest().unwrap_or_default();
    Advice::Act(format!("switch the fair server off: {}", fair_server_off(case, cpu)))
}

fn fair_server_off(case: &Case<'_>, cpu: CpuId) -> String {
    let rest =
        if case.cpus.len() > 1 { format!(", and the same for each of {}", case.on()) } else { String::new() };
    // Linux 6.12 refuses the write under a limit.
    let lift = if servers::is_limited(case.context.host) {
        format!("sysctl -w {}=-1 && ", servers::LIMIT)
    } else {
        String::new()
    };
    format!("{lift}echo 0 > {}{rest}", servers::runtime_path("fair_server", cpu))
}

/// A thread that slept on this CPU is woken by its timer.
pub(super) fn sleeper(case: &Case<'_>) -> Advice {
    if case.study.wake_every_ns.is_some() {
        return by_program("the timer of the measured thread: the time of the wake-up itself");
    }
    isolate(
        case,
        "a thread that sleeps on a timer is woken here",
        "find the thread that is pinned here and sleeps",
    )
}

/// A timer that a process armed.
pub(super) fn process_timer(case: &Case<'_>) -> Advice {
    isolate(
        case,
        "a process armed a timer here (timerfd, setitimer, timer_create)",
        "find the process that runs here and arms timers, and arm them in one that runs elsewhere",
    )
}

/// A timer of the kernel.
pub(super) fn kernel_timer(case: &Case<'_>) -> Advice {
    const KEY: &str = "kernel.timer_migration";
    if case.sysctl(KEY) == Some(1) {
        return case.set_sysctl(KEY, 0, "");
    }
    let (list, on, function) = (case.isolated_list(), case.on(), case.function());
    if !case.is_isolated() {
        let advice = format!("{function} was armed by code that ran here: boot with {}", case.isolcpus());
        return Advice::Elsewhere("boot.isolcpus", advice);
    }
    if !case.is_tickless() {
        let advice = format!("boot with nohz_full={list}, which moves kernel timers to other CPUs than {on}");
        return Advice::Elsewhere("boot.nohz_full", advice);
    }
    by_program(format!("{function} was armed by a system call or interrupt on {on}: find it in the timeline"))
}

/// Delayed work is queued by its timer.
pub(super) fn delayed_work(case: &Case<'_>) -> Advice {
    let (list, on) = (case.isolated_list(), case.on());
    if !case.is_tickless() {
        let advice = format!(
            "boot with nohz_full={list}, so that the timers of delayed work fire elsewhere than on {on}"
        );
        return Advice::Act(advice);
    }
    Advice::Act(format!(
        "{on} {} in nohz_full already: the work functions that follow show what requested it",
        case.is()
    ))
}

/// The throttling of real-time threads.
pub(super) fn throttle(case: &Case<'_>) -> Advice {
    case.set_sysctl(
        "kernel.sched_rt_runtime_us",
        -1,
        "check for real-time limits of control groups (cpu.rt_runtime_us) and for the fair server",
    )
}

/// The CPU went idle under a thread that never sleeps.
pub(super) fn idle(_: &Case<'_>) -> Advice {
    by_program(
        "the measured thread was held or moved away: check for SIGSTOP, the freezer and cpu.max of its group",
    )
}

/// The CPU was idle when the thread's timer expired.
pub(super) fn asleep(case: &Case<'_>) -> Advice {
    Advice::Act(format!(
        "{} left an idle state and then switched to the thread: disable deep idle states there, or spin in place of sleeping",
        case.on()
    ))
}

/// The limit of the thread's own real-time or deadline class.
pub(super) fn limit(case: &Case<'_>) -> Advice {
    if fair_server(case).is_some() {
        let off = fair_server_off(case, case.cpus.lowest().unwrap_or_default());
        let advice = format!("the fair server runs ordinary threads in place of real-time ones: {off}");
        return Advice::Elsewhere("debugfs.sched.fair_server", advice);
    }
    if case.sysctl("kernel.sched_rt_runtime_us") != Some(-1) {
        return case.set_sysctl("kernel.sched_rt_runtime_us", -1, "");
    }
    by_program(
        "the thread's own limit: a control group's cpu.rt_runtime_us, or the runtime of SCHED_DEADLINE",
    )
}

/// The quota of a control group.
pub(super) fn quota(_: &Case<'_>) -> Advice {
    by_program(
        "the quota of the thread's control group was used up: write max to its cpu.max (CPUQuota= of its unit)",
    )
}

/// A wait of the measured thread.
pub(super) fn blocked(_: &Case<'_>) -> Advice {
    by_program(
        "the measured thread waited in the kernel, for a page or a lock: lock its memory, and keep system calls out of it",
    )
}

pub(super) fn rcu_callbacks(case: &Case<'_>) -> Advice {
    let (list, on) = (case.isolated_list(), case.on());
    if case.is_built_without("RCU_NOCB_CPU") {
        return Advice::Act(format!(
            "this kernel is built without CONFIG_RCU_NOCB_CPU and cannot offload RCU callbacks: boot one \
             that has it, with rcu_nocbs={list}"
        ));
    }
    let line = case.context.host.kernel.tokens();
    let cpu_count = lowlat_host::CPU_ID_MAX + 1;
    let is_offloaded =
        |key| line.cpus(key, cpu_count).and_then(Result::ok).is_some_and(|set| case.cpus.is_subset(&set));
    if !case.is_tickless() && !is_offloaded("rcu_nocbs") {
        return Advice::Act(format!(
            "boot with rcu_nocbs={list}, which offloads the RCU callbacks of {on} to threads"
        ));
    }
    patience(case).unwrap_or_else(|| {
        Advice::Act(format!(
            "the RCU callbacks of {on} are offloaded already: RCU still requests quiescent states after \
             system calls and interrupts there"
        ))
    })
}

/// Advice about the time for which RCU leaves nohz_full CPUs alone, on kernels with this setting.
fn patience(case: &Case<'_>) -> Option<Advice> {
    let delay = case.knob("/sys/module/rcutree/parameters/nohz_full_patience_delay")?;
    (delay.trim() == "0").then(|| {
        Advice::Elsewhere(
            "boot.rcutree.nohz_full_patience_delay",
            format!(
                "RCU callbacks of {} are offloaded already: boot with rcutree.nohz_full_patience_delay=1000, so that \
                 RCU asks these CPUs later",
                case.on()
            ),
        )
    })
}

/// The wake-up of the threads that run offloaded callbacks.
pub(super) fn rcu_wakeup(case: &Case<'_>) -> Advice {
    if case.context.host.kernel.tokens().has("rcu_nocb_poll") {
        return by_program(
            "rcu_nocb_poll is in force already: fewer system calls on these CPUs queue fewer callbacks",
        );
    }
    Advice::Act("boot with rcu_nocb_poll, so that the threads poll for callbacks and need no wake-up".into())
}

/// Expedited grace periods of RCU.
pub(super) fn rcu_expedited(case: &Case<'_>) -> Advice {
    if is_rcu_normal(case) {
        return Advice::Act(
            "/sys/kernel/rcu_normal is 1 already, so no expedited grace period should start: measure again"
                .into(),
        );
    }
    Advice::Act("boot with rcupdate.rcu_normal_after_boot=1, or echo 1 > /sys/kernel/rcu_normal now".into())
}

/// True if expedited grace periods are switched off.
pub(super) fn is_rcu_normal(case: &Case<'_>) -> bool {
    case.knob("/sys/kernel/rcu_normal").map(str::trim) == Some("1")
}

/// The check of the TSC against another clock.
pub(super) fn clock_watchdog(case: &Case<'_>) -> Advice {
    match case.context.host.kernel.tokens().last("tsc") {
        Some(value @ ("reliable" | "nowatchdog")) => {
            Advice::Act(format!("tsc={value} is on the command line already: find out which other clock source is checked"))
        }
        _ => Advice::Act(
            "boot with tsc=reliable once the TSCs of all sockets are known to agree: it stops the check that \
             visits every CPU"
                .into(),
        ),
    }
}
