//! Texts of the systemd units that keep a plan in force. Pure: one file per unit, one line in [`of`].
//! | unit | purpose |
//! |---|---|
//! | `lowlat.service` | applies the run-time part again at each boot; stopping it rolls that part back |
//! | `lowlat-again.service` | the same whenever TuneD starts, which sets its own values then |
//! | `lowlat-watch.timer`, `.service` | checks at intervals whether the plan is still in effect |
//! | `lowlat-confirm.timer`, `.service` | the dead-man switch: rolls an unconfirmed plan back |
//! None of them names the plan, so the next plan leaves them unchanged.

mod again;
mod apply;
mod confirm;
mod watch;

use std::time::Duration;

/// Directory of the administrator's units.
pub const DIRECTORY: &str = "/etc/systemd/system";
/// The service that applies the run-time part at each boot.
pub const APPLY: &str = "lowlat.service";
/// The service that applies it again when TuneD starts.
pub const AGAIN: &str = "lowlat-again.service";
/// The timer that checks for drift.
pub const WATCH: &str = "lowlat-watch.timer";
/// The service that it starts.
pub const WATCH_SERVICE: &str = "lowlat-watch.service";
/// The timer of the dead-man switch.
pub const CONFIRM: &str = "lowlat-confirm.timer";
/// The service that it starts.
pub const CONFIRM_SERVICE: &str = "lowlat-confirm.service";
/// All units, for the status.
pub const ALL: [&str; 6] = [APPLY, AGAIN, WATCH, WATCH_SERVICE, CONFIRM, CONFIRM_SERVICE];

pub(crate) const HEAD: &str =
    "# Written by lowlat. `lowlat tune rollback` removes it, but keeps and reports edited versions.\n";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    pub name: &'static str,
    pub text: String,
    /// The units that start it, each with a link in its directory NAME.wants.
    pub wanted_by: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    pub interval: Duration,
    /// Drifted values are applied again instead of only reported.
    pub is_repairing: bool,
}

/// Facts and options that the units depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The path of lowlat's binary.
    pub lowlat: &'a str,
    pub has_tuned: bool,
    /// Checks for drift; none if drift is not watched.
    pub watch: Option<Watch>,
}

/// The units that keep a plan in force.
pub fn of(wanted: Wanted<'_>) -> Vec<Unit> {
    let mut units = vec![apply::service(wanted.lowlat)];
    if wanted.has_tuned {
        units.push(again::service(wanted.lowlat));
    }
    if let Some(watch) = wanted.watch {
        units.extend(watch::units(wanted.lowlat, watch));
    }
    units
}

/// The units of the dead-man switch.
pub fn confirm(lowlat: &str, within: Duration) -> Vec<Unit> {
    confirm::units(lowlat, within).into()
}

/// The file of a unit.
pub fn path(name: &str) -> String {
    format!("{DIRECTORY}/{name}")
}

/// The link that has `by` start the unit.
pub fn link_path(name: &str, by: &str) -> String {
    format!("{DIRECTORY}/{by}.wants/{name}")
}

/// A path as an argument of ExecStart= (systemd.service(5), "COMMAND LINES"): quoted, with systemd's special
/// characters doubled.
fn argument(path: &str) -> String {
    let path = path.replace('%', "%%").replace('$', "$$");
    if path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+%$".contains(c)) {
        path
    } else {
        format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

/// A time span in systemd's format.
fn seconds(span: Duration) -> String {
    format!("{}s", span.as_secs().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Unit> {
        let watch = Some(Watch { interval: Duration::from_secs(300), is_repairing: false });
        let mut units = of(Wanted { lowlat: "/usr/local/sbin/lowlat", has_tuned: true, watch });
        units.extend(confirm("/usr/local/sbin/lowlat", Duration::from_secs(600)));
        units
    }

    #[test]
    fn every_unit_is_known_has_a_head_and_plain_lines() {
        let names: Vec<&str> = all().iter().map(|unit| unit.name).collect();
        assert_eq!(names, ALL);
        for unit in all() {
            assert!(unit.text.starts_with(HEAD), "{}", unit.name);
            for line in unit.text.lines() {
                let is_plain = line.is_empty() || line.starts_with(['#', '[']) || line.contains('=');
                assert!(is_plain && !line.ends_with(' '), "{}: {line:?}", unit.name);
            }
            assert_eq!([WATCH, CONFIRM].contains(&unit.name), unit.text.contains("[Timer]"), "{}", unit.name);
            assert_eq!(unit.wanted_by.is_empty(), !unit.text.contains("WantedBy="), "{}", unit.name);
        }
    }

    #[test]
    fn a_strange_path_is_quoted() {
        assert_eq!(argument("/usr/local/sbin/lowlat"), "/usr/local/sbin/lowlat");
        assert_eq!(argument("/opt/100%/low lat"), "\"/opt/100%%/low lat\"");
    }
}
