//! Reads cpufreq.

use super::CPU;
use crate::{Root, snapshot::formats};
use lowlat_host::{CPU_ID_MAX, CpuSet, Reading, snapshot::CpuFreq};

/// One entry per policy, by lowest CPU.
pub(super) fn read(root: &Root) -> Vec<CpuFreq> {
    // Only a kernel without a frequency driver lacks the directory.
    if let missing @ (Reading::Denied | Reading::Unparsable(_)) = root.list(&format!("{CPU}/cpufreq")) {
        root.or_unread("/sys/devices/system/cpu/cpufreq", missing);
    }
    let mut folders = root.glob(&format!("{CPU}/cpufreq/policy*"));
    if folders.is_empty() {
        // Before Linux 4.2 each CPU has the directory; those of one policy link to the same one.
        folders = root.glob(&format!("{CPU}/cpu*/cpufreq"));
    }
    let mut policies: Vec<CpuFreq> = Vec::new();
    for folder in folders {
        let policy = read_policy(root, &folder);
        if !policy.cpus.is_empty() && policies.iter().all(|seen| seen.cpus != policy.cpus) {
            policies.push(policy);
        }
    }
    policies.sort_by_key(|policy| policy.cpus.lowest());
    policies
}

fn read_policy(root: &Root, folder: &str) -> CpuFreq {
    let text = |name: &str| super::word(root, &format!("{folder}/{name}"));
    let khz = |name: &str| root.read_as(&format!("{folder}/{name}"), "a frequency in kHz");
    CpuFreq {
        cpus: read_cpus(root, folder),
        driver: text("scaling_driver"),
        governor: text("scaling_governor"),
        energy_performance_preference: text("energy_performance_preference"),
        scaling_min_khz: khz("scaling_min_freq"),
        scaling_max_khz: khz("scaling_max_freq"),
        cpuinfo_min_khz: khz("cpuinfo_min_freq"),
        cpuinfo_max_khz: khz("cpuinfo_max_freq"),
    }
}

/// The online CPUs of a policy, separated by blanks. If the file is not usable, the CPU in the directory's
/// name.
fn read_cpus(root: &Root, folder: &str) -> CpuSet {
    let listed = root.read(&format!("{folder}/affected_cpus"));
    let cpus: Option<CpuSet> = listed
        .text()
        .split_ascii_whitespace()
        .map(|word| word.parse().ok().filter(|cpu| *cpu <= CPU_ID_MAX))
        .collect();
    match cpus {
        Some(cpus) if !cpus.is_empty() => cpus,
        _ => folder
            .split('/')
            .find_map(|name| name.strip_prefix("policy").or_else(|| name.strip_prefix("cpu"))?.parse().ok())
            .filter(|cpu| *cpu <= CPU_ID_MAX)
            .map(CpuSet::of)
            .unwrap_or_default(),
    }
}

/// The switch of all policies, or Intel's own, which has the inverse meaning.
pub(super) fn read_boost(root: &Root) -> Reading<bool> {
    let flag = |path: &str| formats::read_flag(root, path);
    flag(&format!("{CPU}/cpufreq/boost")).or(|| flag(&format!("{CPU}/intel_pstate/no_turbo")).map(|off| !off))
}
