"""Init of a guest that runs a kernel alone: tries every setting of the catalogue and reports what the kernel did.

It knows the kernel's own files and counters, not lowlat's judge. lab/harness/truth.py reads BOOT to build the command lines, and
turns what it reports into words. `python3` of the host, the script, kernel.py and lowlat are the whole userland."""

import errno
import fcntl
import glob
import json
import os
import re
import socket
import struct
import subprocess
import time
import traceback

from kernel import (
    LIBC, cpus, cpus_of, dmesg, has_ipv6, huge_page_faults, idle_ticks, is_aspm_managed, mask, memberships, meminfo, put, receive_buffer, shown,
    spin, text, threads, tick_offsets, trace, vmstat_updates, wakeups, warnings, watchdog_cpus,
)  # fmt: skip

HOUSEKEEPING, ISOLATED = {0, 1}, {2, 3}
MASK = "3"
DEBUG = "/sys/kernel/debug"
SCHED = f"{DEBUG}/sched"
CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
MOUNTS = (
    ("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("debugfs", DEBUG), ("tracefs", "/sys/kernel/tracing"),
    ("cgroup2", "/sys/fs/cgroup"), ("tmpfs", "/tmp"), ("tmpfs", "/run"),
)


# ---- the command line: id -> token, the boots with and without it, whether the effect is there (None: it cannot be seen)

def sees(key, value):
    return lambda seen: None if seen.get(key) is None else seen[key] == value


def row(token, effect, boot="set", without="plain", file="", reason=""):
    """A parameter; `file` shows it if the kernel has it, `reason` says why its effect cannot be seen."""
    return {"token": token, "effect": effect, "boot": boot, "without": without, "file": file, "reason": reason}


def unseen(_):
    return None


def module(name):
    return "/sys/module/" + name.replace(".", "/parameters/")


NO_STATES = "the guest's processor has no idle states"
NO_COUNTERS = "the guest's processor has no performance counters"
NO_DRIVER = "the guest's processor has no frequency driver"
NOT_INTEL = "the guest's processor is AMD's, which this driver does not serve"
BOOT = {
    "boot.isolcpus": row("isolcpus=managed_irq,domain,2-3", lambda s: s["isolated"] == "2-3" and s["domain_cpus"] == [0, 1]),
    "boot.nohz_full": row("nohz_full=2-3", lambda s: s["ticks"]["isolated"] * 10 < s["ticks"]["housekeeping"]),
    "boot.nohz": row("nohz=on", lambda s: s["idle_ticks"] * 2 < s["ticks"]["housekeeping"]),
    "boot.rcu_nocbs": row("rcu_nocbs=2-3", lambda s: ISOLATED <= set(s["offloaded_cpus"]), boot="other"),
    "boot.rcu_nocb_poll": row("rcu_nocb_poll", lambda s: None if s["offload_wakeups"] is None else s["offload_wakeups"] > 20, without="other"),
    "boot.rcupdate.rcu_normal_after_boot": row("rcupdate.rcu_normal_after_boot=1", sees("rcu_normal", "1")),
    "boot.rcutree.nohz_full_patience_delay": row("rcutree.nohz_full_patience_delay=1000", unseen, file=module("rcutree.nohz_full_patience_delay"), reason="the value reads back; grace periods in the guest do not last that long"),
    "boot.irqaffinity": row("irqaffinity=0-1", sees("irq_default", [0, 1])),
    "boot.tuned.non_isolcpus": row("tuned.non_isolcpus=00000003", sees("first_process_cpus", [0, 1]), boot="other"),
    "boot.skew_tick": row("skew_tick=1", lambda s: s["tick_offsets"] > 1),
    "boot.tsc": row("tsc=reliable", lambda s: s["clocksource"] == "tsc" and s["clock_checks"] == 0),
    "boot.clocksource": row("clocksource=acpi_pm", sees("clocksource", "acpi_pm"), boot="other"),
    "boot.transparent_hugepage": row("transparent_hugepage=never", sees("huge_page_faults", 0)),
    "boot.hugepagesz": row("hugepagesz=1G", sees("huge_gib_pages", "0"), boot="other"),
    "boot.hugepages": row("hugepages=8", sees("huge_pages", 8)),
    "boot.default_hugepagesz": row("default_hugepagesz=1G", sees("huge_page_kib", 1 << 20), boot="other"),
    "boot.psi": row("psi=0", sees("has_pressure", False)),
    "boot.preempt": row("preempt=full", lambda s: None if s["preempt"] is None else s["preempt"] == "full"),
    "boot.nosoftlockup": row("nosoftlockup", lambda s: s["soft_watchdog"] == "0" and s["watchdog_cpus"] == []),
    "boot.nmi_watchdog": row("nmi_watchdog=0", sees("nmi_watchdog", "0"), reason=NO_COUNTERS),
    "boot.mce": row("mce=ignore_ce", sees("ignore_ce", "1")),
    "boot.audit": row("audit=0", sees("has_kauditd", False)),
    "boot.selinux": row("selinux=0", sees("has_selinux", False), reason="the kernel does not activate SELinux without it either"),
    "boot.ipv6.disable": row("ipv6.disable=1", sees("has_ipv6", False)),
    "boot.quiet": row("quiet", sees("console_level", "4")),
    "boot.idle": row("idle=poll", lambda s: s["idle_ticks"] * 5 > s["ticks"]["housekeeping"], boot="other"),
    "boot.cpuidle.off": row("cpuidle.off=1", unseen, file=module("cpuidle.off"), reason=NO_STATES),
    "boot.processor.max_cstate": row("processor.max_cstate=1", unseen, file=module("processor.max_cstate"), reason=NO_STATES),
    "boot.intel_idle.max_cstate": row("intel_idle.max_cstate=1", unseen, file=module("intel_idle.max_cstate"), reason=NOT_INTEL),
    "boot.intel_pstate": row("intel_pstate=disable", unseen, reason=NOT_INTEL),
    "boot.pcie_aspm": row("pcie_aspm=off", sees("is_aspm_managed", False), boot="other"),
    "boot.iommu_pt": row("iommu=pt", sees("iommu_types", ["identity"]), reason="the guest has no IOMMU"),
}
# What a boot also needs: the offloaded CPUs of rcu_nocb_poll.
ALSO = {"plain": "", "set": "rcu_nocbs=2-3", "other": ""}

# ---- settings that are written: id -> files, wanted, another value to come from, effect


def write(paths, wanted, other=None, effect=None, after=None, hardware=""):
    """Files to write; `after` is what has to be written first if the kernel refuses, `hardware` why it refuses in the guest."""
    return {"paths": paths, "wanted": wanted, "other": other, "effect": effect, "after": after, "hardware": hardware}


def sysctl(name, wanted, other=None, effect=None):
    return write("/proc/sys/" + name.replace(".", "/"), wanted, other, effect)


DISK = "/sys/block/nvme*/queue/scheduler"
LIMIT = "/proc/sys/kernel/sched_rt_runtime_us"
NUMA = (("scan_delay_ms", "1000", "1001"), ("scan_period_max_ms", "60000", "60001"), ("scan_period_min_ms", "1000", "1001"), ("scan_size_mb", "256", "255"))
NIC = "/sys/class/net/eth0"
THP = "/sys/kernel/mm/transparent_hugepage"
WRITES = {
    # First: the kernel computes some values of the scheduler again when a CPU comes online.
    "sysfs.cpu.online_cycle": write("/sys/devices/system/cpu/cpu3/online", "1", "0", lambda: os.sysconf("SC_NPROCESSORS_ONLN") == 4),
    "sysctl.kernel.sched_rt_runtime_us": write(LIMIT, "-1", "950000"),
    **{f"sysctl.kernel.sched_{name}": sysctl(f"kernel.sched_{name}", wanted) for name, wanted in (("latency_ns", "24000000"), ("min_granularity_ns", "100000000"), ("migration_cost_ns", "50000000"))},
    **{f"sysctl.kernel.numa_balancing_{name}": sysctl(f"kernel.numa_balancing_{name}", wanted, other) for name, wanted, other in NUMA},
    "sysctl.kernel.timer_migration": sysctl("kernel.timer_migration", "0", "1"),
    "sysctl.kernel.hung_task_timeout_secs": sysctl("kernel.hung_task_timeout_secs", "600"),
    "sysctl.vm.dirty_background_ratio": sysctl("vm.dirty_background_ratio", "3"),
    "sysctl.vm.dirty_ratio": sysctl("vm.dirty_ratio", "10"),
    "sysctl.vm.stat_interval": sysctl("vm.stat_interval", "3600", "1", lambda: vmstat_updates() == 0),
    "sysctl.vm.swappiness": sysctl("vm.swappiness", "0"),
    "sysctl.vm.zone_reclaim_mode": sysctl("vm.zone_reclaim_mode", "0", "1"),
    "sysctl.vm.compaction_proactiveness": sysctl("vm.compaction_proactiveness", "0"),
    "sysctl.kernel.watchdog_cpumask": sysctl("kernel.watchdog_cpumask", "0-1", "0-3", lambda: set(watchdog_cpus()) == HOUSEKEEPING),
    "sysctl.kernel.watchdog": sysctl("kernel.watchdog", "0", "1", lambda: not watchdog_cpus()),
    "sysctl.kernel.watchdog_thresh": sysctl("kernel.watchdog_thresh", "10", "20"),
    "sysctl.kernel.nmi_watchdog": write("/proc/sys/kernel/nmi_watchdog", "0", "1", hardware=NO_COUNTERS),
    "sysctl.kernel.numa_balancing": sysctl("kernel.numa_balancing", "0", "1"),
    "sysctl.net.ipv4.conf.all.rp_filter": sysctl("net.ipv4.conf.all.rp_filter", "0", "1"),
    "sysctl.net.core.busy_read": sysctl("net.core.busy_read", "50"),
    "sysctl.net.core.busy_poll": sysctl("net.core.busy_poll", "50"),
    "sysctl.net.ipv4.tcp_slow_start_after_idle": sysctl("net.ipv4.tcp_slow_start_after_idle", "0"),
    "sysctl.net.ipv4.tcp_autocorking": sysctl("net.ipv4.tcp_autocorking", "0"),
    "sysctl.net.ipv4.igmp_max_memberships": sysctl("net.ipv4.igmp_max_memberships", "1024", "20", lambda: memberships() == 60),
    "sysctl.net.core.rmem_max": sysctl("net.core.rmem_max", "16777216", "212992", lambda: receive_buffer(16777216) == 2 * 16777216),
    "sysctl.kernel.printk": write("/proc/sys/kernel/printk", "4 4 1 7", "7 4 1 7"),
    **{f"debugfs.sched.{name}": write(f"{SCHED}/{name}", wanted, other) for name, wanted, other in (("latency_ns", "24000000", None), ("min_granularity_ns", "100000000", None), ("base_slice_ns", "100000000", None), ("migration_cost_ns", "50000000", None))},
    **{f"debugfs.sched.numa_balancing.{name}": write(f"{SCHED}/numa_balancing/{name}", wanted, other) for name, wanted, other in NUMA},
    "debugfs.sched.fair_server": write(f"{SCHED}/fair_server/cpu[23]/runtime", "0", after=(LIMIT, "-1")),
    "debugfs.sched.ext_server": write(f"{SCHED}/ext_server/cpu[23]/runtime", "0", after=(LIMIT, "-1")),
    "debugfs.sched.llc_balancing": write(f"{SCHED}/llc_balancing/enabled", "0"),
    "memory.thp_enabled": write(f"{THP}/enabled", "never", "always", lambda: huge_page_faults() == 0),
    "memory.thp_defrag": write(f"{THP}/defrag", "never"),
    "memory.thp_khugepaged_defrag": write(f"{THP}/khugepaged/defrag", "0", "1"),
    "memory.huge_pages": write("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "8", "0", lambda: meminfo("HugePages_Total") == 8),
    "memory.huge_pages_spread": write("/sys/devices/system/node/node*/hugepages/hugepages-2048kB/nr_hugepages", "8", "0", lambda: meminfo("HugePages_Total") == 8),
    "memory.ksm": write("/sys/kernel/mm/ksm/run", "0", "1"),
    "irq.default_affinity": write("/proc/irq/default_smp_affinity", MASK, "f"),
    "kthread.workqueue.global": write("/sys/devices/virtual/workqueue/cpumask", MASK, "f"),
    "kthread.workqueue.writeback": write("/sys/bus/workqueue/devices/writeback/cpumask", MASK, "f"),
    "kthread.workqueue.writeback_numa": write("/sys/bus/workqueue/devices/writeback/numa", "0", "1"),
    "sysfs.block.scheduler": write(DISK, "none", "mq-deadline"),
    "sysfs.damon_stat": write("/sys/module/damon_stat/parameters/enabled", "N", "Y", lambda: not threads("kdamond")),
    "sysfs.clocksource": write(CLOCKSOURCE, "tsc", "hpet"),
    "sysfs.machinecheck.check_interval": write("/sys/devices/system/machinecheck/machinecheck0/check_interval", "0", "300"),
    "sysfs.pcie_aspm.policy": write("/sys/module/pcie_aspm/parameters/policy", "performance", "default"),
    "nic.rps": write(f"{NIC}/queues/rx-0/rps_cpus", "0", MASK),
    "nic.gro_flush_timeout": write(f"{NIC}/gro_flush_timeout", "0", "200000"),
    "nic.napi_defer_hard_irqs": write(f"{NIC}/napi_defer_hard_irqs", "0", "100"),
    "nic.threaded": write(f"{NIC}/threaded", "0", "1"),
}
# Files that only special hardware has.
HARDWARE = {
    "sysfs.cpuidle.deep_states": ("/sys/devices/system/cpu/cpu0/cpuidle", NO_STATES),
    "sysfs.cpufreq.governor": ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", NO_DRIVER),
    "sysfs.cpufreq.scaling_min": ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq", NO_DRIVER),
    "sysfs.cpufreq.energy_performance_preference": ("/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference", NO_DRIVER),
    "sysfs.cpufreq.driver": ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", NO_DRIVER),
    "sysfs.cpufreq.boost_uniform": ("/sys/devices/system/cpu/cpufreq/boost", NO_DRIVER),
    "sysfs.uncore_frequency": ("/sys/devices/system/cpu/intel_uncore_frequency", "the guest's processor has no uncore clock"),
    "sysfs.platform_profile": ("/sys/firmware/acpi/platform_profile", "the guest's firmware has no platform profiles"),
}
RCU_THREADS, FIFO = ("rcu", "rcuo"), {"kthread.ksoftirqd": ("ksoftirqd/", 2), "kthread.rcub": ("rcub/", 4)}


# ---- trying


def observe():
    """Everything that parameters of the command line change."""
    offloaders = {int(match[1]) for path in glob.glob("/proc/[0-9]*/comm") if (match := re.match(r"rcuo[pbs]/(\d+)", text(path) or ""))}
    domains, cpu = set(), None
    for line in text("/proc/schedstat", "").splitlines():
        if match := re.match(r"cpu(\d+) ", line):
            cpu = int(match[1])
        elif line.startswith("domain"):
            domains.add(cpu)
    said = re.search(r"\((\w+)\)", text(f"{SCHED}/preempt") or "")
    log = dmesg()
    return {
        "cmdline": text("/proc/cmdline"),
        "environment": [entry for entry in open("/proc/1/environ").read().split("\0") if entry] + open("/proc/1/cmdline").read().split("\0")[1:],
        "unknown": " ".join(re.findall(r"Unknown kernel command line parameters \"?([^\n]*)", log)),
        "files": {id: text(one["file"]) for id, one in BOOT.items() if one["file"]},
        "isolated": text("/sys/devices/system/cpu/isolated"),
        "domain_cpus": sorted(domains) if domains or "version" in text("/proc/schedstat", "") else None,
        "ticks": {"housekeeping": spin(1, 2), "isolated": spin(2, 2)},
        "idle_ticks": idle_ticks(2),
        "offloaded_cpus": sorted(offloaders),
        "offload_wakeups": wakeups("rcuo") if offloaders else None,
        "rcu_normal": text("/sys/kernel/rcu_normal"),
        "irq_default": mask(text("/proc/irq/default_smp_affinity")),
        "first_process_cpus": sorted(cpus_of(1)),
        "tick_offsets": tick_offsets(),
        "clocksource": text(CLOCKSOURCE),
        "clock_checks": trace("timer:timer_expire_entry", "clocksource_watchdog", 2),
        "huge_page_faults": huge_page_faults(),
        "huge_gib_pages": text("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"),
        "huge_pages": meminfo("HugePages_Total"),
        "huge_page_kib": meminfo("Hugepagesize"),
        "disks": os.listdir("/sys/block"),
        "has_pressure": os.path.exists("/proc/pressure/cpu"),
        "preempt": said and said[1],
        "soft_watchdog": text("/proc/sys/kernel/soft_watchdog"),
        "nmi_watchdog": text("/proc/sys/kernel/nmi_watchdog"),
        "watchdog_cpus": watchdog_cpus(),
        "ignore_ce": text("/sys/devices/system/machinecheck/machinecheck0/ignore_ce"),
        "has_kauditd": bool(threads("kauditd")),
        "has_selinux": os.path.exists("/sys/fs/selinux"),
        "has_ipv6": has_ipv6(),
        "console_level": text("/proc/sys/kernel/printk").split()[0],
        "is_aspm_managed": is_aspm_managed(),
        "iommu_types": sorted({text(path) for path in glob.glob("/sys/kernel/iommu_groups/*/type")}) or None,
    }


def attempt(one, keep):
    """One setting: what the kernel did with the wanted value. Restores the value unless it is to be kept."""
    paths = sorted(glob.glob(one["paths"]))
    if not paths:
        return {"answer": "absent", "detail": f"{one['paths']} does not exist"}
    before, warned = {path: shown(path) for path in paths}, len(warnings())
    first = ""
    for path in paths:
        if one["other"]:
            put(path, one["other"])
    is_known = one["effect"] and not one["effect"]()
    failed = [put(path, one["wanted"]) for path in paths]
    if any(failed) and one["after"]:
        first = failed[0]
        limit = text(one["after"][0])
        put(*one["after"])
        failed = [put(path, one["wanted"]) for path in paths]
    after = [shown(path) for path in paths]
    says = {"default": before[paths[0]], "wrote": one["wanted"], "reads": after[0]}
    if any(failed):
        why = f"writing {one['wanted']} fails with {next(filter(None, failed))}"
        answer = {"answer": "not seen", "detail": f"{one['hardware']}: {why}"} if one["hardware"] else {"answer": "refused", "detail": why}
    elif any(value != one["wanted"] for value in after):
        answer = {"answer": "ignored", "detail": f"the write succeeds and the file reads {after[0]}"}
    elif one["effect"]:
        holds = one["effect"]()
        answer = {"answer": "effective" if holds and is_known else "accepted" if holds else "ignored", "detail": "" if holds else "it reads back and has no effect"}
    else:
        answer = {"answer": "accepted", "detail": ""}
    if first and answer["answer"] != "refused":
        answer["detail"] = f"only after {one['after'][1]} in {one['after'][0]}; {first} before"
    if not keep:
        for path in paths:
            put(path, before[path])
        if first:
            put(one["after"][0], limit)
    if places := set(warnings()[warned:]):
        answer["detail"] += f"{'; ' if answer['detail'] else ''}the kernel logs a warning at the change or its reversal: {', '.join(sorted(places))}"
    return {**answer, **says}


def move(prefixes):
    """Moves kernel threads to the housekeeping CPUs."""
    found = [pid for prefix in prefixes for pid in threads(prefix)]
    # Flag PF_NO_SETAFFINITY: bound to its CPU.
    movable = [pid for pid in found if not int(text(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[6]) & 0x04000000]
    if not movable:
        return {"answer": "absent", "detail": "no movable thread has such a name"}
    try:
        for pid in movable:
            os.sched_setaffinity(pid, HOUSEKEEPING)
    except OSError as error:
        return {"answer": "refused", "detail": f"{text(f'/proc/{pid}/comm')}: {errno.errorcode[error.errno]}"}
    return {"answer": "accepted" if all(cpus_of(pid) <= HOUSEKEEPING for pid in movable) else "ignored", "detail": f"{len(movable)} threads"}


def raise_threads(prefix, priority):
    found = threads(prefix)
    if not found:
        return {"answer": "absent", "detail": f"no thread is named {prefix}"}
    try:
        for pid in found:
            os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as error:
        return {"answer": "refused", "detail": errno.errorcode[error.errno]}
    held = all(os.sched_getscheduler(pid) == os.SCHED_FIFO and os.sched_getparam(pid).sched_priority == priority for pid in found)
    return {"answer": "accepted" if held else "ignored", "detail": f"{len(found)} threads"}


def move_interrupt():
    """The NIC's interrupt."""
    found = glob.glob("/proc/irq/*/virtio*-input.0")
    if not found:
        return {"answer": "not seen", "detail": "the guest's NIC has no interrupt for its queue"}
    folder = os.path.dirname(found[0])
    before = text(f"{folder}/smp_affinity_list")
    for target in ("2", "0-1"):
        if failed := put(f"{folder}/smp_affinity_list", target):
            return {"answer": "refused", "detail": f"writing {target} fails with {failed}"}
    reads, lands = text(f"{folder}/smp_affinity_list"), text(f"{folder}/effective_affinity_list")
    answer = "effective" if cpus(lands) <= HOUSEKEEPING else "accepted" if reads == "0-1" else "ignored"
    return {"answer": answer, "detail": "" if answer == "effective" else f"delivered to {lands} until the next interrupt", "default": before, "wrote": "0-1", "reads": reads}


HELD = []


def hold_latency():
    """A request for no latency of idle states, held until the guest ends."""
    path = "/dev/cpu_dma_latency"
    HELD.append(os.open(path, os.O_RDWR))
    os.write(HELD[0], struct.pack("i", 0))
    reads = struct.unpack("i", os.pread(HELD[0], 4, 0))[0]
    return {"answer": "accepted" if reads == 0 else "ignored", "detail": f"effect not seen: {NO_STATES}", "wrote": "0", "reads": str(reads)}


def partition():
    """An isolated cpuset partition."""
    base = "/sys/fs/cgroup"
    put(f"{base}/cgroup.subtree_control", "+cpuset")
    group = f"{base}/lab"
    os.makedirs(group, exist_ok=True)
    if not os.path.exists(f"{group}/cpuset.cpus.partition"):
        return {"answer": "absent", "detail": "cpuset.cpus.partition does not exist"}
    put(f"{group}/cpuset.cpus", "2-3")
    failed = put(f"{group}/cpuset.cpus.partition", "isolated")
    state, domains, cpu = text(f"{group}/cpuset.cpus.partition"), set(), None
    for line in text("/proc/schedstat").splitlines():
        if match := re.match(r"cpu(\d+) ", line):
            cpu = int(match[1])
        elif line.startswith("domain"):
            domains.add(cpu)
    put(f"{group}/cpuset.cpus.partition", "member")
    os.rmdir(group)
    put(f"{base}/cgroup.subtree_control", "-cpuset")
    if failed:
        return {"answer": "refused", "detail": f"writing isolated fails with {failed}"}
    return {"answer": "effective" if domains == HOUSEKEEPING else "ignored", "detail": f"it reads {state}; CPUs with scheduling domains: {sorted(domains)}"}


def write_all(keep):
    """Tries every setting that can be written."""
    found = {}
    for id, one in WRITES.items():
        found[id] = attempt(one, keep)
    for id, (path, reason) in HARDWARE.items():
        found[id] = {"answer": "not seen" if not os.path.exists(path) else "untried", "detail": reason}
    found["irq.affinity"] = move_interrupt()
    found["sysfs.cpu_dma_latency"] = hold_latency()
    found["kthread.rcu"] = move(RCU_THREADS[:1])
    found["kthread.kswapd"] = move(("kswapd",))
    for id, (prefix, priority) in FIFO.items():
        found[id] = raise_threads(prefix, priority)
    return found


# ---- the boot

def mount_all():
    for kind, place in MOUNTS:
        os.makedirs(place, exist_ok=True)
        LIBC.mount(kind.encode(), place.encode(), kind.encode(), 0, None)
    for name in text("/modules.list").split():
        with open(name) as file:
            LIBC.syscall(313, file.fileno(), b"", 0)
    os.makedirs("/lab", exist_ok=True)
    for _ in range(100):
        if LIBC.mount(b"lab", b"/lab", b"9p", 0, b"trans=virtio,version=9p2000.L,msize=262144") == 0:
            return
        time.sleep(0.1)
    raise OSError("cannot mount the shared folder")


def boot():
    mount_all()
    mode = re.search(r"lab\.mode=(\w+)", text("/proc/cmdline"))[1]
    up = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for name in ("lo", "eth0"):
        try:
            fcntl.ioctl(up, 0x8914, struct.pack("16sH14x", name.encode(), 0x41))
        except OSError as error:
            print(f"{name}: {error}")
    for _ in range(200):
        if glob.glob(DISK):
            break
        time.sleep(0.1)
    report = {"release": os.uname().release, "seen": observe()}
    if mode == "plain":
        report["writes"] = write_all(keep=False)
        report["writes"]["sysfs.cpuset.partition"] = partition()
    if mode == "set":
        report["writes"] = write_all(keep=True)
        said = subprocess.run(["/lowlat", "host", "capture", "/lab/capture.tar.gz"], capture_output=True, text=True)
        report["capture"] = f"{said.returncode} {said.stdout[-300:]} {said.stderr[-300:]}"
    with open("/lab/report.part", "w") as file:
        json.dump(report, file)
    os.rename("/lab/report.part", "/lab/report.json")


if __name__ == "__main__":
    try:
        boot()
    except BaseException:
        traceback.print_exc()
    os.sync()
    LIBC.reboot(0x01234567)
    time.sleep(600)
