"""The exported shell script, run on a host without lowlat, brings about what apply does."""

import json

from harness import tune

MACHINE = "epyc-7f32-stock"
IS_QUICK = False


def run(lab):
    guest = lab.guest
    guest.boot()
    planned = tune.plan(lab)
    lab.expect("tune export --format shell --out /lab/shell", 0)
    # From here on there is no lowlat on this host.
    guest.must("mv /usr/local/sbin/lowlat /lab/lowlat-away; ! command -v lowlat")
    done = guest.run("set -- /lab/shell/*.sh; echo \"$@\"; bash \"$1\" --yes </dev/null")
    lab.check("the script ends with 0", done.status == 0, repr(done))
    guest.reboot()
    guest.must("! command -v lowlat; install -m 755 /lab/lowlat /run/lowlat")
    for name in ("isolated", "nohz_full"):
        kernel = lab.text(f"/sys/devices/system/cpu/{name}")
        lab.check(f"the kernel reports {name} = {planned['isolated']}", kernel == planned["isolated"], kernel)
    done = guest.run("/run/lowlat tune verify --json --plan /lab/plan.json >/lab/verify.json </dev/null")
    document = json.loads((guest.share / "verify.json").read_text())
    found = tune.faults(document)
    lab.check(f"verify holds every row, {document['counts']}", not found, found[:20])
