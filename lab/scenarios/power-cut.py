"""The power fails during apply and during the first boot: the plan can be finished or rolled back exactly.

The guest's memory is lost, and what it had not flushed to its disk may be."""

import time

from harness import tune

MACHINE = "four-cpus"
IS_QUICK = False
# At these fractions of an apply's time.
PARTS = (0.15, 0.4, 0.65, 0.9)


def run(lab):
    guest = lab.guest
    guest.boot()
    before = lab.facts("before")
    start = time.monotonic()
    tune.apply(lab)
    whole_s = time.monotonic() - start
    tune.rollback(lab)
    lab.note(f"a whole apply takes {whole_s:.1f} s")
    for part in PARTS:
        guest.start("lowlat tune apply --yes")
        time.sleep(part * whole_s)
        guest.cut_power()
        guest.boot()
        document = tune.status(lab)
        lab.note(f"cut at {part:.0%}: in force {document['in_force']}, unfinished {document['unfinished']}, torn {document['torn']}")
        lab.check(f"cut at {part:.0%}: the log is not damaged", document["damage"] is None, document["damage"])
        tune.rollback(lab)
        guest.reboot()
        lab.same(before, lab.facts("cut"), f"cut at {part:.0%}, rollback, reboot")

    guest.start("lowlat tune apply --yes")
    time.sleep(0.5 * whole_s)
    guest.cut_power()
    guest.boot()
    tune.apply(lab)
    guest.reboot()
    tune.verify(lab, "a cut apply, finished")

    guest.start("systemctl reboot")
    guest.await_end("guest-reset")
    guest.boot(settled=False)
    guest.cut_power()
    guest.boot()
    tune.verify(lab, "after a cut in the first seconds of a boot")
    tune.rollback(lab)
    guest.reboot()
    lab.same(before, lab.facts("after"), "after the rollback and a reboot")
