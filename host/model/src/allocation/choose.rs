//! The rules of [`Allocation::choose`]; each is a step that explains itself.

use super::Allocation;
use crate::{
    BOOT_CPU, BOOT_CPU_ISOLATED, CpuId, CpuSet, HostSnapshot, Role, Topology, topology::Group, topology::Node,
};
use std::collections::BTreeMap;

/// Housekeeping may grow to a shared cache if it then has at most one in this many cores of its node.
const GROW_TO_ONE_CORE_IN: usize = 4;

pub(super) fn choose(host: &HostSnapshot, role: &Role) -> Allocation {
    let cores = (0..).zip(&host.topology.cores);
    let core_of = cores.flat_map(|(at, core)| core.cpus.iter().map(move |cpu| (cpu, at))).collect();
    let first_threads = host.topology.cores.iter().filter_map(|core| core.cpus.lowest()).collect();
    let mut chooser =
        Chooser { topology: &host.topology, core_of, first_threads, allocation: Allocation::default() };
    chooser.allocation.warnings.extend(host.kernel.unsupported());
    chooser.leave_out_offline();
    let nic_nodes = trading_nodes(host, role);
    match (&role.housekeeping, &role.isolated) {
        (None, None) => chooser.by_topology(&nic_nodes),
        (housekeeping, isolated) => chooser.by_role(housekeeping.as_ref(), isolated.as_ref()),
    }
    chooser.note_nics(&nic_nodes);
    chooser.warn_of_sharing();
    chooser.warn_of_the_boot_cpu();
    chooser.allocation
}

