"""The full cycle on a server that UEFI firmware boots through systemd-boot, whose entries are on a FAT file system."""

from harness import tune

MACHINE = "four-cpus-uefi"
SUITE = "trixie"
LOADER = "systemd-boot"
IS_QUICK = False

ENTRY = "/boot/efi/loader/entries/*.conf"


def judge(lab, plan):
    loader = lab.guest.run("tr -d '\\0' </sys/firmware/efi/efivars/LoaderInfo-*").text
    lab.need("systemd-boot started the kernel", "systemd-boot" in loader, loader)
    lab.check("GRUB is not there", lab.guest.run("test -e /boot/grub").status != 0)
    lab.check("the plan isolates CPUs", bool(plan["isolated"]), plan["isolated"])


def midway(lab):
    isolated = lab.text("/sys/devices/system/cpu/isolated")
    entry = lab.guest.run(f"cat {ENTRY}").text
    lab.check("the entry has the isolated CPUs", f"nohz_full={isolated}" in entry, entry)


def run(lab):
    tune.cycle(lab, judge, midway)
