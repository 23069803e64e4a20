"""What guide 57037 prescribes, as its own checks see it."""

from . import facts

# The guide's command line (its section 4.4.1), without the parameters for its disk and loader.
LINE = (
    "selinux=0 mce=ignore_ce ipv6.disable=1 audit=0 nmi_watchdog=0 hugepagesz=2MB hugepages=6000 default_hugepagesz=2MB "
    "transparent_hugepage=never tsc=reliable pcie_aspm=off cpuidle.off=1 rcu_nocb_poll idle=poll processor.max_cstate=0 "
    "nohz=on nohz_full=1,2,3,4,5,6,7,9,10,11,12,13,14,15 rcu_nocbs=1,2,3,4,5,6,7,9,10,11,12,13,14,15 "
    "tuned.non_isolcpus=00000101 intel_pstate=disable nosoftlockup"
)
LISTS = ("nohz_full", "rcu_nocbs")


def tokens(line):
    """Parameters of a command line; CPU lists as sets, because 1,2,3 and 1-3 are the same, and 2MB as 2M."""
    found = []
    for token in line.split():
        name, _, value = token.partition("=")
        if name in LISTS:
            value = str(sorted(facts.cpus(value)))
        elif name.endswith("hugepagesz"):
            value = value.removesuffix("B")
        found.append(f"{name}={value}")
    return found


# Its section 4.2.1. Kernels of today lack some.
SYSCTLS = {
    "kernel.hung_task_timeout_secs": "600",
    "kernel.numa_balancing": "0",
    "kernel.numa_balancing_scan_delay_ms": "1000",
    "kernel.numa_balancing_scan_period_max_ms": "60000",
    "kernel.numa_balancing_scan_period_min_ms": "1000",
    "kernel.numa_balancing_scan_size_mb": "256",
    "kernel.sched_latency_ns": "24000000",
    "kernel.sched_migration_cost_ns": "50000000",
    "kernel.sched_min_granularity_ns": "100000000",
    "kernel.sched_rt_runtime_us": "-1",
    "kernel.timer_migration": "1",
    "kernel.watchdog": "0",
    "kernel.watchdog_cpumask": "0,8",
    "kernel.watchdog_thresh": "10",
    "vm.dirty_background_ratio": "3",
    "vm.dirty_ratio": "10",
    "vm.stat_interval": "3600",
    "vm.swappiness": "0",
    "vm.zone_reclaim_mode": "0",
    "net.ipv4.conf.all.rp_filter": "0",
}
