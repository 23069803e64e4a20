//! Files captured beyond those that current readers use, so that later readers find them.

use crate::Root;

/// Directories whose files are read, with the depth below them.
const TREES: &[(&str, u32)] = &[
    ("/sys/devices/system/cpu", 4),
    ("/sys/devices/system/node", 3),
    ("/sys/devices/system/clocksource", 2),
    ("/sys/devices/virtual/memory_tiering", 2),
    ("/sys/kernel/mm/hugepages", 2),
    ("/sys/kernel/mm/transparent_hugepage", 2),
    ("/sys/kernel/mm/ksm", 1),
    ("/proc/sys/kernel", 3),
    ("/proc/sys/vm", 1),
    ("/proc/sys/net/core", 1),
    ("/proc/sys/net/ipv4/conf", 2),
    ("/proc/irq", 2),
];

/// Files that are read individually.
const FILES: &[&str] = &[
    "/proc/buddyinfo",
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/interrupts",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/modules",
    "/proc/schedstat",
    "/proc/softirqs",
    "/proc/stat",
    "/proc/swaps",
    "/proc/uptime",
    "/proc/version",
    "/proc/vmstat",
];

/// Never opened: different on each read, expensive to read, or useless on another host.
const LEFT_OUT: &[&str] =
    &["/proc/sys/kernel/random", "/proc/sys/kernel/ns_last_pid", "/sys/devices/system/cpu/power"];

/// Maximum number of entries visited.
const VISITS_MAX: u32 = 400_000;

pub(super) fn read(root: &Root) {
    let mut visits_left = VISITS_MAX;
    for (folder, depth) in TREES {
        walk(root, folder, *depth, &mut visits_left);
    }
    for path in FILES {
        root.read_bytes(path);
    }
}

/// Reads the files of a directory tree. Links are kept as links and not followed.
fn walk(root: &Root, folder: &str, depth: u32, visits_left: &mut u32) {
    let names = root.list(folder).into_known().unwrap_or_default();
    for name in names {
        let path = format!("{folder}/{name}");
        if *visits_left == 0 || is_left_out(&path, &name) {
            continue;
        }
        *visits_left -= 1;
        if root.read_link(&path).is_known() {
            continue;
        }
        if root.read_bytes(&path).is_known() || depth <= 1 {
            continue;
        }
        walk(root, &path, depth - 1, visits_left);
    }
}

/// A node has thousands of memory blocks, and lowlat does not set the power management of devices.
fn is_left_out(path: &str, name: &str) -> bool {
    let is_memory_block = name
        .strip_prefix("memory")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()));
    LEFT_OUT.contains(&path)
        || is_memory_block
        || matches!(name, "power" | "uevent" | "crash_notes" | "crash_notes_size")
}
