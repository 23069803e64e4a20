"""`tune prove`: settings that remove a disturbance are told from those that do nothing, and the host is as before, also
after the command and its guard were killed together."""

from harness import facts
from harness.machine import LAB

MACHINE = "four-cpus"
IS_QUICK = False

METER = "sleep 0.2; echo 1"


def run(lab):
    guest = lab.guest
    guest.boot()
    guest.give(LAB / "checks" / "prove.py", "prove.py")
    before = lab.facts("before")
    done = guest.run("python3 -B /lab/prove.py lowlat --runs 1 --cpu 3 --budget 30m", 5400)
    lab.check("at least nine of ten settings are told apart, and none is a false gain", done.status == 0, done.text[-600:])
    compare(lab, before, "after a proof")
    start = f"(setsid lowlat tune prove --yes --budget 30m -- sh -c '{METER}' >/lab/prove.log 2>&1 </dev/null &) ; "
    wait = "for n in $(seq 600); do lowlat tune status --json | grep -q '\"known\"' && break; sleep 0.5; done; sleep 20; "
    guest.must(start + wait + "kill -9 $(pgrep -of 'tune prove --yes')", 1800)
    guest.must("for n in $(seq 600); do pgrep -f 'tune prove' >/dev/null || exit 0; sleep 0.5; done; exit 1", 1800)
    compare(lab, before, "after the guard has restored a killed proof")
    guest.must(start + wait + "pkill -9 -f 'tune prove'", 1800)
    lab.expect("tune rollback --yes", 0)
    compare(lab, before, "after a rollback of what the killed guard left")


def compare(lab, before, when):
    now = lab.facts(when.replace(" ", "-"))
    left = [*facts.file_differences(before, now), *facts.value_differences(before, now)]
    lab.check(f"{when}: files and values are as before", not left, left[:5])
