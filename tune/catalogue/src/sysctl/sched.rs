//! The scheduler's sysctls.

use super::{GUIDE, KERNEL_DOC, NETWORK_LATENCY, SYSCTL, named};
use lowlat_host::kernel_version::KernelVersion;
use lowlat_settings::{Context, Impact, Judgement, Needs, Risk, Setting, Want, change, judge};

const MOVED: &str = "TuneD 2.28 plugin_scheduler: where the knobs moved";

/// The kernel from which the fair server replaces real-time throttling.
const FAIR_SERVER_SINCE: KernelVersion = KernelVersion::new(6, 12);

pub(crate) const SETTINGS: &[Setting] = &named([
    Setting {
        id: "sysctl.kernel.sched_latency_ns",
        reason: "The period in which every runnable task of a CPU gets a turn. An isolated CPU that runs one \
                 thread has nothing to share, so the value affects only housekeeping CPUs.",
        needs: Needs::until(5, 13).moved_to("/sys/kernel/debug/sched/latency_ns"),
        reads: &["/proc/sys/kernel/sched_latency_ns"],
        guide: Want::Value("24000000"),
        hazard: "Smaller than the guide's own sched_min_granularity_ns, which makes it pointless. Removed in \
                 kernel 5.13; `sysctl -p` then reports an error, and nothing is set.",
        sources: &[GUIDE, MOVED],
        ..SYSCTL
    },
    Setting {
        id: "sysctl.kernel.sched_min_granularity_ns",
        reason: "The minimum time that a task runs before another task can preempt it. An isolated CPU that \
                 runs one thread is not affected.",
        cost: "Services on the housekeeping CPUs wait longer for each other.",
        needs: Needs::until(5, 13).moved_to("/sys/kernel/debug/sched/min_granularity_ns"),
        reads: &["/proc/sys/kernel/sched_min_granularity_ns"],
        guide: Want::Value("100000000"),
        hazard: "Larger than the guide's sched_latency_ns, so every turn on the few, busy housekeeping CPUs \
                 lasts 100 ms. Removed in kernel 5.13.",
        sources: &[GUIDE, MOVED],
        ..SYSCTL
    },
    Setting {
        id: "sysctl.kernel.sched_migration_cost_ns",
        reason: "How long a task counts as cache-hot after it ran, which keeps the balancer from moving it. \
                 Isolated CPUs are not balanced.",
        needs: Needs::until(5, 13).moved_to("/sys/kernel/debug/sched/migration_cost_ns"),
        reads: &["/proc/sys/kernel/sched_migration_cost_ns"],
        guide: Want::Value("50000000"),
        hazard: "Removed in kernel 5.13; `sysctl -p` then reports an error, and nothing is set.",
        sources: &[GUIDE, MOVED],
        ..SYSCTL
    },
    Setting {
        id: "sysctl.kernel.sched_rt_runtime_us",
        acts_when: "a real-time thread does not sleep",
        reason: "How much of each second real-time threads may use. With 950000, the default before kernel 7.2, a \
                 spinning SCHED_FIFO thread is stopped for the remainder of the second. With -1 or the whole period \
                 it never is, and kernel threads of its CPU may never run. Spinning threads of the default policy \
                 are not affected.",
        cost: "With -1 a spinning SCHED_FIFO thread can starve kernel threads bound to its CPU until the \
               host hangs.",
        risk: Risk::Availability,
        impact: Impact::Medium,
        effective: "A spinning SCHED_FIFO thread shows no gap of tens of milliseconds each second in `lowlat jitter`.",
        reads: &["/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_period_us"],
        trading: Want::OneOf(&["950000", "-1"]),
        guide: Want::Value("-1"),
        hazard: "A spinning SCHED_FIFO thread can starve kernel threads. Since kernel 6.12 the fair server \
                 does the throttling, and this value no longer controls it (see debugfs.sched.fair_server). Kernel \
                 7.2 has no limit by default.",
        sources: &[
            GUIDE,
            "kernel Documentation/scheduler/sched-rt-group.rst",
            "kernel commit 5f6bd380c7bd \"sched/rt: Remove default bandwidth control\" (6.12)",
            "kernel commit c2e390197ad1: a default of the whole period (7.2)",
        ],
        judge: rt_runtime,
        change: change::servers::limit,
        ..SYSCTL
    },
    Setting {
        id: "sysctl.kernel.timer_migration",
        reason: "With 1 the kernel moves timers from idle CPUs to busy ones, and a spinning CPU is always \
                 busy. With 0 a timer fires on the CPU that armed it.",
        cost: "Idle CPUs are woken by their own timers and save less power.",
        risk: Risk::Power,
        impact: Impact::Medium,
        effective: "The TIMER row of /proc/softirqs does not increase on isolated CPUs.",
        reads: &["/proc/sys/kernel/timer_migration"],
        trading: Want::Value("0"),
        guide: Want::Value("1"),
        hazard: "The advice has changed: TuneD has set 0 in realtime since 2016 and now does so in \
                 network-latency, because busy isolated CPUs attract the timers of idle ones.",
        sources: &[GUIDE, NETWORK_LATENCY, "TuneD commit 32ef5d8 \"realtime: disable timer migration\""],
        ..SYSCTL
    },
    Setting {
        id: "sysctl.kernel.hung_task_timeout_secs",
        reason: "How often khungtaskd scans all tasks for hung ones. A longer interval means fewer scans; 0 \
                 disables them.",
        cost: "A hung task is reported later, or never.",
        risk: Risk::Availability,
        needs: Needs::ANY.with_config(&["DETECT_HUNG_TASK"]),
        reads: &["/proc/sys/kernel/hung_task_timeout_secs"],
        trading: Want::OneOf(&["600", "0"]),
        guide: Want::Value("600"),
        sources: &[GUIDE, NETWORK_LATENCY, KERNEL_DOC],
        ..SYSCTL
    },
]);

/// The value, and its effect on a spinning SCHED_FIFO thread.
fn rt_runtime(context: &Context<'_>, setting: &Setting) -> Judgement {
    let want = setting.want(context.profile);
    let is_unlimited = |value: &str| change::servers::is_unlimited(context.host, value);
    let judgement = judge::sysctl_where(context, setting, |value| {
        is_unlimited(value) || judge::satisfies(context, &want, value)
    });
    if judgement.verdict.is_fault() || !judgement.verdict.counts() {
        return judgement;
    }
    let is_shown =
        context.host.files_matching(crate::debugfs::FAIR_SERVER).any(|(_, runtime)| runtime.is_known());
    let is_governed_elsewhere = (is_shown
        || judge::kernel_at_least(context.host, FAIR_SERVER_SINCE) == Some(true))
        && context.host.kernel.config_option("RT_GROUP_SCHED").known() == Some(&None);
    let because = match is_unlimited(&judgement.observed) {
        _ if is_governed_elsewhere => {
            "on this kernel the fair server throttles real-time threads, not this value; see \
             debugfs.sched.fair_server"
        }
        true => "a spinning SCHED_FIFO thread can starve kernel threads of its CPU: leave them some time",
        false => {
            "fine for spinning threads of the default policy; a SCHED_FIFO thread would be stopped each \
             second"
        }
    };
    Judgement { because: because.to_owned(), ..judgement }
}
