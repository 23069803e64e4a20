#!/usr/bin/env python3
"""The truth test of `lowlat tune prove`: of ten run-time settings, five are made active by a disturbance that each removes.

Usage: prove.py LOWLAT [--runs N] [--cpu N] [--seed N] [--count]

Needs root, and a host whose plan has ten sysctls. Each run disturbs CPU N while one of its five active settings, chosen at
random, does not have its planned value, and counts the right verdicts. A real-time thread measures, and the
disturbance has a higher priority, so that other programs do not matter. With --count, for guests whose time means nothing, the
disturbances are counted instead: some happen with all settings too. Exits 1 if fewer than nine of ten are right,
more than 5 % of the inert ones are called gains, or a value is not as before."""

import argparse
import json
import multiprocessing
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

SETTINGS = 10
# Length of a measurement, and the shortest gap that counts, which this interpreter's own loop does not reach.
SLICE_S = 0.2
GAP_NS = 20_000


def disturb(cpu, wanted, counter):
    """Takes the CPU for a while every ten milliseconds, for each file that does not have its wanted value, or counts that."""
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
    count = 0
    while True:
        time.sleep(0.01)
        off = sum(pathlib.Path(path).read_text().split() != value.split() for path, value in wanted.items())
        if counter:
            count += random.randrange(5) + 5 * off
            counter.write_text(f"{count}\n")
            continue
        end = time.monotonic() + 0.0002 * off
        while time.monotonic() < end:
            pass


def measure(cpu):
    """Prints the time taken from a spinning thread of this CPU, in nanoseconds."""
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    taken, last = 0, time.monotonic_ns()
    end = last + int(SLICE_S * 1e9)
    while last < end:
        now = time.monotonic_ns()
        taken += now - last if now - last >= GAP_NS else 0
        last = now
    print(taken)


def document(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr}") from None


def sysctls(lowlat):
    """Ten sysctls of this host's plan: the file and planned value by the setting's id; and all other ids."""
    plan = document(lowlat, "tune", "plan", "--json")
    found = {
        change["settings"][0]: ("/proc/sys/" + change["target"]["key"].replace(".", "/"), change["after"])
        for change in plan["changes"]
        if change["target"]["kind"] == "sysctl"
    }
    if len(found) < SETTINGS:
        raise SystemExit(f"the plan of this host has {len(found)} sysctls of {SETTINGS}")
    chosen = dict(list(found.items())[:SETTINGS])
    catalogue = document(lowlat, "audit", "--list", "--json")
    rows = catalogue if isinstance(catalogue, list) else catalogue["settings"]
    return chosen, [row["id"] for row in rows if row["id"] not in chosen]


def prove(options, chosen, role, active):
    """The verdict of each setting."""
    counter = role.with_name("count") if options.count else None
    disturber = multiprocessing.Process(target=disturb, args=(options.cpu, dict(chosen[one] for one in active), counter), daemon=True)
    disturber.start()
    # A read between two writes finds an empty file.
    counted = 'look() { n=; while ! [ "$n" ]; do n=$(cat "$0"); done; }; look; a=$n; sleep 0.2; look; echo $((n - a))'
    meter = ["sh", "-c", counted, str(counter)] if counter else [sys.executable, __file__, options.lowlat, "--cpu", str(options.cpu), "--measure"]
    try:
        proof = document(options.lowlat, "tune", "prove", "--role", str(role), "--yes", "--json", "--budget", options.budget, "--", *meter)
    finally:
        disturber.kill()
    if proof["not_restored"]:
        raise SystemExit(f"not restored: {proof['not_restored']}")
    return {proven["settings"][0]: proven["verdict"] for proven in proof["settings"]}


def values(chosen):
    return {path: pathlib.Path(path).read_text() for path, _ in chosen.values()}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("lowlat")
    arguments.add_argument("--runs", type=int, default=10)
    arguments.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--budget", default="4m")
    arguments.add_argument("--count", action="store_true")
    arguments.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.measure:
        return measure(options.cpu)
    chosen, others = sysctls(options.lowlat)
    before, chance = values(chosen), random.Random(options.seed)
    right_verdicts = false_gains = 0
    with tempfile.TemporaryDirectory() as folder:
        role = pathlib.Path(folder) / "role.toml"
        role.write_text(f"leave-out = {json.dumps(others)}\n")
        for run in range(options.runs):
            active = chance.sample(sorted(chosen), SETTINGS // 2)
            verdicts = prove(options, chosen, role, active)
            right = {one: verdicts.get(one) == ("gain" if one in active else "no_difference_shown") for one in chosen}
            right_verdicts += sum(right.values())
            false_gains += sum(verdicts.get(one) == "gain" for one in chosen if one not in active)
            wrong = {one: verdicts.get(one) for one in chosen if not right[one]}
            print(f"run {run + 1}: {sum(right.values())} of {SETTINGS} verdicts are right {wrong or ''}", flush=True)
    restored = values(chosen) == before
    inert = options.runs * (SETTINGS - SETTINGS // 2)
    print(f"{right_verdicts} of {options.runs * SETTINGS} verdicts are right; {false_gains} of {inert} inert settings called a gain; values as before: {restored}")
    raise SystemExit(not (right_verdicts * 10 >= options.runs * SETTINGS * 9 and false_gains * 20 <= inert and restored))


if __name__ == "__main__":
    main()
