"""`--isolate-by cpuset`: isolation without a reboot, on Debian 12's own kernel."""

from harness import tune

MACHINE = "four-cpus"
IS_QUICK = False


def run(lab):
    lab.guest.boot()
    tune.partition(lab)
