"""The full cycle on Debian 11 (5.10), whose kernel can neither stop the tick nor move callbacks of RCU."""

from harness import tune

MACHINE = "four-cpus"
SUITE = "bullseye"
IS_QUICK = False


def judge(lab, plan):
    release = lab.text("/proc/sys/kernel/osrelease")
    lab.need("the guest runs 5.10", release.startswith("5.10."), release)
    lab.check("the plan isolates CPUs", bool(plan["isolated"]), plan["isolated"])


def run(lab):
    tune.cycle(lab, judge)
