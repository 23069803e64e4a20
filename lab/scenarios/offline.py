"""A CPU that goes offline while something is measured on it: a clear line, the rest goes on, nothing hangs."""

MACHINE = "four-cpus"
IS_QUICK = False

ONLINE = "/sys/devices/system/cpu/cpu3/online"


def beside(lab, command):
    """Runs a command, and takes CPU 3 offline once it has measured for some time."""
    done = lab.guest.run(
        f"lowlat {command} >/run/out 2>&1 & pid=$!; sleep 25; echo 0 >{ONLINE}; wait $pid; status=$?; echo 1 >{ONLINE}; "
        "cat /run/out; exit $status"
    )
    # Lines are wrapped.
    done.text = " ".join(done.text.split())
    return done


def counters(lab):
    done = beside(lab, "cache false-sharing --cpus 2,3 --rounds 1000")
    lab.check("false-sharing: ends with what it has", done.status == 0, repr(done))
    lab.check("false-sharing: names the CPU", "ended early: cannot run on CPU 3" in done.text, done.text[-600:])
    # A thread that the kernel moves in the middle of an addition must not lose it.
    lab.check("false-sharing: the per-CPU counter is right", "the per-CPU counter has" not in done.text, done.text[-600:])


def memory(lab):
    done = beside(lab, "cache memory --cpus 2,3 --buffer 8M --rounds 1000")
    lab.check("memory: ends with what it has", done.status == 0, repr(done))
    lab.check("memory: names the CPU", "cannot run on CPU 3" in done.text, done.text[-600:])
    lab.check("memory: shows the rounds before", "A load from memory takes" in done.text, done.text[-600:])


def pairs(lab):
    done = lab.guest.run(
        f"(for i in $(seq 40); do echo 0 >{ONLINE}; sleep 0.4; echo 1 >{ONLINE}; sleep 0.4; done) & toggler=$!; "
        "for i in $(seq 8); do lowlat cache c2c --cpus 0-3 >/run/out 2>&1; echo status $?; grep -E 'panicked|cannot' /run/out; done; "
        "wait $toggler; cat /run/out"
    )
    statuses = [line.split()[1] for line in done.text.splitlines() if line.startswith("status ")]
    lab.check("c2c: every run ends", len(statuses) == 8 and set(statuses) <= {"0", "1", "2"}, done.text[-800:])
    lab.check("c2c: no run breaks", "panicked" not in done.text, done.text[-800:])
    lab.check("c2c: an error names a CPU or pair", "2" not in statuses or "cannot" in done.text, done.text[-800:])


def run(lab):
    lab.guest.boot()
    counters(lab)
    memory(lab)
    pairs(lab)
