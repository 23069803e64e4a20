//! CPUs of the processes in the groups that pin them.

use super::{Group, Pinning};
use crate::{
    Pins, ProcessRole,
    size::{SAME_LLC, nearness},
};
use lowlat_host::{CpuId, CpuSet, Topology};

/// CPUs of master, cached, md and td in the report.
const REPORT: [CpuId; 4] = [0, 1, 6, 8];
const ROLES: [ProcessRole; 4] = [ProcessRole::Master, ProcessRole::Cached, ProcessRole::Md, ProcessRole::Td];

/// The platform's CPUs on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformPins {
    /// CPUs by role, as in [`super::super::PipelineParameters::pins`].
    pub pins: Pins,
    /// The CPU of a strategy host.
    pub host_core: CpuId,
    /// The platform's CPUs beside a strategy host, which does not share its CPU.
    pub host_pins: Pins,
    /// Mapping of the report's CPUs to this host's, one sentence.
    pub how: String,
}

/// Maps the report's pins (master, cached, md and td on CPUs 0, 1, 6 and 8 of 12) to the CPUs that may be used. md and
/// td keep a CPU each as long as there are two; the others share where there are too few. Strategies are not pinned, as
/// in the report.
///
/// # Errors
/// The reason why pinning makes no sense here.
pub fn platform_pins(cpus: &CpuSet) -> Result<PlatformPins, String> {
    let all: Vec<CpuId> = cpus.iter().collect();
    let (chosen, host, how) = match all.as_slice() {
        [] | [_] => return Err("pinning changes nothing with one CPU".to_owned()),
        [a, b] => ([*a, *a, *a, *b], *b, "master, cached and md share one CPU, td has the other"),
        [a, b, c] => ([*a, *a, *b, *c], *c, "master and cached share one CPU, md and td have one each"),
        [a, b, c, d] => ([*a, *a, *c, *d], *b, "master and cached share one CPU, md and td have one each"),
        _ if all.len() > 8 && REPORT.iter().all(|cpu| cpus.contains(*cpu)) => {
            let free = all.iter().copied().rfind(|cpu| !REPORT.contains(cpu));
            (REPORT, free.unwrap_or_default(), "as in the report")
        }
        [first, second, .., host, md, td] => {
            ([*first, *second, *md, *td], *host, "master and cached on the first CPUs, md and td on the last")
        }
    };
    let pins_of = |cpus: [CpuId; 4]| -> Pins {
        ROLES.into_iter().zip(cpus).map(|(role, cpu)| (role, vec![cpu])).collect()
    };
    // A spinning host does not share its CPU: with fewer than four CPUs, the platform gets the others.
    let beside_host = match all.as_slice() {
        [a, _] => [*a; 4],
        [a, b, _] => [*a, *a, *a, *b],
        _ => chosen,
    };
    let [master, cached, md, td] = chosen;
    let how = format!(
        "Platform pins on {} CPUs: {how} (master {master}, cached {cached}, md {md}, td {td}; the report: 0, 1, 6 and \
         8 of 12).",
        all.len()
    );
    Ok(PlatformPins { pins: pins_of(chosen), host_core: host, host_pins: pins_of(beside_host), how })
}

/// The pins of every group on a host.
#[derive(Debug)]
pub struct MatrixPins<'a> {
    /// CPUs that may be used.
    cpus: &'a CpuSet,
    topology: &'a Topology,
    platform: Result<PlatformPins, String>,
}

impl<'a> MatrixPins<'a> {
    /// The pins of a host of which these CPUs may be used.
    pub fn new(cpus: &'a CpuSet, topology: &'a Topology) -> Self {
        Self { cpus, topology, platform: platform_pins(cpus) }
    }

    /// The CPU of a strategy host; the lowest one where nothing can be pinned.
    pub fn host_core(&self) -> CpuId {
        self.platform.as_ref().map_or(self.cpus.lowest(), |pins| Some(pins.host_core)).unwrap_or_default()
    }

    /// Returns the mapping of the report's CPUs to this host's; empty if nothing can be pinned.
    pub fn how(&self) -> String {
        self.platform.as_ref().map(|pins| pins.how.clone()).unwrap_or_default()
    }

