"""Judges the output of lab/checks/jitter.job: one line per check, exit status 1 if one fails.

usage: jitter.py RUNS FOLDER     (RUNS: four_cpus, one_cpu or guide)
"""

import json
import pathlib
import re
import subprocess
import sys

NOT_KERNEL = {"firmware_or_hypervisor", "unexplained", "not_traced"}
FUNCTIONS = {"hrtimer", "timer", "call_function", "tasklet", "work"}
failures = 0


def check(run, what, holds, seen=""):
    """Prints one check; `seen` is what was found."""
    global failures
    failures += not holds
    print(f"{'ok  ' if holds else 'FAIL'} {run}: {what}{f' ({seen})' if seen != '' else ''}")


class Guest:
    """One guest's runs."""

    def __init__(self, folder):
        self.folder = folder
        self.out = folder / "out"
        self.facts = self.text("facts")

    def text(self, name):
        path = self.out / name
        return path.read_text(errors="replace") if path.exists() else ""

    def status(self, run, expected, *words):
        """Checks the exit status, the text on stderr, and that no trace instance remains."""
        status, said = self.text(f"{run}.status").strip(), self.text(f"{run}.err")
        check(run, f"exit status {expected}", status == str(expected), status + (f": {said.strip()}" if status != str(expected) else ""))
        for word in words:
            check(run, f'says "{word}"', word in said, "" if word in said else said.strip())
        check(run, "no trace instance is left", self.text(f"{run}.left").strip() == "", self.text(f"{run}.left").strip())

    def document(self, run, expected=0):
        """The result document of a run that ended with this status."""
        self.status(run, expected)
        try:
            return json.loads(self.text(f"{run}.out"))
        except ValueError as error:
            check(run, "writes a result document", False, error)
            return None

    def lowlat(self, *arguments):
        """lowlat on this host, on a document of the guest."""
        return subprocess.run([self.folder / "lowlat", *arguments], cwd=self.out, capture_output=True, text=True)


def jitter_of(document):
    return next(of for of in document["measurements"] if of["kind"] == "jitter")


def cpus_of(document):
    return [cpu["cpu"] for cpu in jitter_of(document)["record"]["cpus"]]


def measured(run, document, cpus):
    check(run, f"measured CPUs {cpus}", cpus_of(document) == cpus, cpus_of(document))
    empty = [cpu["cpu"] for cpu in jitter_of(document)["record"]["cpus"] if cpu["runtime_ns"] == 0]
    check(run, "each of them was sampled", not empty, empty or "")


def traced(run, document, kinds_min=2):
    """Causes come from the trace, and each interruption in which the kernel ran names what ran."""
    record = jitter_of(document)["record"]
    causes = record["causes"]
    counter = record["counter"]
    wanted_clock = "x86-tsc" if counter == "tsc" else "mono_raw"
    check(run, "causes come from the trace", causes["source"] == "trace", causes["reason"] or causes["trace_clock"])
    check(run, f"the trace's clock fits the counter {counter}", causes["trace_clock"] == wanted_clock, causes["trace_clock"])
    cpus = causes["cpus"]
    counts = {cpu["cpu"]: (cpu["kernel_count"], cpu["attributed_count"]) for cpu in cpus}
    check(run, "each CPU's trace was read", all(cpu["event_count"] for cpu in cpus), f"with kernel, of all: {counts}")
    missing = sum(cpu["event_lost_count"] + cpu["ring_lost_count"] for cpu in cpus)
    check(run, "nothing was lost", missing == 0, missing or "")
    check(run, "every interruption was matched with it", all(cpu["interruption_count"] == one["attributed_count"] for cpu, one in zip(record["cpus"], cpus)))

    kept = [one for cpu in cpus for one in cpu["worst"] + cpu["first"]]
    kernel = [one for one in kept if one["timeline"]]
    nameless = [one for one in kernel if not any(part["cause"]["kind"] not in NOT_KERNEL for part in one["parts"])]
    check(run, "a cause for every kept interruption in which the kernel ran", not nameless, nameless[:1] or f"{len(kernel)} of {len(kept)} kept")
    uneven = [one for one in kept if sum(part["ns"] for part in one["parts"]) != one["length_ns"]]
    check(run, "their parts sum to the whole", not uneven, uneven[:1] or "")
    totals = {one["cpu"]: sum(total["ns_total"] for total in one["totals"]) for one in cpus}
    spent = {cpu["cpu"]: cpu["interruption_ns_total"] for cpu in record["cpus"]}
    check(run, "the causes' times sum to the time of all interruptions", all(abs(totals[cpu] - spent[cpu]) <= 1000 for cpu in spent), "" if totals == spent else (totals, spent))
    bare = [total["cause"]["name"] for cpu in cpus for total in cpu["totals"] if total["cause"]["kind"] in FUNCTIONS and (total["cause"]["name"].startswith("0x") or not total["cause"]["name"])]
    check(run, "functions have names", not bare, bare or "")
    shares = jitter_of(document)["study"]["shares"]
    check(run, "the shares of the classes sum to one", abs(sum(shares.values()) - 1) < 1e-9, ", ".join(f"{name} {share:.2%}" for name, share in shares.items()))
    kinds = sorted({total["cause"]["kind"] for cpu in cpus for total in cpu["totals"]})
    check(run, "kinds of causes", len(set(kinds) - NOT_KERNEL) >= kinds_min, ", ".join(kinds))
    refused = [text for text in record["warnings"] if text.startswith("The trace is incomplete")]
    check(run, "no event and no option was rejected", not refused, refused or "")


