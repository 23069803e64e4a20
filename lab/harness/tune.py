"""Calls of `lowlat tune` by scenarios, and the expected results."""

FAULTS = ("overridden", "lost", "refused", "ineffective", "unreadable")


def known(reading):
    """The value of a reading; None if unknown."""
    return reading.get("known") if isinstance(reading, dict) else None


def standing(row):
    """One row of a verification as text."""
    by = row.get("by") or {}
    who = f" by {by['kind']} {by['name']}" if by else ""
    return f"{row['what']}: {row['standing']}{who}, planned {row['planned']}, observed {known(row['observed'])}"


def faults(document):
    """Rows of a verification that are not held."""
    return [standing(row) for row in document["rows"] if row["standing"] in FAULTS]


def plan(lab, arguments="", path="/lab/plan.json"):
    """Plans, and keeps the plan in the shared folder, which snapshots of the guest do not include."""
    done = lab.expect(f"tune plan --json --out {path} {arguments}", 1)
    lab.need("the plan is a document", done.json() is not None, done.text[:200])
    return done.json()


def apply(lab, arguments="", under=""):
    """Applies the plan, except for what this machine's kernel rejects (`lab.refused`); `under` a program
    that runs it."""
    done = lab.lowlat(f"tune apply --yes --json {arguments}", under=under)
    document = done.json()
    lab.need("apply prints a document", document is not None, f"status {done.status}: {done.said[-900:]}")
    refused = [why for change in document["changes"] if change["fate"] == "refused" for why in change["reasons"]]
    others = [why for why in refused if not any(word in why for word in lab.refused)]
    lab.check(f"apply omits no possible change, {len(document['changes'])} changes", not others, others[:12])
    lab.check(f"apply ends with {int(bool(refused))}", done.status == bool(refused), done.status)
    for note in document["notes"]:
        lab.note(f"apply: {note}")
    return document


def verify(lab, when, arguments=""):
    """Verifies, and expects every row to be held, except for what this machine's kernel rejects."""
    done = lab.lowlat(f"tune verify --json {arguments}")
    document = done.json()
    lab.need(f"{when}: verify prints a document", document is not None, f"status {done.status}: {done.said[-600:]}")
    found = faults(document)
    others = [row for row in found if not any(word in row for word in lab.refused)]
    lab.check(f"{when}: every row is held, {document['counts']}", not others, others[:20])
    pending = [standing(row) for row in document["rows"] if row["standing"] == "pending"]
    lab.check(f"{when}: nothing waits", not pending, pending[:5])
    lab.check(f"{when}: verify ends with {int(bool(found))}", done.status == bool(found), done.status)
    return document


def rollback(lab, under=""):
    """Rolls everything back."""
    return lab.expect("tune rollback --yes", 0, under=under)


def status(lab):
    """The document of `status`."""
    done = lab.lowlat("tune status --json")
    lab.need("status prints a document", done.json() is not None, f"{done.status}: {done.said[-300:]}")
    return done.json()


def nothing_in_force(lab):
    document = status(lab)
    lab.check("status says that nothing is in force", document["in_force"] == "absent" and not document["unfinished"], {k: document[k] for k in ("in_force", "unfinished")})


def cycle(lab, judge, midway=None, arguments="", is_isolated_by_scheduler=True, prepare=None):
    """Stock, `prepare`, plan, apply, reboot, verify, `midway`, rollback, reboot: as before. `judge` receives the plan."""
    guest = lab.guest
    guest.boot()
    if prepare:
        prepare(lab)
    before = lab.facts("before")
    planned = plan(lab, arguments)
    judge(lab, planned)
    isolated, housekeeping = planned["isolated"], planned["housekeeping"]
    lab.same(before, lab.facts("planned"), "after plan")
    apply(lab, arguments)
    applied = lab.facts("applied")
    apply(lab, arguments)
    lab.same(applied, lab.facts("applied-twice"), "after a second apply in the same boot")
    guest.reboot()
    document = verify(lab, "after the reboot")
    if isolated:
        effective(lab, document, isolated, housekeeping, is_isolated_by_scheduler)
    if midway:
        midway(lab)
    again = lab.facts("again-before")
    apply(lab, arguments)
    lab.same(again, lab.facts("again-after"), "after an apply of what is in force")
    rollback(lab)
    rolled_back = lab.facts("rolled-back")
    lab.same_files(before, rolled_back, "after the rollback")
    guest.reboot()
    lab.same(before, lab.facts("after"), "after the rollback and a reboot")
    nothing_in_force(lab)
    lab.check("the command line is the first boot's", guest.cmdline == before.values["/proc/cmdline"], guest.cmdline)


