//! What has to be told to systemd after files were written or removed: units it has in memory are as they were.

use lowlat_sys::systemd::{Systemd, SystemdError};
use std::collections::BTreeSet;

/// Where systemd reads units and links, as far as an administrator writes there.
const UNIT_DIRECTORIES: [&str; 2] = ["/etc/systemd/system/", "/run/systemd/system/"];
/// Services that read their configuration when they start, by their files. Only such as take a restart without loss
/// are here: TuneD would take its profile back.
const READ_AT_START: [(&str, &str); 2] =
    [("/etc/default/irqbalance", "irqbalance.service"), ("/etc/sysconfig/irqbalance", "irqbalance.service")];

/// Has systemd read all unit files and links again.
pub fn daemon_reload() -> Result<(), SystemdError> {
    Systemd::live().daemon_reload()
}

/// Restarts a unit if it is up; returns whether it was.
pub fn restart_unit(unit: &str) -> Result<bool, SystemdError> {
    let systemd = Systemd::live();
    match systemd.unit(unit)? {
        Some(found) if found.is_up() => systemd.restart(&found.id).map(|()| true),
        _ => Ok(false),
    }
}

/// What follows from files that were written or removed, by apply and by rollback alike.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Consequences {
    /// Whether systemd has to read unit files again.
    pub needs_reload: bool,
    /// Units to be restarted if they are up, so that they take the new configuration.
    pub restarts: BTreeSet<String>,
}

impl Consequences {
    /// Those of files by their paths.
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

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Tells systemd. Returns the units that were restarted, to be shown and noted.
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