def cause(document, kind, pattern):
    """The studied cause of this kind with a matching name."""
    causes = jitter_of(document)["study"]["causes"]
    return next((one for one in causes if one["cause"]["kind"] == kind and re.fullmatch(pattern, one["cause"]["name"])), None)


def has_cause(run, document, kind, pattern, setting):
    one = cause(document, kind, pattern)
    seen = one and f"{one['cause']['name']} {one['count']} times: {one['remedy'] and one['remedy']['setting']}: {one['remedy'] and one['remedy']['action']}"
    check(run, f"{kind} {pattern} is a cause", one is not None, [(c["cause"]["kind"], c["cause"]["name"]) for c in jitter_of(document)["study"]["causes"]] if one is None else "")
    if one is not None:
        check(run, f"its remedy is {setting}", (one["remedy"] or {}).get("setting") == setting, seen)


def warns(run, document, pattern):
    warnings = jitter_of(document)["record"]["warnings"] + document["warnings"]
    found = [text for text in warnings if re.search(pattern, text)]
    check(run, f"warns of /{pattern}/", bool(found), found[0] if found else warnings)


def four_cpus(guest):
    guest.status("refused", 2, "the host is not quiet", "bash (pid", "--wait", "--force")
    said = guest.text("waiting.err").strip()
    check("waiting", "waits until it is stopped", guest.text("waiting.status").strip() not in ("", "0") and "interrupted while waiting" in said, said)

    if document := guest.document("isolated"):
        measured("isolated", document, [2, 3])
        traced("isolated", document)
        has_cause("isolated", document, "irq", r"virtio\d+-requests", "irq.affinity")
        check("isolated", "reports that the host was not quiet", any(point["state"] == "not_ready" for point in document["readiness"]))
        held = guest.lowlat("report", "render", "isolated.out", "--gate", "not_traced<1%,named>0%")
        check("isolated", "report render --gate judges the document here", held.returncode == 0, held.stderr.strip())
    guest.status("text", 0)
    text = " ".join(guest.text("text.out").split())
    for words in ["Of the interruption time: named", "firmware or hypervisor", "unexplained", "virtio"]:
        check("text", f'prints "{words}"', words in text)
    guest.status("sysjitter", 0)
    rows = guest.text("sysjitter.out").splitlines()
    check("sysjitter", "a row per field, a column per CPU", rows[:1] == ["core_i: 2 3"] and len(rows) == 18 and all(len(row.split()) == 3 for row in rows), rows[:1])
    for cpu in "23":
        head = guest.text(f"raw.{cpu}").splitlines()[:1]
        check("sysjitter", f"raw file of CPU {cpu}", bool(head) and head[0].startswith("# cpu_mhz:"), head)

    if document := guest.document("disk"):
        measured("disk", document, [1])
        traced("disk", document)
        has_cause("disk", document, "irq", r"nvme0q\d+", "irq.managed")
        has_cause("disk", document, "thread", "dd", "boot.isolcpus")
    if document := guest.document("default-threshold"):
        measured("default-threshold", document, [2, 3])
        check("default-threshold", "causes come from the trace", jitter_of(document)["record"]["causes"]["source"] == "trace")
    if document := guest.document("no-causes"):
        measured("no-causes", document, [2, 3])
        check("no-causes", "nothing was traced", not jitter_of(document)["record"]["causes"] and not jitter_of(document)["study"]["causes"])
    if document := guest.document("fifo"):
        measured("fifo", document, [2, 3])
        traced("fifo", document)
        check("fifo", "samplers ran as SCHED_FIFO 10", jitter_of(document)["record"]["real_time"] == "SCHED_FIFO 10", jitter_of(document)["record"]["real_time"])
        # Up to Linux 6.11 the throttle, since then the fair server.
        warns("fifo", document, "sched_rt_runtime_us|fair server")

    offline(guest, [1, 2, 3], 3)
    guest.status("offline-named", 2, "CPU 3: not online")

    check("killed", "exit status of a killed run", guest.text("killed.status").strip() == "137", guest.text("killed.status").strip())
    left = guest.text("killed.left").strip()
    check("killed", "its instance stays", left.startswith("lowlat-"), left)
    if document := guest.document("after-killed"):
        warns("after-killed", document, "The trace lowlat-.* of a lowlat that was killed was removed")
    if document := guest.document("interrupted", 130):
        measured("interrupted", document, [2, 3])
        traced("interrupted", document, kinds_min=1)
        check("interrupted", "is called interrupted", document["is_interrupted"] is True)
        check("interrupted", "had a separate instance", guest.text("interrupted.during").startswith("lowlat-"), guest.text("interrupted.during").strip())

    if document := guest.document("other-tracer"):
        warns("other-tracer", document, "Another tracer is at work")
        check("other-tracer", "causes come from the trace", jitter_of(document)["record"]["causes"]["source"] == "trace")
    if document := guest.document("unprivileged"):
        measured("unprivileged", document, [1])
        causes = jitter_of(document)["record"]["causes"]
        check("unprivileged", "causes come from counters", causes["source"] == "counters", causes["reason"])
        check("unprivileged", "the local timer is counted", any(row["cause"]["name"] == "local timer" for row in causes["cpus"][0]["counters"]))
    if document := guest.document("unmounted"):
        traced("unmounted", document, kinds_min=1)


