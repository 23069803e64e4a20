"""Runs scenarios: one guest per carrier, with riders at the carrier's chosen moment."""

import concurrent.futures
import dataclasses
import shutil
import time
import traceback

from . import company
from .container import Container
from .guest import Guest, GuestError, Skip, give_up
from .machine import CONTAINER
from .scenario import Lab, Stop, say


@dataclasses.dataclass
class Story:
    """A scenario with a separate guest, and those that share its boots."""

    carrier: object
    riders: list


@dataclasses.dataclass
class Result:
    """Result of a scenario."""

    name: str
    outcome: str
    seconds: float
    checks: int
    detail: str
    skips: list = dataclasses.field(default_factory=list)
    """Parts that were skipped, each with the reason."""
    first_failure: str = ""
    """Why it failed the first time, if it passed the second."""


class Clock:
    """Progress lines with the time since the start."""

    def __init__(self):
        self.start = time.monotonic()

    def elapsed(self):
        return time.monotonic() - self.start

    def say(self, name, text):
        minutes, seconds = divmod(int(self.elapsed()), 60)
        say(f"[{minutes:3}:{seconds:02}] {name}: {text}")


def choose(scenarios, names, is_all):
    """The stories of the chosen scenarios. A rider brings its carrier."""
    by_name = {one.name: one for one in scenarios}
    for name in names or []:
        if name not in by_name:
            raise ValueError(f"no scenario {name}; available:  {' '.join(by_name)}")
    chosen = names or [one.name for one in scenarios if one.is_quick or is_all]
    carriers = {one.rides or name: None for name in chosen for one in [by_name[name]]}
    # Those that take seconds first.
    carriers = sorted(carriers, key=lambda name: by_name[name].machine != CONTAINER)
    return [
        Story(by_name[carrier], [one for one in scenarios if one.rides == carrier and one.name in chosen])
        for carrier in carriers
    ]


def tell_all(stories, jobs, tell):
    """Runs this many stories at once, and returns their results in order. Ending it also ends the guests."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        told = [pool.submit(tell, one) for one in stories]
        try:
            return [result for future in told for result in future.result()]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            give_up()
            raise


def tell(story, disk, binary, runs, is_all, clock):
    """Runs a story and returns a result for each of its scenarios."""
    carrier, results = story.carrier, []
    clock.say(carrier.name, f"starts: {carrier.title}")
    folder = runs / carrier.name
    kind = Container if carrier.machine == CONTAINER else Guest
    guest = kind(carrier.machine, disk, folder, binary, lambda text: clock.say(carrier.name, text))

    def ride(guest):
        for rider in story.riders:
            clock.say(rider.name, f"starts in {carrier.name}: {rider.title}")
            results.append(run(rider, Lab(rider.name, guest, runs / rider.name, is_all), clock))

    try:
        own = run(carrier, Lab(carrier.name, guest, folder, is_all, ride), clock)
    finally:
        guest.off()
    reached = {result.name for result in results}
    left = [rider for rider in story.riders if rider.name not in reached]
    for rider in left:
        clock.say(rider.name, f"skipped: {carrier.name} did not get that far")
    return [own, *results, *(Result(r.name, "skipped", 0, 0, f"{carrier.name} did not get that far") for r in left)]


def tell_again(tell, folder, clock):
    """Runs a story, and a second time in the same way if a scenario of it failed. What passed only then is unstable."""
    results = tell()
    failed = {result.name: result.detail for result in results if result.outcome == "failed"}
    if not failed:
        return results
    first = folder.with_name(f"{folder.name}.first")
    shutil.rmtree(first, ignore_errors=True)
    folder.rename(first)
    clock.say(folder.name, f"runs again; the first run is in {first.name}")
    return [dataclasses.replace(result, first_failure=failed.get(result.name, "") if result.outcome == "passed" else "") for result in tell()]


def skipped(story, why):
    """Results of a story that cannot be told."""
    return [Result(part.name, "skipped", 0, 0, why) for part in (story.carrier, *story.riders)]


def run(scenario, lab, clock):
    """Runs one scenario; any error is its failure."""
    start, detail = time.monotonic(), ""
    before = company.look()
    try:
        scenario.run(lab)
        outcome = "failed" if lab.failures else "passed"
        detail = f"{lab.failures} of {lab.checks} checks failed" if lab.failures else ""
    except Skip as reason:
        outcome, detail = "skipped", str(reason)
    except (Stop, GuestError) as error:
        outcome, detail = "failed", str(error)
    except Exception as error:  # A defect of the scenario is a failure too.
        outcome, detail = "failed", f"{type(error).__name__}: {error}"
        traceback.print_exc(file=lab.log)
    if outcome == "failed":
        detail += f"; {company.shares(before, company.look())}"
    lab.note(f"{outcome} {detail}")
    lab.log.flush()
    seconds = time.monotonic() - start
    clock.say(scenario.name, f"{outcome} after {seconds:.0f} s, {lab.checks} checks{f': {detail}' if detail else ''}")
    return Result(scenario.name, outcome, seconds, lab.checks, detail, lab.skips)


def table(results, clock):
    """The summary; its last line is for .ci/run."""
    rows = [f"{r.name:18} {r.outcome:8} {r.seconds:6.0f} s {r.checks:5} checks  {r.detail[:120]}" for r in results]
    count = {word: sum(r.outcome == word for r in results) for word in ("passed", "failed")}
    skips = [f"skipped: lab/run: {r.name}: {why}" for r in results for why in ([r.detail] if r.outcome == "skipped" else []) + r.skips]
    rows += skips
    rows += [f"unstable scenario: {r.name}: passed the second time; first: {r.first_failure}" for r in results if r.first_failure]
    rows.append(f"{clock.elapsed() / 60:.0f} minutes; logs are in target/lab/runs/")
    rows.append(f"{count['passed']} passed, {count['failed']} failed, {len(skips)} skipped")
    return "\n".join(["", *rows])