def effective(lab, document, isolated, housekeeping, is_isolated_by_scheduler=True):
    """Compares verify's report on the kernel with the kernel's own files. Without isolcpus= the scheduler isolates none."""
    from . import facts

    headline = document["headline"]
    # Debian 11's kernel is built without nohz_full and has no such file.
    has_nohz_full = lab.guest.run("test -e /sys/devices/system/cpu/nohz_full").status == 0
    lab.check("verify says which CPUs have no tick if the kernel can", has_nohz_full == (known(headline["nohz_full"]) is not None), headline)
    for name in ["isolated"] * is_isolated_by_scheduler + ["nohz_full"] * has_nohz_full:
        lab.check(f"verify reports {name} = {isolated}", known(headline[name]) == isolated, headline[name])
        kernel = lab.text(f"/sys/devices/system/cpu/{name}")
        lab.check(f"the kernel reports {name} = {isolated}", kernel == isolated, kernel)
    lab.check("verify counts every movable interrupt inside", headline["irqs_movable"] == headline["irqs_inside"] + headline["irqs_moving"], headline)
    movable, fixed = interrupts(lab)
    lab.check("there are interrupts that can be moved", bool(movable), movable)
    if not is_isolated_by_scheduler:
        return
    outside = {name: cpus for name, cpus in movable.items() if not facts.cpus(cpus) <= facts.cpus(housekeeping)}
    lab.check(f"every movable interrupt's effective affinity is inside {housekeeping}", not outside, outside)
    lab.note(f"interrupts that cannot be moved: {fixed}")


# Debian's kernels have no file that shows which interrupts can be moved. Those that can accept their current CPUs again; the
# others fail, with EIO if the kernel manages them.
TRY = """
for irq in /proc/irq/[0-9]*; do
    name=$(find "$irq" -mindepth 1 -type d -printf '%f+')
    [ -n "$name" ] || continue
    kind=fixed
    list=$(cat "$irq/smp_affinity_list")
    if { echo "$list" >"$irq/smp_affinity_list"; } 2>/dev/null; then kind=movable; fi
    echo "$kind $(cat "$irq/effective_affinity_list") $name"
done
"""


def interrupts(lab):
    """Interrupts with a handler that can be moved, and those that cannot: CPUs by name."""
    found = {"movable": {}, "fixed": {}}
    for line in lab.guest.must(TRY).text.splitlines():
        kind, cpus, name = line.split(" ", 2)
        found[kind][name.rstrip("+")] = cpus
    return found["movable"], found["fixed"]


# Whether a CPU has a scheduling domain: /proc/schedstat lists them below it.
DOMAINS = "awk -v cpu=cpu{} '/^cpu/ {{ is_in = $1 == cpu }} is_in && /^domain/ {{ n++ }} END {{ print n + 0 }}' /proc/schedstat"


def partition(lab):
    """Plan, apply, verify, reboot, verify, rollback of `--isolate-by cpuset`, in a guest that is up."""
    guest = lab.guest
    before = lab.facts("before")
    planned = plan(lab, "--isolate-by cpuset")
    targets = [change["target"]["kind"] for change in planned["changes"]]
    lab.need("the plan forms a partition", "cpuset_partition" in targets, planned["left_out"])
    lab.check("the plan leaves the command line alone", "command_line" not in targets, targets)
    for warning in planned["warnings"]:
        lab.note(f"plan: {warning}")
    lab.same(before, lab.facts("planned"), "after plan")
    isolated = planned["isolated"]
    apply(lab, "--isolate-by cpuset")
    partitioned(lab, isolated, "after apply, without a reboot")
    applied = lab.facts("applied")
    apply(lab, "--isolate-by cpuset")
    lab.same(applied, lab.facts("applied-twice"), "after a second apply")
    guest.reboot()
    partitioned(lab, isolated, "after the reboot")
    rollback(lab)
    lab.check("the slice is gone", guest.run("test -e /sys/fs/cgroup/lowlat.slice").status != 0)
    lab.check("threads run on the CPUs again", guest.run(f"taskset -c {isolated} true").status == 0)
    lab.same_files(before, lab.facts("rolled-back"), "after the rollback")
    guest.reboot()
    lab.same(before, lab.facts("after"), "after the rollback and a reboot")
    nothing_in_force(lab)


def partitioned(lab, isolated, when):
    """Checks the partition against the kernel."""
    guest = lab.guest
    document = verify(lab, when)
    lab.check(f"{when}: verify reports isolated = {isolated}", known(document["headline"]["isolated"]) == isolated, document["headline"])
    state = lab.text("/sys/fs/cgroup/lowlat.slice/cpuset.cpus.partition")
    lab.check(f"{when}: the group is an isolated partition", state == "isolated", state)
    one = isolated.split(",")[0].split("-")[0]
    domains = guest.run(DOMAINS.format(one)).text.strip()
    lab.check(f"{when}: CPU {one} has no scheduling domain", domains == "0", domains)
    lab.check(f"{when}: threads outside the slice cannot run there", guest.run(f"taskset -c {one} true").status != 0)
    inside = guest.run(f"systemd-run -q --scope --slice=lowlat.slice taskset -c {one} true")
    lab.check(f"{when}: threads in the slice can", inside.status == 0, inside)
    lab.note(f"{when}: kernel {lab.text('/proc/sys/kernel/osrelease')}")
    for path in ("/sys/fs/cgroup/cpuset.cpus.isolated", "/sys/devices/system/cpu/isolated", "/sys/devices/virtual/workqueue/cpumask", "/sys/fs/cgroup/cpuset.cpus.effective"):
        lab.note(f"{when}: {path}: {lab.text(path)}")
    listed = guest.run("cat /sys/fs/cgroup/cpuset.cpus.isolated 2>/dev/null")
    if listed.status == 0:
        lab.check(f"{when}: the root group lists the CPUs", listed.text.strip() == isolated, listed.text)
