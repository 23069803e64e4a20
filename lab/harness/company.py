"""Use of this host's CPUs by others while a guest ran. A guest that has to wait misses its time limits, and such
failures say nothing about lowlat."""

import dataclasses
import os
import resource
import time

from . import guest

TICKS = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass
class Look:
    """The host at a moment, in seconds."""

    at: float
    busy: float
    """CPU time of everything on this host."""
    stolen: float
    """CPU time taken by its hypervisor."""
    ours: float
    """CPU time of the lab, including its guests."""


def look():
    """Reads the host; None if /proc lacks the values."""
    try:
        with open("/proc/stat") as file:
            # user nice system idle iowait irq softirq steal; time of guests is part of user's.
            user, nice, system, _, _, irq, softirq, steal = (int(word) / TICKS for word in file.readline().split()[1:9])
        ours = sum(map(running, guest.MACHINES)) + sum(
            usage.ru_utime + usage.ru_stime
            for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        )
    except (OSError, ValueError):
        return None
    return Look(time.monotonic(), user + nice + system + irq + softirq, steal, ours)


def running(qemu):
    """CPU time of a running QEMU; one that has ended is among the children."""
    if not qemu.is_running():
        return 0
    with open(f"/proc/{qemu.process.pid}/stat") as file:
        words = file.read().rpartition(")")[2].split()
    # Fields 14 and 15 of proc(5); the remaining ones start with field 3.
    return sum(int(word) for word in words[11:13]) / TICKS


def shares(before, after):
    """The number of CPUs that others used between two readings, as text."""
    if not before or not after or after.at <= before.at:
        return "the load of this host is not known"
    seconds = after.at - before.at
    others = max(0, after.busy - before.busy - (after.ours - before.ours)) / seconds
    stolen = (after.stolen - before.stolen) / seconds
    return f"other programs used {others:.1f} of this host's {os.cpu_count()} CPUs, and its hypervisor {stolen:.1f}"
