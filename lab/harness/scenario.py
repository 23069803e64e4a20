"""Scenarios: the files of lab/scenarios/, and the tools for them.

A scenario is a module:

    \"\"\"What it proves, in one line. More below it.\"\"\"
    MACHINE = "four-cpus"       # a file of lab/machines/, or "container", or
    RIDES = "full-cycle"        # a scenario whose boots it shares: it runs where that one calls lab.ride()
    SUITE = "trixie"            # the release of Debian on the disk; without it bookworm
    KERNEL = "backports"        # the kernel of lab/disk; without it the release's own
    LOADER = "grub-efi"         # the boot loader of lab/disk; without it GRUB for BIOS
    PACKAGES = ("dracut",)      # further packages on the disk
    IS_QUICK = True             # part of the quick set
    def run(lab): ...           # a Lab
"""

import dataclasses
import importlib.util
import json
import shlex

from . import facts
from .guest import GuestError, Skip
from .machine import CONTAINER, LAB, arch


@dataclasses.dataclass
class Scenario:
    """One file of lab/scenarios/."""

    name: str
    title: str
    machine: str
    rides: str
    disk: tuple
    """The arguments of lab/disk or lab/tree."""
    is_quick: bool
    run: object


def say(line):
    """Prints a line in one piece, because several guests may print at once."""
    print(line + "\n", end="", flush=True)


class Stop(Exception):
    """A check failed without which later ones are meaningless."""


def load_all():
    """Every scenario, by name."""
    return [load(path) for path in sorted((LAB / "scenarios").glob("*.py"))]


def load(path):
    name = path.stem
    spec = importlib.util.spec_from_file_location(f"scenario_{name.replace('-', '_')}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    title = module.__doc__.strip().splitlines()[0]
    machine = getattr(module, "MACHINE", None)
    return Scenario(
        name,
        title,
        machine,
        getattr(module, "RIDES", None),
        disk(module, machine),
        module.IS_QUICK,
        module.run,
    )


def disk(module, machine):
    """The arguments of lab/disk, or of lab/tree for a container."""
    kind = [("KERNEL", "stock"), ("LOADER", "grub-pc")] if machine != CONTAINER else []
    named = (getattr(module, name, default) for name, default in [("SUITE", "bookworm"), *kind])
    return (*named, machine and arch(machine), *getattr(module, "PACKAGES", ()))


class Lab:
    """The tools of a scenario: a guest, checks, and snapshots of the guest's settings."""

    def __init__(self, name, guest, folder, is_all, ride=None):
        self.name, self.guest, self.folder, self.is_all = name, guest, folder, is_all
        self.failures, self.checks, self.looks = 0, 0, 0
        self.skips = []
        """Parts that cannot be run here, each with the reason."""
        self.refused = ()
        """Words that identify what this machine's kernel always rejects."""
        self._ride = ride
        folder.mkdir(parents=True, exist_ok=True)
        self.log = open(folder / "checks.txt", "w")

    def ride(self):
        """Runs the scenarios that share this boot."""
        if self._ride:
            self._ride(self.guest)

    def check(self, what, holds, seen=""):
        """Notes one check; `seen` is what was found. Prints those that fail."""
        self.checks += 1
        self.failures += not holds
        line = f"{'ok  ' if holds else 'FAIL'} {what}{f' ({seen})' if seen not in ('', None, [], {}) else ''}"
        print(line, file=self.log, flush=True)
        if not holds:
            say(f"        {self.name}: {line[:1500]}")
        return bool(holds)

    def need(self, what, holds, seen=""):
        """A check without which later ones are meaningless."""
        if not self.check(what, holds, seen):
            raise Stop(what)

    def skip(self, what, why):
        """Notes a part of the scenario that cannot be run here; the summary counts it as skipped."""
        self.skips.append(f"{what}: {why}")
        self.note(f"skipped: {what}: {why}")

    def note(self, text):
        print(f"     {text}", file=self.log, flush=True)

    def lowlat(self, arguments, seconds=1800, under=""):
        """Runs lowlat in the guest, `under` a program that runs it: a Done whose text is its stdout, with its stderr
        as `said`."""
        guest = self.guest
        where = f"/lab/out-{guest.jobs + 1:03}"
        done = guest.run(f"{under} lowlat {arguments} >{where} 2>{where}.err </dev/null", seconds)
        done.command = f"lowlat {arguments}"
        out = guest.share / where.removeprefix("/lab/")
        done.text = out.read_text(errors="replace")
        done.said = out.with_name(out.name + ".err").read_text(errors="replace")
        self.note(f"$ {done.command}   status {done.status}")
        return done

    def expect(self, arguments, status, *words, seconds=1800, under=""):
        """Runs lowlat, and checks its exit status and output."""
        done = self.lowlat(arguments, seconds, under)
        said = f"{done.text}\n{done.said}"
        tail = " / ".join(f"{done.text[-600:]}\n{done.said[-900:]}".strip().splitlines()[-12:])
        self.check(f"{done.command} ends with {status}", done.status == status, f"{done.status}: {tail}" if done.status != status else "")
        for word in words:
            is_there = " ".join(word.lower().split()) in " ".join(said.lower().split())
            self.check(f'{done.command} says "{word}"', is_there, "" if is_there else tail)
        return done

    def facts(self, name):
        """Takes a snapshot of the guest."""
        self.looks += 1
        path = f"facts-{name}.json"
        self.guest.must(f"python3 -B /lab/facts.py >/lab/{path}")
        text = (self.guest.share / path).read_text()
        (self.folder / path).write_text(text)
        return facts.Facts(json.loads(text))

    def same_files(self, before, after, when):
        found = facts.file_differences(before, after)
        return self.check(f"{when}: {len(before.files)} files have the hash {before.hash()}", not found, found[:20])

    def same_values(self, before, after, when):
        found = facts.value_differences(before, after)
        compared = f"{len(before.values)} values" + ("" if before.is_balanced() or after.is_balanced() else f", {len(before.interrupts)} interrupts")
        return self.check(f"{when}: {compared} are as before", not found, found[:20])

    def same(self, before, after, when):
        """Checks that files and values are as before."""
        return all([self.same_files(before, after, when), self.same_values(before, after, when)])

    def fixture(self, name):
        """A captured host."""
        return LAB.parent / "fixtures/hosts" / f"{name}.tar.gz"

    def text(self, path):
        """A file of the guest."""
        return self.guest.run(f"cat {shlex.quote(path)}").text.strip()


__all__ = ["GuestError", "Lab", "Scenario", "Skip", "Stop", "load_all"]
