"""Profile guide-57037 with its role on the guide's server: the cycle of full-cycle, and the guide's own checks in between."""

from harness import guide, tune

MACHINE = "epyc-7f32-26g"
IS_QUICK = False

ROLE = "--role guide-57037"
HOUSEKEEPING = "0,8"

# Threads of the kernel with their policy, priority and CPUs.
THREADS = """
for status in /proc/[0-9]*/status; do
    pid=${status#/proc/} pid=${pid%/status}
    name=$(cat "/proc/$pid/comm" 2>/dev/null) || continue
    case $name in
    ksoftirqd/* | rcub/* | rcu* | kswapd*) ;;
    *) continue ;;
    esac
    [ -z "$(readlink "/proc/$pid/exe")" ] || continue
    bound=$(awk '{ sub(/.*\\) /, ""); print int($7 / 67108864) % 2 }' "/proc/$pid/stat")
    echo "$name $(chrt -p "$pid" | sed -n 's/.*\\(policy\\|priority\\): //p' | tr '\\n' ' ')$bound $(taskset -cp "$pid" | sed 's/.*: //')"
done
"""


def threads(lab):
    """Name, policy, priority, whether the kernel binds it to its CPU, CPUs."""
    found = []
    for line in lab.guest.must(THREADS).text.splitlines():
        name, policy, priority, bound, cpus = line.split(" ", 4)
        found.append((name, policy, priority, bound == "1", cpus))
    return found


def user_processes(lab, when):
    """The guide's check of 4.3.3.1.1: `taskset -cp $$`."""
    for what, command in (("a login shell", "su - root -c 'taskset -cp $$'"), ("process 1", "taskset -cp 1")):
        said = lab.guest.must(command).text.strip()
        lab.check(f"{when}: {what} may use {HOUSEKEEPING}", said.endswith(f": {HOUSEKEEPING}"), said)


def sysctls(lab):
    """Section 4.2.1: the values, and the file of the next boot."""
    listed = dict(line.split(" = ", 1) for line in lab.text("/etc/sysctl.d/99-zz-lowlat.conf").splitlines() if " = " in line)
    paths = " ".join("/proc/sys/" + key.replace(".", "/") for key in guide.SYSCTLS)
    lines = lab.guest.must(f"for path in {paths}; do if [ -e $path ]; then cat $path; else echo absent; fi; done").text.splitlines()
    lab.need("each sysctl has a line", len(lines) == len(guide.SYSCTLS), lines)
    seen = dict(zip(guide.SYSCTLS, lines))
    absent = [key for key, value in seen.items() if value == "absent"]
    for key, value in guide.SYSCTLS.items():
        if key not in absent:
            lab.check(f"{key} is {value}, also at the next boot", seen[key] == listed.get(key) == value, (seen[key], listed.get(key)))
    lab.note(f"sysctls that this kernel lacks: {absent}")


def command_line(lab):
    have = guide.tokens(lab.guest.cmdline)
    missing = [token for token in guide.tokens(guide.LINE) if token not in have]
    lab.check("every parameter of the guide is on the command line", not missing, missing)
    nohz_full = lab.text("/sys/devices/system/cpu/nohz_full")
    lab.check("the kernel reports nohz_full = 1-7,9-15", nohz_full == "1-7,9-15", nohz_full)
    pages = lab.text("/proc/sys/vm/nr_hugepages")
    lab.check("6000 huge pages are reserved", pages == "6000", pages)


def kernel_threads(lab):
    found = threads(lab)
    for prefix, priority in (("ksoftirqd/", "2"), ("rcub/", "4")):
        named = [thread for thread in found if thread[0].startswith(prefix)]
        others = [thread for thread in named if thread[1:3] != ("SCHED_FIFO", priority)]
        lab.check(f"{len(named)} {prefix}N are SCHED_FIFO {priority}", not others, others)
    lab.check("there is a ksoftirqd for each CPU", sum(t[0].startswith("ksoftirqd/") for t in found) == 16)
    movable = [thread for thread in found if thread[0].startswith(("rcu", "kswapd")) and not thread[3]]
    outside = [thread for thread in movable if not guide.facts.cpus(thread[4]) <= guide.facts.cpus(HOUSEKEEPING)]
    lab.check(f"{len(movable)} threads of RCU and kswapd are on {HOUSEKEEPING}", movable and not outside, outside)
    mask = lab.text("/sys/bus/workqueue/devices/writeback/cpumask")
    lab.check("write-back may use 0,8", mask.strip("0,") == "101", mask)
    numa = lab.text("/sys/bus/workqueue/devices/writeback/numa")
    lab.check("write-back ignores nodes", numa in ("0", ""), numa)


def midway(lab):
    user_processes(lab, "after the reboot")
    sysctls(lab)
    command_line(lab)
    kernel_threads(lab)
    active = lab.guest.must("tuned-adm active").text
    lab.check("TuneD has the guide's profile", "HPELowLatency" in active, active)
    default = lab.text("/proc/irq/default_smp_affinity")
    lab.check("new interrupts go to 0,8", default.lstrip("0,") == "101", default)
    # Without irqaffinity=, an interrupt moves when it next fires.
    movable, _ = tune.interrupts(lab)
    requested = {name: irq["affinity"] for name, irq in lab.facts("midway").interrupts.items() if name in movable}
    elsewhere = {name: cpus for name, cpus in requested.items() if not guide.facts.cpus(cpus) <= guide.facts.cpus(HOUSEKEEPING)}
    lab.check(f"{len(requested)} interrupts are requested on {HOUSEKEEPING}", requested and not elsewhere, elsewhere)
    modules = lab.guest.must("lsmod").text
    lab.check("no module of the packet filter is loaded", "nf_conntrack" not in modules and "ip_tables" not in modules)


def judge(lab, plan):
    lab.check("the plan isolates 1-7,9-15", plan["isolated"] == "1-7,9-15", plan["isolated"])
    lab.check("the plan keeps 0,8 for housekeeping", plan["housekeeping"] == HOUSEKEEPING, plan["housekeeping"])
    refused = [row["setting"] for row in plan["left_out"] if "not_accepted" in row["why"]]
    lab.note(f"risks that the role does not accept: {refused}")
    lab.check("the role accepts the guide's boot parameters", not any(id.startswith("boot.") for id in refused), refused)


def run(lab):
    # The kernel treats processor.max_cstate=0 as 1, and pcie_aspm=off renames interfaces, as the plan says.
    lab.refused = ("max_cstate", "no longer exists")
    tune.cycle(lab, judge, midway, ROLE, is_isolated_by_scheduler=False)
