//! Texts of the systemd units that keep a plan in force. Pure.
//! | unit | purpose |
//! |---|---|
//! | `lowlat.service` | applies the run-time part again at each boot; stopping it rolls that part back |
//! | `lowlat-again.service` | the same whenever TuneD starts, which sets its own values then |
//! | `lowlat-watch.timer`, `.service` | checks at intervals whether the plan is still in effect |
//! | `lowlat-confirm.timer`, `.service` | the dead-man switch: rolls an unconfirmed plan back |
//! | `lowlat-prove.service` | measures a boot of a proof over reboots, and prepares the next one |
//! None of them names the plan, so the next plan leaves them unchanged.

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
/// The service that continues a proof after each reboot.
pub const PROVE: &str = "lowlat-prove.service";
/// All units, for the status.
pub const ALL: [&str; 7] = [APPLY, AGAIN, WATCH, WATCH_SERVICE, CONFIRM, CONFIRM_SERVICE, PROVE];

/// The unit that starts the services of a boot.
pub(crate) const AT_BOOT: &str = "multi-user.target";

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

/// The units that keep a plan in force. `lowlat` is the path of its binary; drift is not watched without `drift`.
pub fn of(lowlat: &str, has_tuned: bool, drift: Option<Watch>) -> Vec<Unit> {
    let lowlat = argument(lowlat);
    let mut units = vec![apply(&lowlat)];
    units.extend(has_tuned.then(|| again(&lowlat)));
    units.extend(drift.into_iter().flat_map(|drift| watch(&lowlat, drift)));
    units
}

/// A unit with these sections, started by `wanted_by`.
fn unit(name: &'static str, wanted_by: Option<&'static str>, sections: &str) -> Unit {
    let install = wanted_by.map(|by| format!("\n[Install]\nWantedBy={by}\n")).unwrap_or_default();
    Unit { name, text: format!("{HEAD}{sections}{install}"), wanted_by: wanted_by.into_iter().collect() }
}

/// Starts after everything that sets the same values: drivers, sysctls, TuneD, irqbalance, and the network,
/// because drivers request interrupts of queues when the interface goes up. No unit waits for it.
/// It has no default dependencies, so it is not stopped at shutdown, where a rollback of values in the
/// kernel would be useless.
fn apply(lowlat: &str) -> Unit {
    let sections = format!(
        "[Unit]\n\
         Description=Apply the run-time part of lowlat's plan\n\
         DefaultDependencies=no\n\
         Requires=sysinit.target\n\
         After=sysinit.target basic.target systemd-modules-load.service systemd-sysctl.service systemd-udevd.service\n\
         After=network-pre.target network.target tuned.service irqbalance.service\n\
         RequiresMountsFor=/var/lib/lowlat {lowlat}\n\
         ConditionPathExists=/var/lib/lowlat/in-force.json\n\
         ConditionVirtualization=!container\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         ExecStart={lowlat} tune apply --at-boot\n\
         ExecStop={lowlat} tune rollback --run-time --yes\n\
         TimeoutStartSec=5min\n\
         TimeoutStopSec=5min\n"
    );
    unit(APPLY, Some(AT_BOOT), &sections)
}

/// TuneD sets its profile's values whenever it starts or restarts. TuneD's unit wants this one, so each
/// start of TuneD applies lowlat's values after it. With `PartOf=tuned.service` in `lowlat.service`,
/// stopping TuneD would also roll lowlat's values back.
fn again(lowlat: &str) -> Unit {
    let sections = format!(
        "[Unit]\n\
         Description=Apply the run-time part of lowlat's plan again after TuneD\n\
         DefaultDependencies=no\n\
         Requisite={APPLY}\n\
         After={APPLY} tuned.service\n\
         RequiresMountsFor=/var/lib/lowlat {lowlat}\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={lowlat} tune apply --at-boot\n\
         TimeoutStartSec=5min\n"
    );
    unit(AGAIN, Some("tuned.service"), &sections)
}

