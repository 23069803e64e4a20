//! Daemons that change values while they run.

use crate::{verify::Culprit, verify::CulpritKind};
use crate::{verify::judge::Claim, verify::judge::Scene};
use lowlat_host::{CpuSet, Reading, snapshot::glob_matches};

/// Daemons, the files that they write, and what they set.
const WRITERS: &[(&str, &[&str], &str)] = &[
    (
        "power-profiles-daemon.service",
        &["/sys/devices/system/cpu/*/cpufreq/*", "/sys/devices/system/cpu/cpufreq/*"],
        "sets governors and energy hints from its profile",
    ),
    ("cpupower.service", &["/sys/devices/system/cpu/*/cpufreq/*"], "sets governors when it starts"),
    ("cpufrequtils.service", &["/sys/devices/system/cpu/*/cpufreq/*"], "sets governors when it starts"),
    ("ondemand.service", &["/sys/devices/system/cpu/*/cpufreq/*"], "sets governors when it starts"),
    ("tlp.service", &["/sys/devices/system/cpu/*/cpufreq/*"], "sets governors and limits"),
    ("auto-cpufreq.service", &["/sys/devices/system/cpu/*/cpufreq/*"], "sets governors depending on load"),
    (
        "ksmtuned.service",
        &["/sys/kernel/mm/ksm/*"],
        "enables and disables samepage merging depending on memory use",
    ),
    ("ksm.service", &["/sys/kernel/mm/ksm/*"], "enables samepage merging"),
    (
        "numad.service",
        &["/proc/sys/kernel/*", "/sys/kernel/mm/transparent_hugepage/*"],
        "moves memory and tasks between nodes",
    ),
];

fn is_active(scene: &Scene<'_>, unit: &str) -> bool {
    scene.host.services.units.get(unit).is_some_and(|unit| unit.active.text() == "active")
}

fn claim(unit: &str, does: String) -> Claim {
    let by = Culprit { kind: CulpritKind::Daemon, name: unit.to_owned(), line: None, does };
    Claim { by, value: None }
}

/// Running daemons that write to a file.
pub(super) fn of_path(scene: &Scene<'_>, path: &str) -> Vec<Claim> {
    let writes = |(unit, globs, _): &&(&str, &[&str], &str)| {
        globs.iter().any(|glob| glob_matches(glob, path)) && is_active(scene, unit)
    };
    let claims = WRITERS.iter().filter(writes);
    claims.map(|(unit, _, does)| claim(unit, format!("is running and {does}"))).collect()
}

/// irqbalance, if it is running and may have requested `asked`. It never uses CPUs of its ban list, by
/// default the isolated CPUs and those without a tick.
pub(super) fn irqbalance(scene: &Scene<'_>, asked: Option<&CpuSet>) -> Option<Claim> {
    const UNIT: &str = "irqbalance.service";
    if !is_active(scene, UNIT) {
        return None;
    }
    let topology = &scene.host.topology;
    let none = CpuSet::new();
    let by_itself =
        topology.isolated.known().unwrap_or(&none).union(topology.nohz_full.known().unwrap_or(&none));
    let list = &scene.host.services.irqbalance.banned_cpus;
    let banned = match list {
        Reading::Known(cpus) => cpus,
        Reading::Absent => &by_itself,
        // It bans nothing if it cannot read its list.
        _ => &none,
    };
    // With an effective ban list it cannot have chosen banned CPUs.
    if asked.is_some_and(|asked| !asked.is_disjoint(banned)) {
        return None;
    }
    let open = scene.plan.isolated.difference(banned);
    let does = match (open.is_empty(), list.is_known()) {
        (true, _) => "is running and moves interrupts among the CPUs outside its ban list".to_owned(),
        (false, true) => format!("is running, and its ban list {banned} does not include {open:#}"),
        (false, false) => format!("is running without a ban list, so it also uses {open:#}"),
    };
    Some(claim(UNIT, does))
}
