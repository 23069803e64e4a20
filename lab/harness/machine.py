"""A file of lab/machines/ as QEMU's arguments."""

import dataclasses
import pathlib
import subprocess

LAB = pathlib.Path(__file__).resolve().parent.parent

# The shell side knows what a machine file may say; this prints what came out of it, parts ended by NUL.
PRINT = 'source "$lab/machine.sh"; printf "%s\\0" "$disk" "$bus" "$threads" "${qemu[@]}"'


@dataclasses.dataclass
class Machine:
    """What a machine is made of."""

    name: str
    disk: str
    """The device of the root disk."""
    bus: str
    """Where the lab's own devices go."""
    threads: str
    """Whether each CPU has a thread of its own: "multi" or "single"."""
    arguments: list


def load(name, tables):
    """Reads a machine's file; SMBIOS records that QEMU needs go to the folder `tables`."""
    if not (LAB / "machines" / name).is_file():
        raise ValueError(f"lab/machines/{name}: no such machine")
    tables.mkdir(parents=True, exist_ok=True)
    said = subprocess.run(
        ["bash", "-euc", 'lab=$1 machine=$2 tables=$3; ' + PRINT, "machine", LAB, name, tables],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    disk, bus, threads, *arguments = said.split("\0")[:-1]
    return Machine(name, disk, bus, threads, arguments)
