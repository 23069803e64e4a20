//! Settings below /sys/kernel/debug/sched: the new locations of former sysctls, and the fair server.

use lowlat_host::Reading;
use lowlat_settings::{
    Context, Impact, Judgement, Layer, Needs, Risk, Setting, Want, change::servers, judge,
};

const MOVED: &str = "TuneD 2.28 plugin_scheduler: where the knobs moved";
const GUIDE: &str = "guide 57037 section 4.2.1";
pub(super) const FAIR_SERVER: &str = "/sys/kernel/debug/sched/fair_server/cpu*/runtime";
/// A path without a glob, so that "permission denied" is noticed: an unreadable directory lists nothing.
const FAIR_SERVER_CPU0: &str = "/sys/kernel/debug/sched/fair_server/cpu0/runtime";
const EXT_SERVER: &str = "/sys/kernel/debug/sched/ext_server/cpu*/runtime";
const EXT_SERVER_CPU0: &str = "/sys/kernel/debug/sched/ext_server/cpu0/runtime";
const EXT_STATE: &str = "/sys/kernel/sched_ext/state";
const LLC_BALANCING: &str = "/sys/kernel/debug/sched/llc_balancing/enabled";

const DEBUGFS: Setting = Setting {
    layer: Layer::Debugfs,
    impact: Impact::Low,
    effective: "The file below /sys/kernel/debug/sched contains the value.",
    judge: knob,
    ..Setting::BLANK
};

/// A sysctl of the guide that moved to debugfs.
const MOVED_SYSCTL: Setting = Setting {
    reason: "The new location, since kernel 5.13, of a sysctl in the guide. It controls how tasks share a \
             CPU. An isolated CPU that runs one thread shares with none.",
    cost: "Services on the housekeeping CPUs wait longer for each other.",
    hazard: "Kernel lockdown, which Secure Boot switches on, makes the file inaccessible, and TuneD cannot \
             set it either. Many hosts lost this setting for years without notice, because only `sysctl -p` \
             reports an error.",
    sources: &[GUIDE, MOVED],
    ..DEBUGFS
};

