//! Sources of the environment of a unit's programs: drop-ins in the order in which systemd reads them, then
//! the environment files, which take precedence (systemd.exec(5)).

use crate::Root;
use lowlat_host::snapshot::Assignment;
use std::collections::BTreeMap;

/// Lines that are neither empty nor comments, with their number, counted from 1.
pub fn lines(text: &str) -> impl Iterator<Item = (u32, &str)> {
    let numbered = (1u32..).zip(text.lines().map(str::trim));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with(['#', ';']))
}

/// True if systemd treats a file with this name as settings.
pub fn is_config(name: &str) -> bool {
    name.strip_suffix(".conf").is_some_and(|stem| !stem.is_empty() && !stem.starts_with('.'))
}

/// The text of a file, with invalid UTF-8 replaced; `None` if it cannot be read.
pub fn text(root: &Root, path: &str) -> Option<String> {
    root.read_lossy(path).into_known()
}

/// Highest precedence first: a name in one hides the same name in later ones.
pub const DIRECTORIES: [&str; 7] = [
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
const DROP_INS_MAX: usize = 256;

/// Environment of programs, as set by their unit and its drop-ins.
#[derive(Debug, Default)]
pub struct UnitEnvironment {
    /// True if the unit's own file has its original content: captures of earlier versions hold its headings only.
    pub has_unit: bool,
    /// The assignments of `Environment=`, in order.
    pub assignments: Vec<Assignment>,
    /// The files of `EnvironmentFile=`, in order. They take precedence.
    pub files: Vec<String>,
}

/// The assignments of an environment file (systemd.exec(5)): comments start with # or ;.
pub fn of_file<'a>(path: &'a str, text: &'a str) -> impl Iterator<Item = Assignment> + 'a {
    lines(text).filter_map(move |(line, text)| {
        let (key, value) = text.strip_prefix("export ").unwrap_or(text).split_once('=')?;
        Some(assignment(path, line, key.trim(), value.trim().trim_matches(['"', '\''])))
    })
}

/// A configuration file of systemd in the first directory that has it, and its drop-ins in the order in which systemd
/// reads them: by name, where a file hides those of the same name in later directories.
pub fn files(root: &Root, directories: &[&str], name: &str) -> (Option<String>, Vec<String>) {
    let mut drop_ins: BTreeMap<String, String> = BTreeMap::new();
    for directory in directories {
        let directory = format!("{directory}/{name}.d");
        let names = root.list(&directory).into_known().unwrap_or_default();
        for name in names.into_iter().filter(|name| is_config(name)).take(DROP_INS_MAX) {
            drop_ins.entry(name).or_insert_with_key(|name| format!("{directory}/{name}"));
        }
    }
    let own = directories.iter().map(|directory| format!("{directory}/{name}"));
    (own.into_iter().find(|path| root.exists(path)), drop_ins.into_values().collect())
}

/// Reads the unit's file and its drop-ins.
pub fn sources(root: &Root, unit: &str) -> UnitEnvironment {
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
    UnitEnvironment { has_unit, assignments, files }
}

/// Words of an `Environment=` line, separated by white space; quotes keep words together.
pub fn words(text: &str) -> impl Iterator<Item = String> + '_ {
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
