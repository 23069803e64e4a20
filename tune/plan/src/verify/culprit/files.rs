//! Files that set sysctls and files of /sys.

use super::at_line;
use crate::verify::judge::Claim;
use crate::{verify::CulpritKind, verify::Evidence};
use lowlat_host::snapshot::{Assignment, glob_matches};

/// lowlat's files, which set planned values.
fn is_own(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.contains("lowlat"))
}

/// Lines that set a sysctl. Keys are compared with dots and slashes alike.
pub(super) fn sysctl(lines: &[Assignment], key: &str, does: &str) -> Vec<Claim> {
    let of_key = |line: &&Assignment| line.key == key && !is_own(&line.path);
    let claim = |line: &Assignment| Claim {
        by: at_line(
            CulpritKind::SysctlFile,
            &line.path,
            line.line,
            format!("sets {} = {} {does}", line.key, line.value),
        ),
        value: Some(line.value.clone()),
    };
    lines.iter().filter(of_key).map(claim).collect()
}

/// Lines of tmpfiles.d and sysfs.conf that write to a file.
pub(super) fn sysfs(evidence: &Evidence, path: &str) -> Vec<Claim> {
    let of_path = evidence.sysfs_files.iter().filter(|line| glob_matches(&line.key, path));
    let claim = |line: &Assignment| Claim {
        by: at_line(
            CulpritKind::SysfsFile,
            &line.path,
            line.line,
            format!("writes {} to {} at boot", line.value, line.key),
        ),
        value: Some(line.value.clone()),
    };
    of_path.map(claim).collect()
}

/// Lines that enable idle states.
pub(super) fn idle_states(evidence: &Evidence) -> Vec<Claim> {
    let is_state = |line: &&Assignment| {
        line.key.contains("/cpuidle/state") && line.key.ends_with("/disable") && line.value == "0"
    };
    let claim = |line: &Assignment| Claim {
        by: at_line(
            CulpritKind::SysfsFile,
            &line.path,
            line.line,
            format!("writes 0 to {} at boot", line.key),
        ),
        value: Some("enabled".to_owned()),
    };
    evidence.sysfs_files.iter().filter(is_state).map(claim).collect()
}