/// A rate of the NUMA scanner that moved to debugfs.
const MOVED_SCAN: Setting = Setting {
    reason: "The new location, since kernel 5.13, of a sysctl in the guide. It controls the rate of the \
             scanner for automatic NUMA balancing and has no effect while kernel.numa_balancing is 0.",
    cost: "",
    hazard: "Redundant with kernel.numa_balancing=0.",
    needs: Needs::since(5, 13).with_config(&["NUMA_BALANCING"]),
    ..MOVED_SYSCTL
};

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        id: "debugfs.sched.latency_ns",
        name: "sched/latency_ns",
        needs: Needs::between((5, 13), (6, 6)),
        reads: &["/sys/kernel/debug/sched/latency_ns"],
        guide: Want::Value("24000000"),
        ..MOVED_SYSCTL
    },
    Setting {
        id: "debugfs.sched.min_granularity_ns",
        name: "sched/min_granularity_ns",
        needs: Needs::between((5, 13), (6, 6)).moved_to("/sys/kernel/debug/sched/base_slice_ns"),
        reads: &["/sys/kernel/debug/sched/min_granularity_ns"],
        guide: Want::Value("100000000"),
        ..MOVED_SYSCTL
    },
    Setting {
        id: "debugfs.sched.base_slice_ns",
        name: "sched/base_slice_ns",
        needs: Needs::since(6, 6),
        reads: &["/sys/kernel/debug/sched/base_slice_ns"],
        guide: Want::Value("100000000"),
        ..MOVED_SYSCTL
    },
    Setting {
        id: "debugfs.sched.migration_cost_ns",
        name: "sched/migration_cost_ns",
        needs: Needs::since(5, 13),
        reads: &["/sys/kernel/debug/sched/migration_cost_ns"],
        guide: Want::Value("50000000"),
        ..MOVED_SYSCTL
    },
    Setting {
        id: "debugfs.sched.numa_balancing.scan_delay_ms",
        name: "sched/numa_balancing/scan_delay_ms",
        reads: &["/sys/kernel/debug/sched/numa_balancing/scan_delay_ms"],
        guide: Want::Value("1000"),
        ..MOVED_SCAN
    },
    Setting {
        id: "debugfs.sched.numa_balancing.scan_period_max_ms",
        name: "sched/numa_balancing/scan_period_max_ms",
        reads: &["/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms"],
        guide: Want::Value("60000"),
        ..MOVED_SCAN
    },
    Setting {
        id: "debugfs.sched.numa_balancing.scan_period_min_ms",
        name: "sched/numa_balancing/scan_period_min_ms",
        reads: &["/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms"],
        guide: Want::Value("1000"),
        ..MOVED_SCAN
    },
    Setting {
        id: "debugfs.sched.numa_balancing.scan_size_mb",
        name: "sched/numa_balancing/scan_size_mb",
        reads: &["/sys/kernel/debug/sched/numa_balancing/scan_size_mb"],
        guide: Want::Value("256"),
        ..MOVED_SCAN
    },
    Setting {
        id: "debugfs.sched.fair_server",
        change: servers::fair,
        name: "sched/fair_server/cpuN/runtime",
        reason: "Since kernel 6.12 each CPU has a deadline server that reserves a share of time for threads \
                 of the default policy. On nohz_full CPUs its timer has been seen to start the scheduler \
                 tick again at its full rate. A runtime of 0 switches it off.",
        cost: "A spinning SCHED_FIFO thread can then starve everything else on its CPU, including kernel \
               threads. The kernel warns of this when the server is switched off. Linux 6.12 refuses the change while \
               kernel.sched_rt_runtime_us is a limit, so the plan lifts the limit first. Deadline threads are then \
               admitted without a check.",
        risk: Risk::Availability,
        impact: Impact::High,
        needs: Needs::since(6, 12),
        effective: "The LOC row of /proc/interrupts hardly increases on isolated CPUs while one thread spins \
                    there.",
        reads: &[FAIR_SERVER, FAIR_SERVER_CPU0],
        trading: Want::Derived(off_on_isolated),
        sources: &[
            "kernel commit d741f297bcea \"sched/fair: Fair server interface\" (6.12)",
            "NVIDIA/NV-Kernels pull request 400",
            "kernel kernel/sched/deadline.c dl_server_apply_params: EBUSY; seen with Debian 13's 6.12.107",
        ],
        judge: |context, setting| {
            server(context, setting, "the fair server can start the tick on these CPUs")
        },
        ..DEBUGFS
    },
    Setting {
        id: "debugfs.sched.ext_server",
        change: |context, _| servers::off(context, "ext_server"),
        name: "sched/ext_server/cpuN/runtime",
        reason: "Since kernel 7.0 each CPU has a second deadline server, which reserves time for threads of a loaded \
                 BPF scheduler (sched_ext). It serves nothing while none is loaded. A runtime of 0 switches it off.",
        cost: "Real-time threads can then starve the BPF scheduler's threads on these CPUs.",
        risk: Risk::Availability,
        needs: Needs::since(7, 0).with_config(&["SCHED_CLASS_EXT"]),
        effective: "The LOC row of /proc/interrupts hardly increases on isolated CPUs while one thread spins there.",
        reads: &[EXT_SERVER, EXT_SERVER_CPU0],
        trading: Want::Derived(off_on_isolated),
        sources: &["kernel commit cd959a356205 \"sched_ext: Add a DL server for sched_ext tasks\" (7.0)"],
        judge: ext_server,
        ..DEBUGFS
    },
    Setting {
        id: "debugfs.sched.llc_balancing",
        name: "sched/llc_balancing/enabled",
        reason: "Cache-aware scheduling moves the threads of a process to the CPUs of one last-level cache. A thread that \
                 is not pinned moves when its process grows, and its data does not move with it. Each switch between \
                 threads is accounted for. Isolated CPUs are not balanced.",
        cost: "Threads of one process that are not pinned spread over caches.",
        needs: Needs::since(7, 2).with_config(&["SCHED_CACHE"]),
        effective: "The file below /sys/kernel/debug/sched shows 0 or [never].",
        reads: &[LLC_BALANCING],
        trading: Want::Derived(never),
        sources: &["kernel commit 2cbf335f8ccc: cache-aware scheduling (7.2)"],
        ..DEBUGFS
    },
];