/// A check at intervals. Drift makes the service fail, which monitoring sees, and the journal shows the
/// details. The plan is applied again only if requested.
fn watch(lowlat: &str, watch: Watch) -> [Unit; 2] {
    let interval = seconds(watch.interval);
    let timer = format!(
        "[Unit]\n\
         Description=Check whether lowlat's plan is still in effect\n\
         \n\
         [Timer]\n\
         OnActiveSec={interval}\n\
         OnUnitInactiveSec={interval}\n\
         AccuracySec=1s\n\
         Unit={WATCH_SERVICE}\n"
    );
    let (what, command) = if watch.is_repairing {
        ("Apply drifted values of lowlat's plan again", "tune apply --at-boot")
    } else {
        ("Check whether lowlat's plan is still in effect", "tune verify --quiet --no-ticks")
    };
    let service = format!(
        "[Unit]\n\
         Description={what}\n\
         After={APPLY}\n\
         RequiresMountsFor=/var/lib/lowlat {lowlat}\n\
         ConditionPathExists=/var/lib/lowlat/in-force.json\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={lowlat} {command}\n\
         TimeoutStartSec=5min\n"
    );
    [unit(WATCH, Some("timers.target"), &timer), unit(WATCH_SERVICE, None, &service)]
}

/// The units of the dead-man switch. The time counts from the start of the timer: when the plan is applied, and at each
/// boot. It is measured on the monotonic clock, so setting the time of day has no effect.
pub fn confirm(lowlat: &str, within: Duration) -> Vec<Unit> {
    let (lowlat, within) = (argument(lowlat), seconds(within));
    let timer = format!(
        "[Unit]\n\
         Description=Roll lowlat's plan back unless it is confirmed\n\
         \n\
         [Timer]\n\
         OnActiveSec={within}\n\
         AccuracySec=1s\n\
         Unit={CONFIRM_SERVICE}\n"
    );
    let service = format!(
        "[Unit]\n\
         Description=Roll back lowlat's unconfirmed plan\n\
         RequiresMountsFor=/var/lib/lowlat {lowlat}\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={lowlat} tune rollback --unconfirmed --yes\n\
         TimeoutStartSec=30min\n"
    );
    vec![unit(CONFIRM, Some("timers.target"), &timer), unit(CONFIRM_SERVICE, None, &service)]
}

/// The unit that continues a proof after a reboot by running this command in this directory. It starts when the boot is
/// over.
pub fn prove(command: &[String], directory: &str) -> Unit {
    let command: Vec<String> = command.iter().map(|word| argument(word)).collect();
    let sections = format!(
        "[Unit]\n\
         Description=Prove lowlat's plan over reboots\n\
         After={AT_BOOT} {APPLY}\n\
         ConditionPathExists=/var/lib/lowlat/proof.json\n\
         \n\
         [Service]\n\
         Type=exec\n\
         WorkingDirectory={}\n\
         ExecStart={}\n",
        directory.replace('%', "%%"),
        command.join(" ")
    );
    unit(PROVE, Some(AT_BOOT), &sections)
}

/// The file of a unit.
pub fn path(name: &str) -> String {
    format!("{DIRECTORY}/{name}")
}

/// The link that has `by` start the unit.
pub fn link_path(name: &str, by: &str) -> String {
    format!("{DIRECTORY}/{by}.wants/{name}")
}

/// A word as an argument of ExecStart= (systemd.service(5), "COMMAND LINES"): quoted, with systemd's special
/// characters doubled.
fn argument(word: &str) -> String {
    let path = word.replace('%', "%%").replace('$', "$$");
    if !path.is_empty() && path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+%$".contains(c)) {
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
        let mut units = of("/usr/local/sbin/lowlat", true, watch);
        units.extend(confirm("/usr/local/sbin/lowlat", Duration::from_secs(600)));
        units.push(prove(&["/usr/local/sbin/lowlat".to_owned(), "tune".to_owned()], "/"));
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
        assert_eq!(argument(""), "\"\"");
        assert_eq!(argument("echo \"$A\"; x"), r#""echo \"$$A\"; x""#);
    }
}
