//! Targets of the undo log that are neither files nor values of the kernel. One file per kind, one line in
//! [`all`].
//! | kind | name | value | survives a reboot |
//! |---|---|---|---|
//! | `service` | `chronyd.service` | `active, enabled` (as a plan has it) | yes, by its enablement |
//! | `kthread-affinity` | `78 kswapd0`: process id and name | CPU list | no |
//! | `kthread-scheduling` | `78 kswapd0` | `SCHED_FIFO 2` | no |
//! | `user-processes` | `init`: process 1 | CPU list | no |
//! | `cpuset-partition` | `lowlat.slice`: the systemd slice of the group | CPU list | no |
//! | `resctrl-group` | `lowlat`: the group | CPUs, ways and bandwidth | no |
//! | `tuned-profile` | `tuned` | profile and mode: `virtual-guest auto` | yes |
//!
//! In addition, each group of parameters that `ethtool` sets is a kind ([`nic::Nics`]): `nic-channels`,
//! named `enp1s0 combined`. All but `resctrl-group` belong to the running host and reject a [`Writer`] for a directory.

pub mod cpuset;
pub mod kthread;
pub mod nic;
pub mod resctrl;
pub mod service;
pub mod tuned_profile;
pub mod user_processes;

use lowlat_host::CpuSet;
use lowlat_undo::{HostError, Target, TargetSpec, Writer};
use std::{fmt, io};

/// Every kind of target beyond files and values, for [`lowlat_undo::UndoLog::with_target`].
pub fn all() -> Vec<Box<dyn Target>> {
    let mut all: Vec<Box<dyn Target>> = vec![
        Box::new(service::Services::live()),
        Box::new(kthread::KernelThreads::Affinity),
        Box::new(kthread::KernelThreads::Scheduling),
        Box::new(user_processes::UserProcesses),
        Box::new(cpuset::Partitions::live()),
        Box::new(resctrl::CacheGroups),
        Box::new(tuned_profile::TunedProfile::live()),
    ];
    all.extend(nic::Nics::all().map(|nics| Box::new(nics) as Box<dyn Target>));
    all
}

/// The kinds of [`all`] that also change a directory with a host's tree.
pub fn of_trees() -> Vec<Box<dyn Target>> {
    vec![Box::new(resctrl::CacheGroups)]
}

/// An error of a target that is no file: the attempt, the target and the cause.
pub(crate) fn failed(doing: &'static str, name: &str, why: impl fmt::Display) -> HostError {
    HostError::Io { doing, path: name.to_owned(), source: io::Error::other(why.to_string()) }
}

/// The error of a target that rejected this change permanently ([`HostError::is_refusal`]).
fn refused(doing: &'static str, name: &str, why: impl fmt::Display) -> HostError {
    HostError::Refused { path: name.to_owned(), what: format!("cannot {doing}: {why}") }
}

/// One of both, for an error that says which.
fn failed_or_refused(is_refusal: bool, doing: &'static str, name: &str, why: impl fmt::Display) -> HostError {
    if is_refusal { refused(doing, name, why) } else { failed(doing, name, why) }
}

/// Parses the CPUs that a target should have.
fn cpu_list(doing: &'static str, spec: &TargetSpec, text: &str) -> Result<CpuSet, HostError> {
    CpuSet::parse_list(text.trim())
        .map_err(|error| failed(doing, &spec.name, format!("{error}; expected a CPU list such as 0,8")))
}

/// Rejects a writer for a directory, if the target belongs to the running host as threads, interfaces and services do.
fn is_live_or(needs_live: bool, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
    if writer.is_live() || !needs_live {
        return Ok(());
    }
    let why = format!(
        "a {} belongs to the running host, and a directory was given; leave this step out",
        spec.kind
    );
    Err(failed("use below another root", &spec.name, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_settings::change::{Wire, nic::KINDS};

    /// The table in the documentation of this module, row by row, and the groups of ethtool: kind and name.
    fn table() -> Vec<(String, String)> {
        let rows = include_str!("mod.rs").lines().filter_map(|line| line.strip_prefix("//! | `"));
        let names = |row: &str| {
            let parts: Vec<&str> = row.split('`').collect();
            let name = parts.get(2)?.split(':').next()?;
            Some((parts.first()?.to_string(), name.to_owned()))
        };
        let of_ethtool = KINDS.iter().filter_map(|kind| kind.ethtool()).map(|group| {
            let name = match group.wire {
                Wire::Fields { fields, .. } => fields[0].name,
                Wire::Features => "rx-lro",
                Wire::Fec => "encoding",
                Wire::Indirection => "equal",
                Wire::Napi => "rx-0/gro-flush-timeout",
                Wire::Onload => "queues",
            };
            (group.undo_kind.to_owned(), format!("enp1s0 {name}"))
        });
        rows.filter_map(names).chain(of_ethtool).collect()
    }

    #[test]
    fn every_kind_is_listed_once_and_takes_the_names_of_the_table() {
        let targets = all();
        let mut kinds: Vec<&str> = targets.iter().map(|target| target.kind()).collect();
        let documented: Vec<String> = table().into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, documented);
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), targets.len());
        assert!(!kinds.contains(&"value") && !kinds.contains(&"file"), "the undo log has these itself");
        for (kind, name) in table() {
            let spec = |name: &str| TargetSpec {
                kind: kind.clone(),
                name: name.to_owned(),
                comparison: lowlat_undo::Comparison::Exact,
            };
            let target = targets.iter().find(|target| target.kind() == kind).unwrap();
            let live = Writer::live().unwrap();
            // It may be present, absent, or systemd may not be running; only the name is tested.
            if let Err(error) = target.read(&live, &spec(&name)) {
                assert!(!error.to_string().contains("make a new plan"), "{error}");
            }
            let bad = target.read(&live, &spec("no such name/")).unwrap_err().to_string();
            assert!(bad.contains("expected") && bad.contains("make a new"), "{bad}");
        }
    }

    #[test]
    fn what_a_restart_takes_away_is_said() {
        let outliving: Vec<&str> = all()
            .iter()
            .filter(|target| {
                let (kind, name) = (target.kind().to_owned(), String::new());
                target.outlives_boot(&TargetSpec { kind, name, comparison: lowlat_undo::Comparison::Exact })
            })
            .map(|target| target.kind())
            .collect();
        let rows = include_str!("mod.rs").lines().filter(|line| line.starts_with("//! | `"));
        let documented = rows.filter(|row| row.contains("| yes")).count();
        assert_eq!((outliving.as_slice(), documented), (&["service", "tuned-profile"][..], 2));
    }

    #[test]
    fn another_root_is_refused_by_every_other_kind() {
        let dir = tempfile::tempdir().unwrap();
        let writer = Writer::below(dir.path()).unwrap();
        let of_trees: Vec<&str> = of_trees().iter().map(|target| target.kind()).collect();
        for (target, (kind, name)) in all().iter().zip(table()) {
            if of_trees.contains(&kind.as_str()) {
                continue;
            }
            let spec = TargetSpec { kind, name, comparison: lowlat_undo::Comparison::Exact };
            for error in [
                target.read(&writer, &spec).unwrap_err(),
                target.write(&writer, &spec, &lowlat_undo::State::Value("x".to_owned())).unwrap_err(),
            ] {
                assert!(error.to_string().contains("a directory was given"), "{error}");
            }
        }
    }
}
