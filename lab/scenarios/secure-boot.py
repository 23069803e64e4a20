"""The full cycle under Secure Boot, with Debian's signed shim, GRUB and kernel, which is locked down: what that denies is named."""

from harness import tune

MACHINE = "four-cpus-secure-boot"
SUITE = "trixie"
LOADER = "grub-efi"
PACKAGES = ("shim-signed", "grub-efi-amd64-signed")
IS_QUICK = False

LOCKDOWN = "/sys/kernel/security/lockdown"


def judge(lab, plan):
    lab.need("the kernel was started under Secure Boot", lab.guest.run("dmesg | grep -i 'secure boot enabled'").status == 0)
    mode = lab.text(LOCKDOWN)
    lab.need("the kernel is locked down", "[integrity]" in mode, mode)
    shown = lab.lowlat("host show --json").json()
    lab.check("lowlat reports both", (tune.known(shown["firmware"]["secure_boot"]), tune.known(shown["kernel"]["lockdown"])) == (True, "integrity"), shown["kernel"]["lockdown"])
    lab.check("the plan isolates CPUs", bool(plan["isolated"]), plan["isolated"])
    hidden = [change["target"] for change in plan["changes"] if "/sys/kernel/debug" in str(change["target"])]
    lab.check("the plan has nothing that lockdown denies", not hidden, hidden)


def midway(lab):
    done = lab.lowlat("audit --json")
    why = [finding for finding in done.json()["findings"] if "debug" in str(finding) and "lockdown" in str(finding)]
    lab.check("the audit names lockdown as the reason", bool(why), done.text[:300])
    done = lab.lowlat("jitter --duration 5s --force --json")
    kinds = {of["kind"]: of for of in (done.json() or {}).get("measurements", [])}
    lab.need("jitter prints a document", "jitter" in kinds, f"{done.status}: {done.said[-600:]}")
    causes = kinds["jitter"]["record"]["causes"]
    lab.note(f"causes: {str(causes)[:1500]}")
    found = [one for cpu in (causes or {}).get("cpus", []) for one in cpu["totals"]]
    lab.check("jitter finds causes in the kernel's trace", causes["source"] == "trace" and bool(found), str(causes)[:600])
    lab.note(lab.lowlat("jitter --duration 3s --cpus 0 --force").text[-2500:])


def confidential(lab):
    """A stronger lockdown, until the next boot, denies the kernel's trace as well."""
    lab.guest.must(f"echo confidentiality >{LOCKDOWN}")
    lab.expect("jitter --duration 2s --force", 0, "denied by lockdown (confidentiality)")
    lab.expect("jitter --duration 2s --force --no-causes", 0)


def run(lab):
    tune.cycle(lab, judge, midway)
    confidential(lab)
