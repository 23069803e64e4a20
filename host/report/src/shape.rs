//! Host as a tree: packages, NUMA nodes, last-level caches, clusters, cores, nested by their CPUs.

use lowlat_host::{
    CpuSet, Topology,
    topology::{Cache, CacheKind, Group, Node},
};
use lowlat_text::units::size;

/// Kind of a block of CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Package,
    Node,
    Llc,
    /// A cluster below the last-level cache.
    Cluster,
    Core,
}

/// Name of a block: its kind, and its label with and without the kernel's number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub kind: Kind,
    /// Label with number: "node 1 (251 GiB)".
    pub label: String,
    /// Label without number: "L3 16 MiB", "core".
    pub shape: String,
    /// The kernel's number of a NUMA node.
    pub node: Option<u32>,
}

/// CPUs that belong together. A block with the same CPUs as its only child is merged with it and has both names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuBlock {
    /// Names of the block, outermost first.
    pub names: Vec<Name>,
    pub cpus: CpuSet,
    /// The blocks inside, by lowest CPU; empty for the innermost.
    pub children: Vec<CpuBlock>,
}

impl CpuBlock {
    /// Returns its names with numbers.
    pub fn label(&self) -> String {
        self.names.iter().map(|name| name.label.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Returns its names without numbers, which are equal for similar blocks.
    pub fn shape(&self) -> String {
        self.names.iter().map(|name| name.shape.as_str()).collect::<Vec<_>>().join(" + ")
    }

    /// Returns whether it is of this kind.
    pub fn is(&self, kind: Kind) -> bool {
        self.names.iter().any(|name| name.kind == kind)
    }

    /// Returns the NUMA nodes among its names.
    pub fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        self.names.iter().filter_map(|name| name.node)
    }
}

/// Highest number of cores to compare with the caches; pictures show no more.
const OWN_CACHE_CORES_MAX: usize = 4_096;

type Level = Vec<(Name, CpuSet)>;

/// Builds the tree of the online CPUs.
pub fn tree(topology: &Topology) -> Vec<CpuBlock> {
    let mut levels: Vec<Level> = vec![
        topology.packages.iter().map(|group| numbered(Kind::Package, "package", group)).collect(),
        topology.nodes.iter().filter(|node| !node.cpus.is_empty()).map(node_of).collect(),
        llcs(topology),
        topology.clusters.iter().map(|group| numbered(Kind::Cluster, "cluster", group)).collect(),
        topology.cores.iter().map(|group| numbered(Kind::Core, "core", group)).collect(),
    ];
    // A last-level cache can span nodes (sub-NUMA clustering), and a node can span packages: wider groups go outside.
    levels.retain(|level| !level.is_empty());
    levels.sort_by_key(|level| std::cmp::Reverse(widest(level)));
    nest(&topology.online, &levels)
}

fn widest(level: &Level) -> usize {
    level.iter().map(|(_, cpus)| cpus.len()).max().unwrap_or(0)
}

/// Returns the last-level caches. The search is by cache, not by CPU, to stay fast on a host of a thousand CPUs.
fn llcs(topology: &Topology) -> Level {
    let holds_data = |cache: &&Cache| cache.kind != CacheKind::Instruction;
    let mut caches: Vec<&Cache> = topology.caches.iter().filter(holds_data).collect();
    caches.sort_by_key(|cache| std::cmp::Reverse(cache.level));
    let mut seen = CpuSet::new();
    let mut level = Level::new();
    for cache in caches {
        // First-level caches are never a boundary worth naming.
        if cache.level >= 2 && cache.cpus.is_disjoint(&seen) && !cache.cpus.is_empty() {
            seen = seen.union(&cache.cpus);
            let shape = match cache.size_bytes.known() {
                Some(bytes) => format!("L{} {}", cache.level, size(*bytes)),
                None => format!("L{}", cache.level),
            };
            let name = Name { kind: Kind::Llc, label: shape.clone(), shape, node: None };
            level.push((name, cache.cpus.clone()));
        }
    }
    level.sort_by_key(|(_, cpus)| cpus.lowest());
    level
}

fn numbered(kind: Kind, word: &str, group: &Group) -> (Name, CpuSet) {
    let label = if group.id < 0 { word.to_owned() } else { format!("{word} {}", group.id) };
    (Name { kind, label, shape: word.to_owned(), node: None }, group.cpus.clone())
}

fn node_of(node: &Node) -> (Name, CpuSet) {
    let memory = node.memory_bytes.known().map_or_else(String::new, |bytes| format!(" ({})", size(*bytes)));
    let label = format!("node {}{memory}", node.id);
    (Name { kind: Kind::Node, label, shape: "node".to_owned(), node: Some(node.id) }, node.cpus.clone())
}

/// Nests the groups of each level inside those of the previous one. CPUs outside every group pass through.
fn nest(cpus: &CpuSet, levels: &[Level]) -> Vec<CpuBlock> {
    let Some((level, inner)) = levels.split_first() else { return Vec::new() };
    let mut left = cpus.clone();
    let mut blocks = Vec::new();
    for (name, group) in level {
        let own = group.intersection(&left);
        if own.is_empty() {
            continue;
        }
        left = left.difference(&own);
        blocks.push(merged(CpuBlock { names: vec![name.clone()], children: nest(&own, inner), cpus: own }));
    }
    if !left.is_empty() {
        blocks.extend(nest(&left, inner));
    }
    blocks.sort_by_key(|block| block.cpus.lowest());
    blocks
}

fn merged(mut block: CpuBlock) -> CpuBlock {
    if block.children.len() == 1
        && block.children[0].cpus == block.cpus
        && let Some(child) = block.children.pop()
    {
        block.names.extend(child.names);
        block.children = child.children;
    }
    block
}

/// Returns the nodes with memory but no CPU.
pub fn memory_only(topology: &Topology) -> impl Iterator<Item = &Node> {
    topology.nodes.iter().filter(|node| node.cpus.is_empty())
}

/// Returns the name of the last-level cache if every core has a private one: boxes around single cores would add
/// nothing.
pub fn own_cache(topology: &Topology) -> Option<String> {
    if topology.cores.len() > OWN_CACHE_CORES_MAX {
        return None;
    }
    let llcs = llcs(topology);
    let is_own = |cpus: &CpuSet| topology.cores.iter().any(|core| core.cpus == *cpus);
    let (first, _) = llcs.first()?;
    let same = llcs.iter().all(|(name, cpus)| name.shape == first.shape && is_own(cpus));
    (same && llcs.len() > 1).then(|| first.shape.clone())
}
