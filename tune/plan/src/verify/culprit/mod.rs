//! Programs and files that set a value, one file per kind of culprit.

mod daemons;
mod tuned;

pub(super) use tuned::{parameter, threads};

use super::{
    Culprit, CulpritKind, Evidence,
    judge::{Claim, Scene},
};
use lowlat_host::{
    CpuSet,
    snapshot::{Assignment, glob_matches},
};
use lowlat_settings::change::{
    Rival,
    processes::{GivesCpus, gives_cpus},
};

pub(super) fn of(scene: &Scene<'_>, rival: &Rival) -> Vec<Claim> {
    match rival {
        Rival::Sysctl(key) => of_sysctl(scene.evidence, &scene.host.kernel.sysctl_files, key),
        Rival::Path(path) => of_path(scene, path),
        Rival::TunedNet { nic, option, name } => tuned::net(scene.evidence, nic, option, name),
        Rival::Interrupts => tuned::irqs(scene.evidence),
        Rival::Processes => of_processes(scene),
    }
}

/// Claims on a sysctl: sysctl.conf, then files in the order in which they are applied at boot, then TuneD.
fn of_sysctl(evidence: &Evidence, lines: &[Assignment], key: &str) -> Vec<Claim> {
    let mut claims = sysctl(&evidence.sysctl_conf, key, "when you run `sysctl -p`");
    claims.extend(sysctl(lines, key, "at boot"));
    claims.extend(tuned::sysctl(evidence, key));
    claims
}

/// Claims on a file of /sys, /proc or debugfs.
pub(super) fn of_path(scene: &Scene<'_>, path: &str) -> Vec<Claim> {
    let mut claims = daemons::of_path(scene, path);
    if let Some(key) = path.strip_prefix("/proc/sys/") {
        claims.extend(of_sysctl(scene.evidence, &scene.host.kernel.sysctl_files, &key.replace('/', ".")));
    }
    claims.extend(sysfs(scene.evidence, path));
    claims.extend(tuned::path(scene.evidence, path));
    claims
}

/// Claims on the CPUs of interrupts; `asked` are the requested CPUs.
pub(super) fn of_irq(scene: &Scene<'_>, asked: Option<&CpuSet>) -> Vec<Claim> {
    let mut claims = tuned::irqs(scene.evidence);
    claims.extend(daemons::irqbalance(scene, asked));
    claims
}

/// Claims on the CPUs of all processes; the command line overrides files.
fn of_processes(scene: &Scene<'_>) -> Vec<Claim> {
    let claim = |found: GivesCpus| {
        let (value, does) = (Some(found.cpus.to_list()), format!("has {}", found.says));
        let kind = if found.line.is_some() { CulpritKind::DropIn } else { CulpritKind::Kernel };
        Claim { by: Culprit { kind, name: found.path, line: found.line, does }, value }
    };
    let of_first = |found: &GivesCpus| matches!(found.unit.as_str(), "" | "init.scope");
    // The last claim wins.
    gives_cpus(scene.host).into_iter().filter(of_first).rev().map(claim).collect()
}

/// A culprit that is a line of a file.
pub(super) fn at_line(kind: CulpritKind, path: &str, line: u32, does: String) -> Culprit {
    Culprit { kind, name: path.to_owned(), line: Some(line), does }
}

/// lowlat's files, which set planned values.
fn is_own(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.contains("lowlat"))
}

fn claim(kind: CulpritKind, line: &Assignment, does: String, value: &str) -> Claim {
    Claim { by: at_line(kind, &line.path, line.line, does), value: Some(value.to_owned()) }
}

fn of_sysfs(line: &Assignment, value: &str) -> Claim {
    let does = format!("writes {} to {} at boot", line.value, line.key);
    claim(CulpritKind::SysfsFile, line, does, value)
}

/// Lines that set a sysctl. Keys are compared with dots and slashes alike.
fn sysctl(lines: &[Assignment], key: &str, does: &str) -> Vec<Claim> {
    let of_key = |line: &&Assignment| line.key == key && !is_own(&line.path);
    let says = |line: &Assignment| format!("sets {} = {} {does}", line.key, line.value);
    let lines = lines.iter().filter(of_key);
    lines.map(|line| claim(CulpritKind::SysctlFile, line, says(line), &line.value)).collect()
}

/// Lines of tmpfiles.d and sysfs.conf that write to a file.
fn sysfs(evidence: &Evidence, path: &str) -> Vec<Claim> {
    let of_path = evidence.sysfs_files.iter().filter(|line| glob_matches(&line.key, path));
    of_path.map(|line| of_sysfs(line, &line.value)).collect()
}

/// Lines that enable idle states.
pub(super) fn idle_states(evidence: &Evidence) -> Vec<Claim> {
    let is_state = |line: &&Assignment| {
        line.key.contains("/cpuidle/state") && line.key.ends_with("/disable") && line.value == "0"
    };
    evidence.sysfs_files.iter().filter(is_state).map(|line| of_sysfs(line, "enabled")).collect()
}
