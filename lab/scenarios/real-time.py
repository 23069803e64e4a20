"""The full cycle on Debian 13 with its real-time kernel, measured and rolled back."""

from harness import tune

MACHINE = "four-cpus"
SUITE = "trixie"
KERNEL = "rt"
IS_QUICK = False


def judge(lab, plan):
    lab.need("the kernel is a real-time one", lab.text("/sys/kernel/realtime") == "1", lab.text("/proc/version"))
    lab.check("the plan isolates CPUs", bool(plan["isolated"]), plan["isolated"])


def midway(lab):
    isolated = lab.text("/sys/devices/system/cpu/isolated")
    done = lab.expect(f"jitter --duration 3s --cpus {isolated} --force --json", 0)
    lab.check("jitter measures", bool((done.json() or {}).get("measurements")), done.text[:200])


def run(lab):
    tune.cycle(lab, judge, midway)
