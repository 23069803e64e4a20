//! Units from their files and control groups, if systemd cannot be queried: another root, or no bus.

use super::is_of_interest;
use crate::{Root, environment};
use lowlat_host::{Reading, snapshot::Service};
use std::collections::{BTreeMap, BTreeSet};

/// Unit directories, highest precedence first (systemd.unit(5), "UNIT FILE LOAD PATH"), without those of `systemctl
/// set-property`, which have drop-ins only.
const DIRECTORIES: &[&str] = environment::DIRECTORIES.split_at(2).1;
/// Directories where packages install units. If both are missing, the others name only what an administrator added.
const OF_PACKAGES: [&str; 2] = ["/usr/lib/systemd/system", "/lib/systemd/system"];
/// Name of the units in [`lowlat_host::HostSnapshot::unread`].
const PLACE: &str = "systemd's unit files";
/// Directories where enabling creates links: permanently, or until the next boot.
const ENABLED_IN: [(&str, &str); 2] =
    [("/etc/systemd/system", "enabled"), ("/run/systemd/system", "enabled-runtime")];
/// The unit that systemd starts.
const DEFAULT_TARGET: &str = "default.target";
/// Maximum number of entries read from a directory.
const ENTRIES_MAX: usize = 5_000;

/// Units according to their files.
#[derive(Debug, Default)]
pub(super) struct UnitFiles {
    /// Units of interest, by name.
    pub units: BTreeMap<String, Service>,
    /// Names that are links to another unit, with that unit.
    pub aliases: BTreeMap<String, String>,
}

/// Reads the units; `None` if no unit directory is readable.
pub(super) fn read(root: &Root) -> Option<UnitFiles> {
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    let (mut any, mut has_packages) = (false, false);
    for directory in DIRECTORIES {
        let names = match root.list(directory) {
            Reading::Absent => continue,
            names => root.or_unread(PLACE, names),
        };
        any = true;
        has_packages |= OF_PACKAGES.contains(directory);
        for name in names.into_iter().take(ENTRIES_MAX).filter(|name| is_of_interest(name)) {
            places.entry(name).or_insert_with_key(|name| format!("{directory}/{name}"));
        }
    }
    if !any {
        return None;
    }
    if !has_packages {
        root.or_unread::<()>(PLACE, Reading::Absent);
    }
    let wanted = links_of_enabled(root);
    let mut found = UnitFiles::default();
    for (name, path) in &places {
        let target = alias_target(root, path, name).filter(|target| places.contains_key(target));
        let unit = target.as_ref().unwrap_or(name);
        let path = places.get(unit).unwrap_or(path);
        let (active, sub) = run_state(root, unit);
        let service = Service { active, sub, enablement: enablement(root, path, unit, &wanted) };
        found.units.insert(name.clone(), service);
        found.aliases.extend(target.map(|target| (name.clone(), target)));
    }
    Some(found)
}

/// The target that systemd starts unless the kernel's command line names another: the target of the link
/// default.target, or its own name if it is a file.
pub(super) fn default_target(root: &Root) -> Reading<String> {
    for directory in DIRECTORIES {
        let path = format!("{directory}/{DEFAULT_TARGET}");
        match root.read_link(&path) {
            Reading::Known(link) => {
                let name = link.rsplit('/').next().filter(|name| name.ends_with(".target"));
                let name = name.map(str::to_owned);
                return Reading::understood(name, path, &link, "a link to a unit NAME.target");
            }
            _ if root.exists(&path) => return Reading::Known(DEFAULT_TARGET.to_owned()),
            _ => {}
        }
    }
    Reading::Absent
}

/// The other unit that this file links to.
fn alias_target(root: &Root, path: &str, name: &str) -> Option<String> {
    let link = root.read_link(path).into_known()?;
    let target = link.rsplit('/').next()?;
    (target != name && is_of_interest(target)).then(|| target.to_owned())
}

/// Names of the units to which `NAME.wants/` and `NAME.requires/` link, with the enablement that follows from
/// the links' location.
fn links_of_enabled(root: &Root) -> BTreeMap<String, &'static str> {
    let mut wanted = BTreeMap::new();
    for (directory, state) in ENABLED_IN {
        let names = root.list(directory).into_known().unwrap_or_default();
        let is_links = |name: &String| matches!(name.rsplit_once('.'), Some((_, "wants" | "requires")));
        let link_directories: BTreeSet<String> =
            names.into_iter().take(ENTRIES_MAX).filter(is_links).collect();
        for links in link_directories {
            let links = root.list(&format!("{directory}/{links}")).into_known().unwrap_or_default();
            for name in links.into_iter().take(ENTRIES_MAX) {
                wanted.entry(name).or_insert(state);
            }
        }
    }
    wanted
}

