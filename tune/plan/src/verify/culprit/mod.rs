//! Programs and files that set a value, one file per kind of culprit.

mod daemons;
mod files;
mod tuned;

pub(super) use files::idle_states;
pub(super) use tuned::{parameter, threads};

use super::judge::{Claim, Scene};
use super::{Culprit, CulpritKind, Evidence};
use lowlat_host::{CpuSet, snapshot::Assignment};
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
    let mut claims = files::sysctl(&evidence.sysctl_conf, key, "when you run `sysctl -p`");
    claims.extend(files::sysctl(lines, key, "at boot"));
    claims.extend(tuned::sysctl(evidence, key));
    claims
}

/// Claims on a file of /sys, /proc or debugfs.
pub(super) fn of_path(scene: &Scene<'_>, path: &str) -> Vec<Claim> {
    let mut claims = daemons::of_path(scene, path);
    if let Some(key) = path.strip_prefix("/proc/sys/") {
        claims.extend(of_sysctl(scene.evidence, &scene.host.kernel.sysctl_files, &key.replace('/', ".")));
    }
    claims.extend(files::sysfs(scene.evidence, path));
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
