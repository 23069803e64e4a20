"""`tune prove` with a real systemd: files, values and units are as before, also after the command was killed, with its guard
or without. lab/checks/prove.py is the truth test of its verdicts."""

from harness import facts

MACHINE = "container"
IS_QUICK = False

METER = "sleep 0.2; echo 1"
START = f"(setsid lowlat tune prove --yes --budget 30m -- sh -c '{METER}' >/lab/prove.log 2>&1 </dev/null &)"
# Until settings are switched.
UNDER_WAY = "for n in $(seq 600); do lowlat tune status --json | grep -q '\"known\"' && break; sleep 0.2; done; sleep 8"
TIMER = "systemctl list-timers --all --no-pager | grep lowlat-confirm"


def run(lab):
    guest = lab.guest
    guest.boot()
    before = lab.facts("before")
    done = lab.expect(f"tune prove --yes --budget 3m -- sh -c '{METER}'", 0, "no difference")
    lab.note(done.text)
    compare(lab, before, "after a proof")
    armed = guest.must(f"{START}; {UNDER_WAY}; {TIMER}; kill -9 $(pgrep -of 'tune prove --yes')", 1800)
    lab.check("systemd's dead-man switch is armed meanwhile", "lowlat-confirm.timer" in armed.text, armed.text)
    guest.must("for n in $(seq 600); do pgrep -f 'tune prove' >/dev/null || exit 0; sleep 0.5; done; exit 1", 1800)
    compare(lab, before, "after the guard has restored a killed proof")
    guest.must(f"{START}; {UNDER_WAY}; pkill -9 -f 'tune prove'", 1800)
    lab.expect("tune rollback --yes", 0)
    compare(lab, before, "after a rollback of what the killed guard left")


def compare(lab, before, when):
    now = lab.facts(when.replace(" ", "-"))
    left = [*facts.file_differences(before, now), *facts.value_differences(before, now)]
    lab.check(f"{when}: files and values are as before", not left, left[:5])
