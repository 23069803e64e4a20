"""Three hosts in containers: apply, reboot, rollback, reboot. Files and values are as before, with and without a command line.

One boots through GRUB, one from the network, and one by a boot loader whose command line lowlat refuses to change."""

from harness import tune

MACHINE = "container"
IS_QUICK = True

# What makes such a host of the container, and whether lowlat sets its command line.
HOSTS = {
    "grub": ("true", True),
    "network-boot": ("rm -r /boot/* /etc/default/grub /usr/sbin/grub-mkconfig /usr/sbin/update-grub", False),
    "limine": ("rm -r /boot/grub /etc/default/grub && printf 'timeout: 0\\n' >/boot/limine.conf", False),
}
AUTOCORKING = "sysctl net/ipv4/tcp_autocorking"


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
    # What a boot writes without lowlat.
    guest.reboot()
    before = lab.facts(f"{name}-before")
    done = lab.lowlat("tune apply --yes --json")
    fates = [change["fate"] for change in done.json()["changes"]]
    lab.need(f"{name}: apply leaves out only the command line", fates.count("refused") == (not has_line), fates)
    guest.reboot()
    lab.check(f"{name}: the command line is the plan's if it has one", ("isolcpus=" in guest.cmdline) == has_line, guest.cmdline)
    verified = lab.lowlat("tune verify --no-ticks --json")
    standings = {row["standing"] for row in verified.json()["rows"]}
    lab.check(f"{name}: verify says held, or refused", standings == ({"held"} if has_line else {"held", "refused"}), standings)
    lab.check(f"{name}: verify ends accordingly", verified.status == (not has_line), verified.status)
    applied = lab.facts(f"{name}-applied")
    lab.check(f"{name}: the drop-in has set its values in the boot", applied.values[AUTOCORKING] != before.values[AUTOCORKING], applied.values[AUTOCORKING])
    tune.rollback(lab)
    rolled_back = lab.facts(f"{name}-rolled-back")
    lab.same_files(before, rolled_back, f"{name}: after the reboot and the rollback")
    lab.check(f"{name}: values of the drop-in are as before", applied.values != rolled_back.values and before.values[AUTOCORKING] == rolled_back.values[AUTOCORKING])
    guest.reboot()
    lab.same(before, lab.facts(f"{name}-after"), f"{name}: after another reboot")
    tune.nothing_in_force(lab)
