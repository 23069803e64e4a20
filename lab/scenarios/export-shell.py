"""The exported shell script, run on a host without lowlat, has the same effect as apply, and rolls it back."""

import json

from harness import tune

MACHINE = "epyc-7f32-stock"
IS_QUICK = False
MENU = "/boot/grub/grub.cfg"
# The script leaves TuneD's profile to the user, because its rollback could not restore it.
NOT_ITS_OWN = "service.tuned.profile"


def script(lab, verb):
    """Runs the script with one of its verbs."""
    done = lab.guest.run(f"sh /lab/tune.sh {verb} </dev/null")
    lab.check(f"the script's {verb} ends with 0", done.status == 0, f"{done.status}: {done.text[-1200:]}")


def run(lab):
    guest = lab.guest
    guest.boot()
    before = lab.facts("before")
    planned = tune.plan(lab)
    lab.expect("tune export --format shell --out /lab/tune.sh", 0)
    text = (guest.share / "tune.sh").read_text()
    lab.check(f"the script says that it omits {NOT_ITS_OWN}", f"{NOT_ITS_OWN}: " in text)
    # From here on lowlat is not installed on this host.
    guest.must("rm /usr/local/sbin/lowlat; ! command -v lowlat")
    script(lab, "show")
    lab.same(before, lab.facts("shown"), "after show")
    script(lab, "apply")
    guest.reboot()
    script(lab, "apply")
    guest.must("! command -v lowlat; install -m 755 /lab/lowlat /var/tmp/lowlat")
    for name in ("isolated", "nohz_full"):
        kernel = lab.text(f"/sys/devices/system/cpu/{name}")
        lab.check(f"the kernel reports {name} = {planned['isolated']}", kernel == planned["isolated"], kernel)
    done = guest.run("/var/tmp/lowlat tune verify --json --plan /lab/plan.json >/lab/verify.json </dev/null")
    lab.need("verify gives a document", done.status in (0, 1, 3), repr(done))
    document = json.loads((guest.share / "verify.json").read_text())
    found = tune.faults({"rows": [row for row in document["rows"] if row["settings"] != [NOT_ITS_OWN]]})
    lab.check(f"verify holds every row except those of {NOT_ITS_OWN}, {document['counts']}", not found, found[:20])
    script(lab, "undo")
    guest.reboot()
    # The script restores the boot menu with update-grub: the same menu, with another time.
    after = lab.facts("after")
    for look in (before, after):
        kind, owner, _time, content = look.files[MENU].split()
        look.files[MENU] = f"{kind} {owner} - {content}"
    lab.same(before, after, "after undo and a reboot")
