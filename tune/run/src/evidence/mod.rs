//! Facts that a verification reads beyond the snapshot: the state of planned files, and the files through which other
//! tools set values. Precedence is decided elsewhere.

mod boot_sources;
mod environment;
mod sysfs_files;

use lowlat_host::{HostSnapshot, Reading, snapshot::sysctl_path};
use lowlat_host_run::{Root, snapshot};
use lowlat_plan::{
    Plan,
    import::tuned::{MergedProfile, Tree},
    verify::{Evidence, TunedOption, module_path},
};
use lowlat_settings::change::Target;
use std::collections::BTreeMap;

/// Directories that planned files may be in. Plans with other paths are ignored there, because their values
/// would be shown.
const PLACES: [&str; 6] = ["/etc/", "/run/", "/usr/", "/sys/", "/proc/sys/", "/proc/irq/"];

/// Reads what is needed to compare `plan` with the host.
pub fn read(root: &Root, plan: &Plan) -> Evidence {
    let mut evidence = Evidence {
        tuned: options(root),
        boot: boot_sources::read(root),
        sysfs_files: sysfs_files::read(root),
        sysctl_conf: snapshot::sysctl_conf(root),
        ..Evidence::default()
    };
    let mut units: Vec<String> = Vec::new();
    let mut drop_ins: Vec<(String, &str)> = Vec::new();
    for change in &plan.changes {
        match &change.target {
            Target::OwnedFile { path } => {
                file(root, &mut evidence.files, path);
                if is_allowed(path) && root.read_link(path).text() == "/dev/null" {
                    evidence.masked.push(path.clone());
                }
                if let Some(unit) = environment::unit_of(path) {
                    drop_ins.push((unit.clone(), &change.after));
                    units.extend(Some(unit).filter(|unit| !units.contains(unit)));
                }
            }
            Target::File { path } | Target::FileKey { path, .. } => {
                file(root, &mut evidence.files, path);
            }
            Target::Sysctl { key } => file(root, &mut evidence.files, &sysctl_path(key)),
            Target::CommandLine { tokens } => {
                for path in tokens.iter().filter_map(|token| module_path(&token.name)) {
                    file(root, &mut evidence.files, &path);
                }
            }
            _ => {}
        }
    }
    evidence.running =
        drop_ins.iter().flat_map(|(unit, text)| environment::running(root, unit, text)).collect();
    evidence.environment = units.iter().flat_map(|unit| environment::read(root, unit)).collect();
    evidence
}

fn is_allowed(path: &str) -> bool {
    PLACES.iter().any(|place| path.starts_with(place)) && !path.split('/').any(|part| part == "..")
}

fn file(root: &Root, files: &mut BTreeMap<String, Reading<String>>, path: &str) {
    if is_allowed(path) && !files.contains_key(path) {
        files.insert(path.to_owned(), root.read(path));
    }
}

#[cfg(test)]
mod tests;

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
fn options(root: &Root) -> Vec<TunedOption> {
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
