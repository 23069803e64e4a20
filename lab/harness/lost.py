"""Interrupts that QEMU loses.

On a busy host QEMU 10 without KVM was seen, in about every third boot of 16 CPUs, to hand a CPU an interrupt whose handler
then never ran: the local APIC holds its vector in service for ever, and with it every vector of the same or a lower
priority. The kernel's timers on that CPU never come, and soon whatever waits for RCU hangs. Nothing inside can mend it,
and nothing lowlat writes can cause it: a kernel does not sleep in the middle of an interrupt.
"""

import re

SECONDS_BETWEEN = 5


class Watch:
    """Checks at intervals for a CPU that sleeps with an interrupt in service: seen twice, it is lost."""

    def __init__(self, qemu):
        self.qemu, self.before, self.next = qemu, set(), 0

    def lost(self, now):
        """A description of what was lost; None if nothing was, or it is not yet time to check."""
        if now < self.next:
            return None
        found = {(cpu, vector) for cpu in self.qemu.cpus() for vector in self._asleep_with(cpu)}
        self.next = now + SECONDS_BETWEEN
        twice, self.before = found & self.before, found
        return "; ".join(f"CPU {cpu} sleeps with vector {vector} in service" for cpu, vector in sorted(twice)) or None

    def _asleep_with(self, cpu):
        """The vectors in service on a CPU that is halted."""
        in_service = re.search(r"^ISR\s+(.*)$", self.qemu.monitor("info lapic", cpu), re.MULTILINE)
        vectors = re.findall(r"\d+", in_service[1]) if in_service else []
        is_halted = vectors and "HLT=1" in self.qemu.monitor("info registers", cpu)
        return vectors if is_halted else []
