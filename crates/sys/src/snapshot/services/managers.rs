//! The two daemons that change settings in the background: TuneD and irqbalance.

use crate::Root;
use lowlat_host::{
    CpuSet, Reading,
    snapshot::{IrqbalanceFacts, TunedFacts},
};
use std::collections::BTreeMap;

const TUNED_MAIN: &str = "/etc/tuned/tuned-main.conf";

pub(super) fn tuned(root: &Root) -> TunedFacts {
    let main = root.read(TUNED_MAIN);
    // TuneD removes or empties the file if no profile is active.
    let without_profile = || main.as_ref().map(|_| String::new());
    TunedFacts {
        profile: root.read("/etc/tuned/active_profile").or(without_profile),
        mode: root.read("/etc/tuned/profile_mode"),
        rollback: main.as_ref().and_then(|text| Reading::from_option(assignment(text, "rollback"))),
    }
}

/// irqbalance takes its settings from its environment: its own file takes precedence over drop-ins of its
/// unit.
pub(super) fn irqbalance(root: &Root) -> IrqbalanceFacts {
    const PATHS: [&str; 2] = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];
    let file = PATHS.iter().map(|path| (*path, root.read(path))).find(|(_, text)| !text.is_absent());
    let (path, text) = file.map_or((Reading::Absent, Reading::Absent), |(path, text)| {
        (text.as_ref().map(|_| path.to_owned()), text)
    });
    let mut facts = IrqbalanceFacts {
        banned_cpus: text.as_ref().and_then(|text| banned_cpus(path.text(), text)),
        banned_by: Reading::Absent,
        args: text.and_then(|text| Reading::from_option(assignment(&text, "IRQBALANCE_ARGS"))),
        config_path: path.clone(),
    };
    if facts.banned_cpus.is_absent() {
        let (drop_in, banned) = banned_by_drop_ins(root);
        (facts.banned_cpus, facts.banned_by) = (banned, drop_in);
    } else {
        facts.banned_by = path;
    }
    facts
}

/// The setting in drop-ins of irqbalance's unit, and its file. Of several the name that sorts last wins; one
/// in /etc hides one of the same name elsewhere (systemd.unit(5)).
fn banned_by_drop_ins(root: &Root) -> (Reading<String>, Reading<CpuSet>) {
    const DIRECTORIES: [&str; 4] = [
        "/usr/lib/systemd/system",
        "/usr/local/lib/systemd/system",
        "/run/systemd/system",
        "/etc/systemd/system",
    ];
    let mut files = BTreeMap::new();
    for directory in DIRECTORIES {
        for path in root.glob(&format!("{directory}/irqbalance.service.d/*.conf")) {
            files.insert(path.rsplit('/').next().unwrap_or_default().to_owned(), path);
        }
    }
    for path in files.into_values().rev() {
        let Reading::Known(text) = root.read(&path) else { continue };
        let banned = banned_cpus(&path, &environment(&text));
        if !banned.is_absent() {
            return (Reading::Known(path), banned);
        }
    }
    (Reading::Absent, Reading::Absent)
}

/// The assignments of `Environment=` lines of a unit file, one per line.
fn environment(unit: &str) -> String {
    let lines = unit.lines().filter_map(|line| line.trim().strip_prefix("Environment="));
    lines
        .flat_map(|line| line.split_whitespace())
        .map(|word| word.trim_matches(['"', '\'']))
        .flat_map(|word| [word, "\n"])
        .collect()
}

/// The old mask takes precedence over the list if both are set, as in irqbalance itself (cputree.c). Without
/// either, irqbalance excludes the isolated and adaptive-tick CPUs automatically. That is not configuration,
/// so it is absent.
fn banned_cpus(path: &str, text: &str) -> Reading<CpuSet> {
    let value = |name| assignment(text, name).filter(|value| !value.is_empty());
    if let Some(mask) = value("IRQBALANCE_BANNED_CPUS") {
        let digits = mask.strip_prefix("0x").unwrap_or(&mask);
        return CpuSet::parse_mask(digits).map_or_else(
            |_| Reading::unparsable(path, &mask, "IRQBALANCE_BANNED_CPUS with a CPU mask such as ff00"),
            Reading::Known,
        );
    }
    match value("IRQBALANCE_BANNED_CPULIST") {
        Some(list) => CpuSet::parse_list(&list).map_or_else(
            |_| Reading::unparsable(path, &list, "IRQBALANCE_BANNED_CPULIST with a CPU list such as 8-15"),
            Reading::Known,
        ),
        None => Reading::Absent,
    }
}

