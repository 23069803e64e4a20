//! Who gives a thing its value, one file per kind of culprit.

mod daemons;
mod files;
mod tuned;

use super::judge::{Claim, Scene};
use super::{Culprit, CulpritKind, Evidence};
use lowlat_host::{CpuSet, snapshot::SysctlAssignment};
use lowlat_settings::change::Target;

/// Who sets a sysctl: files in the order in which they are applied, then sysctl.conf, then TuneD, which comes later.
pub(super) fn of_sysctl(evidence: &Evidence, lines: &[SysctlAssignment], key: &str) -> Vec<Claim> {
    let mut claims = files::sysctl(&evidence.sysctl_conf, key, "when `sysctl -p` is run");
    claims.extend(files::sysctl(lines, key, "at boot"));
    claims.extend(tuned::sysctl(evidence, key));
    claims
}

/// Who writes a file of /sys, /proc or debugfs.
pub(super) fn of_path(scene: &Scene<'_>, path: &str) -> Vec<Claim> {
    let mut claims = daemons::of_path(scene, path);
    if let Some(key) = path.strip_prefix("/proc/sys/") {
        claims.extend(of_sysctl(scene.evidence, &scene.host.kernel.sysctl_files, &key.replace('/', ".")));
    }
    claims.extend(files::sysfs(scene.evidence, path));
    claims.extend(tuned::path(scene.evidence, path));
    claims
}

/// Who moves interrupts; `asked` is where one was asked to go.
pub(super) fn of_irq(scene: &Scene<'_>, asked: Option<&CpuSet>) -> Vec<Claim> {
    let mut claims = tuned::irqs(scene.evidence);
    claims.extend(daemons::irqbalance(scene, asked));
    claims
}

/// Who sets the mask of new interrupts.
pub(super) fn of_default_affinity(evidence: &Evidence) -> Vec<Claim> {
    tuned::irqs(evidence)
}

/// Who moves kernel threads.
pub(super) fn of_threads(evidence: &Evidence) -> Vec<Claim> {
    tuned::threads(evidence)
}

/// Who sets the CPUs of a workqueue.
pub(super) fn of_workqueue(scene: &Scene<'_>, path: &str) -> Vec<Claim> {
    let other = path.replacen("/sys/devices/virtual/workqueue/", "/sys/bus/workqueue/devices/", 1);
    let mut claims = of_path(scene, path);
    if other != path {
        claims.extend(of_path(scene, &other));
    }
    // Masks there, lists here.
    for claim in &mut claims {
        claim.value = claim.value.take().map(|value| match CpuSet::parse_mask(&value) {
            Ok(cpus) => cpus.to_list(),
            Err(_) => value,
        });
    }
    claims
}

/// Who enables idle states.
pub(super) fn of_idle_states(evidence: &Evidence) -> Vec<Claim> {
    files::idle_states(evidence)
}

/// Who reserves huge pages.
pub(super) fn of_huge_pages(scene: &Scene<'_>) -> Vec<Claim> {
    of_sysctl(scene.evidence, &scene.host.kernel.sysctl_files, "vm.nr_hugepages")
}

/// Who sets a field of an interface.
pub(super) fn of_nic(evidence: &Evidence, nic: &str, target: &Target) -> Vec<Claim> {
    tuned::nic(evidence, nic, target)
}

/// Who adds a boot parameter beside the files that entries are made from.
pub(super) fn of_parameter(scene: &Scene<'_>, name: &str) -> Vec<Claim> {
    tuned::parameter(scene.evidence, name)
}

/// A culprit that is a line of a file.
fn at_line(kind: CulpritKind, path: &str, line: u32, does: String) -> Culprit {
    Culprit { kind, name: path.to_owned(), line: Some(line), does }
}

/// How to find out who set a value that nobody known sets.
pub(super) fn how_to_find(target: &Target) -> String {
    let watch = |path: &str| {
        format!(
            "to find out who: `auditctl -w {path} -p w -k lowlat`, wait until it happens again, then `ausearch -k lowlat`"
        )
    };
    match target {
        Target::Sysctl { key } => watch(&lowlat_host::snapshot::sysctl_path(key)),
        Target::File { path } | Target::FileKey { path, .. } | Target::OwnedFile { path } => watch(path),
        Target::IrqAffinity { irq, .. } => watch(&format!("/proc/irq/{irq}/smp_affinity")),
        Target::DefaultIrqAffinity => watch("/proc/irq/default_smp_affinity"),
        Target::CommandLine { .. } => {
            "to find out who: `grep -rs WORD /etc/default/grub* /etc/grub.d /etc/kernel /boot/loader /boot/grub*`, and the \
             editor of the boot menu"
                .to_owned()
        }
        Target::KernelThreadAffinity { .. } | Target::KernelThreadScheduling { .. } => {
            "to find out who: `auditctl -a always,exit -S sched_setaffinity,sched_setscheduler -k lowlat`, then \
             `ausearch -k lowlat`"
                .to_owned()
        }
        Target::Service { unit } => format!("to find out who: `journalctl -u {unit}` and `systemctl list-dependencies --reverse {unit}`"),
        Target::TunedProfile => {
            "to find out who: `journalctl -u tuned` shows when the profile was switched".to_owned()
        }
        Target::NicChannels { nic, .. }
        | Target::NicCoalescing { nic, .. }
        | Target::NicFeature { nic, .. }
        | Target::NicRps { nic, .. }
        | Target::NicXps { nic, .. } => format!(
            "look at NetworkManager's `nmcli -f ethtool connection show`, .link files of /etc/systemd/network, udev rules, \
             and scripts of the vendor of {nic}"
        ),
        Target::WorkqueueCpus { .. } | Target::IdleState { .. } | Target::HugePages { .. } => {
            "look at scripts in /etc/rc.local, cron, udev rules and units of /etc/systemd/system".to_owned()
        }
    }
}
