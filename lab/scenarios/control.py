"""Control: two boots of an untouched disk compare equal, and small changes are detected.

Without it "rolled back exactly" could mean that the comparison misses changes or reports false ones."""

from harness import facts

MACHINE = "four-cpus"
IS_QUICK = False

CHANGES = """
echo 1 >/proc/sys/vm/swappiness
echo 1 >/sys/devices/virtual/workqueue/cpumask
taskset -pc 0 "$(pgrep -x kswapd0)"
touch -d '2020-01-01' /etc/hostname
mkdir /etc/empty-directory
systemctl -q disable e2scrub_all.timer
systemctl stop tuned
"""
SEEN = ["sysctl vm/swappiness", "workqueue/cpumask", "thread kswapd0", "enablement e2scrub_all.timer", "state tuned.service"]


def run(lab):
    lab.guest.boot()
    lab.check("systemd reports the system as running", lab.guest.state == ["running"], lab.guest.state)
    menu = lab.text("/boot/grub/grub.cfg")
    lab.check("the kernel has the command line of the boot menu", lab.guest.cmdline.startswith("BOOT_IMAGE=/boot/vmlinuz") and lab.guest.cmdline.split(" ", 1)[1] in menu, lab.guest.cmdline)
    lab.check("the root file system is found by its UUID", "root=UUID=" in lab.guest.cmdline, lab.guest.cmdline)
    first = lab.facts("first")
    lab.same(first, lab.facts("again"), "in the same boot")
    lab.guest.reboot()
    second = lab.facts("second")
    lab.same(first, second, "after a reboot")
    lab.guest.must(CHANGES)
    changed = lab.facts("changed")
    values = "\n".join(facts.value_differences(second, changed))
    for name in SEEN:
        lab.check(f"sees a change of {name}", name in values, "" if name in values else values[:2000])
    paths = [line.split(":")[0] for line in facts.file_differences(second, changed)]
    wanted = ["/etc/empty-directory", "/etc/hostname", "/etc/systemd/system/timers.target.wants/e2scrub_all.timer"]
    lab.check("sees a changed time, a new directory, a removed link, and nothing else", sorted(paths) == wanted, paths)
