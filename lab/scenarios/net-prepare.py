"""`net prepare` for an Intel and a virtio NIC: planned, in force after a reboot, rolled back.

The second plan is saved and applied as a reviewed plan on top of the first."""

from harness import tune

MACHINE = "epyc-7f32-stock"
IS_QUICK = False

FIND = """
for nic in /sys/class/net/*; do
    driver=$(readlink "$nic/device/driver") || continue
    echo "${driver##*/} ${nic##*/}"
done
"""

# What a plan for each driver must change here. Pause frames show on a running guest alone.
EXPECTED = {
    "igb": {"nic_coalescing rx-usecs", "nic_channels combined", "nic_pause autoneg", "irq_affinity"},
    "virtio_net": {"irq_affinity"},
}


def run(lab):
    guest = lab.guest
    guest.boot()
    drivers = dict(line.split() for line in guest.must(FIND).text.splitlines())
    lab.need("the guest has both NICs", set(EXPECTED) <= set(drivers), drivers)
    intel, virtio = drivers["igb"], drivers["virtio_net"]
    before = lab.facts("before")
    lab.expect(f"net nics {intel}", 0, "igb", intel)
    look(lab, "igb", intel, virtio)
    look(lab, "virtio_net", virtio, intel)
    lab.same(before, lab.facts("planned"), "after both plans")

    applied(lab, intel, lab.lowlat(f"net prepare {intel} --yes --json"))
    done = lab.lowlat(f"net prepare {virtio} --dry-run --json")
    (guest.share / "virtio.json").write_text(done.text)
    guest.must("install -m 600 /lab/virtio.json /root/virtio.json")
    applied(lab, virtio, lab.lowlat("tune apply --plan /root/virtio.json --yes --json"))
    guest.must("rm /root/virtio.json")
    twice = lab.facts("twice-before")
    lab.expect(f"net prepare {intel} --yes", 0)
    lab.same(twice, lab.facts("twice-after"), "after a second preparation")

    guest.reboot()
    document = tune.verify(lab, "after the reboot")
    rows = [row["what"] for row in document["rows"]]
    lab.check(f"verify has rows of {intel}", any(what.startswith(f"{intel} ") for what in rows), rows)
    tune.rollback(lab)
    lab.same_files(before, lab.facts("rolled-back"), "after the rollback")
    guest.reboot()
    lab.same(before, lab.facts("after"), "after the rollback and a reboot")
    tune.nothing_in_force(lab)


def look(lab, driver, nic, other):
    """Plans a NIC, and judges the plan."""
    plan = lab.expect(f"net prepare {nic} --dry-run --json", 1).json()
    lab.need(f"the plan for {nic} is a document", plan is not None)
    targets = [change["target"] for change in plan["changes"]]
    found = {f"{target['kind']} {target.get('field', '')}".strip() for target in targets}
    lab.check(f"the plan for {driver} has what is expected", EXPECTED[driver] <= found, sorted(found))
    lab.check(f"the plan for {nic} leaves {other} alone", not any(target.get("nic") == other for target in targets))
    lab.check(f"the plan for {nic} leaves the command line alone", "command_line" not in found, sorted(found))


def applied(lab, nic, done):
    """Judges an apply for a NIC."""
    document = done.json()
    lab.need(f"the apply for {nic} prints a document", document is not None, f"{done.status}: {done.said[-900:]}")
    refused = [change for change in document["changes"] if change["fate"] == "refused"]
    lab.check(f"the apply for {nic} refuses nothing", done.status == 0 and not refused, refused or f"{done.status}: {done.said[-900:]}")
