"""The Debian package on Debian 11."""

from harness import packages

MACHINE = "four-cpus"
SUITE = "bullseye"
IS_QUICK = False
run = packages.lifetime
