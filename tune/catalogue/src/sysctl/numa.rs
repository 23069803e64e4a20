//! Automatic NUMA balancing.

use super::{GUIDE, KERNEL_DOC, SYSCTL, named};
use lowlat_settings::{Impact, Needs, Setting, Want};

const NUMA: Setting = Setting { needs: Needs::ANY.with_config(&["NUMA_BALANCING"]), ..SYSCTL };

/// A rate of the scanner, which has no effect while balancing is off.
const SCAN: Setting = Setting {
    reason: "Sets the rate of the scanner for automatic NUMA balancing. It has no effect while \
             kernel.numa_balancing is 0, the value for a quiet host.",
    hazard: "Redundant with kernel.numa_balancing=0. The sysctl was removed in kernel 5.13, and `sysctl -p` \
             reports an error for it.",
    needs: Needs::until(5, 13).with_config(&["NUMA_BALANCING"]),
    sources: &[GUIDE, "TuneD 2.28 plugin_scheduler: where the knobs moved"],
    ..NUMA
};

pub(crate) const SETTINGS: &[Setting] = &named([
    Setting {
        id: "sysctl.kernel.numa_balancing",
        reason: "Automatic NUMA balancing unmaps pages of running processes to see which threads access \
                 them, and moves pages and tasks. Each probe is a page fault on the hot path. A pinned \
                 process with node-local memory gains nothing.",
        cost: "Processes that are not placed manually keep remote memory.",
        impact: Impact::High,
        effective: "numa_hint_faults in /proc/vmstat does not increase.",
        reads: &["/proc/sys/kernel/numa_balancing"],
        both: Want::Value("0"),
        sources: &[GUIDE, KERNEL_DOC],
        ..NUMA
    },
    Setting {
        id: "sysctl.kernel.numa_balancing_scan_delay_ms",
        needs: SCAN.needs.moved_to("/sys/kernel/debug/sched/numa_balancing/scan_delay_ms"),
        reads: &["/proc/sys/kernel/numa_balancing_scan_delay_ms"],
        guide: Want::Value("1000"),
        ..SCAN
    },
    Setting {
        id: "sysctl.kernel.numa_balancing_scan_period_max_ms",
        needs: SCAN.needs.moved_to("/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms"),
        reads: &["/proc/sys/kernel/numa_balancing_scan_period_max_ms"],
        guide: Want::Value("60000"),
        ..SCAN
    },
    Setting {
        id: "sysctl.kernel.numa_balancing_scan_period_min_ms",
        needs: SCAN.needs.moved_to("/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms"),
        reads: &["/proc/sys/kernel/numa_balancing_scan_period_min_ms"],
        guide: Want::Value("1000"),
        ..SCAN
    },
    Setting {
        id: "sysctl.kernel.numa_balancing_scan_size_mb",
        needs: SCAN.needs.moved_to("/sys/kernel/debug/sched/numa_balancing/scan_size_mb"),
        reads: &["/proc/sys/kernel/numa_balancing_scan_size_mb"],
        guide: Want::Value("256"),
        ..SCAN
    },
]);
