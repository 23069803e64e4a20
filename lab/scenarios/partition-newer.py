"""`--isolate-by cpuset` on the newest kernel of Debian 13's backports."""

from harness import kernels, tune

MACHINE = "four-cpus"
IS_QUICK = False


def run(lab):
    guest = lab.guest
    guest.boot()
    release = kernels.install(lab, "trixie-backports")
    guest.reboot()
    lab.need(f"the guest runs {release}", lab.text("/proc/sys/kernel/osrelease") == release, lab.text("/proc/sys/kernel/osrelease"))
    tune.partition(lab)
