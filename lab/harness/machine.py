"""A file of lab/machines/ as QEMU's arguments."""

import dataclasses
import pathlib
import platform
import re
import subprocess

LAB = pathlib.Path(__file__).resolve().parent.parent
# The machine of scenarios that need no kernel of their own.
CONTAINER = "container"

# The shell part defines what a machine file may contain; this prints the result, with parts terminated by NUL.
PRINT = 'source "$lab/machine.sh"; printf "%s\\0" "$arch" "$disk" "$bus" "$threads" "${qemu[@]}"'


@dataclasses.dataclass
class Machine:
    """The hardware of a machine."""

    name: str
    arch: str
    """The processor, as printed by `uname -m`."""
    disk: str
    """The device of the root disk."""
    bus: str
    """The bus of the lab's own devices."""
    threads: str
    """Whether each CPU has a separate thread: "multi" or "single"."""
    arguments: list


def arch(name):
    """The processor of a machine; most name none."""
    if name == CONTAINER:
        return platform.machine()
    found = re.search(r"^arch=(\S+)$", (LAB / "machines" / name).read_text(), re.MULTILINE)
    return found[1] if found else "x86_64"


def arch_of(binary):
    """The processor of a program, from its ELF header; None for any other."""
    with open(binary, "rb") as file:
        head = file.read(20)
    return {62: "x86_64", 183: "aarch64"}.get(int.from_bytes(head[18:], "little"))


def load(name, tables):
    """Reads a machine's file; SMBIOS records that QEMU needs go to the folder `tables`."""
    if not (LAB / "machines" / name).is_file():
        raise ValueError(f"lab/machines/{name} does not exist")
    tables.mkdir(parents=True, exist_ok=True)
    said = subprocess.run(
        ["bash", "-euc", 'lab=$1 machine=$2 tables=$3; ' + PRINT, "machine", LAB, name, tables],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    arch, disk, bus, threads, *arguments = said.split("\0")[:-1]
    return Machine(name, arch, disk, bus, threads, arguments)
