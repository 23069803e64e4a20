"""`tune prove --reboots` with a real systemd, whose power fails at random moments: the verdicts are right, and the plan in force is
as before."""

import json
import random
import time

from harness import facts, tune

MACHINE = "container"
IS_QUICK = False

PROVEN = {"boot.rcu_nocbs": "gain", "boot.skew_tick": "harm", "boot.processor.max_cstate": "no_difference_shown"}
# Less is better.
METER = """
t=$((100 + RANDOM % 20))
grep -q rcu_nocbs= /proc/cmdline || t=$((t + 60))
grep -q skew_tick= /proc/cmdline && t=$((t + 60))
echo $t
"""
# A boot, its measurement and the next one's preparation take longer.
SETTLE_S = 2
CUT_EVERY = 4


def run(lab):
    guest = lab.guest
    guest.boot()
    # What a boot writes without lowlat.
    guest.reboot()
    stock = lab.facts("stock")
    (guest.share / "meter").write_text(METER)
    changes = lab.lowlat("tune plan --json").json()["changes"]
    others = sorted({id for change in changes for id in change["settings"]} - PROVEN.keys())
    (guest.share / "role.toml").write_text(f"leave-out = {json.dumps(others)}\n")
    tune.apply(lab, "--role /lab/role.toml")
    guest.reboot()
    before = lab.facts("before")
    line = guest.cmdline
    lab.check("the plan's parameters are on the command line", "rcu_nocbs=" in line and "skew_tick=" in line, line)
    # It reboots before its end can be seen.
    guest.start(f"lowlat tune prove --reboots --yes --budget 6m --settle {SETTLE_S}s --result /root/proof.json -- bash /lab/meter")
    until = time.monotonic() + 60
    while not record_of(guest).exists() and time.monotonic() < until:
        time.sleep(0.05)
    cuts = until_over(guest)
    lab.check(f"the power failed {cuts} times", cuts > 3, cuts)
    guest.reboot()
    document = lab.lowlat("report render --json /root/proof.json").json()
    lab.note(lab.lowlat("report render /root/proof.json").text)
    verdicts = {proven["settings"][0]: proven["verdict"] for proven in document["settings"] if proven["pairs"]}
    lab.check("the verdicts are right", verdicts == PROVEN, verdicts)
    now = lab.facts("proven")
    left = [*filter(differs, facts.file_differences(before, now)), *facts.value_differences(before, now)]
    lab.check("files and values of the plan in force are as before", not left, left[:5])
    tune.rollback(lab)
    guest.must("rm /root/proof.json")
    guest.reboot()
    lab.same(stock, lab.facts("after"), "after the rollback and a reboot")


def differs(line):
    """False for the answer, and for files of the command line, which were written again and have another time only."""
    path, _, states = line.partition(": ")
    before, _, now = (state.split() for state in states.partition(" -> "))
    return path != "/root/proof.json" and before[:2] + before[3:] != now[:2] + now[3:]


def record_of(guest):
    return guest.folder / "upper/var/lib/lowlat/proof.json"


def until_over(guest):
    """Boots until the record of the proof is gone, and returns how often the power failed meanwhile."""
    record = record_of(guest)
    boots = cuts = 0
    while record.exists():
        boots += 1
        is_cut = boots % CUT_EVERY == 0
        until = time.monotonic() + (random.uniform(0, 2 * SETTLE_S) if is_cut else 300)
        while guest.qemu.is_running() and record.exists() and time.monotonic() < until:
            time.sleep(0.05)
        if guest.qemu.is_running() and record.exists():
            guest.cut_power()
            cuts += 1
        if record.exists() or not guest.qemu.is_running():
            guest.boot(settled=False)
    time.sleep(5)
    if not guest.qemu.is_running():
        guest.boot()
    return cuts
