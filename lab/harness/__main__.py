"""lab/run: chooses scenarios, runs them one after another or several at once, and prints a summary."""

import argparse
import functools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from . import scenario, story
from .machine import LAB, arch, arch_of

TOP = LAB.parent


def options():
    parser = argparse.ArgumentParser(
        prog="lab/run", description="Boots virtual servers through GRUB and proves `lowlat tune` in them, end to end."
    )
    parser.add_argument("--all", action="store_true", help="run every scenario, not only the quick set")
    parser.add_argument("--list", action="store_true", help="list the scenarios and exit")
    parser.add_argument("--scenario", metavar="NAME", action="append", help="run only this one; repeat it for more")
    parser.add_argument("--lowlat", metavar="BINARY", type=pathlib.Path, help="use this binary [default: build it]")
    parser.add_argument(
        "--jobs", metavar="N", type=jobs, default=1, help="run N guests at once; each keeps about one CPU busy [default: 1]"
    )
    parser.add_argument(
        "--start-within", metavar="SECONDS", type=int, help="skip scenarios that have not started by then, for runs with a time limit"
    )
    return parser.parse_args()


def jobs(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected 1 or more")
    return number


def build():
    """The static release binary of this tree."""
    if shutil.which("musl-gcc") is None:
        print("lab/run: installing musl-tools", flush=True)
        for command in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", "musl-tools"]):
            subprocess.run(["apt-get", *command], env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, check=True)
    print("lab/run: cargo xtask dist", flush=True)
    environment = dict(os.environ)
    environment["PATH"] += os.pathsep + str(pathlib.Path.home() / ".cargo/bin")
    subprocess.run(["cargo", "xtask", "dist"], cwd=TOP, env=environment, check=True)
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target")) / "dist/lowlat"


@functools.cache
def disk(kind):
    """The disk of a scenario's guests, or the folder of its containers."""
    print(f"lab/run: the disk with {' '.join(kind)} (takes some minutes if it does not exist yet)", flush=True)
    return subprocess.run([LAB / ("disk" if len(kind) > 2 else "tree"), *kind], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def main():
    chosen, start = options(), time.monotonic()
    # So that ending this process also ends the guests.
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    try:
        stories = story.choose(scenario.load_all(), chosen.scenario, chosen.all)
    except ValueError as error:
        sys.exit(f"lab/run: {error}")
    if chosen.list:
        for one in scenario.load_all():
            kind = f"with {one.rides}" if one.rides else one.machine
            print(f"{one.name:16} {'quick' if one.is_quick else 'all':6} {kind:22} {one.title}")
        return
    binary = (chosen.lowlat or build()).resolve()
    if not os.access(binary, os.X_OK):
        sys.exit(f"lab/run: {binary} is not a program; expected lowlat's binary")
    runs = TOP / "target/lab/runs"
    processor = arch_of(binary)
    able = [one for one in stories if arch(one.carrier.machine) == processor]
    clock = story.Clock()
    for one in able:
        for part in (one.carrier, *one.riders):
            shutil.rmtree(runs / part.name, ignore_errors=True)

    def tell(one):
        passed = time.monotonic() - start
        if chosen.start_within is not None and passed > chosen.start_within:
            return story.skipped(one, f"{passed:.0f} s had passed; run it alone")
        return story.tell_again(
            lambda: story.tell(one, disk(one.carrier.disk), binary, runs, chosen.all, clock), runs / one.carrier.name, clock
        )

    results = story.tell_all(able, chosen.jobs, tell)
    for one in stories:
        if one not in able:
            results += story.skipped(one, f"needs a binary for {arch(one.carrier.machine)}, and {binary} is for {processor}")
    print(story.table(results, clock))
    sys.exit(1 if any(result.outcome == "failed" for result in results) else 0)


if __name__ == "__main__":
    main()
