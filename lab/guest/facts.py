"""The settings of a host as one JSON document on stdout: files, and values of the running system. Counters, times and
everything that changes on its own are left out, each for a reason given here. Runs in a guest as root; changes nothing."""

import ctypes
import glob
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys

# Below these, every entry counts.
TREES = ["/etc", "/boot", "/usr/lib/systemd", "/usr/local/lib", "/usr/lib/tuned", "/var/lib/tuned", "/root", "/opt"]
# systemd-boot writes a new seed at each boot.
NOT_FILES = re.compile(r"^/etc/(adjtime|resolv\.conf|mtab)$|^/boot/efi/loader/random-seed$")
# Rewritten with the same content: the first three and the last one whenever TuneD starts, at each boot the next one by
# Debian 13's GRUB and machine-id by systemd, if the command line has the machine's id, as with systemd-boot.
NO_TIME = re.compile(r"^/etc/tuned/(active_profile|post_loaded_profile|profile_mode)$|^/boot/grub/grubenv$|^/etc/machine-id$|^/etc/modprobe\.d/tuned\.conf$")

# Counters, random numbers, and limits that follow from the memory left at the boot.
NOT_SYSCTL = re.compile(
    r"^(fs/(dentry-state|file-nr|inode-nr|inode-state|aio-nr|quota/)|kernel/(ns_last_pid|pty/nr|random/|tainted|threads-max"
    r"|core_modes|cad_pid|sched_domain)|net/netfilter/nf_conntrack_count|net/ipv4/(tcp_fastopen_key|inet_peer_threshold)|net/ipv4/(tcp|udp)_mem|net/ipv4/tcp_[rw]mem|net/core/netdev_rss_key"
    r"|net/.*/(stable_secret|base_reachable_time|retrans_time)$|fs/epoll|fs/file-max|user/|vm/(stat_refresh|user_reserve_kbytes|admin_reserve_kbytes)"
    r"|dev/cdrom/info|net/ipv4/neigh/default/gc_)"
)

# Files of sysfs, procfs, debugfs and cgroupfs that contain a setting, as patterns like those of find(1).
VALUES = """
/sys/devices/system/cpu/{isolated,nohz_full,online,smt/control,cpufreq/boost}
/sys/devices/system/cpu/cpu*/cpufreq/{scaling_governor,scaling_min_freq,scaling_max_freq,energy_performance_preference}
/sys/devices/system/cpu/cpu*/cpuidle/state*/disable
/sys/devices/system/cpu/cpu*/online
/sys/devices/system/machinecheck/machinecheck*/{check_interval,ignore_ce,cmci_disabled}
/sys/devices/system/clocksource/clocksource0/current_clocksource
/sys/devices/system/node/node*/hugepages/hugepages-*/nr_hugepages
/sys/devices/virtual/workqueue/{cpumask,*/cpumask,*/nice,*/numa}
/sys/kernel/mm/transparent_hugepage/{enabled,defrag,shmem_enabled,khugepaged/defrag,khugepaged/scan_sleep_millisecs}
/sys/kernel/mm/ksm/run
/sys/kernel/debug/sched/{features,latency_ns,min_granularity_ns,wakeup_granularity_ns,migration_cost_ns,nr_migrate}
/sys/kernel/debug/sched/{base_slice_ns,tunable_scaling,latency_warn_ms}
/sys/kernel/rcu_expedited /sys/kernel/rcu_normal
/sys/module/*/parameters/*
/sys/block/*/queue/{scheduler,nr_requests,read_ahead_kb,rq_affinity,nomerges}
/sys/class/net/*/{mtu,queues/rx-*/rps_cpus,queues/rx-*/rps_flow_cnt,queues/tx-*/xps_cpus,queues/tx-*/xps_rxqs}
/sys/class/net/*/{gro_flush_timeout,napi_defer_hard_irqs,threaded}
/sys/fs/cgroup/{*,*/*}/cpuset.{cpus,cpus.partition,mems}
/proc/irq/default_smp_affinity /proc/cmdline /proc/swaps
"""
# The last one follows from the speed that the kernel measured at boot.
NOT_VALUES = re.compile(r"parameters/(initstate|.*(_count|jiffies|seq|last_gp_seq|stat.*))$|/module/(9p|damon_stat/parameters/(?!enabled)|tcp_cubic/parameters/bic|workqueue/parameters/cpu_intensive_thresh_us$)")


def read(path, bytes_max=1 << 16):
    """The text of a kernel file, or the error of reading it."""
    try:
        with open(path, "rb") as file:
            return file.read(bytes_max).decode(errors="replace").strip()
    except OSError as error:
        return f"({os.strerror(error.errno)})"


def run(*command):
    """Its output; a container lacks some of the programs."""
    if not shutil.which(command[0]):
        return "(not installed)"
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "LC_ALL": "C"})
    return done.stdout


