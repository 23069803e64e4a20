//! Ticks, timers and RCU.

use super::{Advice, by_program, case::Case, memory::isolate};
use crate::{CauseKind, CauseStudy, attribution::DEADLINE};
use lowlat_host::{CpuId, kernel_version::KernelVersion};
use lowlat_settings::change::servers;

/// The first kernel with the fair server.
const FAIR_SERVER_SINCE: KernelVersion = KernelVersion::new(6, 12);

pub(super) fn tick(case: &Case<'_>) -> Advice {
    if case.is_built_without("NO_HZ_FULL") {
        return case.say(
            "this kernel is built without CONFIG_NO_HZ_FULL and cannot stop the tick: boot one that has it, \
             with nohz_full={isolated}",
        );
    }
    if case.context.host.kernel.tokens().last("nohz") == Some("off") {
        return case.say(
            "nohz=off keeps the tick on every CPU: remove it from the kernel command line and boot with \
             nohz_full={isolated}",
        );
    }
    if !case.is_tickless() {
        return case
            .say("boot with nohz_full={isolated}, which stops the tick of {on} while one thread runs there");
    }
    if let Some(advice) = fair_server(case) {
        return advice;
    }
    let clock = case.context.host.cpu.clocksource.text();
    if !clock.is_empty() && clock != "tsc" && case.context.host.kernel.machine.text() == "x86_64" {
        let (on, is) = (case.on(), case.is());
        let action =
            format!("{on} {is} in nohz_full but the clock source is {clock}: an unstable TSC keeps the tick");
        return Advice::Elsewhere("sysfs.clocksource", action);
    }
    case.say(
        "{on} {is} in nohz_full already: check for a second runnable thread, a timer on CPU time (RLIMIT_CPU, \
         ITIMER_PROF) or a perf event there, each of which keeps the tick",
    )
}

/// The fair server of kernels since 6.12, unless it is known to be off on the CPUs of the case.
fn fair_server(case: &Case<'_>) -> Option<Advice> {
    let version = case.context.host.kernel.version.known()?;
    let runtime = |cpu| case.knob(&servers::runtime_path("fair_server", cpu));
    let on = case.cpus.iter().find(|cpu| runtime(*cpu).map(str::trim) != Some("0"))?;
    (*version >= FAIR_SERVER_SINCE || runtime(on).is_some()).then(|| {
        let (all, is, off) = (case.on(), case.is(), fair_server_off(case, on));
        let action =
            format!("{all} {is} in nohz_full already, but the fair server can start the tick again: {off}");
        Advice::Elsewhere("debugfs.sched.fair_server", action)
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

/// A timer of the kernel.
pub(super) fn kernel_timer(case: &Case<'_>) -> Advice {
    const KEY: &str = "kernel.timer_migration";
    if case.sysctl(KEY) == Some(1) {
        return case.set_sysctl(KEY, 0, "");
    }
    if !case.is_isolated() {
        let text = "{function} was armed by code that ran here: boot with {isolcpus}";
        return case.elsewhere("boot.isolcpus", text);
    }
    if !case.is_tickless() {
        let text = "boot with nohz_full={isolated}, which moves kernel timers to other CPUs than {on}";
        return case.elsewhere("boot.nohz_full", text);
    }
    case.elsewhere("", "{function} was armed by a system call or interrupt on {on}: find it in the timeline")
}

/// Delayed work is queued by its timer.
pub(super) fn delayed_work(case: &Case<'_>) -> Advice {
    if case.is_tickless() {
        return case
            .say("{on} {is} in nohz_full already: the work functions that follow show what requested it");
    }
    case.say("boot with nohz_full={isolated}, so that the timers of delayed work fire elsewhere than on {on}")
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

pub(super) fn rcu_callbacks(case: &Case<'_>) -> Advice {
    if case.is_built_without("RCU_NOCB_CPU") {
        return case.say(
            "this kernel is built without CONFIG_RCU_NOCB_CPU and cannot offload RCU callbacks: boot one \
             that has it, with rcu_nocbs={isolated}",
        );
    }
    let line = case.context.host.kernel.tokens();
    let cpu_count = lowlat_host::CPU_ID_MAX + 1;
    let is_offloaded =
        |key| line.cpus(key, cpu_count).and_then(Result::ok).is_some_and(|set| case.cpus.is_subset(&set));
    if !case.is_tickless() && !is_offloaded("rcu_nocbs") {
        return case
            .say("boot with rcu_nocbs={isolated}, which offloads the RCU callbacks of {on} to threads");
    }
    // The time for which RCU leaves nohz_full CPUs alone, on kernels with this setting.
    let patience = case.knob("/sys/module/rcutree/parameters/nohz_full_patience_delay");
    if patience.map(str::trim) == Some("0") {
        return case.elsewhere(
            "boot.rcutree.nohz_full_patience_delay",
            "RCU callbacks of {on} are offloaded already: boot with rcutree.nohz_full_patience_delay=1000, so that \
             RCU asks these CPUs later",
        );
    }
    case.say(
        "the RCU callbacks of {on} are offloaded already: RCU still requests quiescent states after \
         system calls and interrupts there",
    )
}

/// The wake-up of the threads that run offloaded callbacks.
pub(super) fn rcu_wakeup(case: &Case<'_>) -> Advice {
    if case.context.host.kernel.tokens().has("rcu_nocb_poll") {
        return by_program(
            "rcu_nocb_poll is in force already: fewer system calls on these CPUs queue fewer callbacks",
        );
    }
    case.say("boot with rcu_nocb_poll, so that the threads poll for callbacks and need no wake-up")
}

/// Expedited grace periods of RCU.
pub(super) fn rcu_expedited(case: &Case<'_>) -> Advice {
    if is_rcu_normal(case) {
        return case.say(
            "/sys/kernel/rcu_normal is 1 already, so no expedited grace period should start: measure again",
        );
    }
    case.say("boot with rcupdate.rcu_normal_after_boot=1, or echo 1 > /sys/kernel/rcu_normal now")
}

/// True if expedited grace periods are switched off.
pub(super) fn is_rcu_normal(case: &Case<'_>) -> bool {
    case.knob("/sys/kernel/rcu_normal").map(str::trim) == Some("1")
}

/// The check of the TSC against another clock.
pub(super) fn clock_watchdog(case: &Case<'_>) -> Advice {
    match case.context.host.kernel.tokens().last("tsc") {
        Some(value @ ("reliable" | "nowatchdog")) => Advice::Act(format!(
            "tsc={value} is on the command line already: find out which other clock source is checked"
        )),
        _ => case.say(
            "boot with tsc=reliable once the TSCs of all sockets are known to agree: it stops the check that \
             visits every CPU",
        ),
    }
}
