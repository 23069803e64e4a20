//! Daemons that change values while they run.

use crate::{verify::Culprit, verify::CulpritKind};
use crate::{verify::judge::Claim, verify::judge::Scene};
use lowlat_host::{CpuSet, snapshot::glob_matches};

/// Daemons, the files that they write, and what they do there.
const WRITERS: &[(&str, &[&str], &str)] = &[
    (
        "power-profiles-daemon.service",
        &["/sys/devices/system/cpu/*/cpufreq/*", "/sys/devices/system/cpu/cpufreq/*"],
        "sets governors and hints of energy by its profile",
    ),
    ("cpupower.service", &["/sys/devices/system/cpu/*/cpufreq/*"], "sets governors when it starts"),
    ("cpufrequtils.service", &["/sys/devices/system/cpu/*/cpufreq/*"], "sets governors when it starts"),
    ("ondemand.service", &["/sys/devices/system/cpu/*/cpufreq/*"], "sets governors when it starts"),
    ("tlp.service", &["/sys/devices/system/cpu/*/cpufreq/*"], "sets governors and limits"),
    ("auto-cpufreq.service", &["/sys/devices/system/cpu/*/cpufreq/*"], "sets governors by load"),
    ("ksmtuned.service", &["/sys/kernel/mm/ksm/*"], "switches samepage merging by the load of memory"),
    ("ksm.service", &["/sys/kernel/mm/ksm/*"], "switches samepage merging on"),
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
    claims.map(|(unit, _, does)| claim(unit, format!("runs and {does}"))).collect()
}

/// irqbalance, when it runs and may have asked for `asked`: it never asks for CPUs of its ban list, which, where
/// nobody wrote one, are the isolated CPUs and those without a tick.
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
    let banned = list.known().unwrap_or(&by_itself);
    // A ban list that holds clears it of what lies on banned CPUs.
    if asked.is_some_and(|asked| !asked.is_disjoint(banned)) {
        return None;
    }
    let open = scene.plan.isolated.difference(banned);
    let does = match (open.is_empty(), list.is_known()) {
        (true, _) => "runs and moves interrupts among the CPUs that its ban list leaves".to_owned(),
        (false, true) => format!("runs, and its ban list {banned} leaves {open:#} to it"),
        (false, false) => format!("runs without a ban list, so that {open:#} are its too"),
    };
    Some(claim(UNIT, does))
}