def systemctl(*arguments):
    """Its output. In a guest that has to wait for its CPUs, systemd's answer can come too late for it, by default after 25 s."""
    for _ in range(5):
        done = subprocess.run(["systemctl", *arguments], stdout=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C", "SYSTEMD_BUS_TIMEOUT": "300"})
        if done.returncode == 0:
            return done.stdout
    sys.exit(f"systemctl {arguments[0]} fails")


def braces(pattern):
    """`a{b,c}d` as `abd`, `acd`."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if not match:
        return [pattern]
    return [one for part in match[1].split(",") for one in braces(pattern[: match.start()] + part + pattern[match.end() :])]


def entry(path, status):
    """One entry of a tree. Times of directories do not count: they change with every entry created or removed."""
    who = f"{stat.filemode(status.st_mode)} {status.st_uid}:{status.st_gid}"
    if stat.S_ISDIR(status.st_mode):
        return who
    if stat.S_ISLNK(status.st_mode):
        return f"{who} -> {os.readlink(path)}"
    with open(path, "rb") as file:
        content = hashlib.sha256(file.read()).hexdigest()
    return f"{who} {'-' if NO_TIME.match(path) else status.st_mtime_ns} {content}"


def files():
    found = {}
    for tree in TREES:
        for folder, folders, names in os.walk(tree):
            for name in ["", *names, *(f for f in folders if os.path.islink(f"{folder}/{f}"))]:
                path = f"{folder}/{name}".rstrip("/")
                if not NOT_FILES.match(path):
                    found[path] = entry(path, os.lstat(path))
    return found


def sysctls():
    found = {}
    for folder, _, names in os.walk("/proc/sys"):
        for name in names:
            path = f"{folder}/{name}"
            key = path[len("/proc/sys/") :]
            if not NOT_SYSCTL.match(key) and os.stat(path).st_mode & 0o444:
                found[f"sysctl {key}"] = read(path)
    return found


def values():
    found = {}
    for pattern in (one for word in VALUES.split() for one in braces(word)):
        for path in glob.glob(pattern):
            if not NOT_VALUES.search(path):
                found[path] = read(path)
    return found


def interrupts():
    """Each interrupt with a handler, by name, because numbers differ between boots: where it may go, and where it
    does go (the kernel's choice, which is informational and not compared)."""
    found = {}
    for number in filter(str.isdigit, os.listdir("/proc/irq")):
        folder = f"/proc/irq/{number}"
        names = sorted(name for name in os.listdir(folder) if os.path.isdir(f"{folder}/{name}"))
        if names:
            found["+".join(names)] = {
                "affinity": read(f"{folder}/smp_affinity_list"),
                "effective": read(f"{folder}/effective_affinity_list"),
            }
    return found


def threads():
    """CPUs and scheduling of kernel threads, by name. Left out are workers, which start and end at any time, and the rescuers of
    workqueues, which go where they last helped: both carry the flag PF_WQ_WORKER."""
    found = {}
    policies = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline"}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        text = read(f"/proc/{pid}/stat")
        name, _, rest = text.partition("(")[2].rpartition(")")
        fields = rest.split()
        if len(fields) < 39 or not int(fields[6]) & 0x200000 or int(fields[6]) & 0x20:
            continue
        allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)", read(f"/proc/{pid}/status"), re.M)
        policy = policies.get(int(fields[38]), fields[38])
        value = f"CPUs {allowed[1] if allowed else '?'}, {policy} {fields[37]}, nice {fields[16]}"
        found[f"thread {name}"] = value
    return found


# Started by what needs them, and ended when nothing does.
ON_DEMAND = re.compile(r"^systemd-(fsckd|hostnamed|timedated|localed|initctl|tmpfiles-clean)\.")


def services():
    found = {}
    for line in systemctl("list-unit-files", "--no-legend", "--plain").splitlines():
        unit, state = line.split()[:2]
        found[f"enablement {unit}"] = state
    for line in systemctl("list-units", "--all", "--no-legend", "--plain", "--type=service,timer,socket").splitlines():
        unit, load, active = line.split()[:3]
        # One-shot units of timers have no lasting state; sessions and instances start and end at any time.
        if "@" not in unit and not ON_DEMAND.match(unit) and active in ("active", "failed"):
            found[f"state {unit}"] = f"{load} {active}"
    return found


def has_open(pid, device):
    """Whether a process has a device open. Files that it closes in the meantime are skipped."""
    for descriptor in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            if os.readlink(descriptor) == device:
                return True
        except OSError:
            continue
    return False


def holders(device):
    """The names of the processes that have a device open. Not of their children: one that is about to run another program
    has its parent's files, and its name, until then. TuneD starts some whenever it applies a profile. One that has ended
    meanwhile has no parent, and is left out as well."""
    pids = [pid for pid in filter(str.isdigit, os.listdir("/proc")) if has_open(pid, device)]
    parents = {pid: "".join(re.findall(r"^PPid:\s*(\d+)", read(f"/proc/{pid}/status"), re.M)) for pid in pids}
    return [read(f"/proc/{pid}/comm") for pid in pids if parents[pid] and parents[pid] not in pids]


def others():
    active = run("tuned-adm", "active")
    # Its log lines contain the time.
    found = {"tuned profile": " ".join(line for line in active.splitlines() if not re.match(r"\d{4}-", line))}
    for nic in sorted(os.listdir("/sys/class/net")):
        if nic != "lo":
            for letter in "lckg":
                # Statistics and results of negotiation are not settings.
                found[f"ethtool -{letter} {nic}"] = run("ethtool", f"-{letter}", nic).strip()
    # What a process may use unless it requests other CPUs.
    found["CPUs of process 1"] = "".join(re.findall(r"^Cpus_allowed_list:\s*(\S+)", read("/proc/1/status"), re.M))
    found["holders of /dev/cpu_dma_latency"] = " ".join(sorted(holders("/dev/cpu_dma_latency")))
    return found


def main():
    ctypes.CDLL(None).sync()
    document = {
        "files": files(),
        "values": {**sysctls(), **values(), **threads(), **services(), **others()},
        "interrupts": interrupts(),
    }
    json.dump(document, sys.stdout, indent=1, sort_keys=True)


main()
