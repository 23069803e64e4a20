"""A container: named as one, nothing is planned that cannot be done in it, and apply changes nothing."""

from harness import tune

MACHINE = "container"
IS_QUICK = False


def refused(lab, evidence):
    """plan names the container and plans nothing; apply refuses."""
    before = lab.facts(f"before-{lab.looks}")
    done = lab.lowlat("tune plan --json")
    plan = done.json()
    lab.need(f"{evidence}: the plan is a document", plan is not None, done.said[-400:])
    # 4: much cannot be read in a container.
    lab.check(f"{evidence}: plan ends with 0 or 4", done.status in (0, 4), done.status)
    lab.check(f"{evidence}: nothing is planned", not plan["changes"], [change["settings"] for change in plan["changes"]][:5])
    named = [line for line in plan["hindrances"] if "container" in line and evidence in line]
    lab.check(f"{evidence}: the plan names it", bool(named), plan["hindrances"])
    left = [left for left in plan["left_out"] if "container" in left["text"]]
    lab.check(f"{evidence}: what a host would need is listed with the reason", bool(left), plan["left_out"][:3])
    lab.expect("tune plan", done.status, "container", "run lowlat on its host")
    lab.expect("tune apply --yes", 2, "container", evidence)
    lab.expect("audit", 1)
    lab.same(before, lab.facts(f"after-{lab.looks}"), f"{evidence}: after the refusal")


def run(lab):
    guest = lab.guest
    guest.boot()
    changes = tune.plan(lab)["changes"]
    lab.check("without the signs of a container a plan has changes", bool(changes), len(changes))
    for evidence in ("/.dockerenv", "/run/.containerenv", "/run/secrets/kubernetes.io"):
        guest.must(f"mkdir -p $(dirname {evidence}); touch {evidence}")
        refused(lab, evidence)
        guest.must(f"rm {evidence}")
    # Without what makes a host of it.
    guest.must("systemctl disable container-host")
    guest.reboot()
    refused(lab, "/run/systemd/container")
    guest.must("rm /run/systemd/container")
    refused(lab, "container=systemd-nspawn")
