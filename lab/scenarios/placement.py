"""Copies and threads over L2 clusters: 4, 8 and 16 copies sit 1, 2 and 4 to a cluster, threads on one CPU each."""

import json

from harness import facts

MACHINE = "xeon6-e-2x4-modules"
IS_QUICK = False

CLUSTERS = [set(range(first, first + 4)) for first in range(0, 16, 4)]
ALLOWED = "sed -n 's/^Cpus_allowed_list:.//p'"
# Eight threads with the main one; each prints its CPUs when all have had time to be placed.
THREADS = r"""
import threading, time, glob
rest = [threading.Thread(target=time.sleep, args=(30,)) for _ in range(7)]
[thread.start() for thread in rest]
time.sleep(20)
for path in glob.glob("/proc/self/task/*/status"):
    print([line.split()[1] for line in open(path) if line.startswith("Cpus_allowed_list:")][0])
"""


def counted(text):
    """CPUs, one to a line, by cluster; None if a line is not one CPU."""
    cpus = [facts.cpus(line) for line in text.split()]
    if any(len(one) != 1 for one in cpus):
        return None
    return [sum(one <= cluster for one in cpus) for cluster in CLUSTERS]


def run(lab):
    lab.guest.boot()
    for copies, each in ((4, 1), (8, 2), (16, 4)):
        done = lab.expect(f'run --place cluster-spread {copies} -- sh -c "{ALLOWED} /proc/self/status"', 0)
        lab.check(f"{copies} copies sit {each} to a cluster", counted(done.text) == [each] * 4, done.text.split())
    done = lab.expect(f'run --place cluster-pack 4 -- sh -c "{ALLOWED} /proc/self/status"', 0)
    lab.check("4 packed copies sit in one cluster", counted(done.text) == [4, 0, 0, 0], done.text.split())

    (lab.guest.share / "threads.py").write_text(THREADS)
    done = lab.expect("run --place cluster-spread -- python3 /lab/threads.py", 0)
    lab.check("8 threads sit 2 to a cluster", counted(done.text) == [2] * 4, done.text.split())

    lab.guest.must("echo 0 >/sys/devices/system/cpu/cpu5/online")
    done = lab.expect(f'run --place cluster-spread 8 -- sh -c "{ALLOWED} /proc/self/status"', 0)
    lab.check("8 copies sit 2 to a cluster without CPU 5", counted(done.text) == [2] * 4, done.text.split())
    lab.expect("run --place cluster-spread 16 -- true", 2, "cannot run 16 spinning copies", "hint:")
    lab.guest.must("echo 1 >/sys/devices/system/cpu/cpu5/online")
    # The CPU goes while the copies run, however long the guest takes to start them.
    started = 'until [ "$(pgrep -cx sleep)" -ge 16 ]; do sleep 1; done; echo 0 >/sys/devices/system/cpu/cpu5/online'
    lab.guest.must(f"({started}) >/dev/null 2>&1 </dev/null &")
    lab.expect("run --place cluster-spread 16 -- sleep 60", 0, "warning: CPU 5 went offline")
    lab.guest.must("echo 1 >/sys/devices/system/cpu/cpu5/online")
    cpuset = "systemd-run --scope --quiet -p AllowedCPUs=0-5"
    done = lab.expect(f'run --place cluster-spread 4 -- sh -c "{ALLOWED} /proc/self/status"', 0, under=cpuset)
    lab.check("4 copies sit 2 to a cluster in a cpuset of two", counted(done.text) == [2, 2, 0, 0], done.text.split())

    done = lab.expect("cache clusters --rounds 6 --json", 0)
    record = json.loads(done.text)["measurements"][0]["record"]
    lab.check("four copies were compared", record["filling"]["copies"] == 4, record["filling"])
    cpus = [(one["packed"], one["spread"]) for one in record["rounds"]]
    lab.check("each round packs one cluster and spreads over four", len(cpus) == 6 and all(
        sorted(counted(" ".join(map(str, packed)))) == [0, 0, 0, 4] and counted(" ".join(map(str, spread))) == [1] * 4
        for packed, spread in cpus
    ), cpus)
    lab.expect("cache clusters --rounds 6", 0, "This kernel spreads load over clusters", "cluster-spread 4 -- CMD")
