//! Helpers that the tests of the binary share.

pub mod documents;
pub mod programs;
pub mod running;
pub mod venv;

use lowlat_catalogue::CATALOGUE;
use lowlat_settings::{Catalogue, Setting};
use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::LazyLock,
};

/// The captured hosts of the project, by name and file.
pub fn fixtures() -> Vec<(String, PathBuf)> {
    archives(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/hosts"), ".tar.gz")
}

/// A captured host of the project.
pub fn capture(name: &str) -> PathBuf {
    let found = fixtures().into_iter().find(|(found, _)| found == name);
    found.unwrap_or_else(|| panic!("no captured host {name}")).1
}

/// Some rows of each family, for texts that do not change with each new row.
pub fn sample() -> Catalogue {
    const IDS: &[&str] = &[
        "boot.default_hugepagesz",
        "boot.hugepagesz",
        "boot.irqaffinity",
        "boot.isolcpus",
        "boot.nohz_full",
        "boot.processor.max_cstate",
        "boot.rcu_nocbs",
        "boot.selinux",
        "boot.skew_tick",
        "debugfs.sched.migration_cost_ns",
        "irq.affinity",
        "irq.default_affinity",
        "irq.irqbalance_banned",
        "irq.spread_nic_queues",
        "kthread.ksoftirqd",
        "kthread.kswapd",
        "kthread.workqueue.global",
        "kthread.workqueue.writeback_numa",
        "memory.thp_enabled",
        "nic.queue_count",
        "nic.rx_usecs",
        "service.fstrim",
        "service.netfilter",
        "service.tuned.housekeeping_cpus",
        "service.tuned.profile",
        "service.tuned.rollback",
        "sysctl.kernel.hung_task_timeout_secs",
        "sysctl.kernel.numa_balancing",
        "sysctl.kernel.sched_rt_runtime_us",
        "sysctl.kernel.timer_migration",
        "sysctl.kernel.watchdog_cpumask",
        "sysctl.net.core.busy_read",
        "sysctl.vm.dirty_ratio",
        "sysctl.vm.stat_interval",
        "sysfs.machinecheck.check_interval",
    ];
    static ROWS: LazyLock<Vec<&[Setting]>> = LazyLock::new(|| {
        let row = |id: &&str| CATALOGUE.find(id).map_or_else(|| panic!("no {id}"), std::slice::from_ref);
        IDS.iter().map(row).collect()
    });
    Catalogue::new(&ROWS)
}

/// Captures of other people's hosts beside the checkout; empty without them.
pub fn topologies() -> Vec<(String, PathBuf)> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/topologies");
    let directory = std::env::var_os("LOWLAT_TOPOLOGIES").map_or(beside, PathBuf::from);
    archives(&directory, ".tar.bz2")
}

fn archives(directory: &Path, ending: &str) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let named = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().strip_suffix(ending)?.to_owned();
        Some((name, entry.path()))
    };
    let mut found: Vec<_> = entries.filter_map(named).collect();
    found.sort();
    found
}

/// A folder in memory, if programs can be started there and a few hosts fit; else one on a disk, which takes several
/// times as long.
pub fn folder() -> tempfile::TempDir {
    let memory = "/dev/shm";
    let has_room = rustix::fs::statvfs(memory).is_ok_and(|found| {
        let is_exec = !found.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC);
        is_exec && found.f_bavail * found.f_frsize > 1 << 30
    });
    let made = has_room.then(|| tempfile::tempdir_in(memory).ok()).flatten();
    made.unwrap_or_else(|| tempfile::tempdir().expect("a directory"))
}

/// Unpacks a captured host of the project into a folder, which is made. Its files were read as root, and can be written.
pub fn unpack(name: &str, into: &Path) {
    std::fs::create_dir_all(into).expect("a directory");
    let unpacked = Command::new("tar").arg("-xzf").arg(capture(name)).arg("-C").arg(into).status();
    assert!(unpacked.expect("tar runs").success(), "{name}");
}

/// An unpacked package of TuneD: LOWLAT_TUNED, what `.ci/steps/packages` unpacks, or an installed one.
pub fn tuned_package(test: &str) -> Option<PathBuf> {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tuned");
    let named = std::env::var_os("LOWLAT_TUNED").map(PathBuf::from);
    let places = named.into_iter().chain([unpacked, PathBuf::from("/")]);
    let found = places.into_iter().find(|place| place.join("usr/lib/python3/dist-packages/tuned").is_dir());
    if found.is_none() {
        eprintln!(
            "skipped: {test}: no package of TuneD (.ci/steps/packages unpacks it; LOWLAT_TUNED names another)"
        );
    }
    found
}

/// The binary under test: the one that cargo built, unless `LOWLAT_BINARY` names another.
pub fn binary() -> PathBuf {
    std::env::var_os("LOWLAT_BINARY")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_lowlat")), PathBuf::from)
}

/// Runs the binary and waits for it to end. Checks each document that it printed or wrote.
pub fn lowlat<S: AsRef<OsStr>>(arguments: &[S]) -> Output {
    let output = Command::new(binary()).args(arguments).output().expect("the binary starts");
    documents::check(arguments, &output);
    output
}

/// Converts output to text, with a replacement for invalid UTF-8.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
