"""A host with one CPU: nothing to isolate, and the whole cycle does no harm."""

from harness import tune

MACHINE = "one-cpu"
IS_QUICK = True


def judge(lab, plan):
    lab.check("the plan isolates nothing", plan["isolated"] == "", plan["isolated"])
    lab.check("the plan keeps CPU 0 for housekeeping", plan["housekeeping"] == "0", plan["housekeeping"])


def run(lab):
    # Its firmware says that the machine has no ASPM, and the kernel then rejects every policy.
    lab.refused = ("pcie_aspm",)
    tune.cycle(lab, judge)
