"""Comparison of two snapshots of a guest: equal except for what may differ."""

import hashlib
import json


class Facts:
    """The output of lab/guest/facts.py."""

    def __init__(self, document):
        self.files, self.values = document["files"], document["values"]
        self.interrupts = document["interrupts"]

    def is_balanced(self):
        """Whether irqbalance is running and moves interrupts."""
        return self.values.get("state irqbalance.service") == "loaded active"

    def hash(self):
        """One hash of the files: names, owners, modes, times, contents, links."""
        return hashlib.sha256(json.dumps(self.files, sort_keys=True).encode()).hexdigest()[:16]


def differences(before, after):
    """Each name with its two values, if they differ."""
    names = sorted(before.keys() | after.keys())
    absent = "(absent)"
    return [
        f"{name}: {before.get(name, absent)} -> {after.get(name, absent)}"
        for name in names
        if before.get(name) != after.get(name)
    ]


def module(name):
    """The module whose parameter a value is; None for other values."""
    return name.split("/")[3] if name.startswith("/sys/module/") else None


def file_differences(before, after):
    return differences(before.files, after.files)


def value_differences(before, after):
    """Values of the running system. Kernel threads count if both snapshots have them: some start with the first use
    of their feature. So do parameters of modules, which are loaded then. Interrupts, and the CPUs of their threads, which
    follow them, count unless irqbalance moved them, before or after."""
    is_balanced = before.is_balanced() or after.is_balanced()
    here, there = dict(before.values), dict(after.values)
    both = {module(name) for name in here} & {module(name) for name in there}
    for one, other in ((here, there), (there, here)):
        for name in [name for name in one if name not in other]:
            if name.startswith("thread ") or module(name) not in both:
                del one[name]
        if is_balanced:
            one.update({name: value.partition(", ")[2] for name, value in one.items() if name.startswith("thread irq/")})
    found = differences(here, there)
    if not is_balanced:
        here, there = ({name: irq["affinity"] for name, irq in one.interrupts.items()} for one in (before, after))
        found += differences(here, there)
    return found


def cpus(text):
    """A CPU list as a set."""
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
