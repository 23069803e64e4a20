"""The Ansible collection on three hosts in containers: an interrupted run, check mode, a host that is lost, drift, a rollback.

Ansible runs on this host, and reaches the containers through lab/ansible/lab_guest.py."""

import shutil

from harness import tune
from harness.fleet import Fleet, confirmation, facts
from harness.scenario import Skip

MACHINE = "container"
IS_QUICK = True

HOSTS = ("desk1", "desk2", "desk3")
AUTOCORKING = "/proc/sys/net/ipv4/tcp_autocorking"
NONE = dict.fromkeys(HOSTS, 0)


def run(lab):
    if not shutil.which("ansible-playbook"):
        raise Skip("ansible-core is not installed")
    guests = {name: lab.guest.twin(name) for name in HOSTS}
    try:
        for guest in guests.values():
            # The collection installs lowlat.
            guest.is_installed = True
            guest.boot()
            # What a boot writes without lowlat.
            guest.reboot()
        story(lab, guests)
    finally:
        for guest in guests.values():
            guest.off()


def story(lab, guests):
    fleet = Fleet(
        lab, guests, lab_guest_accept_s=5, lowlat_binary=str(guests["desk1"].share / "lowlat"), lowlat_confirm_within="15m",
        lowlat_reboot_timeout_s=15, lowlat_verify_arguments=["--no-ticks"], lowlat_documents_directory=str(lab.folder / "documents"),
    )  # fmt: skip
    before = {name: facts(lab, guests, name, "before") for name in HOSTS}

    text, changed, _ = fleet.play("rollout", "--check")
    lab.check("check mode shows three plans", text.count("+ isolcpus=") == 3 and all(changed[name] for name in HOSTS), changed)
    for name in HOSTS:
        lab.same(before[name], facts(lab, guests, name, "checked"), f"{name} after check mode")

    # Ansible ends with this when it is interrupted.
    fleet.play("rollout", status=99, interrupted_when=lambda: (guests["desk1"].folder / "upper/var/lib/lowlat").exists())
    lab.guest = guests["desk1"]
    lab.guest.must("while pgrep -x lowlat; do sleep 0.1; done")
    reached("the interrupted run reached", lab, guests, ["desk1"])

    # And with this if a host was unreachable.
    text, _, _ = fleet.play("rollout", status=4, lost=["desk2"])
    lab.check("the roll-out names the host that was lost", "cannot go on with the roll-out: desk2 was lost or failed" in text, text[-900:])
    guests["desk2"].boot()
    reached("with a lost host the roll-out reached", lab, guests, ["desk1", "desk2"])
    states = {name: confirmation(lab, guests, name) for name in ("desk1", "desk2")}
    lab.check("only the first is confirmed", states == {"desk1": "not_needed", "desk2": "waiting"}, states)

    _, changed, keepers = fleet.play("rollout")
    lab.check("the next run completes the other two", changed["desk1"] == 0 and changed["desk2"] and changed["desk3"], changed)
    downs = {name: len(keeper.downs) for name, keeper in keepers.items()}
    lab.check("only the third had to reboot", downs == {"desk1": 0, "desk2": 0, "desk3": 1}, downs)
    for name in HOSTS:
        lab.check(f"{name} is confirmed", confirmation(lab, guests, name) == "not_needed")
        left = guests[name].run("find /var/lib /tmp -maxdepth 1 -name 'lowlat-ansible*'").text
        lab.check(f"{name} has no folder of a run", not left, left)
    _, changed, _ = fleet.play("rollout")
    lab.check("a further run changes nothing", changed == NONE, changed)

    guests["desk3"].must(f"echo 1 >{AUTOCORKING}")
    _, changed, keepers = fleet.play("rollout")
    lab.check("what drifted is set again", changed == {**NONE, "desk3": 1}, changed)
    lab.check("without a reboot", not any(keeper.downs for keeper in keepers.values()))
    lab.check("it has the plan's value", guests["desk3"].run(f"cat {AUTOCORKING}").text.strip() == "0")

    fleet.play("rollback")
    for name, guest in guests.items():
        guest.settle()
        lab.same(before[name], facts(lab, guests, name, "after"), f"{name} after the rollback")
        tune.nothing_in_force(lab)


def reached(what, lab, guests, expected):
    """Checks which hosts have lowlat."""
    found = [name for name, guest in guests.items() if guest.run("test -e /usr/local/sbin/lowlat").status == 0]
    lab.check(f"{what} {', '.join(expected)}", found == expected, found)
