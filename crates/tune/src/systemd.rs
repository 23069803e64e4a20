//! Notifies systemd after files were written or removed, because it keeps units in memory.

use lowlat_sys::systemd::{Systemd, SystemdError};
use std::collections::BTreeSet;

/// Directories of units and links that an administrator writes.
const UNIT_DIRECTORIES: [&str; 2] = ["/etc/systemd/system/", "/run/systemd/system/"];
/// Services that read their configuration at start, by file. Only those that can be restarted safely: TuneD
/// would roll its profile back.
const READ_AT_START: [(&str, &str); 2] =
    [("/etc/default/irqbalance", "irqbalance.service"), ("/etc/sysconfig/irqbalance", "irqbalance.service")];

/// Reloads all unit files and links.
pub fn daemon_reload() -> Result<(), SystemdError> {
    Systemd::live().daemon_reload()
}

/// Restarts a unit if it is running; returns whether it was.
pub fn restart_unit(unit: &str) -> Result<bool, SystemdError> {
    let systemd = Systemd::live();
    match systemd.unit(unit)? {
        Some(found) if found.is_up() => systemd.restart(&found.id).map(|()| true),
        _ => Ok(false),
    }
}

/// Actions needed after files were written or removed, by apply or rollback.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Consequences {
    /// Whether systemd must reload its units.
    pub needs_reload: bool,
    /// Units to restart if they are running, so that they read the new configuration.
    pub restarts: BTreeSet<String>,
}

impl Consequences {
    /// The actions for these paths.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let mut found = Self::default();
        for path in paths {
            let name = UNIT_DIRECTORIES.iter().find_map(|directory| path.strip_prefix(directory));
            found.needs_reload |= name.is_some();
            let of_drop_in = name.and_then(|name| name.split_once(".d/")).map(|(unit, _)| unit);
            for (file, unit) in READ_AT_START {
                if path == file || of_drop_in == Some(unit) {
                    found.restarts.insert(unit.to_owned());
                }
            }
        }
        found
    }

    /// Whether no action is needed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Runs the actions. Returns the restarted units.
    pub fn carry_out(&self) -> Result<Vec<String>, SystemdError> {
        if self.needs_reload {
            daemon_reload()?;
        }
        let mut restarted = Vec::new();
        for unit in &self.restarts {
            if restart_unit(unit)? {
                restarted.push(unit.clone());
            }
        }
        Ok(restarted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[&str]) -> (bool, Vec<String>) {
        let found = Consequences::of(paths.iter().copied());
        (found.needs_reload, found.restarts.into_iter().collect())
    }

    #[test]
    fn unit_files_are_read_again_and_configured_services_restarted() {
        let irqbalance = vec!["irqbalance.service".to_owned()];
        assert_eq!(
            of(&["/etc/systemd/system/irqbalance.service.d/50-lowlat.conf"]),
            (true, irqbalance.clone())
        );
        assert_eq!(of(&["/etc/default/irqbalance", "/etc/sysctl.d/99-zz-lowlat.conf"]), (false, irqbalance));
        assert_eq!(of(&["/etc/systemd/system/lowlat.service"]), (true, Vec::new()));
        assert_eq!(of(&["/etc/systemd/system/tuned.service.d/x.conf"]), (true, Vec::new()));
        assert!(Consequences::of(["/etc/tuned/lowlat/tuned.conf", "/etc/systemd/journald.conf"]).is_empty());
        assert!(Consequences::of([]).carry_out().unwrap().is_empty());
    }
}
