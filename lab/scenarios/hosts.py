"""Three hosts in containers: apply, reboot, rollback, reboot. Their files and values are as before, with and without a command line.

One boots through GRUB, one has no boot loader that lowlat finds, and the command line of the third is refused."""

from harness import tune

MACHINE = "container"
IS_QUICK = True

# What makes a host, and how many CPUs its next boot isolates.
HOSTS = {
    "grub": ("true", True),
    "network-boot": ("rm -r /boot/* /etc/default/grub /usr/sbin/grub-mkconfig /usr/sbin/update-grub", False),
    "limine": ("rm -r /boot/grub /etc/default/grub && printf 'timeout: 0\\n' >/boot/limine.conf", False),
}


def run(lab):
    first = lab.guest
    for name, (prepare, has_line) in HOSTS.items():
        lab.guest = first.twin(name)
        try:
            lab.guest.boot()
            lab.guest.must(prepare)
            cycle(lab, name, has_line)
        finally:
            lab.guest.off()
    lab.guest = first


def cycle(lab, name, has_line):
    guest = lab.guest
    # Whatever a boot without lowlat changes is not its doing.
    guest.reboot()
    before = lab.facts(f"{name}-before")
    lab.lowlat("tune apply --yes --json")
    guest.reboot()
    lab.check(f"{name}: the command line is the plan's", has_line == ("isolcpus=" in guest.cmdline), guest.cmdline)
    applied = lab.facts(f"{name}-applied")
    key = "sysctl vm/stat_interval"
    lab.check(f"{name}: a drop-in set a sysctl in the boot", before.values[key] != applied.values[key], applied.values[key])
    tune.rollback(lab)
    lab.same(before, lab.facts(f"{name}-rolled-back"), f"{name}: after the reboot and the rollback")
    guest.reboot()
    lab.same(before, lab.facts(f"{name}-after"), f"{name}: after a reboot more")
    tune.nothing_in_force(lab)
