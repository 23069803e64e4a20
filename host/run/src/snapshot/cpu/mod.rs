//! Reads the processor model, clock sources, frequency scaling and idle states.

mod arm;
mod frequency;
mod idle;

use super::cpuinfo::CpuInfo;
use crate::Root;
use lowlat_host::{Reading, snapshot::CpuFacts};
use std::collections::{BTreeMap, BTreeSet};

const CPU: &str = "/sys/devices/system/cpu";
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

pub(super) fn read(root: &Root) -> CpuFacts {
    let info = CpuInfo::read(root);
    root.or_unread("/proc/cpuinfo", info.as_ref().map(|_| ()));
    let text = |key| CpuInfo::value::<String>(&info, key, "text");
    let number = |key| CpuInfo::value::<u32>(&info, key, "a number");
    CpuFacts {
        vendor: text("vendor_id").or(|| arm::vendor(&info)),
        model_name: text("model name").or(|| arm::model_name(&info)),
        family: number("cpu family"),
        model: number("model"),
        stepping: number("stepping"),
        microcode: text("microcode"),
        microcode_uniform: microcode_uniform(&info),
        flags: flags(&info),
        vulnerabilities: read_vulnerabilities(root),
        clocksource: word(root, &format!("{CLOCKSOURCE}/current_clocksource")),
        clocksources_available: word(root, &format!("{CLOCKSOURCE}/available_clocksource"))
            .map(|text| words(&text)),
        frequency: frequency::read(root),
        boost: frequency::read_boost(root),
        smt_control: word(root, &format!("{CPU}/smt/control")),
        idle_driver: word(root, &format!("{CPU}/cpuidle/current_driver")),
        // Before kernel 5.9 the governor could be changed only with a boot option, and the file is named
        // "_ro".
        idle_governor: root
            .read(&format!("{CPU}/cpuidle/current_governor"))
            .or(|| root.read(&format!("{CPU}/cpuidle/current_governor_ro"))),
        idle_states: idle::read(root),
    }
}

/// A file with names of the kernel: at least one, of letters, digits, `_`, `-` and `.`.
fn word(root: &Root, path: &str) -> Reading<String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-. ".contains(&byte);
    root.read(path).parse(path, "a name", |text| {
        (!text.is_empty() && text.bytes().all(is_part)).then(|| text.to_owned())
    })
}

fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// The flags of the first CPU: "flags" on x86, "Features" on Arm.
pub(super) fn flags(info: &Reading<CpuInfo>) -> Reading<BTreeSet<String>> {
    let text = |key| CpuInfo::value::<String>(info, key, "words");
    text("flags").or(|| text("Features")).map(|flags| words(&flags).into_iter().collect())
}

fn microcode_uniform(info: &Reading<CpuInfo>) -> Reading<bool> {
    info.as_ref().and_then(|info| {
        let mut versions = info.all("microcode");
        Reading::from_option(versions.next().map(|first| versions.all(|version| version == first)))
    })
}

