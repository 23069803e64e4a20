//! Packages, dies, clusters, cores and caches from the CPUs' claims.

use super::{
    Cache, CacheKind, CoreType, Group, RawCache, RawCpu, RawTopology,
    partition::{Claim, GroupClaims},
};
use crate::{CpuId, CpuSet, Reading};
use std::collections::{BTreeMap, BTreeSet};

/// One topology level: the location of its numbers and masks, and how CPUs without masks are separated.
struct Level {
    kind: &'static str,
    id: fn(&RawCpu) -> Option<i64>,
    cpus: fn(&RawCpu) -> Option<&CpuSet>,
    /// CPUs with equal keys count as one group if there is no mask.
    key: fn(&RawCpu) -> Option<Vec<i64>>,
}

const PACKAGES: Level = Level {
    kind: "packages",
    id: |cpu| cpu.package_id.known().copied(),
    cpus: |cpu| cpu.package_cpus.known(),
    // Without a number the CPUs cannot be distinguished, and most hosts without one have one package.
    key: |cpu| Some(vec![number(&cpu.package_id)]),
};

const DIES: Level = Level {
    kind: "dies",
    id: |cpu| cpu.die_id.known().copied(),
    cpus: |cpu| cpu.die_cpus.known(),
    key: |cpu| Some(vec![number(&cpu.package_id), number(&cpu.die_id)]),
};

const CORES: Level = Level {
    kind: "cores",
    id: |cpu| cpu.core_id.known().copied(),
    cpus: |cpu| cpu.core_cpus.known(),
    key: |cpu| cpu.core_id.known().map(|core| vec![number(&cpu.package_id), number(&cpu.die_id), *core]),
};

fn number(id: &Reading<i64>) -> i64 {
    id.known().copied().unwrap_or(-1)
}

impl Level {
    fn claims<'a>(&self, raw: &RawTopology, online: &'a CpuSet) -> GroupClaims<'a> {
        let mut by_key: BTreeMap<Vec<i64>, CpuSet> = BTreeMap::new();
        let nothing = RawCpu::default();
        let described: Vec<(CpuId, &RawCpu)> =
            online.iter().map(|cpu| (cpu, raw.cpus.get(&cpu).unwrap_or(&nothing))).collect();
        for (cpu, facts) in described.iter().filter(|(_, facts)| (self.cpus)(facts).is_none()) {
            if let Some(key) = (self.key)(facts) {
                by_key.entry(key).or_default().insert(*cpu);
            }
        }
        let claim = |facts: &RawCpu| {
            let stated = (self.cpus)(facts);
            let by_number = || by_key.get(&(self.key)(facts)?);
            Claim {
                id: (self.id)(facts).unwrap_or(-1),
                cpus: stated.or_else(by_number).cloned(),
                is_stated: stated.is_some(),
            }
        };
        let by_cpu = described.iter().map(|(cpu, facts)| (*cpu, claim(facts))).collect();
        GroupClaims { kind: self.kind, online, by_cpu }
    }
}

/// Packages, dies and cores, each kind within the previous one.
pub(super) fn hierarchy(
    raw: &RawTopology,
    online: &CpuSet,
    oddities: &mut Vec<String>,
) -> (Vec<Group>, Vec<Group>, Vec<Group>) {
    let undescribed: CpuSet = online.iter().filter(|cpu| !raw.cpus.contains_key(cpu)).collect();
    if !undescribed.is_empty() {
        oddities.push(format!(
            "{undescribed:#}: online, but not described by the kernel; each counts as a separate core."
        ));
    }
    let packages = PACKAGES.claims(raw, online).partition(None, oddities);
    let dies = DIES.claims(raw, online).partition(Some(&packages), oddities);
    let mut claims = CORES.claims(raw, online);
    part_by_core_id(raw, &mut claims);
    let cores = claims.partition(Some(&dies), oddities);
    (packages, dies, cores)
}

