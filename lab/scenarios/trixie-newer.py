"""The full cycle on Debian 13 with the newest kernel of its backports (7.3)."""

from harness import facts, tune

MACHINE = "four-cpus"
SUITE = "trixie"
KERNEL = "backports"
IS_QUICK = False

SERVERS = ("fair_server", "ext_server")


def servers(lab):
    """The runtime of each server of each CPU."""
    return {(server, cpu): lab.text(f"/sys/kernel/debug/sched/{server}/cpu{cpu}/runtime") for server in SERVERS for cpu in range(4)}


def judge(lab, plan):
    release = lab.text("/proc/sys/kernel/osrelease")
    lab.need("the guest runs 7.3 or a later kernel", tuple(map(int, release.split(".")[:2])) >= (7, 3), release)
    lab.check("the plan isolates CPUs", bool(plan["isolated"]), plan["isolated"])
    lab.note(f"servers: {servers(lab)}")


def midway(lab):
    isolated = facts.cpus(lab.text("/sys/devices/system/cpu/isolated"))
    runtimes = servers(lab)
    off = {cpu for (server, cpu), runtime in runtimes.items() if server == "fair_server" and runtime == "0"}
    lab.check("the fair servers of isolated CPUs are off, and no others", off == isolated, runtimes)


def run(lab):
    tune.cycle(lab, judge, midway)
