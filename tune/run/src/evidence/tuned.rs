//! Settings of TuneD's active profile, and of those that it includes.

use lowlat_host::{HostSnapshot, Reading};
use lowlat_host_run::Root;
use lowlat_plan::import::tuned::{MergedProfile, Tree};
use lowlat_plan::verify::TunedOption;

/// TuneD's files. Others could contain secrets, and a profile may name any.
struct Files<'a>(&'a Root);

impl Tree for Files<'_> {
    fn read(&self, path: &str) -> Reading<String> {
        let is_allowed =
            ["/etc/tuned/", "/usr/lib/tuned/", "/proc/cpuinfo"].iter().any(|folder| path.starts_with(folder));
        if is_allowed && !path.contains("..") { self.0.read(path) } else { Reading::Absent }
    }

    fn glob(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

/// Every option that the active profile sets.
pub(super) fn options(root: &Root) -> Vec<TunedOption> {
    let active = root.read("/etc/tuned/active_profile");
    let names: Vec<&str> = active.text().split_whitespace().collect();
    let (files, host) = (Files(root), HostSnapshot::default());
    let Ok(profile) = MergedProfile::load(&names, &files, &host) else { return Vec::new() };
    let expand = |text: &str| profile.expand(text).unwrap_or_else(|_| text.to_owned());
    let mut options = Vec::new();
    for unit in profile.units.iter().filter(|unit| profile.applies(unit) != Ok(false)) {
        options.extend(unit.entries.iter().map(|entry| TunedOption {
            path: entry.path.clone(),
            line: entry.line,
            plugin: unit.plugin.clone(),
            devices: expand(&unit.devices),
            key: entry.key.clone(),
            value: expand(entry.value.trim_matches('"')),
        }));
    }
    options
}
