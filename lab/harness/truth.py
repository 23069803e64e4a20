"""lab/truth: what each kernel of Debian does with each setting, by effect, as data for the project."""

import argparse
import importlib
import json
import pathlib
import shutil
import subprocess
import sys

from . import initramfs, kernels
from . import machine as machines

TOP = machines.LAB.parent
OUT = TOP / "target/lab/truth"
DATA = TOP / "fixtures/truth"
GUEST = machines.LAB / "guest"
# The guest's first process, and the module that it imports.
SCRIPTS = (GUEST / "effects.py", GUEST / "kernel.py")
REAL_TIME = "linux-image-rt-amd64"
KERNELS = {
    "5.10": ("bullseye", kernels.META), "6.1": ("bookworm", kernels.META), "6.12": ("trixie", kernels.META),
    "7.2": ("sid", kernels.META), "7.3": ("trixie-backports", kernels.META),
    "6.12-rt": ("trixie", REAL_TIME), "7.3-rt": ("trixie-backports", REAL_TIME),
}  # fmt: skip
BOOTS = ("plain", "set", "other")
BOOT_SECONDS = 900
# The most telling first.
ANSWERS = ("effective", "accepted", "refused", "ignored", "absent", "not seen")


def effects():
    """The guest's script, for its tables."""
    sys.path.append(str(GUEST))
    return importlib.import_module("effects")


def prepare(name, lowlat):
    """Downloads a kernel unless it is there; returns it and its RAM disk."""
    folder = OUT / name
    suite, meta = KERNELS[name]
    if (folder / "release").exists():
        tree, release = folder / "download/tree", (folder / "release").read_text()
    else:
        tree, release = kernels.fetch(suite, folder / "download", meta)
        (folder / "release").write_text(release)
    places = [tree / "boot", tree / "usr/lib/modules" / release, tree / "lib/modules" / release]
    find = lambda names: next(path for place in places for one in names if (path := place / one).exists())
    modules = next(place for place in places[1:] if (place / "kernel").is_dir())
    config = find((f"config-{release}", "config"))
    ram = folder / "initramfs"
    initramfs.build(ram, modules / "kernel", config, release, SCRIPTS, lowlat)
    return find((f"vmlinuz-{release}", "vmlinuz")), ram


def boot(name, mode, kernel, ram, line):
    """Boots a kernel once, until the guest has reported."""
    folder = OUT / name / mode
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "share").mkdir(parents=True)
    machine = machines.load("four-cpus", folder / "tables")
    command = [
        "qemu-system-x86_64", "-accel", f"tcg,thread={machine.threads}", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-serial", f"file:{folder}/console.log", *machine.arguments, "-device", "intel-iommu,intremap=off",
        "-drive", "if=none,id=root,driver=null-co,size=64M", "-device", f"{machine.disk},bus={machine.bus}",
        "-fsdev", f"local,id=lab,path={folder}/share,security_model=none",
        "-device", f"virtio-9p-pci,fsdev=lab,mount_tag=lab,bus={machine.bus}",
        "-kernel", kernel, "-initrd", ram, "-append", f"console=ttyS0 net.ifnames=0 panic=-1 no_timer_check lab.mode={mode} {line}",
    ]  # fmt: skip
    for _ in range(3):
        with open(folder / "qemu.log", "w") as log:
            try:
                subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=BOOT_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        if (folder / "share/report.json").exists():
            return
    raise RuntimeError(f"kernel {name}, boot {mode}: no report; see {folder}")


def lines(table):
    """The command line of each boot."""
    return {mode: " ".join([table.ALSO[mode], *(one["token"] for one in table.BOOT.values() if one["boot"] == mode)]) for mode in BOOTS}


