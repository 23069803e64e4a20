"""A file of lab/machines/ as QEMU's arguments."""

import dataclasses
import pathlib
import subprocess

LAB = pathlib.Path(__file__).resolve().parent.parent

# The shell part defines what a machine file may contain; this prints the result, with parts terminated by NUL.
PRINT = 'source "$lab/machine.sh"; printf "%s\\0" "$disk" "$bus" "$threads" "${qemu[@]}"'


@dataclasses.dataclass
class Machine:
    """The hardware of a machine."""

    name: str
    disk: str
    """The device of the root disk."""
    bus: str
    """The bus of the lab's own devices."""
    threads: str
    """Whether each CPU has a separate thread: "multi" or "single"."""
    arguments: list


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
    disk, bus, threads, *arguments = said.split("\0")[:-1]
    return Machine(name, disk, bus, threads, arguments)
