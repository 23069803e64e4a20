//! Sources of the environment of a unit's programs: drop-ins in the order in which systemd reads them, then
//! the environment files, which take precedence (systemd.exec(5)).

use super::{lines, text};
use crate::Root;
use lowlat_host::Reading;
use lowlat_plan::verify::{Assignment, RunningVariable};
use std::collections::BTreeMap;

/// Highest precedence first: a name in one hides the same name in later ones.
const DIRECTORIES: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
const DROP_INS_MAX: usize = 256;

/// The unit of a drop-in: "irqbalance.service" for "/etc/systemd/system/irqbalance.service.d/60-x.conf".
pub(super) fn unit_of(path: &str) -> Option<String> {
    let (directory, _) = path.rsplit_once('/')?;
    let unit = directory.rsplit('/').next()?.strip_suffix(".d")?;
    (directory.contains("/systemd/system/") && unit.contains('.')).then(|| unit.to_owned())
}

/// Every assignment of a unit's environment; the last one wins.
pub(super) fn read(root: &Root, unit: &str) -> Vec<Assignment> {
    let mut drop_ins: BTreeMap<String, String> = BTreeMap::new();
    for directory in DIRECTORIES {
        let directory = format!("{directory}/{unit}.d");
        let names = root.list(&directory).into_known().unwrap_or_default();
        for name in names.into_iter().filter(|name| super::is_config(name)).take(DROP_INS_MAX) {
            drop_ins.entry(name).or_insert_with_key(|name| format!("{directory}/{name}"));
        }
    }
    let own = DIRECTORIES.iter().map(|directory| format!("{directory}/{unit}"));
    let own = own.into_iter().find(|path| root.exists(path));
    let (mut assignments, mut files) = (Vec::new(), Vec::new());
    for path in own.into_iter().chain(drop_ins.into_values()) {
        let Some(text) = text(root, &path) else { continue };
        for (line, text) in lines(&text) {
            match text.split_once('=') {
                // An empty assignment clears the earlier ones.
                Some(("Environment", "")) => assignments.clear(),
                Some(("EnvironmentFile", "")) => files.clear(),
                Some(("Environment", value)) => assignments.extend(words(value).filter_map(|word| {
                    let (key, value) = word.split_once('=')?;
                    Some(assignment(&path, line, key, value))
                })),
                Some(("EnvironmentFile", value)) => files.push(value.trim_start_matches('-').to_owned()),
                _ => {}
            }
        }
    }
    for path in files.iter().filter(|path| path.starts_with("/etc/")) {
        let Some(text) = text(root, path) else { continue };
        for (line, text) in lines(&text) {
            if let Some((key, value)) = text.split_once('=') {
                let value = value.trim().trim_matches(['"', '\'']);
                assignments.push(assignment(path, line, key.trim(), value));
            }
        }
    }
    assignments
}

/// The variables that `drop_in` sets, as a running process of the unit has them; empty if none is running.
/// Other variables are not read, because environments contain secrets.
pub(super) fn running(root: &Root, unit: &str, drop_in: &str) -> Vec<RunningVariable> {
    let groups = ["/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice"];
    let pid = groups.iter().find_map(|group| {
        let pids = text(root, &format!("{group}/{unit}/cgroup.procs"))?;
        pids.lines().next()?.trim().parse::<u32>().ok()
    });
    let Some(pid) = pid else { return Vec::new() };
    let environment = root.read_bytes(&format!("/proc/{pid}/environ"));
    let keys = lines(drop_in).filter_map(|(_, line)| line.strip_prefix("Environment="));
    let keys = keys.flat_map(words).filter_map(|word| word.split_once('=').map(|(key, _)| key.to_owned()));
    let value_of = |key: &str, bytes: &[u8]| {
        let mut variables = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        variables.find_map(|variable| {
            variable.split_once('=').filter(|(name, _)| *name == key).map(|(_, value)| value.to_owned())
        })
    };
    keys.map(|key| {
        let value = environment.as_ref().and_then(|bytes| Reading::from_option(value_of(&key, bytes)));
        RunningVariable { unit: unit.to_owned(), key, value }
    })
    .collect()
}

/// Words of an `Environment=` line, separated by white space; quotes keep words together.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut quote = None;
    let parts = text.split(move |c: char| match quote {
        Some(open) if c == open => {
            quote = None;
            true
        }
        Some(_) => false,
        None if matches!(c, '"' | '\'') => {
            quote = Some(c);
            true
        }
        None => c.is_whitespace(),
    });
    parts.filter(|part| !part.is_empty()).map(str::to_owned)
}

fn assignment(path: &str, line: u32, key: &str, value: &str) -> Assignment {
    Assignment { path: path.to_owned(), line, key: key.to_owned(), value: value.to_owned() }
}
