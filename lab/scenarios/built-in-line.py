"""Kernels that were built with a command line: the cycle where it comes before GRUB's, and a refusal where it is the only one."""

from harness import kernels, tune

MACHINE = "four-cpus"
SUITE = "trixie"
IS_QUICK = False

# What the plan sets otherwise: the last word wins.
WORDS = "transparent_hugepage=always lab.built_in"


def build(lab, only):
    line = f"{WORDS} {lab.guest.cmdline.split(' ', 1)[1]}" if only else WORDS
    kernels.install_built(lab, SUITE, "-e=CMDLINE_BOOL", f"--set-str=CMDLINE={line}", f"-{'e' if only else 'd'}=CMDLINE_OVERRIDE")
    lab.guest.reboot()
    lab.need("the kernel puts its own line first", lab.guest.cmdline.startswith(WORDS), lab.guest.cmdline)


def judge(lab, plan):
    tokens = [token["name"] for change in plan["changes"] for token in change["target"].get("tokens", [])]
    lab.need("the plan sets the parameter that the kernel was built with", "transparent_hugepage" in tokens, tokens)
    lab.check("the plan isolates CPUs", bool(plan["isolated"]), plan["isolated"])


def midway(lab):
    lab.expect("tune status", 0)
    line = lab.guest.cmdline
    lab.check("the kernel's own word stays, and the plan's comes after it", 0 <= line.find("=always") < line.find("transparent_hugepage=never"), line)
    mode = lab.text("/sys/kernel/mm/transparent_hugepage/enabled")
    lab.check("the later one is in force", "[never]" in mode, mode)


def refused(lab):
    """With CONFIG_CMDLINE_OVERRIDE no boot loader can set a parameter: the rest of the plan is applied."""
    before = lab.facts("only-before")
    tune.plan(lab, path="/lab/only.json")
    lab.refused = ("CONFIG_CMDLINE",)
    document = tune.apply(lab)
    lab.check("no reboot completes the plan", not document["needs_reboot"])
    lab.guest.reboot()
    reasons = [one["reason"] for one in tune.status(lab)["in_force"]["known"]["refused"]]
    lab.check("status has the reason", any("CONFIG_CMDLINE_OVERRIDE" in why for why in reasons), reasons)
    tune.rollback(lab)
    lab.guest.reboot()
    lab.same(before, lab.facts("only-after"), "after the rollback and a reboot")
    tune.nothing_in_force(lab)


def run(lab):
    tune.cycle(lab, judge, midway, prepare=lambda lab: build(lab, False))
    build(lab, True)
    refused(lab)
