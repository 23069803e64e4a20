//! Every row of guide 57037's sysctl, command line, TuneD and script tables, as a literal list: each must have an id.

use crate::CATALOGUE;
use lowlat_host::Profile;
use lowlat_settings::Want;

/// Section 4.2.1: the twenty sysctls.
const SYSCTLS: [&str; 20] = [
    "kernel.hung_task_timeout_secs",
    "kernel.numa_balancing",
    "kernel.numa_balancing_scan_delay_ms",
    "kernel.numa_balancing_scan_period_max_ms",
    "kernel.numa_balancing_scan_period_min_ms",
    "kernel.numa_balancing_scan_size_mb",
    "kernel.sched_latency_ns",
    "kernel.sched_migration_cost_ns",
    "kernel.sched_min_granularity_ns",
    "kernel.sched_rt_runtime_us",
    "kernel.timer_migration",
    "kernel.watchdog",
    "kernel.watchdog_cpumask",
    "kernel.watchdog_thresh",
    "vm.dirty_background_ratio",
    "vm.dirty_ratio",
    "vm.stat_interval",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
    "net.ipv4.conf.all.rp_filter",
];

/// Section 4.3.2.1.1: the command line, with what cpu-partitioning appends.
pub(super) const TOKENS: [&str; 22] = [
    "quiet",
    "selinux",
    "mce",
    "ipv6.disable",
    "audit",
    "nmi_watchdog",
    "hugepagesz",
    "hugepages",
    "default_hugepagesz",
    "transparent_hugepage",
    "tsc",
    "pcie_aspm",
    "cpuidle.off",
    "rcu_nocb_poll",
    "idle",
    "processor.max_cstate",
    "nohz",
    "nohz_full",
    "rcu_nocbs",
    "tuned.non_isolcpus",
    "intel_pstate",
    "nosoftlockup",
];

/// Sections 4.3.2.1.1 and 4.3.2.1.3: the parts of the TuneD profile, and their rows.
const TUNED_PARTS: [(&str, &str); 8] = [
    ("include=cpu-partitioning", "service.tuned.include"),
    ("[disk] elevator=none", "sysfs.block.scheduler"),
    ("[bootloader] cmdline=", "service.tuned.bootloader"),
    ("[scheduler] group.ksoftirqd", "kthread.ksoftirqd"),
    ("[scheduler] group.rcub", "kthread.rcub"),
    ("housekeeping_cpus", "service.tuned.housekeeping_cpus"),
    ("isolated_cores", "service.tuned.isolated_cores"),
    ("no_balance_cores", "service.tuned.no_balance_cores"),
];

/// Section 4.3.3.1.2: the steps of the script but the last, and their rows.
const STEPS: [(&str, &str); 10] = [
    ("0 sysctl -p", "sysctl.file.100-lowlatency"),
    ("1 profile", "service.tuned.profile"),
    ("2 writeback numa", "kthread.workqueue.writeback_numa"),
    ("2 writeback cpumask", "kthread.workqueue.writeback"),
    ("3 governor", "sysfs.cpufreq.governor"),
    ("4 off/on", "sysfs.cpu.online_cycle"),
    ("5 netfilter", "service.netfilter"),
    ("6 rcu threads", "kthread.rcu"),
    ("7 interrupts", "irq.affinity"),
    ("8 kswapd", "kthread.kswapd"),
];

/// Section 4.3.3.1.2, step 9: the services that are stopped.
const SERVICES: [&str; 30] = [
    "avahi-daemon",
    "bluetooth",
    "chronyd",
    "crond",
    "dbus",
    "dnsmasq",
    "firewalld",
    "iprdump",
    "iprinit",
    "iprupdate",
    "kdump",
    "ksm",
    "libstoragemgmt",
    "libvirt",
    "lvm2-monitor",
    "mcelog",
    "mdmonitor",
    "messagebus",
    "ModemManager",
    "nfs-client.target",
    "postfix",
    "rhnsd",
    "rhsmcertd",
    "rpcbind.service",
    "rpcbind.socket",
    "systemd-journald",
    "systemd-journald.socket",
    "tuned",
    "virtlogd.socket",
    "wpa_supplicant",
];

/// Sections 4.3.3.1.1 and 5.2.1: the one-time service, and checks before measuring.
const REST: [&str; 5] = [
    "service.one_time",
    "readiness.load_average",
    "readiness.tuned",
    "readiness.affinity",
    "readiness.cmdline",
];

#[test]
fn every_row_of_the_guide_has_a_setting_in_the_guide_profile() {
    let ids = SYSCTLS
        .iter()
        .map(|key| format!("sysctl.{key}"))
        .chain(TOKENS.iter().map(|token| format!("boot.{token}")))
        .chain(TUNED_PARTS.iter().chain(&STEPS).map(|(_, id)| (*id).to_owned()))
        .chain(SERVICES.iter().map(|name| format!("service.{}", name.to_lowercase())))
        .chain(REST.iter().map(|id| (*id).to_owned()));
    let missing: Vec<String> = ids
        .filter(|id| {
            CATALOGUE.find(id).is_none_or(|row| matches!(row.want(Profile::Guide57037), Want::Nothing))
        })
        .collect();
    assert!(missing.is_empty(), "rows of the guide without a setting: {missing:?}");
}

#[test]
fn the_trading_profile_stops_no_service_that_trading_needs() {
    for name in ["chronyd", "systemd-journald", "dbus", "kdump", "mdmonitor", "mcelog", "firewalld"] {
        let row = CATALOGUE.find(&format!("service.{name}")).unwrap();
        assert!(matches!(row.want(Profile::Trading), Want::Nothing), "{name}");
    }
}
