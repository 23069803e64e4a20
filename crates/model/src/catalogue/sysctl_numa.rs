//! Automatic NUMA balancing and the memory policy sysctls beside it.

use super::{Impact, Needs, Setting, Want, judge};

const NUMA: Setting =
    Setting { needs: Needs::ANY.with_config(&["NUMA_BALANCING"]), judge: judge::sysctl, ..Setting::BLANK };

pub(super) const SETTINGS: &[Setting] = &[Setting {
    id: "sysctl.kernel.numa_balancing",
    name: "kernel.numa_balancing",
    reason: "Automatic NUMA balancing unmaps pages of running processes to see who touches them, and moves pages and \
             tasks. Each probe is a page fault on the hot path; a pinned process with node-local memory gains nothing.",
    cost: "Processes that are not placed by hand keep remote memory.",
    impact: Impact::High,
    effective: "numa_hint_faults in /proc/vmstat stands still",
    reads: &["/proc/sys/kernel/numa_balancing"],
    trading: Want::Value("0"),
    guide: Want::Value("0"),
    sources: &[
        "guide 57037 section 1.1",
        "kernel Documentation/admin-guide/sysctl/kernel.rst numa_balancing",
    ],
    ..NUMA
}];