fn off_on_isolated(context: &Context<'_>) -> Option<String> {
    judge::isolated_list(context).map(|_| format!("0 on {:#}", context.allocation.isolated))
}

/// Judges one file of debugfs, and explains why a file is not readable.
fn knob(context: &Context<'_>, setting: &Setting) -> Judgement {
    let Some(path) = setting.reads.first() else { return Judgement::unknown("no file to read") };
    match context.host.file(path) {
        Reading::Known(_) => judge::files(context, setting),
        other => unseen(context, &other, path),
    }
}

/// The reason why a file of debugfs cannot be read: lockdown, missing privileges, debugfs not mounted, or not built in.
fn unseen(context: &Context<'_>, reading: &Reading<String>, path: &str) -> Judgement {
    let because = match (reading, context.host.kernel.lockdown.known().map(String::as_str)) {
        (Reading::Unparsable(why), _) => why.to_string(),
        (Reading::Denied, Some(mode @ ("integrity" | "confidentiality"))) => {
            format!("kernel lockdown ({mode}), part of Secure Boot, denies access to debugfs: {path}")
        }
        (Reading::Denied, _) => format!("permission denied for {path}; run as root to read it"),
        _ => format!(
            "{path} does not exist: debugfs is not mounted (mount -t debugfs none /sys/kernel/debug), or \
             this kernel is built without the scheduler's debug files"
        ),
    };
    Judgement::unknown(because).at(path)
}

/// The CPU number in `…/fair_server/cpu12/runtime`.
fn cpu_of(path: &str) -> Option<u32> {
    path.split('/').nth_back(1)?.strip_prefix("cpu")?.parse().ok()
}

/// The reason why the kernel refuses a write to a server, as the end of a sentence; empty if it does not.
fn refusal(context: &Context<'_>) -> String {
    let limit = context.host.sysctl(servers::LIMIT);
    if servers::is_limited(context.host) {
        format!("; Linux 6.12 refuses to change them while {} is {limit}", servers::LIMIT)
    } else {
        String::new()
    }
}

/// The server for tasks of a BPF scheduler, which has work only while one is loaded.
fn ext_server(context: &Context<'_>, setting: &Setting) -> Judgement {
    let scheduler = &context.host.scheduler;
    if scheduler.ext_state.is_known() && scheduler.loaded_ext().is_none() {
        return judge::good_because("no BPF scheduler is loaded", "the server has nothing to serve")
            .at(EXT_STATE);
    }
    server(context, setting, "the server of the BPF scheduler can start the tick on these CPUs")
}

/// Judges the servers that the row reads: off on isolated CPUs.
fn server(context: &Context<'_>, setting: &Setting, because: &str) -> Judgement {
    let isolated = &context.allocation.isolated;
    let [glob, cpu0] = setting.reads else { return Judgement::unknown("no file to read") };
    let (mut off, mut on, mut unread) = (0usize, Vec::new(), None);
    for (path, reading) in context.host.files_matching(glob) {
        if !cpu_of(path).is_some_and(|cpu| isolated.contains(cpu)) {
            continue;
        }
        let runtime = reading.clone().parse(path, "nanoseconds", |text| text.parse::<u64>().ok());
        match runtime {
            Reading::Known(0) => off += 1,
            Reading::Known(runtime_ns) => on.push((path, runtime_ns)),
            other => unread = unread.or(Some((path, other.map(|value: u64| value.to_string())))),
        }
    }
    match (on.first(), unread) {
        (Some((path, runtime_ns)), _) => Judgement::wrong(
            format!("{runtime_ns} ns on {} of {} isolated CPUs", on.len(), isolated.len()),
            format!("{because}{}", refusal(context)),
        )
        .at(*path),
        (None, Some((path, reading))) => unseen(context, &reading, path),
        (None, None) if off > 0 => Judgement::good(format!("off on {off} isolated CPUs")).at(*glob),
        (None, None) => unseen(context, &context.host.file(cpu0), cpu0),
    }
}

/// The spelling of "off" in the present file: the choice of words of later kernels, or a number.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a derived value")]
fn never(context: &Context<'_>) -> Option<String> {
    Some(if context.host.file(LLC_BALANCING).text().contains('[') { "never" } else { "0" }.to_owned())
}
