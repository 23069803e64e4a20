//! The two daemons that change settings in the background: TuneD and irqbalance.

use crate::Root;
use crate::environment::{self, UnitEnvironment};
use lowlat_host::snapshot::Assignment;
use lowlat_host::{
    CpuSet, Reading,
    snapshot::{IrqbalanceFacts, TunedFacts},
};

const TUNED_MAIN: &str = "/etc/tuned/tuned-main.conf";

pub(super) fn tuned(root: &Root) -> TunedFacts {
    let main = root.read(TUNED_MAIN);
    // TuneD removes or empties the file if no profile is active.
    let without_profile = || main.as_ref().map(|_| String::new());
    TunedFacts {
        profile: match root.read("/etc/tuned/active_profile") {
            Reading::Absent => without_profile(),
            profile => profile,
        },
        mode: root.read("/etc/tuned/profile_mode"),
        rollback: main.as_ref().and_then(|text| {
            let rows = environment::of_file(TUNED_MAIN, text).filter(|row| row.key == "rollback");
            Reading::from_option(rows.last().map(|row| row.value))
        }),
    }
}

/// irqbalance takes its settings from its environment: that of its unit, and the files that the unit names, which take
/// precedence. Without a unit the usual files are read.
pub(super) fn irqbalance(root: &Root) -> IrqbalanceFacts {
    const PATHS: [&str; 2] = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];
    let UnitEnvironment { has_unit, mut assignments, mut files } =
        environment::sources(root, "irqbalance.service");
    if !has_unit && files.is_empty() {
        files = PATHS.map(str::to_owned).into();
    }
    let mut facts = IrqbalanceFacts::default();
    let mut unread = None;
    for path in files {
        let text = root.read(&path);
        if text.is_absent() {
            continue;
        }
        facts.config_path = text.as_ref().map(|_| path.clone());
        match text {
            Reading::Known(text) => assignments.extend(environment::of_file(&path, &text)),
            missing => unread = Some(missing),
        }
    }
    let last = |key| assignments.iter().rfind(|assignment| assignment.key == key);
    let (banned, by) = banned_cpus(last("IRQBALANCE_BANNED_CPUS"), last("IRQBALANCE_BANNED_CPULIST"));
    (facts.banned_cpus, facts.banned_by) = (banned, Reading::from_option(by));
    facts.args = Reading::from_option(last("IRQBALANCE_ARGS").map(|args| args.value.clone()));
    if let Some(missing) = unread {
        // The file may overrule what was found.
        facts.banned_cpus = missing.clone().map(|_| CpuSet::new());
        facts.args = missing;
    }
    facts
}

