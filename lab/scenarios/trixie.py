"""The full cycle on Debian 13 with its own kernel (6.12), which refuses to change the fair server under a limit."""

from harness import facts, tune

MACHINE = "four-cpus"
SUITE = "trixie"
IS_QUICK = False

SERVERS = "/sys/kernel/debug/sched/fair_server"
LIMIT = "/proc/sys/kernel/sched_rt_runtime_us"


def servers(lab):
    """The runtime of each CPU's fair server."""
    return {cpu: lab.text(f"{SERVERS}/cpu{cpu}/runtime") for cpu in range(4)}


def judge(lab, plan):
    release = lab.text("/proc/sys/kernel/osrelease")
    lab.need("the guest runs 6.12", release.startswith("6.12."), release)
    cpu = min(facts.cpus(plan["isolated"]))
    refused = lab.guest.run(f"echo 0 >{SERVERS}/cpu{cpu}/runtime")
    lab.check("the kernel refuses to change a fair server under the limit", "busy" in refused.text, refused)
    rows = [change["target"].get("key") or change["target"].get("path") or "" for change in plan["changes"]]
    lab.check("the plan lifts the limit", "kernel.sched_rt_runtime_us" in rows, rows)


def midway(lab):
    isolated = facts.cpus(lab.text("/sys/devices/system/cpu/isolated"))
    off = {cpu for cpu, runtime in servers(lab).items() if runtime == "0"}
    lab.check("the fair servers of isolated CPUs are off, and no others", off == isolated, servers(lab))
    lab.check("there is no limit", lab.text(LIMIT) == "-1", lab.text(LIMIT))


def run(lab):
    tune.cycle(lab, judge, midway)
    lab.check("the fair servers are on again", "0" not in servers(lab).values(), servers(lab))
    lab.check("the limit is the kernel's", lab.text(LIMIT) == "950000", lab.text(LIMIT))