    /// CPUs by role in a group, or the reason why it cannot be pinned here.
    pub fn of(&self, group: &Group) -> Result<Pins, String> {
        if group.pinning == Pinning::Nothing {
            return Ok(Pins::new());
        }
        let platform = self.platform.as_ref().map_err(Clone::clone)?;
        if group.pinning == Pinning::Platform && !group.has_host {
            return Ok(platform.pins.clone());
        }
        let beside = &platform.host_pins;
        let strategies = match group.pinning {
            Pinning::StrategiesApart => self.left_by(beside),
            Pinning::AcrossNodes => {
                self.node_of_md(beside)?;
                self.left_by(beside)
            }
            Pinning::OneNode => self.node_of_md(beside)?,
            Pinning::Near | Pinning::Far => return self.pair(group.pinning == Pinning::Far),
            Pinning::Nothing | Pinning::Platform | Pinning::StrategiesAnywhere => CpuSet::default(),
        };
        let mut pins = beside.clone();
        if !strategies.is_empty() {
            pins.insert(ProcessRole::Strategies, strategies.iter().collect());
        }
        Ok(pins)
    }

    fn left_by(&self, pins: &Pins) -> CpuSet {
        self.cpus.difference(&pins.values().flatten().copied().collect())
    }

    /// The CPUs of md's NUMA node, where there are others.
    fn node_of_md(&self, platform: &Pins) -> Result<CpuSet, String> {
        let nodes = self.topology.nodes.iter().map(|node| node.cpus.intersection(self.cpus));
        let nodes: Vec<CpuSet> = nodes.filter(|cpus| !cpus.is_empty()).collect();
        match nodes.len() {
            0 => return Err("the NUMA nodes of this host are not known".to_owned()),
            1 => return Err("its CPUs are on one NUMA node, so nothing crosses nodes".to_owned()),
            _ => {}
        }
        let md = platform.get(&ProcessRole::Md).and_then(|cpus| cpus.first()).copied();
        let of_md = nodes.into_iter().find(|cpus| md.is_some_and(|md| cpus.contains(md)));
        of_md.ok_or_else(|| "the NUMA node of md's CPU is not known".to_owned())
    }

    /// The platform on one CPU and the strategy on another, near or far.
    fn pair(&self, is_far: bool) -> Result<Pins, String> {
        let other = |writer: CpuId| self.cpus.iter().filter(move |cpu| *cpu != writer);
        let distance = |a, b| nearness(self.topology, a, b);
        // Threads of one core come last: what they share is more than a cache.
        let near = |a: CpuId| move |b: &CpuId| ((distance(a, *b) + 5) % 6, *b);
        let nearest = |a: CpuId| other(a).min_by_key(near(a)).map(|b| (a, b));
        let pairs = self.cpus.iter().filter_map(nearest);
        let Some((writer, mut reader)) = pairs.min_by_key(|(a, b)| (near(*a)(b).0, *a)) else {
            return Err("pinning changes nothing with one CPU".to_owned());
        };
        if is_far {
            if self.topology.llc_of(writer).is_none() {
                return Err("the caches of this host are not known".to_owned());
            }
            let farthest = other(writer).max_by_key(|cpu| (distance(writer, *cpu), *cpu));
            reader = farthest
                .filter(|cpu| distance(writer, *cpu) > SAME_LLC)
                .ok_or("its CPUs share one last-level cache, so none are far from each other")?;
        }
        let mut pins =
            Pins::from([(ProcessRole::Platform, vec![writer]), (ProcessRole::Strategies, vec![reader])]);
        if let Some(rest) = other(writer).find(|cpu| *cpu != reader) {
            pins.extend([ProcessRole::Master, ProcessRole::Cached].map(|role| (role, vec![rest])));
        }
        Ok(pins)
    }
}

#[cfg(test)]
mod tests {
    use super::super::GROUPS;
    use super::*;
    use lowlat_host::topology::{Cache, CacheKind, Group as CpuGroup, Node};

    fn chosen(list: &str) -> Vec<CpuId> {
        let pins = platform_pins(&CpuSet::parse_list(list).unwrap()).unwrap();
        ROLES.iter().map(|role| pins.pins[role][0]).chain([pins.host_core]).collect()
    }

    #[test]
    fn the_report_s_cpus_where_there_are_that_many() {
        assert_eq!(chosen("0-11"), [0, 1, 6, 8, 11]);
        assert_eq!(chosen("0-8"), [0, 1, 6, 8, 7]);
        assert_eq!(chosen("2-15"), [2, 3, 14, 15, 13], "0 and 1 may not be used");
    }

