"""`report compare`: the documents of a stock and of a tuned server name the settings that removed each cause; of twins
with one harmful change among many harmless ones, the harmful one is ranked first."""

import json
import subprocess

from harness import facts, tune

MACHINE = "four-cpus"
IS_QUICK = False

# Sysctls without effect on a thread that spins on an isolated CPU.
HARMLESS = {
    "vm.swappiness": 35, "vm.dirty_ratio": 33, "vm.dirty_background_ratio": 11, "vm.compaction_proactiveness": 7,
    "vm.zone_reclaim_mode": 1, "kernel.hung_task_timeout_secs": 77, "kernel.printk": "3 4 1 7",
    "kernel.core_pattern": "core.%p", "net.core.busy_read": 20, "net.core.busy_poll": 20, "net.core.rmem_max": 300000,
    "net.core.wmem_max": 300000, "net.core.rmem_default": 200000, "net.core.wmem_default": 200000,
    "net.core.netdev_max_backlog": 2000, "net.core.netdev_budget": 400, "net.core.somaxconn": 1000,
    "net.ipv4.conf.all.rp_filter": 2, "net.ipv4.tcp_slow_start_after_idle": 0, "net.ipv4.tcp_autocorking": 0,
    "net.ipv4.tcp_low_latency": 1, "net.ipv4.tcp_timestamps": 0, "net.ipv4.tcp_sack": 0, "net.ipv4.igmp_max_memberships": 40,
    "kernel.panic": 5, "fs.file-max": 1000000,
}
KNOBS = {
    "/sys/kernel/mm/transparent_hugepage/enabled": "always",
    "/sys/kernel/mm/transparent_hugepage/defrag": "never",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag": "1",
}
# The least number of other settings that differ between twins.
OTHERS_MIN = 15
SECONDS = 12
# Emulated CPUs stop for microseconds all the time.
THRESHOLD = "10us"
# Every character is an interrupt of the serial port.
TALK = "(while :; do echo x; sleep 0.02; done) >/dev/ttyS0 2>/dev/null </dev/null & echo $! >/run/talk"
# One thread that may run anywhere.
SPIN = "setsid sh -c 'while :; do :; done' >/dev/null 2>&1 </dev/null & echo $! >/run/spin"
DROP = "sed -i 's/{}=[^ \"]*//' /etc/default/grub.d/*lowlat*.cfg && update-grub"


def measured(lab, name, cpus):
    """The document of a run on these CPUs, as a path."""
    path = lab.guest.share / f"{name}.json"
    lab.expect(f"jitter --duration {SECONDS}s --threshold {THRESHOLD} --cpus {cpus} --force --result /lab/{name}.json", 0)
    return path


def compared(lab, before, after, *more):
    """What `report compare` on this host says of two documents."""
    command = [lab.guest.share / "lowlat", "report", "compare", before, after, "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True)
    lab.need(f"report compare {before.stem} {after.stem} prints a document", done.returncode == 0, done.stderr[-600:])
    return json.loads(done.stdout)["comparisons"][0]


def ranked(comparison):
    """The settings that explain something, best first: id and causes."""
    return [(of["id"], [" ".join(filter(None, (cause["kind"], cause.get("name")))) for cause in of["causes"]]) for of in comparison["explanations"] if of["causes"]]


def vanished(lab, comparison, isolated):
    """Checks that each cause that vanished from isolated CPUs is explained by a setting."""
    explained = [cause for of in comparison["explanations"] for cause in of["causes"]]
    gone = [cause["cause"] for cause in comparison["causes"] if cause["verdict"] == "vanished"]
    lab.check("causes vanished", bool(gone), comparison["causes"][:3])
    without = [cause for cause in gone if cause not in explained]
    lab.note(f"vanished from {isolated}: {gone}")
    lab.note(f"explained: {ranked(comparison)}")
    lab.check("each cause that vanished has a setting", not without, without)


def twin(lab, harmful, base, isolated, harm, undo):
    """Measures a twin with a harmful change, and checks its place in the ranking."""
    lab.guest.must(harm)
    after = measured(lab, harmful.replace(".", "-"), isolated)
    lab.guest.must(undo)
    return judged(lab, harmful, base, after)


def judged(lab, harmful, base, after):
    comparison = compared(lab, base, after)
    others = {change["id"] for change in comparison["setting_changes"]} - {harmful}
    lab.check(f"{harmful}: at least {OTHERS_MIN} other settings differ", len(others) >= OTHERS_MIN, sorted(others))
    first = [of["id"] for of in comparison["explanations"]][:3]
    lab.note(f"{harmful} among {len(others)} others: {ranked(comparison)}")
    return lab.check(f"{harmful} is first", first[:1] == [harmful], first)


def harmless(lab):
    """Makes the harmless changes; a kernel without one of the files keeps the others."""
    lines = [f"sysctl -q -w '{key}={value}' 2>/dev/null || true" for key, value in HARMLESS.items()]
    lines += [f"echo {value} >{path} || true" for path, value in KNOBS.items()]
    lab.guest.must("\n".join(lines))


def run(lab):
    guest = lab.guest
    guest.boot()
    plan = tune.plan(lab)
    isolated = plan["isolated"]
    guest.must(SPIN)
    before = measured(lab, "before", isolated)
    tune.apply(lab)
    guest.reboot()
    guest.must(f"{SPIN}; sysctl -q -w kernel.watchdog_thresh=1")
    after = measured(lab, "after", isolated)
    page = lab.folder / "before-after.html"
    comparison = compared(lab, before, after, "--report", page)
    vanished(lab, comparison, isolated)
    text = page.read_text()
    missing = [name for name, _ in ranked(comparison) if name not in text]
    lab.check("the page names each of the settings", not missing, missing)

    one = min(facts.cpus(isolated))
    harmless(lab)
    rcu = "$(pgrep -x rcu_preempt || pgrep -x rcu_sched)"
    housekeeping = plan["housekeeping"]
    pairs = {
        "irq.affinity": (f"{TALK}; echo {one} >/proc/irq/4/smp_affinity_list", f"kill $(cat /run/talk); echo {housekeeping} >/proc/irq/4/smp_affinity_list"),
        "sysctl.kernel.watchdog_cpumask": ("sysctl -q -w kernel.watchdog_cpumask=0-3", f"sysctl -q -w kernel.watchdog_cpumask={housekeeping}"),
        "kthread.rcu": (f"taskset -pc {one} {rcu}", f"taskset -pc {housekeeping} {rcu}"),
    }
    first = [twin(lab, harmful, after, isolated, *pair) for harmful, pair in pairs.items()]
    for harmful in ("boot.nohz_full", "boot.isolcpus"):
        guest.must("cp -a /etc/default/grub.d /root/grub.d")
        guest.must(DROP.format(harmful.removeprefix("boot.")))
        guest.reboot()
        guest.must(f"{SPIN}; sysctl -q -w kernel.watchdog_thresh=1")
        harmless(lab)
        first.append(judged(lab, harmful, after, measured(lab, harmful.replace(".", "-"), isolated)))
        guest.must("cp -a /root/grub.d/. /etc/default/grub.d/ && update-grub")
    lab.note(f"the harmful setting is first in {sum(first)} of {len(first)} pairs")
