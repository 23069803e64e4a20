"""Every command of docs/install.md, docs/quick-start.md and docs/tasks/, as written, on a fresh host in a container.

A line fails that ends with an error: of the shell, or lowlat's exit code 2. Names of hosts mean the container itself. Times
are shortened, and CPUs are those that it has."""

import re
import shlex
import shutil

from harness import packages
from harness.machine import LAB
from harness.scenario import Skip

MACHINE = "container"
IS_QUICK = False

DOCS = LAB.parent / "docs"
FIXTURES = LAB.parent / "fixtures"
# What a reader has by then.
GIVEN = {
    "desk7.tar.gz": "hosts/epyc-7f32-stock.tar.gz",
    "desk8.tar.gz": "hosts/smt-2s.tar.gz",
    "run.json": "results/jitter.json",
    "tuesday": "../pipeline/journal/tests/golden/v1",
}
ROLE = 'profile = "trading"\naccept-risk = ["sysfs.vulnerabilities"]\n'
# Programs that the lines start. ssh and scp reach this host under every name.
PROGRAMS = {
    "sudo": 'exec "$@"',
    "ssh": 'shift; exec sh -c "$*"',
    "scp": 'cp "$1" "${2#*:}"',
    "solver": "sleep 1",
    "strategy": "sleep 3",
    "app": "sleep 1",
    "column": "cat",
}
# What a container cannot do, and what shows it instead.
ELSEWHERE = {
    r"^cargo |^sudo dnf ": "built before; the scenarios `packages` compare the RPM package with Debian's",
    r"--redfish": "needs a management controller; the tests of lowlat bios have one",
    r"^ansible-": "the scenario `rollout`",
    r"sockperf": "another program",
    r"onload": "needs a release of Onload, which lowlat does not bring",
    r"cache false-sharing|cache c2c": "needs the kernel's userfaultfd or counters, which a container has not",
}
# What a host with two CPUs has instead, beside other programs.
OWN = [
    ("--host-core 3", "--host-core 1"),
    ("--strategies 10000", "--strategies 100"),
    ("cluster-spread 16", "cluster-spread 2"),
    ("--threads 4", "--threads 2"),
    ("--wait --gate", "--force --gate"),
    ("lowlat assess", "lowlat assess --duration 2s"),
    ("matrix --budget 10m", "matrix --dry-run --budget 10m"),
]
# Lines that run until something else ends.
BACKGROUND = re.compile(r"net server|journal record|--follow")
TIMES = re.compile(r"\b(\d+)(s|m|h)\b(?=\s|'|$)")


def run(lab):
    first = lab.guest
    for path in [DOCS / "install.md", DOCS / "quick-start.md", *sorted((DOCS / "tasks").glob("*.md"))]:
        lab.guest = first.twin(path.stem)
        try:
            follow(lab, path)
        finally:
            lab.guest.off()
    lab.guest = first


def follow(lab, path):
    """Runs the lines of a document, one after another."""
    guest = lab.guest
    guest.boot()
    prepare(lab)
    for line in lines(path.read_text()):
        why = next((why for pattern, why in ELSEWHERE.items() if re.search(pattern, line)), None)
        if why:
            lab.note(f"{path.stem}: {line}: {why}")
        elif line.split() in (["sudo", "reboot"], ["reboot"]):
            guest.reboot()
        else:
            end = "& sleep 2" if BACKGROUND.search(line) else ""
            (guest.share / "line").write_text(f"cd /root/desk && PATH=.:$PATH && {short(line)} {end}\n")
            done = guest.run("timeout --kill-after=5 120 sh /lab/line")
            # A measurement that refuses a busy host says how to measure nevertheless.
            is_right = done.status in (0, 1, 3, 4) or (done.status == 2 and "would not be meaningful" in done.text)
            lab.check(f"{path.stem}: {line}", is_right, "" if is_right else f"{done.status}: {done.text[-700:]}")


def lines(text):
    """The commands of blocks of kind `sh`, without comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M)
    stripped = [re.sub(r"\s+#\s.*$", "", line).strip() for block in blocks for line in block.splitlines()]
    return [line for line in stripped if line and not line.startswith("#")]


def short(line):
    """The same command for seconds, on CPUs that there are."""
    if not re.search("--confirm-within|--watch|--budget", line):
        line = TIMES.sub("2s", line)
    line = re.sub(r"--cpus [\d,-]+", "--cpus 1", line)
    for of_reader, own in OWN:
        line = line.replace(of_reader, own)
    # No terminal asks anybody here.
    return f"{line} --yes" if re.search(r"tune (apply|rollback)", line) and "--yes" not in line else line


def prepare(lab):
    """The files and programs that the documents take for granted."""
    guest = lab.guest
    desk = guest.share / "desk"
    (desk / "target/dist").mkdir(parents=True)
    for name, fixture in GIVEN.items():
        (shutil.copytree if (FIXTURES / fixture).is_dir() else shutil.copy)(FIXTURES / fixture, desk / name)
    (desk / "desk.toml").write_text(ROLE)
    shutil.copytree(DOCS.parent / "fixtures/hosts", desk / "fixtures/hosts")
    shutil.copy(guest.share / "lowlat", desk / "target/dist/lowlat")
    try:
        shutil.copy(packages.deb(lab, guest.folder / "package"), desk / "target/dist")
    except Skip as reason:
        lab.skip("the Debian package", reason)
    programs = "".join(f"printf '#!/bin/sh\\n%s\\n' {shlex.quote(text)} >/usr/local/bin/{name}; " for name, text in PROGRAMS.items())
    guest.must(f"{programs} chmod 755 /usr/local/bin/*; cp -r /lab/desk /root/desk; cp /usr/local/bin/{{solver,strategy,app}} /root/desk/")
    guest.start("lowlat net server")
    guest.must("for name in desk7 desk8 server bmc7; do echo 127.0.0.1 $name; done >>/etc/hosts")
