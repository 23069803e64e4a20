"""What tools leave behind: files and values that differ after they were undone, and after the next reboot.

Each tool gets a fresh guest and goes through its own documented way: apply, reboot, undo, reboot. The table is in
docs/comparison.md; lowlat's row must be zero."""

import json
import subprocess
import sys

from harness import facts

MACHINE = "four-cpus"
# LLTune 0.1.1 needs Python 3.12.
SUITE = "trixie"
IS_QUICK = False

LLTUNE = """
version: 1
cpu:
  governor: {target: performance}
  isolate_cores: "1-3"
kernel:
  cmdline: {isolcpus: "managed_irq,domain,1-3", nohz_full: "1-3", rcu_nocbs: "1-3", irqaffinity: "0", skew_tick: "1"}
memory: {thp_runtime: never, numa_balancing: false, ksm: false, dirty_ratio: 10, dirty_background_ratio: 5, stat_interval: 120}
network:
  sysctl: {rmem_max: 67108864, wmem_max: 67108864, busy_poll: 50, busy_read: 50, netdev_max_backlog: 250000}
irq: {avoid_cores_for_irqs: "1-3", disable_rps: true}
services: {irqbalance: false}
safety: {allow_grub_edit: true}
"""


class Tool:
    """A tool: its preparation before the first look, its apply and its undo, as scripts of the guest."""

    def __init__(self, name, version, apply, undo, prepare="true"):
        self.name, self.version, self.apply, self.undo, self.prepare = name, version, apply, undo, prepare


def tuned(profile):
    variables = f"/etc/tuned/{profile}-variables.conf"
    return Tool(
        f"TuneD, {profile}",
        "tuned-adm --version",
        f"tuned-adm profile {profile} && tuned-adm active",
        "tuned-adm profile $(cat /lab/profile)",
        # The administrator's part: the CPUs. What remains of it is not TuneD's.
        f"tuned-adm active | sed 's/.*: //' >/lab/profile; [ ! -e {variables} ] || echo isolated_cores=1-3 >>{variables}",
    )


LOWLAT = Tool("lowlat", "lowlat --version", "lowlat tune apply --yes || [ $? = 1 ]", "lowlat tune rollback --yes")
RUN_LLTUNE = "PYTHONPATH=/lab/lltune python3 -B -m lltune.cli"
TOOLS = [
    LOWLAT,
    *map(tuned, ("cpu-partitioning", "realtime", "latency-performance")),
    Tool(
        "LLTune",
        f"{RUN_LLTUNE} --version",
        f"{RUN_LLTUNE} apply -c /lab/lltune.yaml",
        f"{RUN_LLTUNE} rollback --backup $(ls -d /var/lib/lltune/backups/backup-*)",
    ),
]
# How a tool that is not in a public index can be had is in its own documentation.
ELSEWHERE = {"rt-conf": "a snap, in no index that the lab uses", "perftune (ScyllaDB)": "part of Scylla's packages, in no index that the lab uses"}


def give_lltune(guest):
    """Puts LLTune and what it needs into the guest; the reason if that is impossible."""
    target = guest.share / "lltune"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", target, "lltune==0.1.1"], stderr=subprocess.PIPE, text=True
    )
    (guest.share / "lltune.yaml").write_text(LLTUNE)
    return (done.stderr.strip().splitlines() or ["pip failed"])[-1] if done.returncode else None


def look(lab, guest, name):
    guest.must(f"python3 -B /lab/facts.py >/lab/facts-{name}.json")
    text = (guest.share / f"facts-{name}.json").read_text()
    return facts.Facts(json.loads(text))


def league(lab, guest, tool):
    """One tool's row; None if it cannot be run."""
    guest.boot()
    version = guest.run(tool.version).text.strip().splitlines()[-1:] or ["unknown"]
    guest.must(tool.prepare)
    before = look(lab, guest, "before")
    applied = guest.run(tool.apply, 1800)
    lab.note(f"{tool.name}: {applied!r}")
    if applied.status != 0:
        lab.skip(tool.name, f"its apply ends with {applied.status}: {applied.text.strip()[-300:]}")
        return None
    guest.reboot()
    active = look(lab, guest, "active")
    undone = guest.run(tool.undo, 1800)
    lab.note(f"{tool.name}: {undone!r}")
    after_undo = look(lab, guest, "undone")
    guest.reboot()
    after_reboot = look(lab, guest, "after")
    pairs = {"in force": active, "after undo": after_undo, "after the reboot": after_reboot}
    row = {"tool": tool.name, "version": version[0], "undo_status": undone.status}
    for when, now in pairs.items():
        files, values = facts.file_differences(before, now), facts.value_differences(before, now)
        row[when] = {"files": files, "values": values}
        lab.note(f"{tool.name}, {when}: {len(files)} files, {len(values)} values")
        for line in [*files, *values] if when != "in force" else ():
            lab.note(f"    {line}")
    return row


def table(rows):
    lines = ["| tool | version | changed in force | left after undo | left after the reboot |", "|---|---|---|---|---|"]
    for row in rows:
        cells = [f"{len(row[when]['files'])} files, {len(row[when]['values'])} values" for when in ("in force", "after undo", "after the reboot")]
        lines.append(f"| {row['tool']} | {row['version']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def run(lab):
    rows = []
    for tool in TOOLS:
        guest = lab.guest.twin(tool.name.replace(", ", "-"))
        try:
            why = give_lltune(guest) if tool.name == "LLTune" else None
            if why:
                lab.skip(tool.name, why)
                continue
            row = league(lab, guest, tool)
        finally:
            guest.off()
        if row:
            rows.append(row)
            (lab.folder / "league.json").write_text(json.dumps(rows, indent=1))
            (lab.folder / "league.md").write_text(table(rows) + "\n")
    for name, why in ELSEWHERE.items():
        lab.skip(name, why)
    own = next((row for row in rows if row["tool"] == LOWLAT.name), None)
    lab.need("lowlat has a row", own is not None)
    left = own["after undo"]["files"]
    lab.check("lowlat leaves no file after undo", not left, left[:5])
    left = [*own["after the reboot"]["files"], *own["after the reboot"]["values"]]
    lab.check("lowlat leaves nothing after the reboot", not left, left[:5])
    lab.check("the league has other tools", len(rows) > 1, [row["tool"] for row in rows])
