//! Reads cpuN/topology and cpuN/cache.

use super::{CPU, cpu_number};
use crate::{Root, snapshot::formats};
use lowlat_host::{
    CpuId, CpuSet, Reading,
    topology::{CacheKind, RawCache, RawCpu},
};
use std::collections::BTreeMap;

/// Maximum number of cache directories read per CPU; hosts have four or five.
const CACHES_MAX: usize = 16;
/// Place of the caches in [`lowlat_host::HostSnapshot::unread`].
const CACHES: &str = "/sys/devices/system/cpu/cpu*/cache";

pub(super) fn read(root: &Root, notes: &mut Vec<String>) -> BTreeMap<CpuId, RawCpu> {
    let names = root.or_unread(CPU, root.list(CPU));
    let mut unclear_caches = CpuSet::new();
    let cpus: BTreeMap<CpuId, RawCpu> = names
        .iter()
        .filter_map(|name| cpu_number(name, "cpu"))
        .map(|cpu| {
            let facts = read_cpu(root, &format!("{CPU}/cpu{cpu}"), || {
                unclear_caches.insert(cpu);
            });
            (cpu, facts)
        })
        .collect();
    let is_without = |facts: &RawCpu| facts.caches.is_empty() && facts.is_online != Reading::Known(false);
    let without: CpuSet = cpus.iter().filter(|(_, facts)| is_without(facts)).map(|(cpu, _)| *cpu).collect();
    note_missing_places(&cpus, notes);
    if !without.is_empty() && cpus.values().any(|facts| !facts.caches.is_empty()) {
        notes.push(format!("{without:#}: no caches are described, while those of other CPUs are."));
    }
    if !unclear_caches.is_empty() {
        notes.push(format!(
            "{unclear_caches:#}: caches without a readable level or type, which are left out."
        ));
    }
    cpus
}

/// Notes the CPUs whose place in the topology is not given while that of others is.
fn note_missing_places(cpus: &BTreeMap<CpuId, RawCpu>, notes: &mut Vec<String>) {
    type Place = (&'static str, fn(&RawCpu) -> bool);
    const PLACES: [Place; 4] = [
        ("package", |facts| facts.package_id.is_known()),
        ("core", |facts| facts.core_id.is_known()),
        ("set of CPUs of the package", |facts| facts.package_cpus.is_known()),
        ("set of CPUs of the core", |facts| facts.core_cpus.is_known()),
    ];
    for (what, is_given) in PLACES {
        let mut lacking = CpuSet::new();
        let described = cpus.iter().filter(|(_, facts)| facts.has_topology);
        lacking.extend(described.filter(|(_, facts)| !is_given(facts)).map(|(cpu, _)| *cpu));
        if !lacking.is_empty() && cpus.values().any(is_given) {
            notes.push(format!("{lacking:#}: the {what} is not given, while that of other CPUs is."));
        }
    }
}

fn read_cpu(root: &Root, folder: &str, on_unclear_cache: impl FnMut()) -> RawCpu {
    let topology = format!("{folder}/topology");
    let id = |name: &str| root.read_as(&format!("{topology}/{name}"), "a number");
    let cpus = |names: &[&str]| read_cpus(root, &topology, names);
    let speed = |name: &str| root.read_as(&format!("{folder}/{name}"), "a number");
    let clock_khz_max: Reading<u32> = speed("cpufreq/cpuinfo_max_freq");
    let performance_max = match &clock_khz_max {
        Reading::Known(_) => Reading::Absent,
        _ => speed("acpi_cppc/highest_perf"),
    };
    RawCpu {
        is_online: formats::read_flag(root, &format!("{folder}/online")),
        has_topology: root.exists(&topology),
        package_id: id("physical_package_id"),
        die_id: id("die_id"),
        cluster_id: id("cluster_id"),
        core_id: id("core_id"),
        package_cpus: cpus(&["package_cpus", "core_siblings"]),
        die_cpus: cpus(&["die_cpus"]),
        cluster_cpus: cpus(&["cluster_cpus"]),
        core_cpus: cpus(&["core_cpus", "thread_siblings"]),
        capacity: root.read_as(&format!("{folder}/cpu_capacity"), "a number"),
        clock_khz_max,
        performance_max,
        base_clock_khz: speed("cpufreq/base_frequency"),
        caches: read_caches(root, &format!("{folder}/cache"), on_unclear_cache),
    }
}

/// A set of CPUs that has had several names, newest first, each with a counterpart that ends in `_list`. The
/// masks come first: they are as old as the kernel's topology, and other tools read them in trees edited by
/// hand.
fn read_cpus(root: &Root, folder: &str, names: &[&str]) -> Reading<CpuSet> {
    let of_masks = names.iter().fold(Reading::Absent, |told: Reading<CpuSet>, name| {
        told.or(|| root.read_cpu_mask(&format!("{folder}/{name}")))
    });
    names.iter().fold(of_masks, |told, name| told.or(|| root.read_cpu_list(&format!("{folder}/{name}_list"))))
}

fn read_caches(root: &Root, folder: &str, mut on_unclear: impl FnMut()) -> Vec<RawCache> {
    let names = match root.list(folder) {
        // As for a CPU that is offline.
        Reading::Absent => Vec::new(),
        names => root.or_unread(CACHES, names),
    };
    let indices = names.iter().filter(|name| cpu_number(name, "index").is_some()).take(CACHES_MAX);
    indices
        .filter_map(|index| {
            let cache = read_cache(root, &format!("{folder}/{index}"));
            if cache.is_none() {
                on_unclear();
            }
            cache
        })
        .collect()
}

fn read_cache(root: &Root, folder: &str) -> Option<RawCache> {
    let kind = match root.read(&format!("{folder}/type")).text() {
        "Data" => CacheKind::Data,
        "Instruction" => CacheKind::Instruction,
        "Unified" => CacheKind::Unified,
        _ => return None,
    };
    let size = format!("{folder}/size");
    Some(RawCache {
        level: root.read_as(&format!("{folder}/level"), "a number").into_known()?,
        kind,
        size_bytes: root.read(&size).parse(&size, "a size such as 512K", formats::kernel_size_bytes),
        line_bytes: root.read_as(&format!("{folder}/coherency_line_size"), "a number of bytes"),
        cpus: root
            .read_cpu_mask(&format!("{folder}/shared_cpu_map"))
            .or(|| root.read_cpu_list(&format!("{folder}/shared_cpu_list"))),
    })
}
