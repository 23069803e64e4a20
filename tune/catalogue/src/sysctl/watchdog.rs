//! The kernel's lockup detectors: their CPUs and intervals.

use super::{GUIDE, KERNEL_DOC, NETWORK_LATENCY, SYSCTL, named};
use lowlat_host::{CpuSet, Reading};
use lowlat_settings::{Context, Impact, Judgement, Needs, Risk, Setting, Want, judge};

pub(crate) const SETTINGS: &[Setting] = &named([
    Setting {
        id: "sysctl.kernel.watchdog",
        reason: "Turns the soft and hard lockup detectors on or off. kernel.watchdog_cpumask sets where they \
                 run, and nohz_full= keeps them off isolated CPUs. A quiet host can therefore keep them.",
        cost: "A locked-up CPU goes unreported, and the host neither panics nor restarts because of it.",
        risk: Risk::Availability,
        needs: Needs::ANY.with_config(&["LOCKUP_DETECTOR"]),
        reads: &["/proc/sys/kernel/watchdog"],
        guide: Want::Value("0"),
        hazard: "watchdog_cpumask, watchdog_thresh, nmi_watchdog=0 and nosoftlockup have the same purpose. \
                 Together they switch off the detection of hangs on every CPU.",
        sources: &[GUIDE, KERNEL_DOC],
        ..SYSCTL
    },
    Setting {
        id: "sysctl.kernel.watchdog_cpumask",
        reason: "The CPUs on which the lockup detectors arm a timer and run a thread. Isolated CPUs must not \
                 be among them. The housekeeping CPUs can keep the detectors.",
        cost: "A lockup of an isolated CPU is not reported.",
        risk: Risk::Availability,
        impact: Impact::High,
        needs: Needs::ANY.with_config(&["LOCKUP_DETECTOR"]),
        effective: "The watchdog's timer does not fire on isolated CPUs: no watchdog entry for them in /proc/timer_list.",
        reads: &["/proc/sys/kernel/watchdog_cpumask", "/proc/sys/kernel/watchdog"],
        both: Want::Derived(judge::housekeeping_list),
        hazard: "Has no effect with kernel.watchdog=0.",
        sources: &[GUIDE, KERNEL_DOC],
        judge: watchdog_cpus,
        ..SYSCTL
    },
    Setting {
        id: "sysctl.kernel.watchdog_thresh",
        reason: "The number of seconds after which a CPU counts as locked up. The detectors sample five \
                 times in twice this period.",
        needs: Needs::ANY.with_config(&["LOCKUP_DETECTOR"]),
        reads: &["/proc/sys/kernel/watchdog_thresh"],
        guide: Want::Value("10"),
        hazard: "10 is the kernel's default, and it has no effect with kernel.watchdog=0.",
        sources: &[GUIDE, KERNEL_DOC],
        ..SYSCTL
    },
    Setting {
        id: "sysctl.kernel.nmi_watchdog",
        reason: "The hard lockup detector uses a performance counter, which raises a non-maskable interrupt. \
                 When it is off, the counter is free for measurements and no such interrupt occurs.",
        cost: "A CPU that hangs with interrupts off is not reported.",
        risk: Risk::Availability,
        needs: Needs::ANY.with_config(&["HARDLOCKUP_DETECTOR"]),
        effective: "The NMI row of /proc/interrupts does not increase.",
        reads: &["/proc/sys/kernel/nmi_watchdog"],
        trading: Want::Value("0"),
        sources: &[NETWORK_LATENCY, KERNEL_DOC],
        ..SYSCTL
    },
]);

/// Compared as a set; has no effect while the detectors are off.
fn watchdog_cpus(context: &Context<'_>, setting: &Setting) -> Judgement {
    let path = "/proc/sys/kernel/watchdog_cpumask";
    let reading =
        context.host.file(path).parse(path, "a CPU list such as 0-3,8", |text| CpuSet::parse_list(text).ok());
    let Reading::Known(cpus) = &reading else {
        return match reading {
            Reading::Absent => Judgement::not_applicable("this kernel has no such sysctl").at(path),
            other => judge::missing(&other, path),
        };
    };
    if cpus.is_disjoint(&context.allocation.isolated) {
        return Judgement::good(cpus.to_list()).at(path);
    }
    if context.host.file("/proc/sys/kernel/watchdog").text() == "0" {
        let because = "it names isolated CPUs, but kernel.watchdog is 0 and no detector is running";
        return judge::good_because(cpus.to_list(), because).at(path);
    }
    let reached = cpus.intersection(&context.allocation.isolated);
    let judgement = judge::sysctl_where(context, setting, |value| {
        CpuSet::parse_list(value).is_ok_and(|cpus| cpus.is_disjoint(&context.allocation.isolated))
    });
    let because = match judgement.because.as_str() {
        "" => format!("the detectors run on isolated {reached:#}"),
        said => format!("the detectors run on isolated {reached:#}; {said}"),
    };
    Judgement { because, ..judgement }
}