/// The banned CPUs, and the file that names them. The old mask takes precedence over the list, unless it is empty
/// (cputree.c). Without either, irqbalance excludes the isolated and adaptive-tick CPUs automatically. That is not
/// configuration, so it is absent. Either variable, empty too, can switch this detection off: an empty mask does before
/// 1.7, and an empty list after 1.9.5.
fn banned_cpus(mask: Option<&Assignment>, list: Option<&Assignment>) -> (Reading<CpuSet>, Option<String>) {
    let Some(found) = mask.filter(|mask| !mask.value.is_empty()).or(list).or(mask) else {
        return (Reading::Absent, None);
    };
    let value = found.value.as_str();
    let cpus = if found.key == "IRQBALANCE_BANNED_CPULIST" {
        // irqbalance knows neither strides nor `N` nor `all`.
        let cpus = CpuSet::parse_list(value).ok().filter(|_| !value.contains(':'));
        cpus.ok_or("IRQBALANCE_BANNED_CPULIST with a CPU list such as 8-15")
    } else {
        // Groups of 32 bits without 0x (bitmap.c).
        let is_group = |group: &str| {
            group.bytes().all(|byte| byte.is_ascii_hexdigit()) && group.trim_start_matches('0').len() <= 8
        };
        // A trailing comma is accepted.
        let cpus = match value.strip_suffix(',').unwrap_or(value) {
            "" => Some(CpuSet::new()),
            value if value.split(',').all(is_group) => CpuSet::parse_mask(value).ok(),
            _ => None,
        };
        cpus.ok_or("IRQBALANCE_BANNED_CPUS with a CPU mask such as ff00, without 0x")
    };
    let reading = cpus
        .map_or_else(|expected| Reading::unparsable(found.path.as_str(), value, expected), Reading::Known);
    (reading, Some(found.path.clone()))
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
        for (text, cpus) in [
            ("#X=1\nIRQBALANCE_BANNED_CPULIST=\"1-7,9-15\"\n", "1-7,9-15"),
            ("IRQBALANCE_BANNED_CPUS=ff,00000001\n", "0,32-39"),
            ("IRQBALANCE_BANNED_CPUS=FE\n", "1-7"),
            ("IRQBALANCE_BANNED_CPULIST=3\nIRQBALANCE_BANNED_CPUS=1\n", "0"),
            ("IRQBALANCE_BANNED_CPULIST=3\nIRQBALANCE_BANNED_CPULIST=4\n", "4"),
            ("IRQBALANCE_BANNED_CPUS=\nIRQBALANCE_BANNED_CPULIST=4\n", "4"),
            // Empty lists switch the detection of isolated CPUs off.
            ("IRQBALANCE_BANNED_CPULIST=\n", ""),
            ("IRQBALANCE_BANNED_CPUS=\"\"\n", ""),
        ] {
            assert_eq!(banned_by(text).known().map(CpuSet::to_list).as_deref(), Some(cpus), "{text}");
        }
        assert!(banned_by("#IRQBALANCE_BANNED_CPUS=1\n;IRQBALANCE_BANNED_CPULIST=\n").is_absent());
        for text in [
            "CPULIST=x",
            "CPULIST=0-N",
            "CPULIST=all",
            "CPULIST=0-7:1/2",
            "CPULIST=0x2",
            "CPUS=z",
            "CPUS=0xfefe",
            "CPUS=fffffffff",
        ] {
            let banned = banned_by(&format!("IRQBALANCE_BANNED_{text}\n"));
            assert!(matches!(banned, Reading::Unparsable(_)), "{text}: {banned:?}");
        }
    }

    /// irqbalance's own reading of both variables. It runs without the right to move interrupts.
    #[test]
    fn bans_are_those_that_irqbalance_prints() {
        use std::process::{Command, Stdio};
        let words = [
            "CPUS=2",
            "CPUS=0x2",
            "CPUS=FE",
            "CPUS=1,2",
            "CPUS=fffffffff",
            "CPUS=000000001",
            "CPULIST=1",
            "CPULIST=1,",
            "CPULIST=0-3,5",
            "CPULIST=5-3",
            "CPULIST=0-1:1/2",
            "CPULIST=all",
            "CPULIST=0-N",
            "CPULIST=0x2",
            "CPULIST=33",
        ];
        let start = |word: &&str| {
            let (name, value) = word.split_once('=').unwrap();
            Command::new("unshare")
                .args(["-Ur", "timeout", "3", "irqbalance", "--oneshot", "--debug"])
                .env(format!("IRQBALANCE_BANNED_{name}"), value)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
        };
        let runs: Vec<_> = words.iter().map(start).collect();
        let mut compared = 0;
        for (word, run) in words.iter().zip(runs) {
            let Ok(output) = run.and_then(std::process::Child::wait_with_output) else { continue };
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let Some(mask) = text.lines().find_map(|line| line.strip_prefix("Banned CPUs: ")) else {
                continue;
            };
            let theirs = CpuSet::parse_mask(mask).unwrap();
            let ours = banned_by(&format!("IRQBALANCE_BANNED_{word}\n"));
            assert_eq!(ours.known().cloned().unwrap_or_default(), theirs, "{word}");
            compared += 1;
        }
        if compared == 0 {
            println!(
                "skipped: bans_are_those_that_irqbalance_prints: irqbalance or unshare is not installed"
            );
        }
    }

    /// Each case: files with their texts, then the banned CPUs and the file that rules.
    #[test]
    fn the_environment_files_of_the_unit_are_followed() {
        let unit = "/usr/lib/systemd/system/irqbalance.service";
        let drop_in = "/etc/systemd/system/irqbalance.service.d/10-x.conf";
        let list = |cpus: &str| format!("IRQBALANCE_BANNED_CPULIST={cpus}\n");
        let (five, six) = (list("5"), list("6"));
        let debian = "[Service]\nEnvironmentFile=-/usr/lib/irqbalance/defaults.env\nEnvironmentFile=-/etc/default/irqbalance\n";
        for (files, cpus, by) in [
            (vec![(unit, debian), ("/etc/default/irqbalance", &five)], "5", "/etc/default/irqbalance"),
            (
                vec![(unit, debian), ("/usr/lib/irqbalance/defaults.env", &six)],
                "6",
                "/usr/lib/irqbalance/defaults.env",
            ),
            (
                vec![
                    (unit, debian),
                    ("/usr/lib/irqbalance/defaults.env", &six),
                    ("/etc/default/irqbalance", &five),
                ],
                "5",
                "/etc/default/irqbalance",
            ),
            // The unit names another file than the usual one.
            (
                vec![
                    (unit, "[Service]\nEnvironmentFile=/etc/irqbalance.env\n"),
                    ("/etc/irqbalance.env", &six),
                    ("/etc/default/irqbalance", &five),
                ],
                "6",
                "/etc/irqbalance.env",
            ),
            (
                vec![
                    (unit, debian),
                    (
                        drop_in,
                        "[Service]\nEnvironmentFile=\nEnvironmentFile=/etc/x.env\nEnvironment=IRQBALANCE_BANNED_CPULIST=7\n",
                    ),
                    ("/etc/default/irqbalance", &five),
                ],
                "7",
                drop_in,
            ),
        ] {
            let facts = irqbalance(&TestTree::of(&files).root());
            assert_eq!(
                (facts.banned_cpus.to_string().as_str(), facts.banned_by.text()),
                (cpus, by),
                "{files:?}"
            );
        }
        let of = |text| irqbalance(&TestTree::of(&[(unit, text), ("/etc/default/irqbalance", &five)]).root());
        let headings = of("[Unit]\n[Service]\n");
        assert_eq!(headings.banned_cpus.to_string(), "5", "a capture with headings only");
        let none = of("[Service]\nExecStart=/usr/sbin/irqbalance\n");
        assert!(none.banned_cpus.is_absent(), "the unit does not read the file");
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
