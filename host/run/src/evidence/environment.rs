//! Sources of the environment of a unit's programs: drop-ins in the order in which systemd reads them, then
//! the environment files, which take precedence (systemd.exec(5)).

use super::{lines, text};
use crate::Root;
use lowlat_host::Reading;
use lowlat_plan::verify::{Assignment, RunningVariable};
use std::collections::BTreeMap;

/// Highest precedence first: a name in one hides the same name in later ones.
pub(crate) const DIRECTORIES: [&str; 7] = [
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
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
    let mut sources = sources(root, unit);
    for path in &sources.files {
        sources.assignments.extend(text(root, path).iter().flat_map(|text| of_file(path, text)));
    }
    sources.assignments
}

/// Environment of programs, as set by their unit and its drop-ins.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// True if the unit's own file has its original content: captures of earlier versions hold its headings only.
    pub has_unit: bool,
    /// The assignments of `Environment=`, in order.
    pub assignments: Vec<Assignment>,
    /// The files of `EnvironmentFile=`, in order. They take precedence.
    pub files: Vec<String>,
}

/// The assignments of an environment file (systemd.exec(5)): comments start with # or ;.
pub(crate) fn of_file<'a>(path: &'a str, text: &'a str) -> impl Iterator<Item = Assignment> + 'a {
    lines(text).filter_map(move |(line, text)| {
        let (key, value) = text.strip_prefix("export ").unwrap_or(text).split_once('=')?;
        Some(assignment(path, line, key.trim(), value.trim().trim_matches(['"', '\''])))
    })
}

/// A configuration file of systemd in the first directory that has it, and its drop-ins in the order in which systemd
/// reads them: by name, where a file hides those of the same name in later directories.
pub(crate) fn files(root: &Root, directories: &[&str], name: &str) -> (Option<String>, Vec<String>) {
    let mut drop_ins: BTreeMap<String, String> = BTreeMap::new();
    for directory in directories {
        let directory = format!("{directory}/{name}.d");
        let names = root.list(&directory).into_known().unwrap_or_default();
        for name in names.into_iter().filter(|name| super::is_config(name)).take(DROP_INS_MAX) {
            drop_ins.entry(name).or_insert_with_key(|name| format!("{directory}/{name}"));
        }
    }
    let own = directories.iter().map(|directory| format!("{directory}/{name}"));
    (own.into_iter().find(|path| root.exists(path)), drop_ins.into_values().collect())
}

/// Reads the unit's file and its drop-ins.
pub(crate) fn sources(root: &Root, unit: &str) -> Sources {
    let (own, drop_ins) = files(root, &DIRECTORIES, unit);
    let is_whole = |path: &String| text(root, path).is_some_and(|text| text.contains("ExecStart="));
    let (has_unit, mut assignments, mut files) = (own.as_ref().is_some_and(is_whole), Vec::new(), Vec::new());
    for path in own.into_iter().chain(drop_ins) {
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
                Some(("EnvironmentFile", value)) => {
                    let path = value.trim_start_matches('-');
                    // Patterns and specifiers are not followed.
                    let is_plain = path.starts_with('/') && !path.contains(['*', '?', '[', '%']);
                    files.extend(is_plain.then(|| path.to_owned()));
                }
                _ => {}
            }
        }
    }
    Sources { has_unit, assignments, files }
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
