//! Facts that a verification reads beyond the snapshot: the state of planned files, and the files through which other
//! tools set values. Precedence is decided elsewhere.

mod boot_sources;
mod environment;
mod sysfs_files;
mod tuned;

use lowlat_host::{Reading, snapshot::sysctl_path};
use lowlat_host_run::{Root, snapshot};
use lowlat_plan::{
    Plan,
    verify::{Evidence, module_path},
};
use lowlat_settings::change::Target;
use std::collections::BTreeMap;

/// Directories that planned files may be in. Plans with other paths are ignored there, because their values
/// would be shown.
const PLACES: [&str; 6] = ["/etc/", "/run/", "/usr/", "/sys/", "/proc/sys/", "/proc/irq/"];

/// Reads what is needed to compare `plan` with the host.
pub fn read(root: &Root, plan: &Plan) -> Evidence {
    let mut evidence = Evidence {
        tuned: tuned::options(root),
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