/// The last value of `name=value` outside comments, without quotes.
fn assignment(text: &str, name: &str) -> Option<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let mut values = lines.filter_map(|line| {
        let (key, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        (key.trim() == name).then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    });
    values.next_back()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    fn banned_by(text: &str) -> Reading<CpuSet> {
        irqbalance(&TestTree::of(&[("/etc/sysconfig/irqbalance", text)]).root()).banned_cpus
    }

    #[test]
    fn tuned_without_a_profile_is_not_no_tuned() {
        let none = tuned(&TestTree::new().root());
        assert!(none.profile.is_absent() && none.rollback.is_absent());
        let main = "# rollback = auto\ndaemon = 1\nrollback = not_on_exit\n";
        let idle = tuned(&TestTree::of(&[(TUNED_MAIN, main)]).root());
        assert_eq!((idle.profile, idle.rollback.text()), (Reading::Known(String::new()), "not_on_exit"));
        let files = [("/etc/tuned/active_profile", "guide\n"), ("/etc/tuned/profile_mode", "manual\n")];
        let active = tuned(&TestTree::of(&files).root());
        assert_eq!((active.profile.text(), active.mode.text()), ("guide", "manual"));
    }

    #[test]
    fn bans_are_read_as_list_or_mask() {
        assert_eq!(banned_by("#X=1\nIRQBALANCE_BANNED_CPULIST=\"1-7,9-15\"\n").to_string(), "1-7,9-15");
        assert_eq!(banned_by("IRQBALANCE_BANNED_CPUS=0xff,00000001\n").to_string(), "0,32-39");
        assert_eq!(banned_by("IRQBALANCE_BANNED_CPULIST=3\nIRQBALANCE_BANNED_CPUS=1\n").to_string(), "0");
        assert_eq!(banned_by("IRQBALANCE_BANNED_CPULIST=3\nIRQBALANCE_BANNED_CPULIST=4\n").to_string(), "4");
        assert!(banned_by("#IRQBALANCE_BANNED_CPUS=1\nIRQBALANCE_BANNED_CPULIST=\n").is_absent());
        assert!(matches!(banned_by("IRQBALANCE_BANNED_CPULIST=x\n"), Reading::Unparsable(_)));
        assert!(matches!(banned_by("IRQBALANCE_BANNED_CPUS=z\n"), Reading::Unparsable(_)));
    }

    #[test]
    fn the_ruling_file_is_named() {
        let text = "IRQBALANCE_ARGS='--policyscript=/x'\n";
        let facts = irqbalance(&TestTree::of(&[("/etc/default/irqbalance", text)]).root());
        assert_eq!(
            (facts.config_path.text(), facts.args.text()),
            ("/etc/default/irqbalance", "--policyscript=/x")
        );
        assert_eq!(irqbalance(&TestTree::new().root()), IrqbalanceFacts::default());
    }

    #[test]
    fn drop_ins_of_the_unit_count_where_the_file_says_nothing() {
        let drop_in =
            |directory: &str, name: &str| format!("{directory}/systemd/system/irqbalance.service.d/{name}");
        let (low, high) = (drop_in("/etc", "60-lowlat.conf"), drop_in("/usr/lib", "70-vendor.conf"));
        let list = "[Service]\nEnvironment=A=b \"IRQBALANCE_BANNED_CPULIST=1-7,9-15\"\n";
        let facts =
            irqbalance(&TestTree::of(&[(low.as_str(), list), ("/etc/default/irqbalance", "#\n")]).root());
        assert_eq!(facts.banned_cpus.to_string(), "1-7,9-15");
        assert_eq!(
            (facts.banned_by.text(), facts.config_path.text()),
            (low.as_str(), "/etc/default/irqbalance")
        );
        let other = "[Service]\nEnvironment=IRQBALANCE_BANNED_CPULIST=3\n";
        let facts = irqbalance(&TestTree::of(&[(low.as_str(), list), (high.as_str(), other)]).root());
        assert_eq!((facts.banned_cpus.to_string().as_str(), facts.banned_by.text()), ("3", high.as_str()));
        let file = ("/etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=5\n");
        let facts = irqbalance(&TestTree::of(&[(low.as_str(), list), file]).root());
        assert_eq!((facts.banned_cpus.to_string().as_str(), facts.banned_by.text()), ("5", file.0));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..80), value in "\\PC{0,20}") {
            let tree = TestTree::new()
                .file("/etc/default/irqbalance", format!("IRQBALANCE_BANNED_CPUS={value}"))
                .file(TUNED_MAIN, &bytes);
            let _ = (irqbalance(&tree.root()), tuned(&tree.root()), banned_by(&value));
        }
    }
}