def judge_token(id, one, seen, built_in):
    """What a kernel did with a parameter: the boot with it beside the one without."""
    given, without = seen[one["boot"]], seen[one["without"]]
    key = one["token"].split("=")[0]
    is_unknown = any(entry.split("=")[0] == key for entry in given["environment"]) or f"{key}=" in given["unknown"] or key in given["unknown"].split()
    if one["file"]:
        value = given["files"][id]
        _, _, _, module, _, parameter = one["file"].split("/")
        if value is None and f"{module}.parmtype={parameter}:" in built_in:
            return "not seen", "this kernel has the parameter and does not show its value"
        if value is None:
            return "absent", f"{one['file']} does not exist"
        if value != one["token"].split("=")[1]:
            return "ignored", f"{one['file']} reads {value}"
        return "accepted", f"{one['file']} reads {value}; effect not seen: {one['reason']}"
    if is_unknown:
        return "absent", "the kernel passes it to the first process as unknown"
    holds, held = one["effect"](given), one["effect"](without)
    if holds is None:
        return "not seen", one["reason"] or "nothing in this kernel shows it"
    if holds and held:
        return ("not seen", one["reason"]) if one["reason"] else ("accepted", "the kernel does the same without it")
    return ("effective", "") if holds else ("ignored", "nothing changes with it")


def cells(table, reports, tree):
    """The answers of a kernel, by setting."""
    seen = {mode: report["seen"] for mode, report in reports.items()}
    found = {}
    built_in = "\0".join(path.read_text(errors="replace") for path in tree.rglob("modules.builtin.modinfo"))
    for id, one in table.BOOT.items():
        answer, detail = judge_token(id, one, seen, built_in)
        found[id] = {"tried": one["token"], "answer": answer, "detail": detail, "in_capture": one["token"] in lines(table)["set"].split()}
    then = reports["set"]["writes"]
    for id, one in reports["plain"]["writes"].items():
        # A parameter can keep a setting from taking effect, or make it possible.
        best = min((one, then.get(id, one)), key=lambda written: ANSWERS.index(written["answer"]))
        found[id] = {"tried": best.pop("wrote", ""), **best}
    return {"release": reports["plain"]["release"], "command_lines": lines(table), "settings": dict(sorted(found.items()))}


def main():
    parser = argparse.ArgumentParser(prog="lab/truth", description="Tries every setting on Debian's kernels and writes fixtures/truth/.")
    parser.add_argument("kernels", metavar="KERNEL", nargs="*", help=f"one of {', '.join(KERNELS)} [default: all]")
    parser.add_argument("--lowlat", metavar="BINARY", type=pathlib.Path, required=True, help="the binary that captures the guest")
    parser.add_argument("--boot", metavar="BOOT", action="append", choices=BOOTS, help=f"repeat only this boot of {', '.join(BOOTS)}; repeat the option for more")
    parser.add_argument("--again", action="store_true", help="evaluate the last boots again instead of booting")
    chosen = parser.parse_args()
    table = effects()
    DATA.mkdir(parents=True, exist_ok=True)
    for name in chosen.kernels or KERNELS:
        if name not in KERNELS:
            sys.exit(f"lab/truth: {name} is no kernel; expected {', '.join(KERNELS)}")
        if not chosen.again:
            lowlat = OUT / "lowlat"
            OUT.mkdir(parents=True, exist_ok=True)
            shutil.copy(chosen.lowlat, lowlat)
            subprocess.run(["strip", lowlat], check=True)
            kernel, ram = prepare(name, lowlat)
            for mode in chosen.boot or BOOTS:
                boot(name, mode, kernel, ram, lines(table)[mode])
                print(f"lab/truth: {name}: boot {mode} done", flush=True)
            ram.unlink()
        reports = {mode: json.loads((OUT / name / mode / "share/report.json").read_text()) for mode in BOOTS}
        shutil.copy(OUT / name / "set/share/capture.tar.gz", DATA / f"{name}.tar.gz")
        (DATA / f"{name}.json").write_text(json.dumps(cells(table, reports, OUT / name / "download/tree"), indent=1) + "\n")
        print(f"lab/truth: {name}: fixtures/truth/{name}.json", flush=True)


if __name__ == "__main__":
    main()
