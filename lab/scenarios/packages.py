"""The Debian package on Debian 12: installed, upgraded under a plan in force, not removable then, removed, purged."""

from harness import packages

MACHINE = "four-cpus"
IS_QUICK = False
run = packages.lifetime
