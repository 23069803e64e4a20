"""The full cycle on an Arm server, which UEFI firmware boots through GRUB."""

from harness import tune

MACHINE = "neoverse-n1-8"
LOADER = "grub-efi"
IS_QUICK = False


def judge(lab, plan):
    machine = lab.guest.must("uname -m").text.strip()
    lab.need("the guest's processor is aarch64", machine == "aarch64", machine)
    lab.check("the plan isolates CPUs", bool(plan["isolated"]), plan["isolated"])


def run(lab):
    tune.cycle(lab, judge)
