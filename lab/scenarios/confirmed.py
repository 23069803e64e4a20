"""The dead-man switch, confirmed in time: the plan stays, in this boot and in the next."""

import time

from harness import tune

MACHINE = "four-cpus"
IS_QUICK = False


def run(lab):
    guest = lab.guest
    guest.boot()
    tune.apply(lab, "--confirm-within 6m")
    guest.reboot()
    up = time.monotonic()
    tune.verify(lab, "before the confirmation")
    lab.expect("tune confirm", 0)
    while guest.qemu.is_running() and time.monotonic() < up + 7 * 60:
        time.sleep(5)
    lab.check("the host stays up past the limit", guest.qemu.is_running())
    tune.verify(lab, "after the limit")
    guest.reboot()
    tune.verify(lab, "in the next boot")
