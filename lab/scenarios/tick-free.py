"""Isolated CPUs are tick-free under a running thread, by verify's proof and by the kernel's own counter."""

from harness import tune

RIDES = "full-cycle"
IS_QUICK = True

# Two threads that never sleep, one on an isolated CPU and one on a housekeeping CPU for comparison.
SPIN = """
spin() { exec taskset -c "$1" bash -c 'while :; do :; done'; }
ticks() { awk -v cpu="$1" '$1 == "LOC:" { print $(cpu + 2) }' /proc/interrupts; }
spin 9 & first=$!
spin 8 & second=$!
sleep 5
isolated=$(ticks 9) housekeeping=$(ticks 8)
sleep 20
echo "$(($(ticks 9) - isolated)) $(($(ticks 8) - housekeeping))"
kill $first $second
"""


def run(lab):
    isolated, housekeeping = map(int, lab.guest.must(SPIN).text.split())
    # In emulation, the tick is late on both; the kernel requests 250 per second.
    lab.check("a spinning thread on CPU 8 is interrupted by the tick", housekeeping > 200, f"{housekeeping} in 20 s")
    lab.check("a spinning thread on CPU 9 is not: at most 2 ticks a second", isolated <= 40, f"{isolated} in 20 s")
    document = lab.lowlat("tune verify --json").json() or {}
    ticks = document.get("ticks")
    lab.check("verify counted ticks", bool(ticks), ticks)
    rows = [row for row in document.get("rows", []) if "tick" in row["what"]]
    lab.check("verify's rows of the ticks are held", bool(rows) and all(row["standing"] == "held" for row in rows), [tune.standing(row) for row in rows][:16])
