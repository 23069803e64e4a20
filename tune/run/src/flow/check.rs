//! Checks before anything is written whether a plan can be applied here.

use super::Site;
use crate::{
    boot_loader::{self, BootLoaderError},
    targets::{
        cpuset::Partitions, kthread::KernelThreads, resctrl::CacheGroups, service::Services,
        tuned_profile::TunedProfile, user_processes::UserProcesses,
    },
};
use lowlat_host::HostSnapshot;
use lowlat_host_run::capability::{self, Capability};
use lowlat_plan::Plan;
use lowlat_settings::change::{Change, Mechanism, Part, Target};
use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};
use std::path::Path;

/// Space that the undo log needs for its segments and the plan.
const SPACE_BYTES_MIN: u64 = 16 << 20;

/// Obstacles to applying a plan; empty if there are none.
pub(super) fn obstacles(site: &Site, plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    if site.is_live() {
        lines.extend(privilege(site));
    }
    lines.extend(of_host(site, plan));
    lines.extend(unwritable(site, plan));
    lines
}

/// The obstacles that do not depend on the user.
fn of_host(site: &Site, plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    if site.is_live() {
        lines.extend(container(site));
    }
    lines.extend(read_only(site, plan));
    lines.extend(space(site));
    lines.extend(log(site));
    lines
}

/// Reasons why `tune apply`, run by root, would refuse the plan or parts of it on this host, one sentence each.
pub fn hindrances(site: &Site, plan: &Plan) -> Vec<String> {
    let mut lines = of_host(site, plan);
    if site.is_live() && site.manager.is_none() {
        lines.push(NO_SYSTEMD.to_owned());
    }
    if let Some(tokens) = plan.boot_tokens()
        && let Err(error) = (site.detect)(&site.root).and_then(|loader| loader.sources(&site.root, tokens))
        && !matches!(error, BootLoaderError::Denied { .. } | BootLoaderError::Container { .. })
    {
        lines.push(format!("the command line: {error}"));
    }
    lines
}

/// Reason on hosts where no unit can keep a plan in force.
pub(super) const NO_SYSTEMD: &str =
    "systemd is not running, so no unit applies the run-time part at the next boot";

fn privilege(site: &Site) -> Option<String> {
    let known = capability::has(&site.root, Capability::SysAdmin).into_known();
    let is_able = known.unwrap_or_else(|| rustix::process::geteuid().is_root());
    (!is_able).then(|| "root privileges (CAP_SYS_ADMIN) are required; run it with sudo".to_owned())
}

/// A container shares the kernel, interrupts, threads and boot loader of its host. The reason why nothing is changed.
pub fn container(site: &Site) -> Option<String> {
    let found = boot_loader::container(&site.root)?;
    Some(format!("this is a container ({found}); run lowlat on its host"))
}

/// The directories that the changes of a plan need.
fn places(plan: &Plan) -> Vec<&'static str> {
    let is_file = |change: &Change| matches!(change.target.kind().facts().part, Part::Files | Part::Boot);
    let mut places = vec!["/var/lib"];
    if plan.changes.iter().any(is_file) {
        places.push("/etc");
    }
    if !plan.changes.iter().all(is_file) {
        places.extend(["/proc/sys", "/sys"]);
    }
    places
}

// A missing directory is reported by the steps.
fn is_read_only(site: &Site, place: &str) -> bool {
    statvfs(site.real(place)).is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::RDONLY))
}

fn read_only(site: &Site, plan: &Plan) -> Vec<String> {
    let places = places(plan).into_iter().filter(|place| is_read_only(site, place));
    places
        .map(|place| format!("{place} is mounted read-only; remount it writable (mount -o remount,rw)"))
        .collect()
}

fn unwritable(site: &Site, plan: &Plan) -> Vec<String> {
    let is_unwritable = |place: &&str| {
        let path = site.real(place);
        path.exists() && !is_read_only(site, place) && access(&path, Access::WRITE_OK).is_err()
    };
    let places =
        places(plan).into_iter().filter(|place| place.starts_with("/var") || place.starts_with("/etc"));
    places
        .filter(is_unwritable)
        .map(|place| format!("{place} is not writable for this user; run as root"))
        .collect()
}

fn space(site: &Site) -> Option<String> {
    let dir = site.state.path();
    let there = dir.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let system = statvfs(there).ok()?;
    let free_bytes = system.f_bavail.saturating_mul(system.f_frsize);
    (free_bytes < SPACE_BYTES_MIN).then(|| {
        format!(
            "{} has {} KiB free, and the undo log needs {} KiB; free space there",
            there.display(),
            free_bytes >> 10,
            SPACE_BYTES_MIN >> 10
        )
    })
}

fn log(site: &Site) -> Option<String> {
    let reason = super::log_doubt(&site.state).ok()??;
    Some(format!(
        "{reason}; restore the known changes with `lowlat tune rollback --accept-damage`, and check the host"
    ))
}

/// The changes that cannot be made here, with the reason.
pub(super) fn left(
    site: &Site,
    log_knows: impl Fn(&str) -> bool,
    plan: &Plan,
    host: &HostSnapshot,
) -> Vec<(usize, String)> {
    let lockdown = host.kernel.lockdown.known().filter(|word| *word != "none");
    let reason = |change: &Change| {
        if let Some(kind) = undo_kind(&change.target.kind().facts().mechanism).filter(|kind| !log_knows(kind))
        {
            return Some(if site.is_live() {
                format!("this build cannot change a {kind}")
            } else {
                "this needs the running host, and a directory was given".to_owned()
            });
        }
        let is_debugfs =
            matches!(&change.target, Target::File { path } if path.starts_with("/sys/kernel/debug/"));
        lockdown.filter(|_| is_debugfs).map(|word| {
            format!("the kernel is locked down ({word}, usually by Secure Boot), so debugfs is read-only")
        })
    };
    let found = plan.changes.iter().enumerate();
    found.filter_map(|(at, change)| Some((at, reason(change)?))).collect()
}

/// The kind of target in the undo log that a mechanism uses; none for files and values.
fn undo_kind(mechanism: &Mechanism<'_>) -> Option<&'static str> {
    match mechanism {
        Mechanism::Unit { .. } => Some(Services::KIND),
        Mechanism::CacheGroup { .. } => Some(CacheGroups::KIND),
        Mechanism::CpusetPartition { .. } => Some(Partitions::KIND),
        Mechanism::ThreadAffinity { .. } => Some(KernelThreads::Affinity.kind()),
        Mechanism::ThreadScheduling { .. } => Some(KernelThreads::Scheduling.kind()),
        Mechanism::Ethtool { group, .. } => Some(group.undo_kind),
        Mechanism::UserProcesses => Some(UserProcesses::KIND),
        Mechanism::TunedProfile => Some(TunedProfile::KIND),
        Mechanism::BootLoader { .. }
        | Mechanism::Value { .. }
        | Mechanism::Mask { .. }
        | Mechanism::IdleState { .. }
        | Mechanism::Interrupt { .. }
        | Mechanism::FileKey { .. }
        | Mechanism::OwnedFile { .. } => None,
    }
}