fn enablement(root: &Root, path: &str, unit: &str, wanted: &BTreeMap<String, &str>) -> Reading<String> {
    let known = |state: &str| Reading::Known(state.to_owned());
    if root.read_link(path).text() == "/dev/null" {
        return known("masked");
    }
    if let Some(state) = wanted.get(unit) {
        return known(state);
    }
    root.read_bytes(path).map(|bytes| {
        let text = String::from_utf8_lossy(&bytes);
        let has_install = text.lines().any(|line| line.trim() == "[Install]");
        // systemd treats an empty file as a mask.
        let state = if bytes.is_empty() {
            "masked"
        } else if has_install {
            "disabled"
        } else {
            "static"
        };
        state.to_owned()
    })
}

/// A service whose group contains processes is running. An empty or missing group proves nothing: a one-shot
/// service may be active without a process.
fn run_state(root: &Root, unit: &str) -> (Reading<String>, Reading<String>) {
    let in_second = format!("/sys/fs/cgroup/system.slice/{unit}/cgroup.events");
    let in_first = format!("/sys/fs/cgroup/systemd/system.slice/{unit}/cgroup.procs");
    let (second, first) = (root.read(&in_second), root.read(&in_first));
    for missing in [&second, &first] {
        if matches!(missing, Reading::Denied | Reading::Unparsable(_)) {
            return (missing.clone(), missing.clone());
        }
    }
    let is_populated =
        second.text().lines().any(|line| line.trim() == "populated 1") || !first.text().is_empty();
    let is_service = unit.strip_suffix(".service").is_some();
    if is_service && is_populated {
        (Reading::Known("active".into()), Reading::Known("running".into()))
    } else {
        (Reading::Absent, Reading::Absent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    fn shown(tree: &TestTree) -> Vec<String> {
        let units = read(&tree.root()).unwrap().units;
        units.iter().map(|(name, s)| format!("{name} {} {} {}", s.active, s.sub, s.enablement)).collect()
    }

    #[test]
    fn the_default_target_is_that_of_the_first_directory_that_has_one() {
        let usual = TestTree::new().link("/usr/lib/systemd/system/default.target", "graphical.target");
        assert_eq!(default_target(&usual.root()).text(), "graphical.target");
        let chosen =
            usual.link("/etc/systemd/system/default.target", "/usr/lib/systemd/system/multi-user.target");
        assert_eq!(default_target(&chosen.root()).text(), "multi-user.target");
        let masked = TestTree::new().link("/etc/systemd/system/default.target", "/dev/null");
        assert!(matches!(default_target(&masked.root()), Reading::Unparsable(_)));
        assert!(default_target(&TestTree::new().root()).is_absent());
    }

    #[test]
    fn enablement_and_run_state_come_from_links_and_groups() {
        let installable = "[Unit]\n[Install]\nWantedBy=multi-user.target\n";
        let tree = TestTree::new()
            .file("/usr/lib/systemd/system/chrony.service", installable)
            .link("/etc/systemd/system/chronyd.service", "/usr/lib/systemd/system/chrony.service")
            .link(
                "/etc/systemd/system/multi-user.target.wants/chrony.service",
                "/usr/lib/systemd/system/chrony.service",
            )
            .file("/sys/fs/cgroup/system.slice/chrony.service/cgroup.events", "populated 1\nfrozen 0\n")
            .file("/usr/lib/systemd/system/irqbalance.service", installable)
            .link("/etc/systemd/system/irqbalance.service", "/dev/null")
            .file("/usr/lib/systemd/system/tuned.service", installable)
            .file("/sys/fs/cgroup/systemd/system.slice/tuned.service/cgroup.procs", "812\n")
            .file("/usr/lib/systemd/system/once.service", "[Service]\nType=oneshot\n")
            .file("/sys/fs/cgroup/system.slice/once.service/cgroup.events", "populated 0\n")
            .file("/etc/systemd/system/emptied.service", "")
            .file("/usr/lib/systemd/system/fstrim.timer", installable)
            .link(
                "/run/systemd/system/timers.target.wants/fstrim.timer",
                "/usr/lib/systemd/system/fstrim.timer",
            )
            .file("/usr/lib/systemd/system/getty@.service", installable)
            .file("/usr/lib/systemd/system/system.slice", "");
        let expected = [
            "chrony.service active running enabled",
            "chronyd.service active running enabled",
            "emptied.service absent absent masked",
            "fstrim.timer absent absent enabled-runtime",
            "irqbalance.service absent absent masked",
            "once.service absent absent static",
            "tuned.service active running disabled",
        ];
        assert_eq!(shown(&tree), expected);
    }

    #[test]
    fn a_host_without_unit_directories_has_no_units() {
        assert!(read(&TestTree::new().root()).is_none());
        assert!(shown(&TestTree::new().dir("/etc/systemd/system")).is_empty());
    }

    #[test]
    fn links_in_a_circle_end() {
        let tree = TestTree::new()
            .link("/etc/systemd/system/a.service", "b.service")
            .link("/etc/systemd/system/b.service", "a.service");
        assert_eq!(shown(&tree).len(), 2);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..80)) {
            let tree = TestTree::new()
                .file("/etc/systemd/system/a.service", &bytes)
                .file("/sys/fs/cgroup/system.slice/a.service/cgroup.events", &bytes);
            assert_eq!(shown(&tree).len(), 1);
        }
    }
}
