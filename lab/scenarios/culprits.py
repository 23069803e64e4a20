"""Verify names what overrides a plan: a package's sysctl.d file, a TuneD profile, irqbalance, a manual change."""

from harness import tune

RIDES = "full-cycle"
IS_QUICK = True

# The scenario tick-free covers ticks.
NO_TICKS = "--no-ticks"
LOOK = f"tune verify --json {NO_TICKS}"
PACKAGE = "/etc/sysctl.d/zzz-package.conf"
DROP_IN = "/run/systemd/system/irqbalance.service.d/99-package.conf"


def overridden(lab, what, kind, name, *anywhere):
    """Expects verify to fail, and a row that names the culprit."""
    done = lab.lowlat(LOOK)
    lab.check(f"{what}: verify ends with 1", done.status == 1, f"{done.status}: {done.said[-300:]}")
    document = done.json() or {"rows": []}
    rows = [row for row in document["rows"] if row["standing"] in tune.FAULTS]
    hits = [row for row in rows if (row.get("by") or {}).get("kind") in kind and name in tune.standing(row)]
    lab.check(f"{what}: verify names {name or kind}", bool(hits), [tune.standing(row) for row in (hits or rows)][:6])
    for word in anywhere:
        lab.check(f"{what}: verify mentions {word}", any(word in tune.standing(row) for row in rows), [tune.standing(row) for row in rows][:6])


def run(lab):
    guest = lab.guest
    guest.must(f"printf 'vm.swappiness = 42\\n' >{PACKAGE}; sysctl -q --system")
    overridden(lab, "a package's sysctl.d file", ["sysctl_file"], PACKAGE, "vm.swappiness")
    guest.must(f"rm {PACKAGE}; sysctl -q --system")
    tune.verify(lab, "the package is gone", NO_TICKS)

    guest.must("systemctl restart tuned; tuned-adm active")
    tune.verify(lab, "TuneD restarted", NO_TICKS)
    own = guest.must("cat /etc/tuned/active_profile").text.strip()
    guest.must("tuned-adm profile throughput-performance")
    overridden(lab, "another TuneD profile", ["tuned"], "throughput-performance")
    guest.must(f"tuned-adm profile {own}")
    tune.apply(lab)
    tune.verify(lab, "lowlat's TuneD profile is active again", NO_TICKS)

    guest.must("systemctl stop irqbalance")
    tune.verify(lab, "irqbalance stopped", NO_TICKS)
    guest.must(
        f"mkdir -p {DROP_IN.rsplit('/', 1)[0]}; printf '[Service]\\nEnvironment=IRQBALANCE_BANNED_CPULIST=\\n' >{DROP_IN}; "
        "systemctl daemon-reload; systemctl start irqbalance"
    )
    overridden(lab, "irqbalance started without its list of banned CPUs", ["drop_in", "daemon"], "")
    guest.must(f"rm -r {DROP_IN.rsplit('/', 1)[0]}; systemctl daemon-reload; systemctl restart irqbalance")
    tune.apply(lab)
    tune.verify(lab, "irqbalance has its list again", NO_TICKS)

    # A newly started irqbalance may move it back before the check.
    guest.must(
        "systemctl stop irqbalance; irq=$(awk -F: '/virtio[0-9]+-requests/ { print $1 + 0 }' /proc/interrupts); "
        "echo 3 >/proc/irq/$irq/smp_affinity_list"
    )
    done = lab.lowlat(LOOK)
    found = tune.faults(done.json() or {"rows": []})
    lab.check("an interrupt moved manually: verify ends with 1", done.status == 1, done.status)
    lab.check("an interrupt moved manually: verify shows it", any("requests" in row for row in found), found[:6])
    tune.apply(lab)
    guest.must("systemctl start irqbalance")

    guest.must("systemctl -q disable lowlat.service")
    done = lab.lowlat(LOOK)
    found = tune.faults(done.json() or {"rows": []})
    lab.check("lowlat.service disabled: verify ends with 1", done.status == 1, done.status)
    lab.check("lowlat.service disabled: verify shows it", any("lowlat.service" in row for row in found), found[:6])
    unit = next((unit for unit in tune.status(lab)["units"] if unit["name"] == "lowlat.service"), None)
    lab.check("lowlat.service disabled: status reports it", bool(unit) and not unit["is_enabled"], unit)
    guest.must("systemctl -q enable lowlat.service")
