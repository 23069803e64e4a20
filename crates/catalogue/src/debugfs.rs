//! Settings below /sys/kernel/debug/sched: the homes of moved sysctls, and the fair server.

use lowlat_host::Reading;
use lowlat_settings::{Context, Impact, Judgement, Layer, Needs, Risk, Setting, Want, change, judge};

const MOVED: &str = "TuneD 2.28 plugin_scheduler: where the knobs moved";
const GUIDE: &str = "guide 57037 section 4.2.1";
const FAIR_SERVER: &str = "/sys/kernel/debug/sched/fair_server/cpu*/runtime";
/// A path without a glob, so that "may not be read" is seen: a folder that is closed lists nothing.
const FAIR_SERVER_CPU0: &str = "/sys/kernel/debug/sched/fair_server/cpu0/runtime";

const DEBUGFS: Setting = Setting {
    layer: Layer::Debugfs,
    impact: Impact::Low,
    effective: "The file below /sys/kernel/debug/sched holds the value.",
    judge: knob,
    ..Setting::BLANK
};

/// What the guide's sysctl became.
const MOVED_SYSCTL: Setting = Setting {
    reason: "The home of a sysctl of the guide since kernel 5.13. It shapes how tasks share a CPU, and an isolated CPU \
             that runs one thread shares with nobody.",
    cost: "Services on the housekeeping CPUs wait longer for each other.",
    hazard: "Kernel lockdown, which comes with Secure Boot, closes the file; TuneD can then not set it either. Many \
             hosts lost this setting for years without noticing, because only `sysctl -p` complains.",
    sources: &[GUIDE, MOVED],
    ..DEBUGFS
};

/// What a pace of the NUMA scanner became.
const MOVED_SCAN: Setting = Setting {
    reason: "The home of a sysctl of the guide since kernel 5.13: it paces the scanner of automatic NUMA balancing and \
             means nothing while kernel.numa_balancing is 0.",
    cost: "",
    hazard: "Redundant beside kernel.numa_balancing=0.",
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
        change: change::files::fair_server,
        name: "sched/fair_server/cpuN/runtime",
        reason: "Since kernel 6.12 each CPU has a deadline server that keeps a share of time for threads of the default \
                 policy. On nohz_full CPUs its timer has been seen to start the scheduler tick again, at its full rate. \
                 With runtime 0 it is off.",
        cost: "A SCHED_FIFO thread that spins can then starve everything else on its CPU, kernel threads included; the \
               kernel warns of it when the server is switched off.",
        risk: Risk::Availability,
        impact: Impact::High,
        needs: Needs::since(6, 12),
        effective: "The LOC row of /proc/interrupts stands nearly still on isolated CPUs while one thread spins there.",
        reads: &[FAIR_SERVER, FAIR_SERVER_CPU0],
        trading: Want::Derived(|context| {
            judge::isolated_list(context).map(|_| format!("0 on {:#}", context.allocation.isolated))
        }),
        sources: &[
            "kernel commit d741f297bcea \"sched/fair: Fair server interface\" (6.12)",
            "NVIDIA/NV-Kernels pull request 400",
        ],
        judge: fair_server,
        ..DEBUGFS
    },
];

/// Judges one file of debugfs; what cannot be seen says why.
fn knob(context: &Context<'_>, setting: &Setting) -> Judgement {
    let Some(path) = setting.reads.first() else { return Judgement::unknown("no file to read") };
    match context.host.file(path) {
        Reading::Known(_) => judge::files(context, setting),
        other => unseen(context, &other, path),
    }
}

/// Why a file of debugfs shows nothing: lockdown, no root, not mounted, or not built in.
fn unseen(context: &Context<'_>, reading: &Reading<String>, path: &str) -> Judgement {
    let because = match (reading, context.host.kernel.lockdown.known().map(String::as_str)) {
        (Reading::Unparsable(why), _) => why.to_string(),
        (Reading::Denied, Some(mode @ ("integrity" | "confidentiality"))) => {
            format!("kernel lockdown ({mode}) closes debugfs, which Secure Boot brings with it: {path}")
        }
        (Reading::Denied, _) => format!("{path} may not be read; run as root to see it"),
        _ => format!(
            "{path} does not exist: debugfs is not mounted (mount -t debugfs none /sys/kernel/debug), or this kernel \
             is built without the scheduler's debug files"
        ),
    };
    Judgement::unknown(because).at(path)
}

/// The CPU in `…/fair_server/cpu12/runtime`.
fn cpu_of(path: &str) -> Option<u32> {
    path.split('/').nth_back(1)?.strip_prefix("cpu")?.parse().ok()
}

fn fair_server(context: &Context<'_>, _: &Setting) -> Judgement {
    let isolated = &context.allocation.isolated;
    let (mut off, mut on, mut unread) = (0usize, Vec::new(), None);
    for (path, reading) in context.host.files_matching(FAIR_SERVER) {
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
            "the fair server can start the tick on these CPUs; measure with `lowlat jitter` before and after",
        )
        .at(*path),
        (None, Some((path, reading))) => unseen(context, &reading, path),
        (None, None) if off > 0 => Judgement::good(format!("off on {off} isolated CPUs")).at(FAIR_SERVER),
        (None, None) => unseen(context, &context.host.file(FAIR_SERVER_CPU0), FAIR_SERVER_CPU0),
    }
}
