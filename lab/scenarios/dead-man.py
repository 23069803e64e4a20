"""The dead-man switch: without `confirm` the host rolls itself back and reboots."""

from harness import tune

MACHINE = "four-cpus"
IS_QUICK = True


def run(lab):
    guest = lab.guest
    guest.boot()
    before = lab.facts("before")
    # Longer than the next boot takes on a busy host, because the changes must be seen before they are rolled back.
    minutes = max(3, round(guest.boot_seconds * 5 / 60))
    tune.apply(lab, f"--confirm-within {minutes}m")
    guest.start("systemctl reboot")
    guest.await_end("guest-reset")
    guest.boot(settled=False)
    lab.check("the plan is on the command line", "isolcpus=" in guest.cmdline, guest.cmdline)
    guest.await_end("guest-reset", 1200 + 60 * minutes)
    guest.boot()
    lab.check("the plan is no longer on the command line", guest.cmdline == before.values["/proc/cmdline"], guest.cmdline)
    lab.same(before, lab.facts("after"), "after the switch fired")
    tune.nothing_in_force(lab)