    #[test]
    fn md_and_td_keep_a_cpu_each_on_small_hosts() {
        assert_eq!(chosen("0-7"), [0, 1, 6, 7, 5]);
        assert_eq!(chosen("0-3"), [0, 0, 2, 3, 1]);
        assert_eq!(chosen("0-2"), [0, 0, 1, 2, 2]);
        assert_eq!(chosen("0-1"), [0, 0, 0, 1, 1]);
        for count in 2..16 {
            let pins = platform_pins(&CpuSet::first(count)).unwrap();
            let beside: Vec<&CpuId> = pins.host_pins.values().flatten().collect();
            assert!(beside.len() == ROLES.len() && !beside.contains(&&pins.host_core), "{pins:?}");
        }
        assert!(platform_pins(&CpuSet::of(0)).unwrap_err().contains("one CPU"));
        let how = platform_pins(&CpuSet::first(2)).unwrap().how;
        assert!(how.contains("Platform pins on 2 CPUs") && how.contains("md 0, td 1"), "{how}");
    }

    /// Two NUMA nodes of six cores, with a last-level cache each.
    fn two_nodes() -> Topology {
        let halves = ["0-5", "6-11"].map(|list| CpuSet::parse_list(list).unwrap());
        Topology {
            online: CpuSet::first(12),
            cores: (0..12).map(|cpu| CpuGroup { id: i64::from(cpu), cpus: CpuSet::of(cpu) }).collect(),
            nodes: (0..)
                .zip(&halves)
                .map(|(id, cpus)| Node { id, cpus: cpus.clone(), ..Node::default() })
                .collect(),
            caches: halves
                .into_iter()
                .map(|cpus| Cache { level: 3, kind: CacheKind::Unified, cpus, ..Cache::default() })
                .collect(),
            ..Topology::default()
        }
    }

    fn of(letter: char, cpus: &CpuSet, topology: &Topology) -> Result<Pins, String> {
        MatrixPins::new(cpus, topology).of(GROUPS.iter().find(|group| group.letter == letter).unwrap())
    }

    #[test]
    fn findings_pin_strategies_on_the_report_s_host() {
        let (cpus, topology) = (CpuSet::first(12), two_nodes());
        let pins = |letter| of(letter, &cpus, &topology).unwrap();
        let strategies = |letter| pins(letter).get(&ProcessRole::Strategies).cloned().unwrap_or_default();
        assert_eq!(strategies('O'), [2, 3, 4, 5, 7, 9, 10, 11]);
        assert_eq!((strategies('Q').len(), pins('Q')[&ProcessRole::Md].as_slice()), (0, [6].as_slice()));
        assert_eq!(strategies('X'), strategies('O'), "both nodes have CPUs left");
        assert_eq!(strategies('Y'), [6, 7, 8, 9, 10, 11], "md's node, with md and td");
        let pair = |letter| (pins(letter)[&ProcessRole::Platform][0], strategies(letter)[0]);
        assert_eq!((pair('K'), pair('L')), ((0, 1), (0, 11)));
        assert_eq!(pins('K')[&ProcessRole::Master], [2]);
    }

    #[test]
    fn a_small_host_says_what_it_lacks() {
        let cpus = CpuSet::first(2);
        let mut topology = two_nodes();
        let pins = |letter, topology: &Topology| of(letter, &cpus, topology);
        assert_eq!(
            pins('O', &topology).unwrap()[&ProcessRole::Strategies],
            [1],
            "the platform shares the other"
        );
        assert_eq!(pins('O', &topology).unwrap()[&ProcessRole::Td], [0]);
        assert!(pins('X', &topology).unwrap_err().contains("one NUMA node"));
        assert!(pins('L', &topology).unwrap_err().contains("one last-level cache"));
        let pair = pins('K', &topology).unwrap();
        assert!(
            pair[&ProcessRole::Platform] == [0]
                && pair[&ProcessRole::Strategies] == [1]
                && !pair.contains_key(&ProcessRole::Master)
        );
        topology.nodes.clear();
        topology.caches.clear();
        assert!(pins('Y', &topology).unwrap_err().contains("not known"));
        assert!(pins('L', &topology).unwrap_err().contains("caches of this host are not known"));
        assert!(of('O', &CpuSet::of(0), &topology).unwrap_err().contains("one CPU"));
    }
}