/// NUMA nodes of the trading NICs; empty if no NIC reports its node.
fn trading_nodes(host: &HostSnapshot, role: &Role) -> Vec<u32> {
    let mut nodes: Vec<u32> =
        role.trading_nics(host).filter_map(|nic| u32::try_from(*nic.node.known()?).ok()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

struct Chooser<'a> {
    topology: &'a Topology,
    /// Index of each CPU's core in the topology.
    core_of: BTreeMap<CpuId, usize>,
    /// The lowest CPU of each core, for counting cores.
    first_threads: CpuSet,
    allocation: Allocation,
}

impl Chooser<'_> {
    fn step(&mut self, text: String) {
        self.allocation.steps.push(text);
    }

    fn warn(&mut self, text: String) {
        self.allocation.warnings.push(text);
    }

    fn leave_out_offline(&mut self) {
        let topology = self.topology;
        let online = &topology.online;
        self.step(format!("Online: {online:#}, {} in total.", online.len()));
        if !topology.offline.is_empty() {
            self.step(format!("Offline, so left out: {:#}.", topology.offline));
        }
    }

    fn by_role(&mut self, housekeeping: Option<&CpuSet>, isolated: Option<&CpuSet>) {
        let online = self.topology.online.clone();
        let keep = |set: &CpuSet| set.intersection(&online);
        let (housekeeping, isolated) = match (housekeeping, isolated) {
            (Some(h), Some(i)) => (keep(h), keep(i)),
            (Some(h), None) => (keep(h), online.difference(h)),
            (None, Some(i)) => (online.difference(i), keep(i)),
            (None, None) => (online.clone(), CpuSet::new()),
        };
        self.step(format!("The role names the CPUs: housekeeping {housekeeping}, isolated {isolated}."));
        let rest = online.difference(&housekeeping).difference(&isolated);
        if !rest.is_empty() {
            self.step(format!("In neither set: {rest:#}; the scheduler balances other work there."));
        }
        if housekeeping.is_empty() {
            self.warn(
                "The role leaves no online CPU for housekeeping; the kernel needs at least one.".into(),
            );
        }
        self.allocation.housekeeping = housekeeping;
        self.allocation.isolated = isolated;
    }

    fn by_topology(&mut self, nic_nodes: &[u32]) {
        let online = &self.topology.online;
        if online.len() <= 1 {
            self.allocation.housekeeping = online.clone();
            self.step("One CPU is left for everything: nothing can be isolated.".into());
            self.warn(
                "This host has one CPU. The kernel, services and interrupts need it, so no CPU can be quiet. \
                 Use a host with at least two cores."
                    .into(),
            );
            return;
        }
        if self.topology.cores.len() <= 1 {
            self.split_the_only_core();
            return;
        }
        let mut housekeeping = self.efficiency_cores().unwrap_or_else(|| self.first_cores());
        if online.is_subset(&housekeeping) {
            housekeeping = self.one_core(nic_nodes);
        }
        let housekeeping = self.grow(housekeeping);
        let isolated = online.difference(&housekeeping);
        self.step(format!("Housekeeping is {housekeeping}; all others are isolated: {isolated:#}."));
        if self.topology.cores.len() == 2 {
            self.warn(
                "This host has two cores. One must handle every interrupt, service and kernel thread, so \
                 only one core can be quiet."
                    .into(),
            );
        }
        self.allocation.housekeeping = housekeeping;
        self.allocation.isolated = isolated;
    }

    fn split_the_only_core(&mut self) {
        let online = &self.topology.online;
        let first: CpuSet = online.lowest().into_iter().collect();
        let isolated = online.difference(&first);
        self.step(format!("All CPUs are threads of one core: housekeeping gets {first:#}, the others are isolated: {isolated:#}."));
        self.warn(
            "All CPUs of this host share one core, so work on the housekeeping thread slows the isolated \
             one. No setting can prevent that. Use a host with at least two cores."
                .into(),
        );
        self.allocation.housekeeping = first;
        self.allocation.isolated = isolated;
    }

    /// Rule 2 on a hybrid processor: the efficiency cores, and the core that boots, where the kernel keeps its tick.
    /// `None` if that leaves no fast core.
    fn efficiency_cores(&mut self) -> Option<CpuSet> {
        let topology = self.topology;
        let small = topology.efficiency_cpus();
        let boots = self.first_core(&CpuSet::of(BOOT_CPU));
        let housekeeping = small.union(&boots);
        if small.is_empty() || topology.online.is_subset(&housekeeping) {
            return None;
        }
        self.step(format!("{small:#} are efficiency cores: they are reserved for housekeeping."));
        if !boots.is_subset(&small) {
            self.step(format!(
                "The kernel boots on the first core, {boots:#}, and keeps its timekeeping there: it is reserved too."
            ));
        }
        Some(housekeeping)
    }

    /// Rule 2: the first core of every package, and of every node with CPUs and memory.
    fn first_cores(&mut self) -> CpuSet {
        let topology = self.topology;
        let mut housekeeping = CpuSet::new();
        for package in &topology.packages {
            let core = self.first_core(&package.cpus);
            let name = match package.id {
                ..0 => format!("Package of {:#}, whose number is unknown", package.cpus),
                id => format!("Package {id}"),
            };
            self.step(format!("{name}: the first core, {core:#}, is reserved for housekeeping."));
            housekeeping.extend(core.iter());
        }
        for node in topology.nodes.iter().filter(|node| has_cpus_and_memory(node)) {
            if housekeeping.is_disjoint(&node.cpus) {
                let core = self.first_core(&node.cpus);
                let memory =
                    if node.memory_bytes.is_known() { "has" } else { "may have (its size is unknown)" };
                self.step(format!(
                    "NUMA node {} {memory} local memory: its first core, {core:#}, is reserved for housekeeping, \
                     so that the kernel's work on that memory stays on the node.",
                    node.id
                ));
                housekeeping = housekeeping.union(&core);
            }
        }
        if housekeeping.is_empty() {
            housekeeping = self.first_core(&topology.online);
            self.step(format!(
                "The host reports no packages: the first core, {housekeeping:#}, is reserved \
                               for housekeeping."
            ));
        }
        housekeeping
    }

    /// The core with the lowest CPU of a group.
    fn first_core(&self, group: &CpuSet) -> CpuSet {
        let Some(lowest) = group.lowest() else { return CpuSet::new() };
        let core = self.core_of.get(&lowest).and_then(|at| self.topology.cores.get(*at));
        core.map_or_else(|| CpuSet::of(lowest), |core| core.cpus.clone()).intersection(&self.topology.online)
    }

    /// Rule 5: one core only, away from the trading NICs if there is a choice.
    fn one_core(&mut self, nic_nodes: &[u32]) -> CpuSet {
        let topology = self.topology;
        let is_near = |core: &Group| {
            core.cpus.iter().any(|cpu| topology.node_of(cpu).is_some_and(|n| nic_nodes.contains(&n.id)))
        };
        let far = topology.cores.iter().find(|core| !is_near(core));
        let core = far.or(topology.cores.first()).map(|core| core.cpus.clone()).unwrap_or_default();
        self.step(format!(
            "One core for each package and node would leave nothing to isolate: only {core:#} is reserved \
             for housekeeping{}.",
            if far.is_some() && !nic_nodes.is_empty() { ", away from the trading NICs" } else { "" }
        ));
        self.warn("Packages or nodes without a housekeeping core do their kernel work remotely.".into());
        core
    }

    /// Rule 4: whole clusters and last-level caches on one side if that is cheap.
    fn grow(&mut self, mut housekeeping: CpuSet) -> CpuSet {
        let topology = self.topology;
        let llcs: Vec<CpuSet> = topology.llcs().into_iter().map(|llc| llc.cpus.clone()).collect();
        let clusters: Vec<CpuSet> = topology.clusters.iter().map(|cluster| cluster.cpus.clone()).collect();
        for (what, groups) in [("cluster", clusters), ("last-level cache", llcs)] {
            for group in groups {
                let group = group.intersection(&topology.online);
                let is_cut = !group.is_disjoint(&housekeeping) && !group.is_subset(&housekeeping);
                if is_cut && self.is_cheap(&housekeeping.union(&group), &group) {
                    self.step(format!(
                        "{group:#} share a {what} with housekeeping, which grows to all of them, so that no \
                         isolated CPU loses cache lines to it."
                    ));
                    housekeeping.extend(group.iter());
                }
            }
        }
        housekeeping
    }

    /// True if `grown` has at most a quarter of the cores in the node (or host) of `group`.
    fn is_cheap(&self, grown: &CpuSet, group: &CpuSet) -> bool {
        let topology = self.topology;
        let node = topology
            .nodes
            .iter()
            .find(|node| !node.cpus.is_disjoint(group))
            .map_or(&topology.online, |n| &n.cpus);
        let cores_in = |set: &CpuSet| self.first_threads.intersection(set).len();
        cores_in(&grown.intersection(node)) * GROW_TO_ONE_CORE_IN <= cores_in(node)
    }

    fn note_nics(&mut self, nic_nodes: &[u32]) {
        let near: CpuSet = nic_nodes
            .iter()
            .filter_map(|id| self.topology.nodes.iter().find(|node| node.id == *id))
            .flat_map(|node| node.cpus.iter().collect::<Vec<_>>())
            .filter(|cpu| self.allocation.isolated.contains(*cpu))
            .collect();
        if self.topology.nodes.len() > 1 && !near.is_empty() {
            self.step(format!(
                "NUMA nodes of the trading NICs: {}. Use isolated {near:#} first for threads that use the \
                 network.",
                nic_nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            ));
        }
        self.allocation.isolated_near_nics = near;
    }

    fn warn_of_the_boot_cpu(&mut self) {
        if self.allocation.isolated.contains(BOOT_CPU) {
            self.warn(BOOT_CPU_ISOLATED.into());
        }
    }

    fn warn_of_sharing(&mut self) {
        let topology = self.topology;
        let (housekeeping, isolated) =
            (self.allocation.housekeeping.clone(), self.allocation.isolated.clone());
        let shared_by = |groups: &mut dyn Iterator<Item = &CpuSet>| {
            let shared = groups.filter(|group| !group.is_disjoint(&housekeeping));
            shared
                .flat_map(|group| group.intersection(&isolated).iter().collect::<Vec<_>>())
                .collect::<CpuSet>()
        };
        let cores = shared_by(&mut topology.cores.iter().map(|core| &core.cpus));
        let clusters =
            shared_by(&mut topology.clusters.iter().map(|cluster| &cluster.cpus)).difference(&cores);
        let llcs = shared_by(&mut topology.llcs().into_iter().map(|llc| &llc.cpus))
            .difference(&cores)
            .difference(&clusters);
        for (cpus, what) in [(cores, "core"), (clusters, "cluster"), (llcs, "last-level cache")] {
            if !cpus.is_empty() {
                self.warn(format!(
                    "Chosen for isolation, but sharing a {what} with housekeeping: {cpus:#}. Work there can slow a trading \
                     thread although it does not interrupt it."
                ));
            }
        }
    }
}

fn has_cpus_and_memory(node: &Node) -> bool {
    // A node with unknown memory is assumed to have some, in favour of the kernel's needs.
    !node.cpus.is_empty() && node.memory_bytes.known() != Some(&0)
}
