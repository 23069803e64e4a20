//! CPUs in systemd's configuration: of the manager, and of slices, scopes and services.

use crate::Root;
use crate::environment::{self, lines, text};
use lowlat_host::{CpuSet, Reading, snapshot::ProcessCpus};
use std::collections::BTreeSet;

/// Directories of system.conf, highest precedence first (systemd-system.conf(5)).
const OF_MANAGER: [&str; 4] = ["/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd"];
/// Maximum number of entries read from a directory.
const ENTRIES_MAX: usize = 5_000;

/// Reads system.conf, all slices and scopes, and the services that the administrator configured.
pub(super) fn read(root: &Root) -> Vec<ProcessCpus> {
    let mut found = of_files(root, &OF_MANAGER, "system.conf", "", &["CPUAffinity"]);
    let mut units = BTreeSet::new();
    for directory in environment::DIRECTORIES {
        let is_own = directory.starts_with("/etc/") || directory.starts_with("/run/");
        let names = root.list(directory).into_known().unwrap_or_default();
        let units_of = names.iter().take(ENTRIES_MAX).map(|name| name.strip_suffix(".d").unwrap_or(name));
        let is_meant = |name: &&str| {
            let kind = name.rsplit_once('.').map(|(_, kind)| kind);
            matches!(kind, Some("slice" | "scope")) || is_own && kind == Some("service")
        };
        units.extend(units_of.filter(is_meant).map(str::to_owned));
    }
    for unit in units {
        found.extend(of_files(
            root,
            &environment::DIRECTORIES,
            &unit,
            &unit,
            &["CPUAffinity", "AllowedCPUs"],
        ));
    }
    found
}

