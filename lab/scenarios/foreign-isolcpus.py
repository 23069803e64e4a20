"""A host that someone else has isolated: the plan respects that or reports its changes, and rolls back exactly."""

from harness import tune

MACHINE = "four-cpus"
IS_QUICK = False

THEIRS = """
sed -i 's/^GRUB_CMDLINE_LINUX="\\(.*\\)"/GRUB_CMDLINE_LINUX="\\1 isolcpus=3 nohz_full=3"/' /etc/default/grub
update-grub
"""


def run(lab):
    guest = lab.guest
    guest.boot()
    guest.must(THEIRS)
    guest.reboot()
    lab.need("CPU 3 is isolated by someone else", lab.text("/sys/devices/system/cpu/isolated") == "3", guest.cmdline)
    before = lab.facts("before")
    done = lab.lowlat("tune plan")
    lab.check("the plan mentions the existing isolcpus=", "isolcpus" in done.text, done.text[:600])
    planned = tune.plan(lab)
    tune.apply(lab)
    guest.reboot()
    lab.check("isolcpus= is once on the command line", guest.cmdline.count("isolcpus=") == 1, guest.cmdline)
    lab.check("nohz_full= is once on the command line", guest.cmdline.count("nohz_full=") == 1, guest.cmdline)
    document = tune.verify(lab, "after the reboot")
    tune.effective(lab, document, planned["isolated"], planned["housekeeping"])
    tune.rollback(lab)
    guest.reboot()
    lab.same(before, lab.facts("after"), "after the rollback and a reboot")
