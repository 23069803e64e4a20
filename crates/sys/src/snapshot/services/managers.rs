//! The two daemons that change settings behind an administrator's back: tuned and irqbalance.

use crate::Root;
use lowlat_model::{
    CpuSet, Reading,
    snapshot::{IrqbalanceFacts, TunedFacts},
};

const TUNED_MAIN: &str = "/etc/tuned/tuned-main.conf";

pub(super) fn tuned(root: &Root) -> TunedFacts {
    let main = root.read(TUNED_MAIN);
    // tuned removes the file, or empties it, when no profile is active.
    let without_profile = || main.as_ref().map(|_| String::new());
    TunedFacts {
        profile: root.read("/etc/tuned/active_profile").or(without_profile),
        mode: root.read("/etc/tuned/profile_mode"),
        rollback: main.as_ref().and_then(|text| Reading::from_option(assignment(text, "rollback"))),
    }
}

pub(super) fn irqbalance(root: &Root) -> IrqbalanceFacts {
    const PATHS: [&str; 2] = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];
    let Some((path, text)) =
        PATHS.iter().map(|path| (*path, root.read(path))).find(|(_, text)| !text.is_absent())
    else {
        return IrqbalanceFacts::default();
    };
    IrqbalanceFacts {
        config_path: text.as_ref().map(|_| path.to_owned()),
        banned_cpus: text.as_ref().and_then(|text| banned_cpus(path, text)),
        args: text.and_then(|text| Reading::from_option(assignment(&text, "IRQBALANCE_ARGS"))),
    }
}

/// The old mask goes before the list when both are set, as irqbalance itself decides (cputree.c). Without either,
/// irqbalance leaves out the isolated and adaptive-tick CPUs by itself: that is no configuration, so it is absent.
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
