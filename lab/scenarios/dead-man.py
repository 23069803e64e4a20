"""The dead-man switch: without `confirm` the host rolls itself back and reboots."""

from harness import tune

MACHINE = "four-cpus"
IS_QUICK = True


def run(lab):
    guest = lab.guest
    guest.boot()
    before = lab.facts("before")
    tune.apply(lab, "--confirm-within 3m")
    guest.start("systemctl reboot")
    guest.await_end("guest-reset")
    guest.boot(settled=False)
    lab.check("the plan is on the command line", "isolcpus=" in guest.cmdline, guest.cmdline)
    guest.await_end("guest-reset", 1200)
    guest.boot()
    lab.check("the plan is off the command line", guest.cmdline == before.values["/proc/cmdline"], guest.cmdline)
    lab.same(before, lab.facts("after"), "after the switch fired")
    tune.nothing_in_force(lab)
