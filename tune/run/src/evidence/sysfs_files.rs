//! Files that write values below /sys and /proc at boot: `w` lines of tmpfiles.d(5), and sysfs.conf of
//! sysfsutils.

use lowlat_host::snapshot::Assignment;
use lowlat_host_run::Root;
use lowlat_host_run::environment::{lines, text};
use std::collections::BTreeMap;

/// Highest precedence first: a name in one hides the same name in later ones.
const TMPFILES: [&str; 4] =
    ["/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d"];
const FILES_MAX: usize = 1_000;
/// Type, path, mode, user, group and age precede the value.
const FIELDS_BEFORE_VALUE: usize = 6;

pub(super) fn read(root: &Root) -> Vec<Assignment> {
    let mut by_name: BTreeMap<String, String> = BTreeMap::new();
    for directory in TMPFILES {
        let names = root.list(directory).into_known().unwrap_or_default();
        for name in
            names.into_iter().filter(|name| lowlat_host_run::environment::is_config(name)).take(FILES_MAX)
        {
            by_name.entry(name).or_insert_with_key(|name| format!("{directory}/{name}"));
        }
    }
    let mut assignments = Vec::new();
    for path in by_name.into_values() {
        let text = text(root, &path).unwrap_or_default();
        assignments.extend(lines(&text).filter_map(|(line, text)| tmpfile(&path, line, text)));
    }
    for path in std::iter::once("/etc/sysfs.conf".to_owned()).chain(root.glob("/etc/sysfs.d/*.conf")) {
        let text = text(root, &path).unwrap_or_default();
        assignments.extend(lines(&text).filter_map(|(line, text)| sysfs(&path, line, text)));
    }
    assignments
}

/// `w /sys/kernel/mm/ksm/run - - - - 1`.
fn tmpfile(path: &str, line: u32, text: &str) -> Option<Assignment> {
    let mut fields = text.split_whitespace();
    let (kind, target) = (fields.next()?, fields.next()?);
    let is_write = kind.trim_end_matches(['+', '!', '-', '=', '~', '^', '$']) == "w";
    if !is_write || !(target.starts_with("/sys/") || target.starts_with("/proc/")) {
        return None;
    }
    let value = fields.skip(FIELDS_BEFORE_VALUE - 2).collect::<Vec<_>>().join(" ");
    Some(Assignment { path: path.to_owned(), line, key: target.to_owned(), value })
}

/// `kernel/mm/ksm/run = 1`, below /sys.
fn sysfs(path: &str, line: u32, text: &str) -> Option<Assignment> {
    let (key, value) = text.split_once('=')?;
    let key = key.trim();
    if key.contains(char::is_whitespace) {
        return None;
    }
    Some(Assignment {
        path: path.to_owned(),
        line,
        key: format!("/sys/{key}"),
        value: value.trim().to_owned(),
    })
}
