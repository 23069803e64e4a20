"""A server that boots a unified kernel image: the command line is refused, no reboot is waited for, and set manually it is held."""

import re
import subprocess

from harness import tune

MACHINE = "four-cpus-uefi"
SUITE = "trixie"
LOADER = "systemd-boot"
IS_QUICK = False

WHY = "unified kernel image"
PARTS = """
v=$(uname -r)
cp "/boot/vmlinuz-$v" /lab/linux && cp "/boot/initrd.img-$v" /lab/initrd
cp /etc/os-release /lab/osrel && cp /usr/lib/systemd/boot/efi/linuxx64.efi.stub /lab/stub
"""
IMAGE = "/boot/efi/EFI/Linux/debian.efi"
INSTALL = f"mkdir -p /boot/efi/EFI/Linux && cp /lab/debian.efi {IMAGE} && rm -f /boot/efi/loader/entries/*.conf && sync"


def install_image(lab, line):
    """Makes an image of the guest's kernel with this command line, and makes it the only entry. The guest has no objcopy."""
    guest, share = lab.guest, lab.guest.share
    guest.must(PARTS)
    (share / "cmdline").write_text(line)
    tell = lambda *words: subprocess.run(words, check=True, capture_output=True, text=True).stdout
    align = int(re.search(r"SectionAlignment\s+([0-9a-f]+)", tell("objdump", "-p", share / "stub"))[1], 16)
    sections = re.findall(r"^\s+\d+ \S+\s+([0-9a-f]{8})\s+([0-9a-f]{8,16})", tell("objdump", "-h", share / "stub"), re.M)
    at = max(int(size, 16) + int(address, 16) for size, address in sections)
    words = []
    for section in ("osrel", "cmdline", "initrd", "linux"):
        at += -at % align
        words += [f"--add-section=.{section}={share / section}", f"--change-section-vma=.{section}={at:#x}"]
        at += (share / section).stat().st_size
    tell("objcopy", *words, share / "stub", share / "debian.efi")
    guest.must(INSTALL)


def of_boot(row):
    return any(setting.startswith("boot.") for setting in row["settings"])


def refused(lab, when):
    """status and verify: refused, with the reason and what to do, and nothing else."""
    document = tune.status(lab)
    lab.check(f"{when}: status says refused", document["reboot"] == "refused", document["reboot"])
    reasons = [one["reason"] for one in document["in_force"]["known"]["refused"]]
    lab.check(f"{when}: status has the reason", any(WHY in why and "/etc/kernel/cmdline" in why for why in reasons), reasons)
    done = lab.lowlat("tune verify --json --no-ticks")
    rows = [row for row in done.json()["rows"] if of_boot(row)]
    others = [tune.standing(row) for row in rows if row["standing"] != "refused" or WHY not in row["note"]]
    lab.check(f"{when}: verify says refused of {len(rows)} rows", rows and not others, others[:5])
    lab.check(f"{when}: verify ends with 1", done.status == 1, done.status)


def run(lab):
    guest = lab.guest
    guest.boot()
    line = guest.must("cat /etc/kernel/cmdline").text.strip()
    install_image(lab, line)
    guest.must(f"cp -p {IMAGE} /lab/first.efi")
    guest.reboot()
    stub = guest.run("tr -d '\\0' </sys/firmware/efi/efivars/StubInfo-*").text
    lab.need("systemd's stub started the kernel", "systemd-stub" in stub, stub)
    before = lab.facts("before")
    planned = tune.plan(lab)
    lab.refused = (WHY,)
    document = tune.apply(lab)
    lab.check("no reboot completes the plan", not document["needs_reboot"])
    refused(lab, "in the boot of the apply")
    guest.reboot()
    refused(lab, "after the reboot")
    tokens = [token for change in planned["changes"] for token in change["target"].get("tokens", [])]
    words = " ".join(token["name"] + ("=" + token["value"] if token["value"] else "") for token in tokens if token["value"] is not None)
    install_image(lab, f"{line} {words}")
    guest.reboot()
    lab.refused = ()
    status = tune.status(lab)
    lab.check("set manually, the command line is in effect", status["reboot"] == "done", status["reboot"])
    done = lab.lowlat("tune verify --json --no-ticks")
    rows = [tune.standing(row) for row in done.json()["rows"] if of_boot(row) and row["standing"] != "held"]
    lab.check("verify holds each parameter", not rows, rows)
    tune.rollback(lab)
    tune.nothing_in_force(lab)
    # As its owner would: the image from before, since one that is made again has other times in it.
    guest.must(f"cp -p /lab/first.efi {IMAGE} && sync")
    guest.reboot()
    lab.same(before, lab.facts("after"), "after the rollback and a reboot")
