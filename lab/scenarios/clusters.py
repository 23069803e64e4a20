"""Xeon 6 efficient cores, four per L2 cache: the whole cycle, with clusters kept whole."""

from harness import facts, tune

MACHINE = "xeon6-e-2x4-modules"
IS_QUICK = False


def judge(lab, plan):
    modules = [set(range(first, first + 4)) for first in range(0, 16, 4)]
    seen = [lab.text(f"/sys/devices/system/cpu/cpu{min(one)}/topology/cluster_cpus_list") for one in modules]
    lab.check("the kernel sees four clusters", seen == ["0-3", "4-7", "8-11", "12-15"], seen)
    isolated, housekeeping = facts.cpus(plan["isolated"]), facts.cpus(plan["housekeeping"])
    lab.check("the plan isolates CPUs", bool(isolated), plan["isolated"])
    split = [sorted(one) for one in modules if one & isolated and one & housekeeping]
    lab.check("no cluster is shared by housekeeping and isolated CPUs", not split, split)


def run(lab):
    tune.cycle(lab, judge)
