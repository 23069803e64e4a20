//! Files that set sysctls and files of /sys.

use super::at_line;
use crate::verify::judge::Claim;
use crate::{verify::CulpritKind, verify::Evidence};
use lowlat_host::snapshot::{Assignment, glob_matches};

/// lowlat's files, which set planned values.
fn is_own(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.contains("lowlat"))
}

fn claim(kind: CulpritKind, line: &Assignment, does: String, value: &str) -> Claim {
    Claim { by: at_line(kind, &line.path, line.line, does), value: Some(value.to_owned()) }
}

fn of_sysfs(line: &Assignment, value: &str) -> Claim {
    let does = format!("writes {} to {} at boot", line.value, line.key);
    claim(CulpritKind::SysfsFile, line, does, value)
}

/// Lines that set a sysctl. Keys are compared with dots and slashes alike.
pub(super) fn sysctl(lines: &[Assignment], key: &str, does: &str) -> Vec<Claim> {
    let of_key = |line: &&Assignment| line.key == key && !is_own(&line.path);
    let says = |line: &Assignment| format!("sets {} = {} {does}", line.key, line.value);
    let lines = lines.iter().filter(of_key);
    lines.map(|line| claim(CulpritKind::SysctlFile, line, says(line), &line.value)).collect()
}

/// Lines of tmpfiles.d and sysfs.conf that write to a file.
pub(super) fn sysfs(evidence: &Evidence, path: &str) -> Vec<Claim> {
    let of_path = evidence.sysfs_files.iter().filter(|line| glob_matches(&line.key, path));
    of_path.map(|line| of_sysfs(line, &line.value)).collect()
}

/// Lines that enable idle states.
pub(in crate::verify) fn idle_states(evidence: &Evidence) -> Vec<Claim> {
    let is_state = |line: &&Assignment| {
        line.key.contains("/cpuidle/state") && line.key.ends_with("/disable") && line.value == "0"
    };
    evidence.sysfs_files.iter().filter(is_state).map(|line| of_sysfs(line, "enabled")).collect()
}
