"""The Ansible collection on two servers: check mode, a roll-out of one after the other, a second run, documents, a rollback.

Ansible runs on this host, and reaches the guests through lab/ansible/lab_guest.py."""

import json
import shutil
import subprocess
import tarfile

from harness import packages, tune
from harness.fleet import Fleet, confirmation, facts
from harness.scenario import Skip

MACHINE = "four-cpus"
IS_QUICK = False


def run(lab):
    if not shutil.which("ansible-playbook"):
        raise Skip("ansible-core is not installed")
    guests = {"desk1": lab.guest, "desk2": lab.guest.twin("second")}
    try:
        for guest in guests.values():
            # The collection installs lowlat.
            guest.is_installed = True
            guest.boot()
        story(lab, guests)
    finally:
        guests["desk2"].off()


def story(lab, guests):
    binary = lab.guest.share / "lowlat"
    documents = lab.folder / "documents"
    variables = {"lowlat_binary": str(binary), "lowlat_confirm_within": "40m", "lowlat_documents_directory": str(documents)}
    program = "/usr/local/sbin/lowlat"
    if package := installable(lab, guests):
        # The binary plans in check mode, before the package is installed.
        variables["lowlat_package"] = str(package)
        program = "/usr/bin/lowlat"
    fleet = Fleet(lab, guests, **variables)
    before = {name: facts(lab, guests, name, "before") for name in guests}

    text, changed, _ = fleet.play("rollout", "--check")
    plans = text.count("+ isolcpus=")
    lab.check("check mode shows the plan of both", plans == 2, plans)
    lab.check("check mode reports a change of both", all(changed[name] for name in guests), changed)
    for name, guest in guests.items():
        lab.same(before[name], facts(lab, guests, name, "checked"), f"{name} after check mode")
        lab.check(f"{name} does not have lowlat", guest.run(f"test -e {program}").status != 0)
        left = guest.run("find /var/lib -maxdepth 1 -name 'lowlat*'").text
        lab.check(f"{name} has no leftover of it", not left, left)

    _, changed, keepers = fleet.play("rollout")
    first, second = (keepers[name].downs for name in guests)
    lab.need("each server rebooted once", len(first) == len(second) == 1, (first, second))
    lab.check("the second was down only after the first was up", second[0][0] > first[0][1], (first, second))
    # lowlat, the apply, the reboot, the confirmation.
    lab.check("four tasks changed each", set(changed.values()) == {4}, changed)
    for name, guest in guests.items():
        lab.check(f"{name} has the plan's command line", "isolcpus=" in guest.cmdline, guest.cmdline)
        held(lab, guests, name, "after the roll-out")

    applied = facts(lab, guests, "desk1", "applied")
    _, changed, keepers = fleet.play("rollout")
    lab.check("a second run changes nothing", set(changed.values()) == {0}, changed)
    lab.check("and reboots nothing", not any(keeper.downs for keeper in keepers.values()))
    lab.same(applied, facts(lab, guests, "desk1", "again"), "desk1 after a second run")

    collect(lab, fleet, guests, documents)

    _, changed, keepers = fleet.play("rollback")
    first, second = (keepers[name].downs for name in guests)
    lab.need("each server rebooted once for the rollback", len(first) == len(second) == 1, (first, second))
    lab.check("again one after the other", second[0][0] > first[0][1], (first, second))
    lab.check("two tasks changed each: rollback, reboot", set(changed.values()) == {2}, changed)
    for name, guest in guests.items():
        guest.settle()
        lab.same(before[name], facts(lab, guests, name, "after"), f"{name} after the rollback")
        tune.nothing_in_force(lab)


def installable(lab, guests):
    """The Debian package that Ansible installs, if the servers can have what Ansible's apt needs; otherwise None."""
    folder = lab.folder / "python3-apt"
    folder.mkdir()
    names = ["python3-apt", "python-apt-common", "distro-info-data"]
    try:
        package = packages.deb(lab, lab.folder / "package")
        if subprocess.run(["apt-get", "download", *names], cwd=folder, capture_output=True, check=False).returncode != 0:
            raise Skip("apt-get cannot download python3-apt")
    except Skip as reason:
        lab.skip("the package (Ansible installs the binary)", reason)
        return None
    for guest in guests.values():
        for path in folder.glob("*.deb"):
            guest.give(path, path.name)
        guest.must("dpkg -i /lab/*apt*.deb /lab/distro-info-data*.deb && rm /lab/*.deb")
    return package


def collect(lab, fleet, guests, documents):
    page = lab.folder / "fleet.html"
    binary = lab.guest.share / "lowlat"
    variables = {
        "lowlat_documents": ["verification", "result", "capture"], "lowlat_assess_arguments": ["--no-measure"],
        "lowlat_report": str(page), "lowlat_controller_program": str(binary),
    }  # fmt: skip
    _, changed, _ = fleet.play("collect", **variables)
    lab.check("collecting changes nothing", set(changed.values()) == {0}, changed)
    for name in guests:
        verification = json.loads((documents / f"{name}.verification.json").read_text())
        lab.check(f"{name}'s verification is on the controller", not tune.faults(verification), tune.faults(verification))
        result = json.loads((documents / f"{name}.result.json").read_text())
        lab.check(f"{name}'s result is on the controller", result["document"] == "lowlat-result", result["document"])
        with tarfile.open(documents / f"{name}.capture.tar.gz") as capture:
            names = capture.getnames()
        lab.check(f"{name}'s capture has its command line", any(path.endswith("proc/cmdline") for path in names), names[:5])
    text = page.read_text()
    lab.check("the page names both hosts", all(f"{name}.result" in text for name in guests))


def held(lab, guests, name, when):
    """Checks that the plan is confirmed and every row is held."""
    lab.guest = guests[name]
    lab.guest.settle()
    state = confirmation(lab, guests, name)
    lab.check(f"{name} is confirmed", state == "not_needed", state)
    tune.verify(lab, f"{name} {when}")