/// The kernel calls the two cores of an AMD compute unit (family 0x15) thread siblings, but gives them
/// different core numbers. CPUs with different core numbers are different cores.
fn part_by_core_id(raw: &RawTopology, claims: &mut GroupClaims<'_>) {
    let core_id = |cpu: CpuId| raw.cpus.get(&cpu).and_then(|facts| facts.core_id.known());
    for (cpu, claim) in &mut claims.by_cpu {
        let (Some(mine), Some(named)) = (core_id(*cpu), claim.cpus.as_ref()) else { continue };
        if named.len() > 1 {
            claim.cpus =
                Some(named.iter().filter(|other| core_id(*other).is_none_or(|id| id == mine)).collect());
        }
    }
}

/// Clusters: those of the kernel if wider than a core, otherwise the second-level caches that are.
pub(super) fn clusters(
    raw: &RawTopology,
    online: &CpuSet,
    packages: &[Group],
    cores: &[Group],
    l2s: &[&Cache],
    oddities: &mut Vec<String>,
) -> Vec<Group> {
    let by_core = by_cpu(cores.iter().map(|core| &core.cpus));
    let by_l2 = by_cpu(l2s.iter().map(|l2| &l2.cpus));
    let is_wide = |cpu: CpuId, cpus: &CpuSet| !by_core.get(&cpu).is_some_and(|core| cpus.is_subset(core));
    let claim = |cpu: CpuId| {
        let facts = raw.cpus.get(&cpu);
        let named =
            facts.and_then(|facts| facts.cluster_cpus.known()).map(|named| named.intersection(online));
        let l2 = by_l2.get(&cpu).map(|cpus| (*cpus).clone());
        let cpus = named.filter(|named| is_wide(cpu, named)).or(l2).unwrap_or_else(|| CpuSet::of(cpu));
        Claim { id: facts.map_or(-1, |facts| number(&facts.cluster_id)), cpus: Some(cpus), is_stated: true }
    };
    let by_cpu_claims = online.iter().map(|cpu| (cpu, claim(cpu))).collect();
    let claims = GroupClaims { kind: "clusters", online, by_cpu: by_cpu_claims };
    let mut groups = claims.partition(Some(packages), oddities);
    groups.retain(|group| {
        group.cpus.lowest().is_some_and(|cpu| is_wide(cpu, &group.cpus))
            && !packages.iter().any(|package| package.cpus == group.cpus)
    });
    groups
}

fn by_cpu<'a>(sets: impl Iterator<Item = &'a CpuSet>) -> BTreeMap<CpuId, &'a CpuSet> {
    sets.flat_map(|cpus| cpus.iter().map(move |cpu| (cpu, cpus))).collect()
}

/// Every cache once, by level and kind, then by lowest CPU.
pub(super) fn caches(raw: &RawTopology, online: &CpuSet, oddities: &mut Vec<String>) -> Vec<Cache> {
    let described = || online.iter().filter_map(|cpu| Some((cpu, raw.cpus.get(&cpu)?)));
    let kinds: BTreeSet<(u8, CacheKind)> =
        described().flat_map(|(_, cpu)| cpu.caches.iter().map(|cache| (cache.level, cache.kind))).collect();
    let mut all = Vec::new();
    for (level, kind) in kinds {
        let seen: BTreeMap<CpuId, &RawCache> = described()
            .filter_map(|(id, cpu)| {
                Some((id, cpu.caches.iter().find(|cache| cache.level == level && cache.kind == kind)?))
            })
            .collect();
        let claim = |cache: &RawCache| Claim { id: -1, cpus: cache.cpus.known().cloned(), is_stated: true };
        let by_cpu = seen.iter().map(|(cpu, cache)| (*cpu, claim(cache))).collect();
        let name = format!("{} caches of level {level}", kind.name());
        let groups = GroupClaims { kind: &name, online, by_cpu }.partition(None, oddities);
        all.extend(groups.into_iter().filter_map(|group| {
            // A CPU without such a cache forms its own group, unless others name it.
            let first = group.cpus.iter().find_map(|cpu| seen.get(&cpu))?;
            Some(Cache {
                level,
                kind,
                size_bytes: first.size_bytes.clone(),
                line_bytes: first.line_bytes.clone(),
                cpus: group.cpus,
            })
        }));
    }
    all
}