fn read_vulnerabilities(root: &Root) -> BTreeMap<String, Reading<String>> {
    let folder = format!("{CPU}/vulnerabilities");
    let names = root.list(&folder).into_known().unwrap_or_default();
    names.into_iter().map(|name| (name.clone(), root.read(&format!("{folder}/{name}")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;
    use lowlat_host::CpuSet;

    #[test]
    fn an_x86_host_is_read() {
        let block = |cpu: u32, microcode: &str| {
            format!(
                "processor : {cpu}\nvendor_id\t: AuthenticAMD\ncpu family\t: 23\nmodel\t: 49\nmodel name\t: AMD EPYC 7F32\nstepping : x\nmicrocode\t: {microcode}\nflags\t\t: fpu tsc constant_tsc\n\n"
            )
        };
        let tree = TestTree::new()
            .file("/proc/cpuinfo", block(0, "0x1") + &block(1, "0x2"))
            .file("/sys/devices/system/cpu/vulnerabilities/spectre_v2", "Mitigation: Retpolines\n")
            .file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
            .file("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm \n")
            .file("/sys/devices/system/cpu/smt/control", "off\n")
            .file("/sys/devices/system/cpu/cpuidle/current_governor_ro", "menu\n");
        let facts = read(&tree.root());
        assert!(facts.is_amd());
        assert_eq!((facts.family, facts.model), (Reading::Known(23), Reading::Known(49)));
        assert!(matches!(facts.stepping, Reading::Unparsable(why) if why.raw == "stepping: x"));
        assert_eq!(facts.microcode_uniform, Reading::Known(false));
        assert!(facts.flags.known().is_some_and(|flags| flags.contains("constant_tsc")));
        assert_eq!(facts.vulnerabilities["spectre_v2"].text(), "Mitigation: Retpolines");
        assert_eq!(facts.clocksources_available.known().map(Vec::len), Some(3));
        assert_eq!((facts.smt_control.text(), facts.idle_governor.text()), ("off", "menu"));
        assert!(facts.boost.is_absent() && facts.idle_driver.is_absent());
    }

    #[test]
    fn an_arm_host_names_its_implementer_and_features() {
        let tree = TestTree::new().file(
            "/proc/cpuinfo",
            "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x48\nCPU part\t: 0xd01\n",
        );
        let facts = read(&tree.root());
        assert_eq!(
            (facts.vendor.text(), facts.model_name.text()),
            ("HiSilicon", "HiSilicon TSV110 (Kunpeng 920)")
        );
        assert!(facts.has_flag("asimd") == Reading::Known(true) && facts.microcode_uniform.is_absent());
    }

    #[test]
    fn idle_states_are_joined_by_name() {
        let mut tree = TestTree::new();
        for (cpu, disabled) in [(0, "0"), (1, "1"), (10, "0")] {
            let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
            tree = tree
                .file(&format!("{folder}/state0/name"), "POLL\n")
                .file(&format!("{folder}/state1/name"), "C2\n")
                .file(&format!("{folder}/state1/latency"), "400\n")
                .file(&format!("{folder}/state1/disable"), disabled);
        }
        let states = read(&tree.root()).idle_states;
        let told: Vec<String> =
            states.iter().map(|it| format!("{} {} {}", it.name, it.cpus, it.cpus_enabled)).collect();
        assert_eq!(told, ["POLL 0-1,10 0-1,10", "C2 0-1,10 0,10"]);
        assert_eq!(states[1].exit_latency_us, Reading::Known(400));
        assert!(states[0].exit_latency_us.is_absent());
    }

    #[test]
    fn policies_and_boost_are_read_in_both_layouts() {
        let policy = "/sys/devices/system/cpu/cpufreq/policy2";
        let tree = TestTree::new()
            .file(&format!("{policy}/affected_cpus"), "2 3\n")
            .file(&format!("{policy}/scaling_governor"), "performance\n")
            .file(&format!("{policy}/cpuinfo_max_freq"), "3700000\n")
            .file("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
        let facts = read(&tree.root());
        assert_eq!(facts.boost, Reading::Known(true));
        assert_eq!(facts.frequency.len(), 1);
        assert_eq!(facts.frequency[0].cpus, CpuSet::parse_list("2-3").unwrap());
        assert_eq!(facts.frequency[0].cpuinfo_max_khz, Reading::Known(3_700_000));

        let old = TestTree::new()
            .file("/sys/devices/system/cpu/cpu0/cpufreq/affected_cpus", "0 1\n")
            .link("/sys/devices/system/cpu/cpu1/cpufreq", "../cpu0/cpufreq")
            .file("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "ondemand\n");
        let sets: Vec<String> = read(&old.root()).frequency.iter().map(|it| it.cpus.to_string()).collect();
        assert_eq!(sets, ["0-1", "2"]);
    }
}
