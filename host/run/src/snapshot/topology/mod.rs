//! Reads the host's topology from the kernel. [`Topology::build`] derives the groups.

mod cpus;
mod nodes;

use super::cpuinfo::CpuInfo;
use crate::Root;
use lowlat_host::{
    CpuId, CpuSet, Reading, Topology,
    topology::{RawCpu, RawTopology},
};
use std::collections::BTreeMap;

const CPU: &str = "/sys/devices/system/cpu";

pub(super) fn read(root: &Root) -> Topology {
    Topology::build(&read_raw(root))
}

fn read_raw(root: &Root) -> RawTopology {
    let mut raw = RawTopology {
        possible: read_some(root, &format!("{CPU}/possible")),
        present: read_some(root, &format!("{CPU}/present")),
        online: read_some(root, &format!("{CPU}/online")),
        isolated: read_list_or_null(root, &format!("{CPU}/isolated")),
        nohz_full: read_list_or_null(root, &format!("{CPU}/nohz_full")),
        memory_tiers: nodes::read_memory_tiers(root),
        memory_bytes: super::memory::read_meminfo_bytes(root, "/proc/meminfo", "MemTotal"),
        core_types: read_core_types(root),
        ..RawTopology::default()
    };
    raw.nodes = nodes::read(root, &mut raw.notes);
    raw.cpus = cpus::read(root, &mut raw.notes);
    if raw.cpus.is_empty() {
        raw.cpus = read_from_proc(root, &mut raw.notes);
    }
    raw
}

/// A list with at least one CPU.
fn read_some(root: &Root, path: &str) -> Reading<CpuSet> {
    root.read(path).parse(path, "a CPU list such as 0-3,8", |text| {
        CpuSet::parse_list(text).ok().filter(|cpus| !cpus.is_empty())
    })
}

/// The kernel prints the text "(null)" for a mask that it never allocated, which means no CPU.
fn read_list_or_null(root: &Root, path: &str) -> Reading<CpuSet> {
    root.read(path).parse(path, "a CPU list such as 0-3,8", |text| match text {
        "(null)" => Some(CpuSet::new()),
        list => CpuSet::parse_list(list).ok(),
    })
}

/// The performance counters of hybrid processors have one directory per CPU type: cpu_core, cpu_atom.
fn read_core_types(root: &Root) -> BTreeMap<String, Reading<CpuSet>> {
    let named = |path: String| {
        let name = path.split('/').nth(3)?.strip_prefix("cpu_")?.to_owned();
        let cpus = root.read_cpu_list(&path);
        Some((name, cpus))
    };
    root.glob("/sys/devices/cpu_*/cpus").into_iter().filter_map(named).collect()
}

/// Without sysfs: the CPUs of /proc/cpuinfo with their numbers, otherwise those counted in /proc/stat.
fn read_from_proc(root: &Root, notes: &mut Vec<String>) -> BTreeMap<CpuId, RawCpu> {
    let described: BTreeMap<CpuId, RawCpu> = CpuInfo::read(root)
        .into_known()
        .unwrap_or_default()
        .by_cpu()
        .map(|(cpu, fields)| {
            let id = |key: &str| Reading::from_option(fields.get(key).and_then(|value| value.parse().ok()));
            (cpu, RawCpu { package_id: id("physical id"), core_id: id("core id"), ..RawCpu::default() })
        })
        .collect();
    if !described.is_empty() {
        notes.push(format!(
            "{CPU} describes no CPU; /proc/cpuinfo is used instead, which has no caches or clusters."
        ));
        return described;
    }
    let counted = counted_cpus(root.read("/proc/stat").text());
    if !counted.is_empty() {
        notes.push(format!(
            "{CPU} describes no CPU; the CPUs of /proc/stat are used instead, without their locations."
        ));
    }
    counted.iter().map(|cpu| (cpu, RawCpu::default())).collect()
}

fn counted_cpus(stat: &str) -> CpuSet {
    stat.lines().filter_map(|line| cpu_number(line.split_ascii_whitespace().next()?, "cpu")).collect()
}

/// The number in a name such as "cpu12" or "index3"; `None` in "cpufreq", or beyond the highest CPU number.
fn cpu_number(name: &str, prefix: &str) -> Option<CpuId> {
    let digits = name.strip_prefix(prefix)?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| is_number && *number <= lowlat_host::CPU_ID_MAX)
}

#[cfg(test)]
mod tests;