impl CacheKind {
    fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Instruction => "instruction",
            Self::Unified => "unified",
        }
    }
}

/// A CPU below this share of the next faster one's speed is of another kind. Published extremes: efficiency cores
/// with 84% (Core Ultra 5 125U), and cores with 88% of the favoured one (Core i7-6950X).
const KIND_PERCENT: u64 = 86;

/// The CPU types of a hybrid processor: those of the kernel, otherwise by speed.
pub(super) fn core_types(raw: &RawTopology, online: &CpuSet, oddities: &mut Vec<String>) -> Vec<CoreType> {
    let mut left = online.clone();
    let mut types = Vec::new();
    for (name, cpus) in &raw.core_types {
        let Some(named) = cpus.known().map(|cpus| cpus.intersection(online)) else { continue };
        if !named.is_subset(&left) {
            oddities.push(format!("{:#}: named in two CPU types.", named.difference(&left)));
        }
        let is_small = name != "core" && raw.core_types.contains_key("core");
        types.push(CoreType { name: name.clone(), cpus: named.intersection(&left), is_small });
        left = left.difference(&named);
    }
    types.retain(|kind| !kind.cpus.is_empty());
    if types.len() < 2 {
        types = by_speed(raw, online);
    }
    types.sort_by_key(|kind| kind.cpus.lowest());
    types
}

/// The kinds by capacity, otherwise by the first speed that every CPU states: the highest clock, that of the firmware's
/// scale, or the guaranteed clock. Favoured cores of one kind differ by a few percent, kinds by a sixth or more.
fn by_speed(raw: &RawTopology, online: &CpuSet) -> Vec<CoreType> {
    type Source = (&'static str, fn(&RawCpu) -> &Reading<u32>);
    const SPEEDS: [Source; 3] = [
        ("clock up to", |cpu| &cpu.clock_khz_max),
        ("performance", |cpu| &cpu.performance_max),
        ("base clock", |cpu| &cpu.base_clock_khz),
    ];
    let of = |(what, speed): &Source| -> Option<Vec<CoreType>> {
        let known = |cpu| Some((*raw.cpus.get(&cpu).and_then(|facts| speed(facts).known())?, cpu));
        let mut ascending: Vec<(u32, CpuId)> = online.iter().map(known).collect::<Option<_>>()?;
        ascending.sort_unstable();
        let is_near =
            |a: &(u32, CpuId), b: &(u32, CpuId)| u64::from(a.0) * 100 >= u64::from(b.0) * KIND_PERCENT;
        let kinds: Vec<&[(u32, CpuId)]> = ascending.chunk_by(is_near).collect();
        let named = |(at, kind): (usize, &&[(u32, CpuId)])| CoreType {
            name: match kind.last() {
                Some((khz, _)) if what.contains("clock") => format!("{what} {} MHz", khz / 1_000),
                last => format!("{what} {}", last.map_or(0, |(value, _)| *value)),
            },
            cpus: kind.iter().map(|(_, cpu)| *cpu).collect(),
            is_small: at + 1 < kinds.len(),
        };
        Some(if kinds.len() < 2 { Vec::new() } else { kinds.iter().enumerate().map(named).collect() })
    };
    let by_capacity = of(&("capacity", |cpu| &cpu.capacity)).filter(|kinds| !kinds.is_empty());
    by_capacity.or_else(|| SPEEDS.iter().find_map(of)).unwrap_or_default()
}
