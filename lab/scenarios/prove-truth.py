"""The truth test of `tune prove` in a guest: of ten settings, five remove an injected disturbance, chosen anew in each of ten runs."""

import pathlib

MACHINE = "four-cpus"
SUITE = "trixie"
IS_QUICK = False

CHECK = pathlib.Path(__file__).parent.parent / "checks" / "prove.py"
RUNS = 10
RUN_SECONDS = 1800


def run(lab):
    guest = lab.guest
    guest.boot()
    guest.give(CHECK, "prove.py")
    done = guest.run(f"python3 -B /lab/prove.py lowlat --count --runs {RUNS} --budget 5m", RUNS * RUN_SECONDS)
    lab.note(done.text)
    lab.check("nine of ten verdicts are right, and no setting is falsely called a gain", done.status == 0, done.text[-300:])