/// Returns the CPUs that a file and its drop-ins set with these keys.
fn of_files(root: &Root, directories: &[&str], name: &str, unit: &str, keys: &[&str]) -> Vec<ProcessCpus> {
    let (own, drop_ins) = environment::files(root, directories, name);
    let mut found: Vec<ProcessCpus> = Vec::new();
    for path in own.into_iter().chain(drop_ins) {
        let Some(text) = text(root, &path) else { continue };
        for (line, assignment) in lines(&text) {
            let Some((key, value)) = assignment.split_once('=') else { continue };
            let (key, value) = (key.trim(), value.trim());
            if !keys.contains(&key) {
                continue;
            }
            let earlier = found.iter().position(|other| other.key == key).map(|at| found.remove(at));
            if value.is_empty() {
                continue;
            }
            let earlier = earlier.map_or(Reading::Absent, |earlier| earlier.cpus);
            let cpus = match (CpuSet::parse_systemd(value), earlier) {
                (Some(cpus), Reading::Known(earlier)) => Reading::Known(earlier.union(&cpus)),
                (Some(cpus), _) => Reading::Known(cpus),
                // systemd ignores the line.
                (None, earlier @ Reading::Known(_)) => earlier,
                (None, _) => {
                    Reading::unparsable(path.as_str(), value, format!("{key}= with CPUs such as 0-3 8"))
                }
            };
            let (unit, key) = (unit.to_owned(), key.to_owned());
            found.push(ProcessCpus { unit, key, cpus, path: path.clone(), line });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    fn shown(files: &[(&str, &str)]) -> Vec<String> {
        let found = read(&TestTree::of(files).root());
        let show = |found: &ProcessCpus| {
            format!("{} {}={} {}:{}", found.unit, found.key, found.cpus, found.path, found.line)
        };
        found.iter().map(show).collect()
    }

    #[test]
    fn assignments_add_up_and_an_empty_one_starts_again() {
        let main = ("/etc/systemd/system.conf", "[Manager]\n#CPUAffinity=\nCPUAffinity=5 6\n");
        assert_eq!(shown(&[main]), [" CPUAffinity=5-6 /etc/systemd/system.conf:3"]);
        let low = ("/etc/systemd/system.conf.d/10-a.conf", "[Manager]\nCPUAffinity=0-1\n");
        assert_eq!(shown(&[main, low]), [" CPUAffinity=0-1,5-6 /etc/systemd/system.conf.d/10-a.conf:2"]);
        let vendor =
            ("/usr/lib/systemd/system.conf.d/20-b.conf", "[Manager]\nCPUAffinity=\nCPUAffinity=0,8\n");
        assert_eq!(
            shown(&[vendor, low, main]),
            [" CPUAffinity=0,8 /usr/lib/systemd/system.conf.d/20-b.conf:3"]
        );
        let hides = ("/run/systemd/system.conf.d/20-b.conf", "[Manager]\nCPUAffinity=\n");
        assert!(shown(&[vendor, low, main, hides]).is_empty());
        // Only the first system.conf is read.
        let other = ("/usr/lib/systemd/system.conf", "[Manager]\nCPUAffinity=3\n");
        assert_eq!(shown(&[main, other]), [" CPUAffinity=5-6 /etc/systemd/system.conf:3"]);
        assert_eq!(shown(&[other]), [" CPUAffinity=3 /usr/lib/systemd/system.conf:2"]);
        let bad = ("/etc/systemd/system.conf", "[Manager]\nCPUAffinity=all\n");
        assert!(shown(&[bad])[0].contains("such as 0-3 8"), "{:?}", shown(&[bad]));
    }

    #[test]
    fn slices_and_units_are_read_where_systemd_reads_them() {
        let set_property = (
            "/etc/systemd/system.control/system.slice.d/50-AllowedCPUs.conf",
            "# This is a drop-in unit file extension\n[Slice]\nAllowedCPUs=0-1 8\n",
        );
        let desk =
            ("/etc/systemd/system/desk.service", "[Service]\nExecStart=/x\nCPUAffinity=3\nAllowedCPUs=3-4\n");
        let vendor = ("/usr/lib/systemd/system/x.service", "[Service]\nCPUAffinity=5\n");
        assert_eq!(
            shown(&[set_property, desk, vendor]),
            [
                "desk.service CPUAffinity=3 /etc/systemd/system/desk.service:3",
                "desk.service AllowedCPUs=3-4 /etc/systemd/system/desk.service:4",
                "system.slice AllowedCPUs=0-1,8 /etc/systemd/system.control/system.slice.d/50-AllowedCPUs.conf:3",
            ]
        );
    }

    /// The order of files is the one that `systemd-analyze cat-config` prints, on generated trees.
    #[test]
    fn files_are_read_in_the_order_of_systemd() {
        let mut random = 29_u32;
        let mut chance = |parts: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 16).is_multiple_of(parts)
        };
        let mut compared = 0;
        for _ in 0..20 {
            let mut tree = TestTree::new().file("/usr/lib/systemd/system.conf", "[Manager]\n");
            for directory in OF_MANAGER {
                for name in [
                    "system.conf",
                    "system.conf.d/10-b.conf",
                    "system.conf.d/9-z.conf",
                    "system.conf.d/a.conf",
                    "system.conf.d/x",
                ] {
                    let path = format!("{directory}/{name}");
                    if path == "/usr/lib/systemd/system.conf" || !chance(2) {
                    } else if name.ends_with("a.conf") && chance(3) {
                        tree = tree.link(&path, "/dev/null");
                    } else {
                        tree = tree.file(&path, "[Manager]\nCPUAffinity=1\n");
                    }
                }
            }
            let root = tree.place("/");
            let printed = std::process::Command::new("systemd-analyze")
                .arg(format!("--root={}", root.display()))
                .args(["cat-config", "systemd/system.conf"])
                .output();
            let Ok(printed) = printed.as_ref().map(|output| String::from_utf8_lossy(&output.stdout)) else {
                continue;
            };
            let head = format!("# {}", root.display().to_string().trim_end_matches('/'));
            let theirs: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix(&head)).collect();
            let (own, drop_ins) = environment::files(&tree.root(), &OF_MANAGER, "system.conf");
            assert_eq!(own.into_iter().chain(drop_ins).collect::<Vec<_>>(), theirs, "{printed}");
            compared += 1;
        }
        if compared == 0 {
            println!("skipped: files_are_read_in_the_order_of_systemd: systemd-analyze is not installed");
        }
    }
}
