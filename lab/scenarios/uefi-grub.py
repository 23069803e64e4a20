"""The full cycle on a server that UEFI firmware boots through GRUB."""

from harness import tune

MACHINE = "four-cpus-uefi"
LOADER = "grub-efi"
IS_QUICK = False


def judge(lab, plan):
    lab.need("the firmware is UEFI", lab.guest.run("test -d /sys/firmware/efi/efivars").status == 0)
    lab.check("the plan isolates CPUs", bool(plan["isolated"]), plan["isolated"])


def run(lab):
    tune.cycle(lab, judge)