def offline(guest, cpus, gone):
    if document := guest.document("offline"):
        measured("offline", document, cpus)
        ran = {cpu["cpu"]: cpu["runtime_ns"] for cpu in jitter_of(document)["record"]["cpus"]}
        others = min(ran[cpu] for cpu in cpus if cpu != gone)
        check("offline", f"CPU {gone} was measured until it went offline, the others to the end", ran[gone] < others * 0.9, {cpu: f"{ns / 1e9:.1f} s" for cpu, ns in ran.items()})
        moved = [cpu["cpu"] for cpu in jitter_of(document)["record"]["cpus"] if cpu["has_moved"]]
        check("offline", "the document says that its thread moved", moved == [gone], moved)
        warns("offline", document, rf"CPU {gone}\b.*offline")


def one_cpu(guest):
    if document := guest.document("all"):
        measured("all", document, [0])
        traced("all", document)
        warns("all", document, "its own main thread ran on one of them")
        check("all", "no groups on one CPU", jitter_of(document)["record"]["causes"]["groups"] is None)
        own = [total["cause"]["name"] for total in jitter_of(document)["record"]["causes"]["cpus"][0]["totals"] if total["cause"].get("is_own")]
        check("all", "lowlat's own threads are marked as its own", bool(own), own)
    guest.status("text", 0)
    guest.status("fifo", 2, "would leave no CPU")


def guide(guest):
    if document := guest.document("default"):
        check("default", "CPUs were chosen", bool(cpus_of(document)), cpus_of(document))
    isolated = [*range(1, 8), *range(9, 16)]
    if document := guest.document("isolated"):
        measured("isolated", document, isolated)
        traced("isolated", document)
    guest.status("text", 0)
    offline(guest, [4, 5, 6], 5)


def own_trace(guest):
    """No run changes the host's own trace. If the kernel itself does, the run that caused it reports it."""
    before, after = (guest.text(name).splitlines() for name in ("trace-before", "trace-after"))
    changed = [pair for pair in zip(before, after) if pair[0] != pair[1]]
    size = [pair for pair in changed if pair[0].startswith("buffer_size_kb: ")]
    check("all runs", "the host's own trace is unchanged", bool(before) and len(before) == len(after) and changed == size, changed)
    documents = {path.name: path.read_text(errors="replace") for path in guest.out.glob("*.out")}
    said = [name for name, text in documents.items() if text.startswith("{") and "keeps the buffer of its own trace" in text]
    check("all runs", "one run reports it if the kernel fixes the size of that trace's buffer", len(said) == len(size), f"{changed} {said}")


def main():
    runs, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    guest = Guest(folder)
    print(f"kernel {guest.facts.splitlines()[0] if guest.facts else 'unknown'}")
    {"four_cpus": four_cpus, "one_cpu": one_cpu, "guide": guide}[runs](guest)
    own_trace(guest)
    print(f"{failures} failed" if failures else "every check held")
    sys.exit(1 if failures else 0)


main()
