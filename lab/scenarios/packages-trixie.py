"""The Debian package on Debian 13."""

from harness import packages

MACHINE = "four-cpus"
SUITE = "trixie"
IS_QUICK = False
run = packages.lifetime
